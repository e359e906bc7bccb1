//! The tiers of confinement, from none to full, and their names in records.
//!
//! Tiers are ordered by strength. A probe tests the guarantees of a tier; they are never inferred from its name.

use crate::Network;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Confinement of commands; a later tier is stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// No confinement; only with `--dangerously-no-sandbox`.
    Unconfined,
    /// Landlock and seccomp, with a copy of the workspace.
    Landlock,
    /// As `landlock`, but inside namespaces that `bwrap` creates.
    Bwrap,
    /// Seven namespaces, a private root, an overlay, Landlock and seccomp.
    Full,
}

impl Tier {
    /// The tiers that confine commands, strongest first.
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

    /// Returns the layers of protection of the tier. Each command has them all, unless its receipt names a degradation.
    pub fn layers(self) -> &'static [&'static str] {
        match self {
            Self::Unconfined => &[],
            Self::Landlock => &["landlock", "seccomp", "limits"],
            Self::Bwrap => &["namespaces", "own root", "landlock", "seccomp", "limits"],
            Self::Full => &["namespaces", "own root", "overlay", "landlock", "seccomp", "limits"],
        }
    }

    /// Parses a name. `None` if no tier has this name.
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Unconfined, Self::Landlock, Self::Bwrap, Self::Full].into_iter().find(|tier| tier.as_str() == name)
    }

    /// Returns true if commands have a private root directory, so that a path can name a different file inside than
    /// outside.
    pub fn has_own_root(self) -> bool {
        matches!(self, Self::Full | Self::Bwrap)
    }

    /// Returns true if folders can be mounted into the workspace of commands: hold-outs, caches, a repository.
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
    /// Tier of the run, also recorded as `sandbox_tier`.
    pub tier: Tier,
    /// The weakest tier that the operator accepts.
    pub require: Tier,
    /// The network that stages may have at most: `none`, `full` or `proxy:` and hosts.
    pub network: Network,
    /// ABI version of Landlock that is enforced; 0 if none is.
    pub landlock_abi: u32,
    /// Guarantees of the tier that this machine cannot give, such as `memory=soft`.
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
