//! What the receipt of one command proves.
//!
//! The host creates the receipt. What the receipt proves depends on who chose the command, how the command and its
//! stage ended, and whether the program under test was separated from the hold-outs.

use super::StartupFile;
use glovebox_journal::event::{Isolation, Receipt};
use glovebox_pipeline::ir::Role;
use glovebox_record::{BranchId, NodeId};
use schemars::JsonSchema;
use serde::Serialize;

/// A receipt, its stage, and whether the command verifies that stage.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct CommandEvidence {
    /// The node.
    pub node: NodeId,
    /// The node's handler.
    pub handler: String,
    /// True if a verifier ran the command, the command exited with 0, the receipt counts as proof, and the stage
    /// passed.
    pub verified: bool,
    /// True if a verifier ran the command: a tool or verify stage, or a plugin that the operator bound as a verifier.
    #[serde(skip)]
    pub is_of_verifier: bool,
    /// The branch of a parallel node that ran the command; absent outside of parallel nodes, and after the parallel
    /// node has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<BranchId>,
    /// True if the changes of the branch were not merged, so that the command proves nothing about the result; absent
    /// otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub not_taken: bool,
    /// Whether code of a builder could decide the verdict; null if the stage had no access to hold-outs and its caches
    /// were clean.
    pub isolation: Option<Isolation>,
    /// Files of other stages that the command loaded automatically, at most 20; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub startup: Vec<StartupFile>,
    /// Sequence number of the record that ended the stage.
    #[serde(skip)]
    pub(super) ended_at: u64,
    /// The receipt.
    #[serde(flatten)]
    pub receipt: Receipt,
}

/// The facts of a stage that the evidence of its commands needs.
#[derive(Clone, Copy)]
pub(super) struct EndedStage<'a> {
    pub(super) node: &'a NodeId,
    pub(super) branch: Option<&'a BranchId>,
    pub(super) handler: &'a String,
    pub(super) role: Role,
    pub(super) has_passed: bool,
    pub(super) isolation: Option<Isolation>,
    pub(super) at: u64,
}

/// What a command proves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    /// The command is a program under test, which proves nothing.
    Subject,
    /// The command is a hook of a tool call: it judged the call, not the work.
    Hook,
    /// The command of a verifier passed.
    Verified,
    /// The command of a verifier passed, but code of a builder could have forged the success.
    VerifiedNotIsolated,
    /// The command of a verifier passed, but started with caches that code of a builder could have changed in an
    /// earlier stage.
    VerifiedWithCaches,
    /// The command of a verifier passed, but its programs automatically load files that stages of the run wrote.
    VerifiedWithStartupFiles,
    /// The command of a verifier did not pass.
    NotVerified,
    /// The command of a verifier ran in a branch whose changes were not merged.
    NotTaken,
    /// The command was chosen by a model, or by a plugin that is not bound as a verifier.
    Ran,
}

impl CommandEvidence {
    pub(super) fn new(stage: EndedStage<'_>, receipt: Receipt, startup: Vec<StartupFile>) -> Self {
        let is_of_verifier = stage.role == Role::Verifier && receipt.hook.is_none();
        Self {
            node: stage.node.clone(),
            handler: stage.handler.clone(),
            verified: stage.has_passed && receipt.proves() && !receipt.subject && is_of_verifier,
            is_of_verifier,
            branch: stage.branch.cloned(),
            not_taken: false,
            isolation: stage.isolation,
            startup,
            ended_at: stage.at,
            receipt,
        }
    }

    /// Decides what the command proves.
    pub fn proof(&self) -> Proof {
        match (self.verified, self.is_of_verifier) {
            _ if self.receipt.subject => Proof::Subject,
            _ if self.receipt.hook.is_some() => Proof::Hook,
            (_, true) if self.not_taken => Proof::NotTaken,
            (true, _) if self.isolation == Some(Isolation::NotIsolated) => Proof::VerifiedNotIsolated,
            (true, _) if !self.startup.is_empty() => Proof::VerifiedWithStartupFiles,
            (true, _) if self.isolation == Some(Isolation::BuildersCaches) => Proof::VerifiedWithCaches,
            (true, _) => Proof::Verified,
            (false, true) => Proof::NotVerified,
            (false, false) => Proof::Ran,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::receipt;
    use glovebox_record::{CommandEnding, Hook, HookKind, NoProof};

    fn hook() -> Option<Hook> {
        Some(Hook { kind: HookKind::Post, tool: "shell".to_owned(), call: "1".to_owned() })
    }

    #[test]
    fn only_a_passing_command_of_a_verifier_that_passed_verifies() {
        let (node, handler) = ("t".into(), "tool".to_owned());
        let stage = |role, has_passed| EndedStage {
            node: &node,
            branch: None,
            handler: &handler,
            role,
            has_passed,
            isolation: None,
            at: 1,
        };
        let passed = receipt(Some(0), CommandEnding::Exited);
        let verifier = stage(Role::Verifier, true);
        for (stage, receipt, proof) in [
            (verifier, passed.clone(), Proof::Verified),
            (verifier, receipt(Some(1), CommandEnding::Exited), Proof::NotVerified),
            (verifier, receipt(None, CommandEnding::TimedOut), Proof::NotVerified),
            (verifier, Receipt { no_proof: Some(NoProof::NoTests), ..passed.clone() }, Proof::NotVerified),
            (verifier, Receipt { subject: true, ..passed.clone() }, Proof::Subject),
            (verifier, Receipt { hook: hook(), ..passed.clone() }, Proof::Hook),
            (stage(Role::Verifier, false), passed.clone(), Proof::NotVerified),
            (stage(Role::Builder, true), passed, Proof::Ran),
        ] {
            let found = CommandEvidence::new(stage, receipt, Vec::new());
            assert_eq!(found.proof(), proof, "{:?}", found.receipt);
            assert_eq!(found.verified, proof == Proof::Verified, "{:?}", found.receipt);
        }
    }
}
