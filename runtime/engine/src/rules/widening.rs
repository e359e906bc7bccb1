//! What a pipeline may do after a component of rules has changed it, beside what it may do as its file has it.
//!
//! A component with `transform = true` can write every attribute of the pipeline. So the plans are compared, not the graphs. Wider is
//! every capability beyond the file's own, every raised limit, every opt-out of hold-outs, and every check that is gone. A file that
//! cannot be planned allows nothing, so everything is wider.

use crate::config::TransformGrant;
use crate::plan::compare::{Addition, additions};
use crate::plan::{Capability, CapabilitySet, HoldoutAccess, Plan, PlanCapabilities, RunBounds};
use glovebox_pipeline::Lowered;
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_pipeline::lower::handler::HandlerKind;
use glovebox_pipeline::validate;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The file as it was read, and what each component that changed it made of it, in order. Empty when none did.
#[derive(Debug, Clone, Default)]
pub struct Trail {
    file: Option<Lowered>,
    after: Vec<(String, Lowered)>,
}

impl Trail {
    /// Adds what a component made of a draft.
    pub(super) fn add(&mut self, name: &str, before: &Lowered, after: &Lowered) {
        self.file.get_or_insert_with(|| before.clone());
        self.after.push((name.to_owned(), after.clone()));
    }

    /// The pipelines in order, the file's own first, each with the component that made it. One with errors is none.
    pub fn pipelines(&self) -> Vec<(Option<&str>, Option<Pipeline>)> {
        let file = self.file.iter().map(|file| (None, file));
        let after = self.after.iter().map(|(name, after)| (Some(name.as_str()), after));
        file.chain(after).map(|(name, draft)| (name, validate(draft.clone()).pipeline)).collect()
    }
}

/// What a plan allows, as far as a transform must not widen it. The default allows nothing.
#[derive(Debug, Clone, Default)]
pub struct Extent {
    capabilities: PlanCapabilities,
    limits: BTreeMap<NodeId, CapabilitySet>,
    opt_outs: BTreeSet<String>,
    checks: BTreeSet<Check>,
}

/// Something that judges the work of others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    Gate(NodeId),
    Command(NodeId, String),
}

/// Something that one plan allows and another does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wider(What);

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Capability(Addition),
    OptOut(String),
    Gone(Check),
}

impl fmt::Display for Wider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Capability(Addition { node: Some(node), capability }) => write!(f, "node `{node}`: {capability}"),
            What::Capability(Addition { node: None, capability }) => write!(f, "the run: {capability}"),
            What::OptOut(text) => write!(f, "hold-outs: {text}"),
            What::Gone(Check::Gate(node)) => write!(f, "node `{node}`: is not a goal gate any more"),
            What::Gone(Check::Command(node, text)) => write!(f, "node `{node}`: does not check with {text} any more"),
        }
    }
}

impl Extent {
    /// What a plan allows within the run's bounds.
    pub fn of(plan: &Plan, bounds: RunBounds) -> Self {
        let mut extent = Self { capabilities: plan.capabilities(bounds), ..Self::default() };
        extent.opt_outs.extend(plan.holdout_plan().opt_outs);
        for node in &plan.pipeline.nodes {
            if node.goal_gate {
                extent.checks.insert(Check::Gate(node.id.clone()));
            }
            let Some(binding) = plan.binding(&node.id) else { continue };
            let limits = binding.limits.iter().map(|(name, value)| Capability::Limit(name, value));
            extent.limits.insert(node.id.clone(), limits.collect());
            let verifies = !binding.is_builder()
                && (node.goal_gate
                    || node.handler.kind() != HandlerKind::Tool
                    || binding.holdouts == HoldoutAccess::ReadOnly);
            if verifies {
                let argv = binding.commands.argv_prefixes.iter().map(|words| words.join(" "));
                let texts = binding.commands.shell_texts.iter().cloned().chain(argv);
                extent.checks.extend(texts.map(|text| Check::Command(node.id.clone(), text)));
            }
        }
        extent
    }

    /// Everything that this allows and another does not.
    pub fn minus(&self, other: &Extent) -> Vec<Wider> {
        let more = additions(&other.capabilities, &self.capabilities).into_iter().map(What::Capability);
        // A new node is reported by its capabilities, not by its limits.
        let known = self.limits.iter().filter(|(node, _)| other.capabilities.nodes.contains_key(*node));
        let limits = known.flat_map(|(node, limits)| limits.iter().map(move |limit| (node, limit)));
        let limits = limits.map(|(node, limit)| Addition { node: Some(node.clone()), capability: limit.clone() });
        let opt_outs = self.opt_outs.iter().cloned().map(What::OptOut);
        let gone = other.checks.difference(&self.checks).cloned().map(What::Gone);
        let all = more.chain(limits.map(What::Capability)).chain(opt_outs).chain(gone).map(Wider);
        all.filter(|wider| !other.allows(wider)).collect()
    }

    fn allows(&self, wider: &Wider) -> bool {
        match &wider.0 {
            What::Capability(Addition { node, capability }) => {
                let own = match node {
                    Some(node) if matches!(capability, Capability::Limit(..)) => self.limits.get(node),
                    Some(node) => self.capabilities.nodes.get(node),
                    None => Some(&self.capabilities.run),
                };
                own.unwrap_or(&CapabilitySet::default()).allows(capability)
            }
            What::OptOut(text) => self.opt_outs.contains(text),
            What::Gone(check) => !self.checks.contains(check),
        }
    }
}

/// What each component widened, by its name: of all that the last plan allows beyond the first, each by the last component before
/// which it was not allowed.
pub fn attributed(extents: &[(Option<&str>, Extent)]) -> BTreeMap<String, Vec<Wider>> {
    let mut found: BTreeMap<String, Vec<Wider>> = BTreeMap::new();
    let (Some((_, file)), Some((_, last))) = (extents.first(), extents.last()) else { return found };
    for wider in last.minus(file) {
        let step = extents.windows(2).rev().find(|step| !step[0].1.allows(&wider));
        if let Some((Some(name), _)) = step.map(|step| &step[1]) {
            found.entry((*name).to_owned()).or_default().push(wider);
        }
    }
    found
}

/// True when a component with this grant may have widened this much.
pub fn is_accepted(grant: TransformGrant, widened: &[String]) -> bool {
    widened.is_empty() || grant == TransformGrant::Widen
}
