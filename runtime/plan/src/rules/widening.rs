//! Compares what a pipeline may do after a rule plugin changed it with what its file allows.
//!
//! A plugin with `transform = true` can write every attribute of the pipeline. So the plans are compared, not the
//! graphs. A pipeline is wider if it has a capability that the plan of the file does not cover, raises a limit, opts
//! out of a protection of hold-outs, or lacks a check. If the file has no plan, it allows nothing, so everything is
//! wider.

mod bound;

use super::RulePlugin;
use crate::config::TransformGrant;
use crate::plan::compare::{Addition, additions};
use crate::plan::{Capability, HoldoutAccess, Plan, PlanCapabilities};
use bound::Bounds;
use glovebox_pipeline::ir::{Handler, HandlerKind, NodeId, Pipeline};
use glovebox_pipeline::transform::RuleRecord;
use glovebox_record::{HookKind, Need, RunBounds, Tier};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A pipeline before or after a transform.
#[derive(Debug, Clone)]
pub struct TransformStep {
    /// The position, in the rule set, of the plugin that made the pipeline. `None` for the user's file as it was read.
    pub plugin: Option<usize>,
    /// The pipeline. `None` if it has errors.
    pub pipeline: Option<Pipeline>,
}

impl TransformStep {
    pub(super) fn new(plugin: &RulePlugin, pipeline: Option<Pipeline>) -> Self {
        Self { plugin: Some(plugin.position), pipeline }
    }
}

/// The capabilities of a plan that a transform must not widen. The default is empty.
#[derive(Debug, Clone, Default)]
pub struct Extent {
    capabilities: PlanCapabilities,
    limits: Vec<Addition>,
    opt_outs: BTreeSet<String>,
    checks: BTreeSet<Check>,
    bounds: Bounds,
}

/// A check of the work of stages, or of the machines on which it is done.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    Gate(NodeId),
    Question(NodeId),
    Command(NodeId, String),
    Hook(NodeId, HookKind, String),
    Need(NodeId, String),
}

/// Something that one plan allows and another plan does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wider(What);

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Capability(Addition),
    OptOut(String),
    Gone(Check),
    Raised(bound::Bound, Option<u64>),
}

impl fmt::Display for Wider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Capability(Addition { node: Some(node), capability }) => write!(f, "node `{node}`: {capability}"),
            What::Capability(Addition { node: None, capability }) => write!(f, "the run: {capability}"),
            What::OptOut(text) => write!(f, "hold-outs: {text}"),
            What::Raised(bound, Some(most)) => write!(f, "{bound} is raised to {most}"),
            What::Raised(bound, None) => write!(f, "{bound} is no longer set"),
            What::Gone(Check::Gate(node)) => write!(f, "node `{node}`: no longer a goal gate"),
            What::Gone(Check::Question(node)) => write!(f, "node `{node}`: no longer asks a person"),
            What::Gone(Check::Hook(node, kind, text)) => {
                write!(f, "node `{node}`: its tool calls no longer have `tool_hooks.{kind}` {text}")
            }
            What::Gone(Check::Need(node, entry)) => {
                write!(f, "node `{node}`: no longer runs only on machines with {entry}")
            }
            What::Gone(Check::Command(node, text)) => write!(f, "node `{node}`: no longer checks with {text}"),
        }
    }
}

impl Extent {
    /// Returns the extent of a plan within the run's bounds.
    pub fn new(plan: &Plan, bounds: RunBounds) -> Self {
        let mut extent = Self { capabilities: plan.capabilities(bounds), ..Self::default() };
        extent.bounds = Bounds::from_pipeline(&plan.pipeline);
        extent.opt_outs.extend(plan.holdout_plan().opt_outs);
        for (node, need) in &plan.placement.needs {
            extent.checks.extend(implied(need).into_iter().map(|entry| Check::Need(node.clone(), entry)));
        }
        for node in plan.pipeline.stages() {
            if node.checks.goal_gate {
                extent.checks.insert(Check::Gate(node.id.clone()));
            }
            if node.handler == Handler::Human {
                extent.checks.insert(Check::Question(node.id.clone()));
            }
            let Some(binding) = plan.binding(&node.id) else { continue };
            let of_node =
                |(name, value)| Addition { node: Some(node.id.clone()), capability: Capability::Limit(name, value) };
            extent.limits.extend(binding.limits.iter().map(of_node));
            let hooks = binding.hooks.iter().map(|(kind, text)| Check::Hook(node.id.clone(), kind, text.to_owned()));
            extent.checks.extend(hooks);
            let verifies = !binding.is_builder()
                && (node.checks.goal_gate
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

    /// Returns only the capabilities.
    pub fn capabilities(&self) -> &PlanCapabilities {
        &self.capabilities
    }

    /// Returns everything that this extent allows and another does not.
    pub fn minus(&self, other: &Extent) -> Vec<Wider> {
        let more = additions(&other.capabilities, &self.capabilities).into_iter().map(What::Capability).map(Wider);
        more.filter(|wider| !other.allows(wider)).chain(self.loosened(other)).collect()
    }

    /// Returns the limits and checks that are looser than those of another plan.
    pub fn loosened(&self, other: &Extent) -> Vec<Wider> {
        // The capabilities of a new node are reported, but not its limits.
        let is_known =
            |limit: &&Addition| limit.node.as_ref().is_some_and(|node| other.capabilities.nodes.contains_key(node));
        let limits = self.limits.iter().filter(is_known).cloned();
        let opt_outs = self.opt_outs.iter().cloned().map(What::OptOut);
        // A need of a stage that no longer exists holds for nothing.
        let holds = |check: &&Check| match check {
            Check::Need(node, _) => self.capabilities.nodes.contains_key(node),
            _ => true,
        };
        let gone = other.checks.difference(&self.checks).filter(holds).cloned().map(What::Gone);
        let raised = self.bounds.instead_of(&other.bounds).map(|(bound, most)| What::Raised(bound, most));
        let all = limits.map(What::Capability).chain(opt_outs).chain(gone).chain(raised).map(Wider);
        all.filter(|wider| !other.allows(wider)).collect()
    }

    fn allows(&self, wider: &Wider) -> bool {
        match &wider.0 {
            What::Capability(Addition { node, capability: limit @ Capability::Limit(..) }) => {
                let own = self.limits.iter().filter(|own| own.node == *node);
                limit.minus(own.map(|own| &own.capability)).is_empty()
            }
            What::Capability(Addition { node: Some(node), capability }) => {
                self.capabilities.nodes.get(node).is_some_and(|own| own.allows(capability))
            }
            What::Capability(Addition { node: None, capability }) => self.capabilities.run.allows(capability),
            What::OptOut(text) => self.opt_outs.contains(text),
            What::Gone(check) => !self.checks.contains(check),
            What::Raised(bound, most) => self.bounds.allow(bound, *most),
        }
    }
}

/// Returns the entries of a need, with each weaker tier, so that a stronger tier is not a missing one.
fn implied(need: &Need) -> Vec<String> {
    let tiers = Tier::CONFINING.into_iter().filter(|tier| need.tier.is_some_and(|needed| *tier < needed));
    need.entries().into_iter().chain(tiers.map(|tier| format!("tier={tier}"))).collect()
}

/// Returns what each plugin widened, by its position in the rule set. Everything that the last plan allows and the
/// first does not is attributed to the last plugin whose input did not allow it. Each extent comes with the plugin that
/// made its pipeline.
pub fn attributed(extents: &[(Option<usize>, Extent)]) -> BTreeMap<usize, Vec<Wider>> {
    let mut found: BTreeMap<usize, Vec<Wider>> = BTreeMap::new();
    let (Some((_, file)), Some((_, last))) = (extents.first(), extents.last()) else { return found };
    for wider in last.minus(file) {
        let step = extents.windows(2).rev().find(|step| !step[0].1.allows(&wider));
        if let Some((Some(plugin), _)) = step.map(|step| &step[1]) {
            found.entry(*plugin).or_default().push(wider);
        }
    }
    found
}

/// Returns true if a plugin with this grant may have widened the pipeline as recorded.
pub fn is_accepted(grant: TransformGrant, rule: &RuleRecord) -> bool {
    rule.widened.is_empty() || grant == TransformGrant::Widen
}
