//! Policies: components that judge tool calls of agents and edges of a run, and can reach nothing else.
//!
//! A policy imports no function. It gets JSON and answers with permission or with the reason of a refusal. [`crate::judgement`] decides
//! what follows from the answer.

use crate::component::LoadError;
use crate::host::Host;
use crate::inspect::Inspection;
use crate::isolated::{self, CallFault, IsolatedComponent, IsolatedStart};
use crate::judgement::{AskPolicy, Question};
use contract::Policy;
use glovebox_record::{LimitSettings, Limits};
use std::sync::Arc;

#[allow(unreachable_pub, clippy::all, unused_qualifications)]
mod contract {
    wasmtime::component::bindgen!({ path: "../../wit", world: "glovebox:plugin/policy" });
}

/// The interface that a policy exports.
const EXPORTED: &str = "policy-rules";
/// Wall time of one judgement, unless the operator's limit is lower.
const WALL_MS: u64 = 1_000;
/// Maximum length of the answer to one question, in bytes.
const ANSWER_BYTES: u64 = 64 << 10;

/// A policy that was checked and compiled.
pub struct PolicyComponent(IsolatedComponent);

impl Host {
    /// Loads a policy of at most `component_bytes`. Refuses one that imports any function before it is compiled.
    pub fn load_policy(&self, bytes: &[u8], component_bytes: u64) -> Result<Arc<PolicyComponent>, LoadError> {
        Ok(Arc::new(PolicyComponent(self.load_isolated(bytes, component_bytes, check)?)))
    }
}

/// Checks that a component exports a policy and imports no function.
pub fn check(inspection: &Inspection) -> Result<(), LoadError> {
    isolated::check(inspection, EXPORTED, LoadError::PolicyImport, LoadError::NoPolicy)
}

impl PolicyComponent {
    /// Returns the result of inspecting the bytes.
    pub fn inspection(&self) -> &Inspection {
        &self.0.inspection
    }

    /// Returns the function that asks this component, for the policies of a run.
    pub fn to_ask(self: &Arc<Self>) -> AskPolicy {
        let component = Arc::clone(self);
        AskPolicy::new(move |question, limits| component.judge(question, limits).map_err(|fault| fault.to_string()))
    }

    /// Asks about one action. The inner error is the reason with which the policy refuses the action.
    fn judge(&self, question: &Question, operator: &LimitSettings) -> Result<Result<(), String>, CallFault> {
        let mut limits = Limits { wall_ms: WALL_MS, hostcall_bytes: ANSWER_BYTES, ..Limits::default() };
        limits.lower(operator);
        self.0.call(&limits, |IsolatedStart { store, code, linker, started }| {
            let policy = Policy::instantiate(&mut *store, code, linker)?;
            *started = true;
            let rules = policy.glovebox_plugin_policy_rules();
            match question {
                Question::Call(json) => rules.call_judge_call(store, json),
                Question::Edge(json) => rules.call_judge_edge(store, json),
            }
        })
    }
}
