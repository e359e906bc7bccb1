//! The sandbox of a plan's commands: the tier, what the operator requires, and what this machine does not enforce.
//!
//! The tier depends on the machine. A plan prints it and a run records it, but the plan's digest covers only what the
//! operator decided.

use crate::config::sandbox::SandboxSetting;
use glovebox_pipeline::ir::NodeId;
use glovebox_record::{Network, SandboxRecord, Tier};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;

/// The sandbox tier in records of a run whose commands run without a sandbox.
pub const TIER_UNCONFINED: &str = "unconfined";

/// The sandbox tier in records of a run in which no node can start a process.
pub const TIER_NONE: &str = "none";

/// The sandbox tier of a plan that this machine cannot run. No run has this tier.
pub const TIER_UNAVAILABLE: &str = "unavailable";

/// The sandbox of a plan's commands.
#[derive(Debug, Clone)]
pub struct SandboxPlan {
    /// Whether there is a sandbox, and its tier.
    pub confinement: Confinement,
    /// The operator's settings: the minimum tier, the widest network, and folders of the machine that commands may read.
    pub setting: SandboxSetting,
    /// What the tier does not enforce on this machine, as sentences.
    pub degradations: Vec<String>,
}

/// Whether a plan's commands run in a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// No node runs commands.
    NotNeeded,
    /// Commands run in the sandbox of this tier.
    Tier(Tier),
    /// The commands cannot be confined as the operator requires. The plan can be printed, but not run.
    Unmet(PolicyProblem),
}

impl SandboxPlan {
    /// Creates the sandbox of a plan, with what the tier does not enforce on the machine.
    pub fn new(confinement: Confinement, setting: &SandboxSetting, machine: HostCapability) -> Self {
        let degradations = match confinement {
            Confinement::Tier(tier) if tier != Tier::Unconfined => machine.degradations,
            _ => Vec::new(),
        };
        Self { confinement, setting: setting.clone(), degradations }
    }

    /// Returns the name of the tier in records and output: a tier, [`TIER_NONE`] or [`TIER_UNAVAILABLE`].
    pub fn tier_word(&self) -> &'static str {
        match &self.confinement {
            Confinement::NotNeeded => TIER_NONE,
            Confinement::Tier(tier) => tier.as_str(),
            Confinement::Unmet(_) => TIER_UNAVAILABLE,
        }
    }

    /// Returns the tier in which commands run. `None` if there are no commands, or if they cannot be confined as
    /// required.
    pub fn tier(&self) -> Option<Tier> {
        match self.confinement {
            Confinement::Tier(tier) => Some(tier),
            Confinement::NotNeeded | Confinement::Unmet(_) => None,
        }
    }

    /// Returns true if commands run without a sandbox.
    pub fn is_unconfined(&self) -> bool {
        self.confinement == Confinement::Tier(Tier::Unconfined)
    }

    /// Returns the record of the sandbox. `None` if no stage runs commands.
    pub fn record(&self, landlock_abi: u32) -> Option<SandboxRecord> {
        let tier = self.tier()?;
        Some(SandboxRecord {
            tier,
            require: self.setting.require,
            network: self.setting.network.clone(),
            landlock_abi: if tier == Tier::Unconfined { 0 } else { landlock_abi },
            degradations: self.degradations.clone(),
        })
    }

    pub(super) fn printed(&self) -> PlanSandbox<'_> {
        PlanSandbox {
            require: self.setting.require,
            network: &self.setting.network,
            read: &self.setting.read,
            degradations: &self.degradations,
        }
    }
}

/// The sandbox settings in a printed plan.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanSandbox<'a> {
    /// The minimum tier: `full`, `bwrap` or `landlock`.
    pub require: Tier,
    /// `none`, `full`, or `proxy:` and domains. A node may lower it.
    pub network: &'a Network,
    /// Folders of the machine that commands may read.
    pub read: &'a [String],
    /// What the tier does not enforce on this machine, as sentences.
    pub degradations: &'a [String],
}

/// What a machine can enforce. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HostCapability {
    /// The highest tier that passed its self-test.
    pub tier: Option<Tier>,
    /// What that tier does not enforce on this machine, as sentences.
    pub degradations: Vec<String>,
    /// Why the machine has no higher tier. May be empty.
    pub why: String,
    /// What the operator can do about it, as text to paste. May be empty.
    pub remedy: String,
}

/// The nodes whose commands cannot run as the operator's policy requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The nodes, by id.
    pub nodes: Vec<NodeId>,
    /// The requirement that is not met.
    pub kind: PolicyKind,
}

/// Which requirement of the policy is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyKind {
    /// The machine cannot enforce the required tier.
    TierTooLow {
        /// The lowest tier that the run accepts.
        require: Tier,
        /// What the machine can enforce.
        machine: HostCapability,
    },
    /// The tier cannot restrict commands to a proxy.
    NoProxy(Tier),
    /// The tier cannot run the program of `verify_subject` apart from the nodes' own commands.
    NoSubject(Tier),
    /// The tier cannot restrict an agent program to its gateway.
    NoGateway(Tier),
    /// The run has hold-outs, and commands would run without a sandbox.
    HoldoutsOpen,
}

impl PolicyProblem {
    /// Returns what the operator can do, one possibility per line.
    pub fn help(&self) -> String {
        match &self.kind {
            PolicyKind::TierTooLow { machine, .. } => machine.help(),
            PolicyKind::HoldoutsOpen => {
                "run without `--dangerously-no-sandbox`; `glovebox doctor` shows what this machine can enforce"
                    .to_owned()
            }
            PolicyKind::NoGateway(_) => format!("remove `agent.backend` from the nodes\n{HIGHER_TIER}"),
            PolicyKind::NoSubject(_) => format!(
                "`verify_subject` needs the tier `bwrap`, `verify_subject_port` needs the tier `full`\n{HIGHER_TIER}"
            ),
            PolicyKind::NoProxy(_) => format!(
                "set `network=\"none\"` on the nodes, or `network = \"none\"` under `[sandbox]` in glovebox.toml\n{HIGHER_TIER}"
            ),
        }
    }
}

/// The help that names the command with which to find out how to get a higher tier.
const HIGHER_TIER: &str = "`glovebox doctor` shows how this machine gets a higher tier";

impl HostCapability {
    /// Returns what the operator can do if the machine cannot enforce the required tier, one possibility per line.
    fn help(&self) -> String {
        let mut ways: Vec<&str> = Vec::new();
        if !self.remedy.is_empty() {
            ways.push(&self.remedy);
        }
        let lower = self
            .tier
            .filter(|tier| *tier != Tier::Unconfined)
            .map(|tier| format!("set `require = \"{tier}\"` under `[sandbox]` in glovebox.toml to accept this tier"));
        ways.extend(lower.as_deref());
        ways.push("`glovebox doctor` shows what this machine can enforce");
        ways.push("run with `--dangerously-no-sandbox`: commands and what they build may then do all that you may do");
        ways.join("\n")
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes.iter().map(|node| format!("`{node}`")).collect::<Vec<_>>().join(", ");
        match &self.kind {
            PolicyKind::TierTooLow { require, machine } => {
                match machine.tier {
                    Some(tier) => write!(f, "this machine can enforce `{tier}`, but the run requires `{require}`")?,
                    None => write!(f, "this machine can enforce no sandbox, but the run requires `{require}`")?,
                }
                if !machine.why.is_empty() {
                    write!(f, ": {}", machine.why)?;
                }
                write!(f, " (commands of {nodes})")
            }
            PolicyKind::HoldoutsOpen => {
                write!(f, "the run has hold-outs, and without a sandbox the commands of {nodes} could read them")
            }
            PolicyKind::NoSubject(tier) => {
                write!(f, "tier `{tier}` cannot separate the program of `verify_subject` from the commands of {nodes}")
            }
            PolicyKind::NoGateway(tier) => {
                write!(
                    f,
                    "tier `{tier}` cannot give the agent programs of {nodes} a gateway to their models without any other network"
                )
            }
            PolicyKind::NoProxy(tier) => {
                write!(f, "tier `{tier}` cannot restrict commands to a proxy, but {nodes} need one")
            }
        }
    }
}
