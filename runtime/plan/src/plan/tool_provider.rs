//! The tool providers of a plan: the plugins whose tools a node may call, what each gets, and how a plan prints them.
//!
//! Plain data. The printed properties of a provider are covered by the plan's digest.

use super::{Plan, ServerGrant};
use glovebox_host::grants::FileTier;
use glovebox_host::inspect::Inspection;
use glovebox_host::tool_provider::ToolProvider;
use glovebox_host::tools::AllowedTools;
use glovebox_record::scope::Scope;
use glovebox_record::{Digest, Limits};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A plugin whose tools a node may call.
#[derive(Debug, Clone)]
pub struct BoundProvider {
    /// The name of the plugin.
    pub name: String,
    /// The component.
    pub component: ProviderComponent,
    /// The tools that the node may call.
    pub tools: AllowedTools,
    /// How the component reaches files.
    pub tier: FileTier,
    /// The part of the workspace that the component reads. It has no writable path.
    pub scope: Scope,
    /// Limits of one call.
    pub limits: Limits,
}

/// The component of a provider.
#[derive(Clone)]
pub enum ProviderComponent {
    /// A compiled component, which can be called.
    Loaded(Arc<ToolProvider>),
    /// A component that may not run, or is only checked: nothing was compiled.
    Unlocked(Arc<Inspection>),
}

impl fmt::Debug for ProviderComponent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProviderComponent").field(&self.inspection().digest).finish()
    }
}

impl ProviderComponent {
    /// Returns the inspection of the component's bytes.
    pub fn inspection(&self) -> &Inspection {
        match self {
            Self::Loaded(component) => component.inspection(),
            Self::Unlocked(inspection) => inspection,
        }
    }

    /// Returns the component to call. `None` for a component that may not run.
    pub fn loaded(&self) -> Option<&Arc<ToolProvider>> {
        match self {
            Self::Loaded(component) => Some(component),
            Self::Unlocked(_) => None,
        }
    }
}

impl BoundProvider {
    /// Returns all grants of the provider for its node.
    pub fn grants(&self) -> impl Iterator<Item = ServerGrant> {
        let tools = match &self.tools {
            AllowedTools::All => vec![ServerGrant::AnyTool],
            AllowedTools::Named(names) => names.iter().cloned().map(ServerGrant::Tool).collect(),
        };
        tools.into_iter().chain(self.scope.read.iter().cloned().map(ServerGrant::Read))
    }

    /// Returns the component's digest.
    pub fn digest(&self) -> Digest {
        self.component.inspection().digest
    }
}

impl Plan {
    pub(super) fn printed_providers(&self) -> Vec<PlanToolProvider<'_>> {
        let mut found: BTreeMap<&str, PlanToolProvider<'_>> = BTreeMap::new();
        for provider in self.bindings.values().flat_map(|binding| &binding.providers) {
            let printed = found.entry(&provider.name).or_insert_with(|| PlanToolProvider::new(provider));
            printed.add(provider);
        }
        found.into_values().collect()
    }
}

/// A plugin whose tools some node may call.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanToolProvider<'a> {
    /// The name of the plugin.
    pub name: &'a str,
    /// BLAKE3 of the component's bytes.
    pub digest: Digest,
    /// How the component reaches files: `none`, `workspace` or `posix`.
    pub filesystem: &'static str,
    /// The parts of the workspace that the component reads, for all nodes together.
    pub read: BTreeSet<String>,
    /// The tools that nodes may call; `*` for all.
    pub tools: BTreeSet<&'a str>,
    /// Limits of one call, by name.
    pub limits: BTreeMap<&'static str, u64>,
}

impl<'a> PlanToolProvider<'a> {
    fn new(provider: &'a BoundProvider) -> Self {
        Self {
            name: &provider.name,
            digest: provider.digest(),
            filesystem: provider.tier.as_str(),
            read: BTreeSet::new(),
            tools: BTreeSet::new(),
            limits: provider.limits.iter().map(|(name, value)| (name.as_str(), value)).collect(),
        }
    }

    fn add(&mut self, provider: &'a BoundProvider) {
        self.read.extend(provider.scope.read.iter().map(ToString::to_string));
        match &provider.tools {
            AllowedTools::All => self.tools.extend(["*"]),
            AllowedTools::Named(names) => self.tools.extend(names.iter().map(String::as_str)),
        }
    }
}

/// Writes the provider on one line, with everything that it gets.
impl fmt::Display for PlanToolProvider<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read: Vec<&str> = self.read.iter().map(String::as_str).collect();
        let read = if read.is_empty() { "nothing".to_owned() } else { read.join(", ") };
        let tools: Vec<&str> = self.tools.iter().copied().collect();
        write!(f, "{}: tools {}; reads {read}; no network; {}", self.name, tools.join(", "), self.digest)
    }
}
