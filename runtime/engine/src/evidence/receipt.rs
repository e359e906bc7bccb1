//! What one command proves.
//!
//! The host makes a receipt. What it proves depends on who chose the command, how the command and its stage ended, and whether the
//! program under test was separated from the hold-outs.

use crate::event::{Isolation, Receipt};
use glovebox_pipeline::lower::handler::Role;
use glovebox_record::NodeId;
use schemars::JsonSchema;
use serde::Serialize;

/// A receipt, its stage, and whether the command verifies that stage.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CommandEvidence {
    /// The node.
    pub node: NodeId,
    /// The node's handler.
    pub handler: String,
    /// True when a verifier ran the command, it exited 0 and its stage passed.
    pub verified: bool,
    /// True when a verifier ran the command: a tool or verify stage, or a plugin that the operator bound as a verifier.
    #[serde(skip)]
    pub is_of_verifier: bool,
    /// Whether the program under test was kept from the hold-outs; none when the stage had none in reach.
    pub isolation: Option<Isolation>,
    /// The receipt.
    #[serde(flatten)]
    pub receipt: Receipt,
}

/// What the evidence of a command needs to know of its stage.
#[derive(Clone, Copy)]
pub(super) struct EndedStage<'a> {
    pub(super) node: &'a NodeId,
    pub(super) handler: &'a String,
    pub(super) role: Role,
    pub(super) has_passed: bool,
    pub(super) isolation: Option<Isolation>,
}

/// What a command proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It is a program under test, and proves nothing by itself.
    Subject,
    /// The command of a verifier passed.
    Verified,
    /// The command of a verifier passed, but code of a builder could have forged that.
    VerifiedNotIsolated,
    /// The command of a verifier did not pass.
    NotVerified,
    /// A model chose the command, or a plugin that is not bound as a verifier.
    Ran,
}

impl CommandEvidence {
    pub(super) fn of(stage: EndedStage<'_>, receipt: Receipt) -> Self {
        let is_of_verifier = stage.role == Role::Verifier;
        Self {
            node: stage.node.clone(),
            handler: stage.handler.clone(),
            verified: stage.has_passed && receipt.passed() && !receipt.subject && is_of_verifier,
            is_of_verifier,
            isolation: stage.isolation,
            receipt,
        }
    }

    /// Decides what the command proves.
    pub fn proof(&self) -> Proof {
        match (self.verified, self.is_of_verifier) {
            _ if self.receipt.subject => Proof::Subject,
            (true, _) if self.isolation == Some(Isolation::NotIsolated) => Proof::VerifiedNotIsolated,
            (true, _) => Proof::Verified,
            (false, true) => Proof::NotVerified,
            (false, false) => Proof::Ran,
        }
    }
}
