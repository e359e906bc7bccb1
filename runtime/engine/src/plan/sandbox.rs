//! What the commands of a plan run in: the tier, what the operator asks of it, and what is known to be missing.
//!
//! The tier is a fact about a machine and a moment, so it is printed and recorded but is no part of a plan's digest; what the
//! operator decided is.

use crate::bind::PolicyProblem;
use crate::config::sandbox::{Network, SandboxSetting, Tier, network_text};
use crate::event::SandboxRecord;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Sandbox tier of a run whose commands nothing confines.
pub const TIER_UNCONFINED: &str = "unconfined";

/// Sandbox tier of a run none of whose nodes can start a process.
pub const TIER_NONE: &str = "none";

/// Sandbox tier of a plan that this machine cannot run; no run has it.
pub const TIER_UNAVAILABLE: &str = "unavailable";

/// What the commands of a plan run in.
#[derive(Debug, Clone)]
pub struct SandboxPlan {
    /// The walls.
    pub walls: Walls,
    /// What the operator decided: the least tier, the network at most, folders of the machine to read.
    pub setting: SandboxSetting,
    /// What the tier does not do on this machine, in words.
    pub degradations: Vec<String>,
}

/// Which walls the commands of a plan get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Walls {
    /// No node runs commands.
    NotNeeded,
    /// Those of this tier.
    Tier(Tier),
    /// This machine has none that suffice, and only the plan was asked for.
    Unmet(PolicyProblem),
}

impl SandboxPlan {
    /// The word in records and output: a tier, [`TIER_NONE`] or [`TIER_UNAVAILABLE`].
    pub fn tier_word(&self) -> &'static str {
        match &self.walls {
            Walls::NotNeeded => TIER_NONE,
            Walls::Tier(tier) => tier.as_str(),
            Walls::Unmet(_) => TIER_UNAVAILABLE,
        }
    }

    /// The tier that commands run in; none when there are no commands, or no walls for them.
    pub fn tier(&self) -> Option<Tier> {
        match self.walls {
            Walls::Tier(tier) => Some(tier),
            Walls::NotNeeded | Walls::Unmet(_) => None,
        }
    }

    /// True when commands run without walls.
    pub fn is_unconfined(&self) -> bool {
        self.walls == Walls::Tier(Tier::Unconfined)
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

/// What a network lets commands reach, as entries of a plan: domains, or `*` for everything.
pub(super) fn reach_of(network: &Network) -> Vec<String> {
    match network {
        Network::None => Vec::new(),
        Network::Proxy(domains) => domains.clone(),
        Network::Full => vec!["*".to_owned()],
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
