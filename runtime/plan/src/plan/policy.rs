//! The policies of a plan: components that judge tool calls and edges, and how a plan prints them.
//!
//! Plain data. The plan's digest covers the name and the digest of each policy.

use super::Plan;
use glovebox_host::inspect::Inspection;
use glovebox_host::policy::PolicyComponent;
use glovebox_record::Digest;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// A policy of the operator.
#[derive(Clone)]
pub struct BoundPolicy {
    /// The name of the policy's table in `glovebox.toml`.
    pub name: String,
    /// The component.
    pub component: PolicyBinding,
}

/// The component of a policy.
#[derive(Clone)]
pub enum PolicyBinding {
    /// A compiled component, which can be asked.
    Loaded(Arc<PolicyComponent>),
    /// A component that may not run, or is only checked: nothing was compiled.
    Unlocked(Arc<Inspection>),
}

impl BoundPolicy {
    /// Returns the component's digest.
    pub fn digest(&self) -> Digest {
        match &self.component {
            PolicyBinding::Loaded(component) => component.inspection().digest,
            PolicyBinding::Unlocked(inspection) => inspection.digest,
        }
    }
}

impl Plan {
    pub(super) fn printed_policies(&self) -> Vec<PlanPolicy<'_>> {
        let printed = self.checks.policies.iter();
        printed.map(|policy| PlanPolicy { name: &policy.name, digest: policy.digest() }).collect()
    }
}

/// A policy of the operator, as a plan prints it.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanPolicy<'a> {
    /// The name of the policy's table in `glovebox.toml`.
    pub name: &'a str,
    /// BLAKE3 of the component's bytes.
    pub digest: Digest,
}

impl fmt::Display for PlanPolicy<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: judges tool calls and edges; {}", self.name, self.digest)
    }
}
