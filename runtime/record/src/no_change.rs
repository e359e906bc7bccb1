//! The operator's rule for agents that change nothing (decision no-change-is-a-failure): the number of repetitions, and what
//! confirms that no change was needed.
//!
//! This module has types only. The plan decides to which nodes the rule applies, and the crate `glovebox-state` decides
//! what follows.

use crate::NodeId;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Default number of repetitions of work that changed nothing (decision no-change-is-a-failure).
const RECOVERY_ATTEMPTS: u32 = 5;

/// The operator's settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoChange {
    /// Maximum number of repetitions of the work in one visit.
    pub recovery_attempts: u32,
    /// What confirms work that changed nothing.
    pub confirm: Confirmation,
}

impl Default for NoChange {
    fn default() -> Self {
        Self { recovery_attempts: RECOVERY_ATTEMPTS, confirm: Confirmation::default() }
    }
}

/// What confirms work that changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confirmation {
    /// The verification of the node, if the node has one.
    #[default]
    Verify,
    /// Nothing: such work always fails.
    Off,
}

impl Confirmation {
    /// The values that openTiger reads as [`Confirmation::Off`] (decision no-change-is-a-failure).
    const OFF: [&str; 5] = ["off", "false", "strict", "disabled", "none"];

    /// Returns the value in files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Off => "off",
        }
    }
}

/// The error for a text that does not name a confirmation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfirmationError;

impl fmt::Display for ConfirmationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected `verify` or `off`")
    }
}

impl FromStr for Confirmation {
    type Err = ConfirmationError;

    fn from_str(word: &str) -> Result<Self, ConfirmationError> {
        match word.to_ascii_lowercase().as_str() {
            "verify" => Ok(Self::Verify),
            word if Self::OFF.contains(&word) => Ok(Self::Off),
            _ => Err(ConfirmationError),
        }
    }
}

/// The settings, and the nodes of a plan to which they apply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoChangeRule {
    /// The settings.
    pub setting: NoChange,
    /// Agent nodes that may write.
    pub nodes: BTreeSet<NodeId>,
}
