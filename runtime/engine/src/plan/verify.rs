//! How a plan prints what verification stages run beside their plans. The plan's digest covers it, contracts included.

use crate::verify::{CONTRACT_PATH, Phase, Verify};
use glovebox_record::{Digest, VerifyLimits};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;

/// The settings of verification stages.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanVerify<'a> {
    /// What completes a plan.
    pub planner: PlanPhase<'a>,
    /// Whether it completes a plan with commands too.
    pub augment_nonempty: bool,
    /// What is added by what changed.
    pub worker: PlanPhase<'a>,
    /// Whether a command of the worker that cannot run is left out.
    pub skip_invalid_auto_command: bool,
    /// Times that the list of commands is adjusted in one attempt.
    pub recovery_attempts: u32,
    /// Whether an adjustment may drop a command of the plan.
    pub recovery_allow_explicit: bool,
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
}

impl<'a> PlanVerify<'a> {
    pub(super) fn of(verify: &'a Verify) -> Self {
        Self {
            planner: PlanPhase::of(&verify.planner),
            augment_nonempty: verify.augment_nonempty,
            worker: PlanPhase::of(&verify.worker),
            skip_invalid_auto_command: verify.skips_invalid,
            recovery_attempts: verify.recovery_attempts,
            recovery_allow_explicit: verify.recovers_explicit,
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
    fn of(phase: &'a Phase) -> Self {
        Self {
            mode: phase.mode.as_str(),
            contract: phase.contract().map(|contract| contract.digest),
            contract_path: phase.contract_path.as_deref(),
            max_commands: phase.commands_max,
        }
    }
}
