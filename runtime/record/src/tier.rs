//! The tiers of confinement, from none to full, and their names in records.
//!
//! Their order is their strength. The guarantees of a tier are tested by the probe, never inferred from its name.

use crate::Network;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Confinement of commands; a later tier is stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// Not at all; only with `--dangerously-no-sandbox`.
    Unconfined,
    /// Landlock and seccomp over a copied workspace.
    Landlock,
    /// The same inside namespaces that `bwrap` made.
    Bwrap,
    /// Seven namespaces, a private root, overlay, Landlock and seccomp.
    Full,
}

impl Tier {
    /// The tiers that confine, best first.
    pub const CONFINING: [Tier; 3] = [Tier::Full, Tier::Bwrap, Tier::Landlock];

    /// Returns the name used in records and settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Unconfined => "unconfined",
            Self::Landlock => "landlock",
            Self::Bwrap => "bwrap",
            Self::Full => "full",
        }
    }

    /// The layers of the tier: what each command runs behind, unless a receipt names a degradation.
    pub fn layers(self) -> &'static [&'static str] {
        match self {
            Self::Unconfined => &[],
            Self::Landlock => &["landlock", "seccomp", "limits"],
            Self::Bwrap => &["namespaces", "own root", "landlock", "seccomp", "limits"],
            Self::Full => &["namespaces", "own root", "overlay", "landlock", "seccomp", "limits"],
        }
    }

    /// Reads a name; nothing for one that is not of a tier.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Unconfined, Self::Landlock, Self::Bwrap, Self::Full].into_iter().find(|tier| tier.as_str() == name)
    }

    /// True where commands have a private root, so that a path can mean something else inside.
    pub fn has_own_root(self) -> bool {
        matches!(self, Self::Full | Self::Bwrap)
    }

    /// True where something can be mounted in the workspace of commands: hold-outs, caches, a repository.
    pub fn can_mount(self) -> bool {
        self == Self::Full
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The confinement of a run's commands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SandboxRecord {
    /// The tier, as in `sandbox_tier`.
    pub tier: Tier,
    /// The least tier the operator accepts.
    pub require: Tier,
    /// The most network a stage may have: `none`, `full` or `proxy:` and domains.
    pub network: Network,
    /// Landlock's ABI that is enforced; 0 where none is.
    pub landlock_abi: u32,
    /// Guarantees that the tier does not give on this machine, such as `memory=soft`.
    #[serde(default)]
    pub degradations: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back_and_strength_is_the_order() {
        for tier in [Tier::Unconfined, Tier::Landlock, Tier::Bwrap, Tier::Full] {
            assert_eq!(Tier::parse(tier.as_str()), Some(tier));
            assert_eq!(serde_json::to_string(&tier).unwrap(), format!("\"{tier}\""));
        }
        assert!(Tier::Full > Tier::Bwrap && Tier::Bwrap > Tier::Landlock && Tier::Landlock > Tier::Unconfined);
        assert_eq!(Tier::parse("none"), None);
    }
}
