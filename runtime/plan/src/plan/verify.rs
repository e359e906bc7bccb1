//! The verify settings in a printed plan: the commands that verification stages run in addition to a model's plan. The plan's
//! digest covers them, including the contracts.

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
    /// The phase that completes a model's plan.
    pub planner: PlanPhase<'a>,
    /// True if the planner also completes a plan that has commands.
    pub augment_nonempty: bool,
    /// The phase that adds commands after the plan.
    pub worker: PlanPhase<'a>,
    /// True if a command of the worker that cannot run is skipped.
    pub skip_invalid_auto_command: bool,
    /// Maximum number of adjustments of the command list in one attempt.
    pub recovery_attempts: u32,
    /// True if an adjustment may remove a command of the plan.
    pub recovery_allow_explicit: bool,
    /// Maximum number of times that an agent is asked again for a plan that can run.
    pub plan_parse_retries: u32,
    /// Maximum time of the model's answer when it is asked to correct its plan, in seconds.
    pub reconcile_timeout_seconds: u32,
    /// The test commands of the project's kind.
    pub fallback: Vec<&'a str>,
    /// How often work is repeated after a failed verification.
    pub retry: VerifyLimits,
}

/// The settings of one phase.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanPhase<'a> {
    /// The sources of the phase's commands, as the name of a mode.
    pub mode: &'static str,
    /// BLAKE3 of the contract that the phase reads. Absent if it reads none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract: Option<Digest>,
    /// The path of the contract as the operator names it. Absent for the default path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contract_path: Option<&'a str>,
    /// Maximum number of commands that the phase adds.
    pub max_commands: usize,
    /// Maximum time of the model's answer when it is asked for a missing plan, in seconds.
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
    /// Maximum number of times that the work of a visit is repeated.
    pub recovery_attempts: u32,
    /// How work that changed nothing is confirmed: `verify` or `off`.
    pub confirm_mode: &'static str,
    /// The nodes to which the rule applies.
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
