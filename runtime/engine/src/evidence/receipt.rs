//! What one command proves.
//!
//! A receipt is made by the host. What it is worth depends on who chose the command, how the command and its stage ended, and
//! whether the program under test was kept from the hold-outs.

use crate::event::{Isolation, Receipt, StageFinished};
use glovebox_record::NodeId;
use serde::Serialize;

/// A receipt, its stage, and whether the command verifies that stage.
#[derive(Debug, Clone, Serialize)]
pub struct CommandEvidence {
    /// The node.
    pub node: NodeId,
    /// The node's handler.
    pub handler: String,
    /// True when the pipeline's author wrote the command, it exited 0 and its stage passed.
    pub verified: bool,
    /// Whether the program under test was kept from the hold-outs; none when the stage had none in reach.
    pub isolation: Option<Isolation>,
    /// The receipt.
    #[serde(flatten)]
    pub receipt: Receipt,
}

/// What a command proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It is a program under test, and proves nothing by itself.
    Subject,
    /// The pipeline's own command passed.
    Verified,
    /// The pipeline's own command passed, but code of a builder could have forged that.
    VerifiedNotIsolated,
    /// The pipeline's own command did not pass.
    NotVerified,
    /// A model or a plugin chose the command.
    Ran,
}

impl CommandEvidence {
    pub(super) fn of(stage: &StageFinished, receipt: &Receipt) -> Self {
        let passed = stage.outcome.status.satisfies_gate() && receipt.passed();
        Self {
            node: stage.attempt.task.node.clone(),
            handler: stage.handler.clone(),
            verified: passed && !receipt.subject && is_of_pipeline(&stage.handler),
            isolation: stage.isolation,
            receipt: receipt.clone(),
        }
    }

    /// Decides what the command proves.
    pub fn proof(&self) -> Proof {
        match (self.verified, self.is_pipeline_command()) {
            _ if self.receipt.subject => Proof::Subject,
            (true, _) if self.isolation == Some(Isolation::NotIsolated) => Proof::VerifiedNotIsolated,
            (true, _) => Proof::Verified,
            (false, true) => Proof::NotVerified,
            (false, false) => Proof::Ran,
        }
    }

    /// True when the pipeline's author wrote the command.
    pub fn is_pipeline_command(&self) -> bool {
        is_of_pipeline(&self.handler)
    }
}

/// True for handlers that run what the pipeline's author wrote. Names of third-party handlers have a dot, so none can take these.
fn is_of_pipeline(handler: &str) -> bool {
    matches!(handler, "tool" | "verify")
}
