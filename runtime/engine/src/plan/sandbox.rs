//! What the commands of a plan run in: the tier, what the operator asks of it, and what is known to be missing.
//!
//! The tier is a fact about a machine and a moment, so it is printed and recorded but is no part of a plan's digest; what the
//! operator decided is.

use crate::config::sandbox::{SandboxSetting, Tier, network_text};
use crate::event::SandboxRecord;
use glovebox_pipeline::ir::NodeId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Sandbox tier of a run whose commands nothing confines.
pub const TIER_UNCONFINED: &str = "unconfined";

/// Sandbox tier of a run none of whose nodes can start a process.
pub const TIER_NONE: &str = "none";

/// Sandbox tier of a plan that this machine cannot run; no run has it.
pub const TIER_UNAVAILABLE: &str = "unavailable";

/// What the commands of a plan run in.
#[derive(Debug, Clone)]
pub struct SandboxPlan {
    /// What confines them.
    pub confinement: Confinement,
    /// What the operator decided: the least tier, the network at most, folders of the machine to read.
    pub setting: SandboxSetting,
    /// What the tier does not do on this machine, in words.
    pub degradations: Vec<String>,
}

/// What confines the commands of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confinement {
    /// No node runs commands.
    NotNeeded,
    /// The sandbox of this tier.
    Tier(Tier),
    /// No tier of this machine is enough, and the plan is only shown.
    Unmet(PolicyProblem),
}

impl SandboxPlan {
    /// The word in records and output: a tier, [`TIER_NONE`] or [`TIER_UNAVAILABLE`].
    pub fn tier_word(&self) -> &'static str {
        match &self.confinement {
            Confinement::NotNeeded => TIER_NONE,
            Confinement::Tier(tier) => tier.as_str(),
            Confinement::Unmet(_) => TIER_UNAVAILABLE,
        }
    }

    /// The tier that commands run in; none when there are no commands, or no walls for them.
    pub fn tier(&self) -> Option<Tier> {
        match self.confinement {
            Confinement::Tier(tier) => Some(tier),
            Confinement::NotNeeded | Confinement::Unmet(_) => None,
        }
    }

    /// True when commands run without walls.
    pub fn is_unconfined(&self) -> bool {
        self.confinement == Confinement::Tier(Tier::Unconfined)
    }

    /// What the journal says of the walls; none when no stage runs commands.
    pub fn record(&self, landlock_abi: u32) -> Option<SandboxRecord> {
        let tier = self.tier()?;
        let printed = self.printed();
        Some(SandboxRecord {
            tier: tier.as_str().to_owned(),
            require: printed.require,
            network: printed.network,
            landlock_abi: if tier == Tier::Unconfined { 0 } else { landlock_abi },
            degradations: printed.degradations,
        })
    }

    pub(super) fn printed(&self) -> PlanSandbox {
        PlanSandbox {
            require: self.setting.require.as_str().to_owned(),
            network: network_text(&self.setting.network),
            read: self.setting.read.clone(),
            degradations: self.degradations.clone(),
        }
    }
}

/// What the operator asks of the sandbox, in a printed plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanSandbox {
    /// The least tier: `full`, `bwrap` or `landlock`.
    pub require: String,
    /// `none`, `full` or `proxy:` and domains; a node may lower it.
    pub network: String,
    /// Folders of the machine that commands may read.
    pub read: Vec<String>,
    /// What the tier does not do on this machine.
    pub degradations: Vec<String>,
}

/// Nodes whose commands cannot be run as the operator's policy demands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyProblem {
    /// The nodes, by id.
    pub nodes: Vec<NodeId>,
    /// What the policy demands.
    pub kind: PolicyKind,
}

/// What of the policy is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PolicyKind {
    /// The machine's walls are too low.
    TierTooLow {
        /// The highest tier the machine can enforce, if any.
        available: Option<Tier>,
        /// The least the run accepts.
        require: Tier,
        /// Why there is no higher tier; may be empty.
        why: String,
        /// What to do about it; may be empty.
        remedy: String,
    },
    /// The tier cannot keep commands to a proxy.
    NoProxy(Tier),
    /// The tier cannot run the program of `verify_subject` apart from the nodes' own commands.
    NoSubject(Tier),
    /// The run has hold-outs, and commands were to run without walls.
    HoldoutsOpen,
}

impl PolicyProblem {
    /// What to do about it, one way per line.
    pub fn help(&self) -> String {
        let mut ways = Vec::new();
        match &self.kind {
            PolicyKind::TierTooLow { available, remedy, .. } => {
                ways.extend((!remedy.is_empty()).then(|| remedy.clone()));
                if let Some(tier) = available.filter(|tier| *tier != Tier::Unconfined) {
                    ways.push(format!("accept less with `require = \"{tier}\"` under `[sandbox]` in glovebox.toml"));
                }
                ways.push("`glovebox doctor` shows what this machine can enforce".to_owned());
                ways.push("run with `--dangerously-no-sandbox` if the commands and whatever they build may do all that you may".to_owned());
            }
            PolicyKind::HoldoutsOpen => {
                ways.push(
                    "run without `--dangerously-no-sandbox`; `glovebox doctor` shows what this machine can enforce"
                        .to_owned(),
                );
            }
            PolicyKind::NoSubject(_) => {
                ways.push("`verify_subject` needs the tier `bwrap`, `verify_subject_port` the tier `full`".to_owned());
                ways.push("`glovebox doctor` shows how this machine gets a higher tier".to_owned());
            }
            PolicyKind::NoProxy(_) => {
                ways.push(
                    "set `network=\"none\"` on the nodes, or `network = \"none\"` under `[sandbox]` in glovebox.toml"
                        .to_owned(),
                );
                ways.push("`glovebox doctor` shows how this machine gets a higher tier".to_owned());
            }
        }
        ways.join("\n")
    }
}

impl fmt::Display for PolicyProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = self.nodes.iter().map(|node| format!("`{node}`")).collect::<Vec<_>>().join(", ");
        match &self.kind {
            PolicyKind::TierTooLow { available, require, why, .. } => {
                match available {
                    Some(tier) => write!(f, "this machine can enforce `{tier}`, the run requires `{require}`")?,
                    None => write!(f, "this machine can enforce no sandbox, the run requires `{require}`")?,
                }
                if !why.is_empty() {
                    write!(f, ": {why}")?;
                }
                write!(f, " (commands of {nodes})")
            }
            PolicyKind::HoldoutsOpen => {
                write!(f, "the run has hold-outs, which commands without a sandbox could read: {nodes}")
            }
            PolicyKind::NoSubject(tier) => {
                write!(
                    f,
                    "tier `{tier}` cannot keep the program of `verify_subject` apart from the commands of {nodes}"
                )
            }
            PolicyKind::NoProxy(tier) => {
                write!(f, "tier `{tier}` cannot keep commands to a proxy, which these nodes are granted: {nodes}")
            }
        }
    }
}
