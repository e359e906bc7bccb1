//! The operator's rule for agents that change nothing (decision no-change-is-a-failure): the number of repetitions, and other
//! confirmations.
//!
//! Plain data. The plan decides for which nodes it holds; the crate `glovebox-state` decides the consequences.

use crate::NodeId;
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// Repetitions of work that changed nothing, unless the operator says how many (decision no-change-is-a-failure).
const RECOVERY_ATTEMPTS: u32 = 5;

/// The two settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoChange {
    /// Times that the work of a visit is repeated.
    pub recovery_attempts: u32,
    /// The confirmation of work that changed nothing.
    pub confirm: Confirmation,
}

impl Default for NoChange {
    fn default() -> Self {
        Self { recovery_attempts: RECOVERY_ATTEMPTS, confirm: Confirmation::default() }
    }
}

/// A confirmation of work that changed nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Confirmation {
    /// The verification of the node, where it has one.
    #[default]
    Verify,
    /// Nothing.
    Off,
}

impl Confirmation {
    /// The words that openTiger reads as [`Confirmation::Off`] (decision no-change-is-a-failure).
    const OFF: [&str; 5] = ["off", "false", "strict", "disabled", "none"];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Verify => "verify",
            Self::Off => "off",
        }
    }
}

/// A word that names no way to confirm.
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

/// The settings, and the nodes of a plan that they hold for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoChangeRule {
    /// The settings.
    pub setting: NoChange,
    /// Agents that may write.
    pub nodes: BTreeSet<NodeId>,
}
