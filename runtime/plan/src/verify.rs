//! The commands that a verification stage runs in addition to a model's plan: those of a verify contract, and the test
//! commands for the kind of project, such as Rust or Node (decision verify-contract).
//!
//! All of them are read from the project before the first stage, and the plan's digest covers them, so no stage can
//! change the commands that verify it. Two phases add commands. The planner completes the plan of a stage, and its
//! commands count as planned. The worker adds commands that depend on what changed, and its commands count as
//! automatic. This module opens no file.

mod base;
mod contract;
mod direct;
pub mod settings;

pub use base::{BaseFile, ContextBase};
pub use contract::{CONTRACT_BYTES_MAX, Contract, ContractProblem};
pub use direct::DirectCommand;

use glovebox_pipeline::ir::Node;
use glovebox_pipeline::key;
use glovebox_record::VerifyLimits;
use glovebox_record::no_change::NoChange;
use serde::Serialize;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// The default path of a contract (decision verify-contract).
pub const CONTRACT_PATH: &str = ".opentiger/verify.contract.json";
/// Default of `max_commands`: the maximum number of commands that a phase adds (decision verify-contract).
const COMMANDS_MAX: usize = 4;
/// Default of `recovery_attempts`: the maximum number of adjustments of the command list in one attempt
/// (decision command-list-adjustments).
const RECOVERY_ATTEMPTS: u32 = 5;

/// Default of `plan_timeout_seconds`: the maximum time of an agent's answer when it is asked for a missing plan
/// (decision plan-questions).
const PLAN_TIMEOUT_SECONDS: u32 = 120;
/// Default of `plan_parse_retries`: the maximum number of times that an agent is asked for a plan that can run
/// (decision plan-questions).
const PLAN_PARSE_RETRIES: u32 = 2;
/// Default of `reconcile_timeout_seconds`: the maximum time of an agent's answer when it is asked to correct its plan
/// (decision plan-questions).
const RECONCILE_TIMEOUT_SECONDS: u32 = 180;

/// The sources of a phase's commands (decision verification-modes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// No source.
    Off,
    /// The test commands for the kind of project, if there is no other command.
    Fallback,
    /// The contract.
    Contract,
    /// Only a model's plan.
    Llm,
    /// A model's plan and the verify contract. If neither has a command, the test commands for the kind of project.
    #[default]
    Hybrid,
}

impl Mode {
    /// All modes.
    pub const ALL: [Self; 5] = [Self::Off, Self::Fallback, Self::Contract, Self::Llm, Self::Hybrid];

    /// Returns the name of the mode.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Fallback => "fallback",
            Self::Contract => "contract",
            Self::Llm => "llm",
            Self::Hybrid => "hybrid",
        }
    }

    /// Returns true if the mode takes commands from the verify contract.
    pub fn reads_contract(self) -> bool {
        matches!(self, Self::Contract | Self::Hybrid)
    }

    /// Returns true if agents are asked for a plan.
    pub fn asks_model(self) -> bool {
        matches!(self, Self::Llm | Self::Hybrid)
    }

    /// Returns true if the mode takes the test commands for the kind of project.
    pub fn falls_back(self) -> bool {
        matches!(self, Self::Fallback | Self::Hybrid)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that is not the name of a mode.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownMode;

impl fmt::Display for UnknownMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<&str> = Mode::ALL.into_iter().map(Mode::as_str).collect();
        write!(f, "expected one of {}", words.join(", "))
    }
}

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(word: &str) -> Result<Self, UnknownMode> {
        Mode::ALL.into_iter().find(|mode| mode.as_str() == word).ok_or(UnknownMode)
    }
}

/// The settings of one phase that adds commands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// The sources of the commands.
    pub mode: Mode,
    /// The path of the verify contract, relative to the project. `None` for the default path, at which the file may be
    /// missing.
    pub contract_path: Option<String>,
    /// Maximum number of commands that the phase adds.
    pub commands_max: usize,
    /// Maximum time of the model's answer when it is asked for a missing plan, in seconds.
    pub plan_timeout_seconds: u32,
    /// The verify contract. `None` before the file is read, and if there is no file.
    pub contract: Option<Arc<Contract>>,
}

impl Default for Phase {
    fn default() -> Self {
        Self {
            mode: Mode::default(),
            contract_path: None,
            commands_max: COMMANDS_MAX,
            plan_timeout_seconds: PLAN_TIMEOUT_SECONDS,
            contract: None,
        }
    }
}

impl Phase {
    /// Returns the verify contract, if the mode reads it.
    pub fn contract(&self) -> Option<&Contract> {
        self.contract.as_deref().filter(|_| self.mode.reads_contract())
    }
}

/// The `[verify]` table, with the contents of the files that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    /// The phase that completes plans.
    pub planner: Phase,
    /// True if the planner also completes a plan that has commands.
    pub augment_nonempty: bool,
    /// The phase that adds commands that depend on what changed.
    pub worker: Phase,
    /// True if a command of the worker that cannot run is skipped.
    pub skips_invalid: bool,
    /// Maximum number of adjustments of the command list in one attempt.
    pub recovery_attempts: u32,
    /// True if an adjustment may remove a command of the plan.
    pub recovers_explicit: bool,
    /// Maximum number of times that an agent is asked again for a plan that can run.
    pub plan_parse_retries: u32,
    /// Maximum time of the model's answer when it is asked to correct its plan, in seconds.
    pub reconcile_timeout_seconds: u32,
    /// The rule for agents that change nothing. `None` unless the operator sets one.
    pub no_change: Option<NoChange>,
    /// The test commands of the project's kind.
    pub fallback: Vec<DirectCommand>,
    /// How often work is repeated after a failed verification.
    pub retry: VerifyLimits,
}

impl Default for Verify {
    fn default() -> Self {
        Self {
            planner: Phase::default(),
            augment_nonempty: false,
            worker: Phase::default(),
            skips_invalid: true,
            recovery_attempts: RECOVERY_ATTEMPTS,
            recovers_explicit: true,
            plan_parse_retries: PLAN_PARSE_RETRIES,
            reconcile_timeout_seconds: RECONCILE_TIMEOUT_SECONDS,
            no_change: None,
            fallback: Vec::new(),
            retry: VerifyLimits::default(),
        }
    }
}

impl Verify {
    /// Returns every command that a stage with this role might run because of `[verify]`, each once. These commands are
    /// granted to the stage.
    pub fn commands(&self, role: Option<Role<'_>>) -> Vec<&DirectCommand> {
        let phases = || [&self.planner, &self.worker].into_iter();
        let of_contracts = phases().filter_map(Phase::contract).flat_map(|contract| contract.all(role));
        let falls_back = phases().any(|phase| phase.mode.falls_back());
        let mut known = BTreeSet::new();
        let all = of_contracts.chain(self.fallback.iter().filter(|_| falls_back));
        all.filter(|command| known.insert(&command.words)).collect()
    }

    /// Returns the input of the stage, for its role, the changed paths, and the files that the run began with.
    pub fn told(&self, role: Option<Role<'_>>, changed: &BTreeSet<&str>, base: ContextBase) -> VerifyInput<'_> {
        VerifyInput {
            needs_plan: self.needs_plan(),
            planner: self.told_phase(&self.planner, role, changed),
            augment_nonempty: self.augment_nonempty,
            worker: self.told_phase(&self.worker, role, changed),
            skips_invalid: self.skips_invalid,
            recovery_attempts: self.recovery_attempts,
            recovers_explicit: self.recovers_explicit,
            base,
        }
    }

    /// Returns true if a stage needs a plan of a model, because neither phase adds commands.
    fn needs_plan(&self) -> bool {
        let adds = |mode: Mode| mode.reads_contract() || mode.falls_back();
        !adds(self.planner.mode) && !adds(self.worker.mode)
    }

    /// Returns how an agent is asked for a plan. `None` if agents are not asked for a plan. If both phases ask a model,
    /// the lower of the two maximum times is used.
    pub fn questions(&self) -> Option<Questions> {
        let asking = [&self.planner, &self.worker].into_iter().filter(|phase| phase.mode.asks_model());
        let plan_seconds = asking.map(|phase| phase.plan_timeout_seconds).min()?;
        (self.planner.mode.asks_model() && self.plan_parse_retries > 0).then(|| Questions {
            count_max: self.plan_parse_retries,
            plan_seconds,
            reconcile_seconds: self.reconcile_timeout_seconds,
            may_be_empty: !self.needs_plan(),
        })
    }

    fn told_phase<'a>(&'a self, phase: &'a Phase, role: Option<Role<'_>>, changed: &BTreeSet<&str>) -> PhaseInput<'a> {
        let contract = phase.contract().map(|contract| contract.select(role, changed)).unwrap_or_default();
        let fallback = if phase.mode.falls_back() { lines(self.fallback.iter()) } else { Vec::new() };
        PhaseInput { contract, fallback, commands_max: phase.commands_max }
    }
}

/// The role of a verification stage in a verify contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Role<'a>(&'a str);

impl<'a> Role<'a> {
    /// Returns the role in the node's `verification.role`.
    pub fn for_node(node: &'a Node) -> Option<Self> {
        let role = node.attributes.get(key::VERIFICATION_ROLE).map(|attribute| attribute.value.trim());
        role.filter(|role| !role.is_empty()).map(Self)
    }
}

fn lines<'a>(commands: impl Iterator<Item = &'a DirectCommand>) -> Vec<&'a str> {
    commands.map(|command| command.line.as_str()).collect()
}

/// How an agent is asked for a plan, as JSON in the entry `verification-questions` of the agent's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Questions {
    /// Maximum number of times that the agent is asked.
    pub count_max: u32,
    /// Maximum time of an answer if the plan is missing, in seconds.
    pub plan_seconds: u32,
    /// Maximum time of an answer if the plan cannot run, in seconds.
    pub reconcile_seconds: u32,
    /// True if a plan without commands can run.
    pub may_be_empty: bool,
}

/// The input of a verification stage, as JSON in the entry `verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyInput<'a> {
    /// True if the stage fails without a plan.
    pub needs_plan: bool,
    /// The phase that completes the plan.
    pub planner: PhaseInput<'a>,
    /// True if the planner also completes a plan that has commands.
    pub augment_nonempty: bool,
    /// The phase that adds commands after the plan.
    pub worker: PhaseInput<'a>,
    /// True if a command of the worker that cannot run is skipped.
    pub skips_invalid: bool,
    /// Maximum number of adjustments of the command list.
    pub recovery_attempts: u32,
    /// True if a command of the plan may be removed.
    pub recovers_explicit: bool,
    /// Files of the project as they were when the run began.
    pub base: ContextBase,
}

/// The commands of one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhaseInput<'a> {
    /// The commands of the verify contract.
    pub contract: Vec<&'a str>,
    /// The commands of the project's kind.
    pub fallback: Vec<&'a str>,
    /// Maximum number of commands that the phase adds.
    pub commands_max: usize,
}

#[cfg(test)]
mod tests;
