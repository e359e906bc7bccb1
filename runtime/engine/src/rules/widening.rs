//! What a pipeline may do after a component of rules has changed it, beside what it may do as its file has it.
//!
//! A component with `transform = true` writes as much of the pipeline as its author, and has no name for a wall that it may not take
//! down: so the plans are compared, not the graphs. Wider is every power beyond the file's own, every limit that was raised, every
//! opt-out of hold-outs, and every check that is gone. A file that cannot be planned allows nothing, so that everything is wider.

use crate::config::TransformGrant;
use crate::plan::compare::{Widened, widened};
use crate::plan::power::Powers;
use crate::plan::{HoldoutAccess, Plan};
use glovebox_pipeline::Lowered;
use glovebox_pipeline::ir::Pipeline;
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
    powers: Powers,
    limits: BTreeMap<(String, &'static str), u64>,
    opt_outs: BTreeSet<String>,
    checks: BTreeSet<Check>,
}

/// Something that judges the work of others.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    Gate(String),
    Command(String, String),
}

/// Something that one plan allows and another does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wider(What);

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Power(Widened),
    Limit(String, &'static str, u64),
    OptOut(String),
    Gone(Check),
}

impl fmt::Display for Wider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            What::Power(Widened { node: Some(node), power }) => write!(f, "node `{node}`: {power}"),
            What::Power(Widened { node: None, power }) => write!(f, "the run: {power}"),
            What::Limit(node, name, value) => write!(f, "node `{node}`: limit {name} {value}"),
            What::OptOut(text) => write!(f, "hold-outs: {text}"),
            What::Gone(Check::Gate(node)) => write!(f, "node `{node}`: is not a goal gate any more"),
            What::Gone(Check::Command(node, text)) => write!(f, "node `{node}`: does not check with {text} any more"),
        }
    }
}

impl Extent {
    /// What a plan allows. `steps_max` and `wall_max_ms` are the run's bounds.
    pub fn of(plan: &Plan, steps_max: u64, wall_max_ms: Option<u64>) -> Self {
        let mut extent = Self { powers: plan.powers(steps_max, wall_max_ms), ..Self::default() };
        extent.opt_outs.extend(plan.holdout_plan().opt_outs);
        for node in &plan.pipeline.nodes {
            let id = node.id.to_string();
            if node.goal_gate {
                extent.checks.insert(Check::Gate(id.clone()));
            }
            let Some(binding) = plan.binding(&node.id) else { continue };
            extent.limits.extend(binding.limits.iter().map(|(name, value)| ((id.clone(), name), value)));
            let verifies = !binding.is_builder()
                && (node.goal_gate || binding.handler == "verify" || binding.holdouts == HoldoutAccess::ReadOnly);
            if verifies {
                let texts = binding.commands.shell_texts.iter();
                extent.checks.extend(texts.map(|text| Check::Command(id.clone(), text.clone())));
            }
        }
        extent
    }

    /// Everything that this allows and another does not.
    pub fn beyond(&self, other: &Extent) -> Vec<Wider> {
        let powers = widened(&other.powers, &self.powers).into_iter().map(What::Power);
        // A node that is new is told by its powers.
        let known = |node: &str| other.powers.nodes.contains_key(node);
        let limits = self.limits.iter().filter(|((node, _), _)| known(node));
        let limits = limits.map(|((node, name), value)| What::Limit(node.clone(), name, *value));
        let opt_outs = self.opt_outs.iter().cloned().map(What::OptOut);
        let gone = other.checks.difference(&self.checks).cloned().map(What::Gone);
        let all = powers.chain(limits).chain(opt_outs).chain(gone).map(Wider);
        all.filter(|wider| !other.allows(wider)).collect()
    }

    fn allows(&self, wider: &Wider) -> bool {
        match &wider.0 {
            What::Power(Widened { node, power }) => {
                let nothing = BTreeSet::new();
                let own = match node {
                    Some(node) => self.powers.nodes.get(node).unwrap_or(&nothing),
                    None => &self.powers.all,
                };
                power.beyond(own.iter()).is_empty()
            }
            What::Limit(node, name, value) => {
                self.limits.get(&(node.clone(), *name)).is_some_and(|allowed| allowed >= value)
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
    for wider in last.beyond(file) {
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
