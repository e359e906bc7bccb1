//! How a plan prints what verification stages run beside their plans. The plan's digest covers it, contracts included.

use crate::verify::{CONTRACT_PATH, Phase, Verify};
use glovebox_record::no_change::NoChangeRule;
use glovebox_record::{Digest, NodeId, VerifyLimits};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The settings of verification stages.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanVerify<'a> {
    /// The phase that completes a plan.
    pub planner: PlanPhase<'a>,
    /// Whether it completes a plan with commands too.
    pub augment_nonempty: bool,
    /// The additions.
    pub worker: PlanPhase<'a>,
    /// Whether a command of the worker that cannot run is left out.
    pub skip_invalid_auto_command: bool,
    /// Times that the list of commands is adjusted in one attempt.
    pub recovery_attempts: u32,
    /// Whether an adjustment may drop a command of the plan.
    pub recovery_allow_explicit: bool,
    /// Times that an agent is asked once more for a plan that can run.
    pub plan_parse_retries: u32,
    /// Seconds that it gets to answer a question for a better plan.
    pub reconcile_timeout_seconds: u32,
    /// The commands of the project's kind.
    pub fallback: Vec<&'a str>,
    /// How often work is repeated after a failed verification.
    pub retry: VerifyLimits,
}

/// One phase.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanPhase<'a> {
    /// Where it takes commands from.
    pub mode: &'static str,
    /// BLAKE3 of the contract that it reads; absent where it reads none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Digest>,
    /// The contract's file as the operator names it; absent where it is looked for at its usual place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_path: Option<&'a str>,
    /// Commands that it adds at most.
    pub max_commands: usize,
    /// Seconds that a model gets to answer a question for a plan that is missing.
    pub plan_timeout_seconds: u32,
}

impl<'a> PlanVerify<'a> {
    pub(super) fn new(verify: &'a Verify) -> Self {
        Self {
            planner: PlanPhase::new(&verify.planner),
            augment_nonempty: verify.augment_nonempty,
            worker: PlanPhase::new(&verify.worker),
            skip_invalid_auto_command: verify.skips_invalid,
            recovery_attempts: verify.recovery_attempts,
            recovery_allow_explicit: verify.recovers_explicit,
            plan_parse_retries: verify.plan_parse_retries,
            reconcile_timeout_seconds: verify.reconcile_timeout_seconds,
            fallback: verify.fallback.iter().map(|command| command.line.as_str()).collect(),
            retry: verify.retry,
        }
    }
}

impl fmt::Display for PlanVerify<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "planner {}, worker {}", self.planner.mode, self.worker.mode)?;
        let contracts = [&self.planner, &self.worker].into_iter().filter(|phase| phase.contract.is_some());
        let paths: BTreeSet<&str> = contracts.map(|phase| phase.contract_path.unwrap_or(CONTRACT_PATH)).collect();
        paths.into_iter().try_for_each(|path| write!(f, ", contract {path}"))
    }
}

impl<'a> PlanPhase<'a> {
    fn new(phase: &'a Phase) -> Self {
        Self {
            mode: phase.mode.as_str(),
            contract: phase.contract().map(|contract| contract.digest),
            contract_path: phase.contract_path.as_deref(),
            max_commands: phase.commands_max,
            plan_timeout_seconds: phase.plan_timeout_seconds,
        }
    }
}

/// The rule for agents that change nothing.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanNoChange<'a> {
    /// Times that the work of a visit is repeated.
    pub recovery_attempts: u32,
    /// How work that changed nothing is confirmed: `verify` or `off`.
    pub confirm_mode: &'static str,
    /// The nodes that it holds for.
    pub nodes: &'a BTreeSet<NodeId>,
}

impl<'a> PlanNoChange<'a> {
    pub(super) fn new(rule: &'a NoChangeRule) -> Self {
        let NoChangeRule { setting, nodes } = rule;
        Self { recovery_attempts: setting.recovery_attempts, confirm_mode: setting.confirm.as_str(), nodes }
    }
}

impl fmt::Display for PlanNoChange<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes: Vec<&str> = self.nodes.iter().map(NodeId::as_str).collect();
        let (attempts, nodes) = (self.recovery_attempts, nodes.join(", "));
        write!(f, "at most {attempts} repetitions, confirm {}: {nodes}", self.confirm_mode)
    }
}
