//! The commands that a verification stage runs beside a model's plan: those of a contract file, and those of the project's kind
//! (decision verify-contract).
//!
//! All of them are read from the project before the first stage, and the plan shows and covers them: no stage can change what it is
//! verified with. Two phases add commands. The planner completes the plan of a stage, and what it adds counts as planned. The worker adds
//! commands by what changed, and what it adds is automatic. Nothing here opens a file.

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
/// Commands that a phase adds at most, unless the operator says how many (decision verify-contract).
const COMMANDS_MAX: usize = 4;
/// Adjustments of a list of commands in one attempt, unless the operator says how many (decision command-list-adjustments).
const RECOVERY_ATTEMPTS: u32 = 5;

/// Seconds for the answer to a question for a plan that is missing, unless the operator says how many (decision plan-questions).
const PLAN_TIMEOUT_SECONDS: u32 = 120;
/// Questions for a plan that can run, unless the operator says how many (decision plan-questions).
const PLAN_PARSE_RETRIES: u32 = 2;
/// Seconds for the answer to a question for a better plan, unless the operator says how many (decision plan-questions).
const RECONCILE_TIMEOUT_SECONDS: u32 = 180;

/// Where a phase takes commands from (decision verification-modes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// From nowhere.
    Off,
    /// From the project's kind, if there is no other command.
    Fallback,
    /// From the contract.
    Contract,
    /// From a model's plan alone.
    Llm,
    /// From a model's plan and the contract; from the project's kind if both have nothing.
    #[default]
    Hybrid,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 5] = [Self::Off, Self::Fallback, Self::Contract, Self::Llm, Self::Hybrid];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Fallback => "fallback",
            Self::Contract => "contract",
            Self::Llm => "llm",
            Self::Hybrid => "hybrid",
        }
    }

    /// True if it takes commands from the contract.
    pub fn reads_contract(self) -> bool {
        matches!(self, Self::Contract | Self::Hybrid)
    }

    /// True if agents are asked for a plan.
    pub fn asks_model(self) -> bool {
        matches!(self, Self::Llm | Self::Hybrid)
    }

    /// True if it takes commands from the project's kind.
    pub fn falls_back(self) -> bool {
        matches!(self, Self::Fallback | Self::Hybrid)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A word that names no mode.
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

/// The commands that one phase adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phase {
    /// The source.
    pub mode: Mode,
    /// The contract's file, relative to the project; the default place, which may be empty, where absent.
    pub contract_path: Option<String>,
    /// Commands that it adds at most.
    pub commands_max: usize,
    /// Seconds that a model gets to answer a question for a plan that is missing.
    pub plan_timeout_seconds: u32,
    /// What the file says. None before it is read, and where there is none.
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
    /// The contract, where the mode reads it.
    pub fn contract(&self) -> Option<&Contract> {
        self.contract.as_deref().filter(|_| self.mode.reads_contract())
    }
}

/// The `[verify]` table, with what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verify {
    /// Completes plans.
    pub planner: Phase,
    /// Whether it also completes a plan that has commands.
    pub augment_nonempty: bool,
    /// Adds commands by what changed.
    pub worker: Phase,
    /// Whether a command that it added and that cannot run is left out.
    pub skips_invalid: bool,
    /// Times that the list is adjusted in one attempt.
    pub recovery_attempts: u32,
    /// Whether an adjustment may drop a command of the plan.
    pub recovers_explicit: bool,
    /// Times that an agent is asked once more for a plan that can run.
    pub plan_parse_retries: u32,
    /// Seconds that it gets to answer a question for a better plan.
    pub reconcile_timeout_seconds: u32,
    /// The rule for agents that change nothing; none unless the operator sets one.
    pub no_change: Option<NoChange>,
    /// The commands of the project's kind.
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
    /// Every command that a stage with this role might run for it, each once: what the stage is granted.
    pub fn commands(&self, role: Option<Role<'_>>) -> Vec<&DirectCommand> {
        let phases = || [&self.planner, &self.worker].into_iter();
        let of_contracts = phases().filter_map(Phase::contract).flat_map(|contract| contract.all(role));
        let falls_back = phases().any(|phase| phase.mode.falls_back());
        let mut known = BTreeSet::new();
        let all = of_contracts.chain(self.fallback.iter().filter(|_| falls_back));
        all.filter(|command| known.insert(&command.words)).collect()
    }

    /// The input of the stage, by its role, the changed paths and the base files.
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

    /// A stage can do without a plan if a phase adds commands.
    fn needs_plan(&self) -> bool {
        let adds = |mode: Mode| mode.reads_contract() || mode.falls_back();
        !adds(self.planner.mode) && !adds(self.worker.mode)
    }

    /// What an agent is told of questions for its plan; none where it is asked none. Where both phases ask a model, the lower of their times
    /// holds.
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

/// The role of a verification stage in a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Role<'a>(&'a str);

impl<'a> Role<'a> {
    /// The role that a node has by its `verification.role`.
    pub fn for_node(node: &'a Node) -> Option<Self> {
        let role = node.attributes.get(key::VERIFICATION_ROLE).map(|attribute| attribute.value.trim());
        role.filter(|role| !role.is_empty()).map(Self)
    }
}

fn lines<'a>(commands: impl Iterator<Item = &'a DirectCommand>) -> Vec<&'a str> {
    commands.map(|command| command.line.as_str()).collect()
}

/// The questions for an agent's plan, as JSON in the entry `verification-questions` of its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Questions {
    /// How many are asked at most.
    pub count_max: u32,
    /// Seconds for an answer if the plan is missing.
    pub plan_seconds: u32,
    /// Seconds for an answer if the plan cannot run.
    pub reconcile_seconds: u32,
    /// Whether a plan without commands can run.
    pub may_be_empty: bool,
}

/// The input of a verification stage, as JSON in the entry `verify`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerifyInput<'a> {
    /// Whether the stage fails without a plan.
    pub needs_plan: bool,
    /// The phase that completes the plan.
    pub planner: PhaseInput<'a>,
    /// Whether it completes a plan with commands too.
    pub augment_nonempty: bool,
    /// What is added after it.
    pub worker: PhaseInput<'a>,
    /// Whether a command of the worker that cannot run is left out.
    pub skips_invalid: bool,
    /// Times that the list may be adjusted.
    pub recovery_attempts: u32,
    /// Whether a command of the plan may be dropped.
    pub recovers_explicit: bool,
    /// The project when the run began.
    pub base: ContextBase,
}

/// The commands of one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PhaseInput<'a> {
    /// Those of the contract.
    pub contract: Vec<&'a str>,
    /// Those of the project's kind.
    pub fallback: Vec<&'a str>,
    /// How many are added at most.
    pub commands_max: usize,
}

#[cfg(test)]
mod tests;
