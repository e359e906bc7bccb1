//! Checks what a stage claims against what was recorded of it (decision receipts-prove-verdicts).
//!
//! A claim that the records do not support fails the stage, class contract: a stage that says "the tests passed" must name a receipt
//! that says so. Nothing else checks claims. It is done when the stage's changes are known: a file that is not kept was not written.

use super::replace;
use cap_std::fs::Dir;
use glovebox_host::call::{Claim, Report};
use glovebox_journal::event::{ChangeOp, Ending, FailedCommand, StageFinished};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Access, Scope};
use glovebox_record::{Failure, FailureClass, FailureCode, Receipt};
use glovebox_workspace::refusal::escaped;
use std::collections::BTreeSet;

/// What a stage claims, and what is needed to check it or to explain its failure.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// What it says it did.
    claims: Vec<Claim>,
    /// Names of the artifacts that the component kept. The runtime's own files prove nothing.
    artifacts: BTreeSet<String>,
    /// The command behind a failure, if it becomes one.
    pub(super) failed_command: Option<FailedCommand>,
    /// Whether hold-outs might mend a failure, if it becomes one.
    pub(super) misses_holdouts: bool,
}

/// The files of a stage when it has ended.
pub(super) struct FilesAtEnd<'f> {
    /// The run's folder.
    pub(super) run: &'f Dir,
    /// The workspace that the stage began from, relative to the run's folder.
    pub(super) workspace: &'f str,
    /// The scope that the component had; none without files.
    pub(super) scope: Option<Scope>,
}

impl Statement {
    /// The statements of a report; nothing of them is checked.
    pub(super) fn from_report(report: &mut Report) -> Self {
        let artifacts = report.artifacts.iter().map(|artifact| artifact.name.clone()).collect();
        Self { claims: std::mem::take(&mut report.claims), artifacts, ..Self::default() }
    }

    /// Checks every claim; the first that fails replaces the outcome. What the stage changed is in the fact by now. Where a person may decide
    /// about its writes, the stage's own outcome is checked too.
    pub(super) fn check(&self, fact: &mut StageFinished, files: &FilesAtEnd<'_>) {
        self.check_outcome(fact, files);
        fact.with_own_outcome(|fact| self.check_outcome(fact, files));
    }

    fn check_outcome(&self, fact: &mut StageFinished, files: &FilesAtEnd<'_>) {
        if fact.ending != Ending::Returned || !fact.outcome.status.satisfies_gate() {
            return;
        }
        let untrue = self.claims.iter().find_map(|claim| Some((claim, self.objection(claim, fact, files)?)));
        if let Some((Claim { kind, value }, objection)) = untrue {
            let (kind, value) = (escaped(kind), escaped(value));
            let reason = format!("the stage claims `{kind}` for `{value}`, but {objection}");
            replace(fact, Failure::new(FailureClass::Contract, FailureCode::CLAIM_UNPROVEN, reason));
            fact.commands.failed_command.clone_from(&self.failed_command);
            fact.commands.misses_holdouts = self.misses_holdouts;
        }
    }

    fn objection(&self, claim: &Claim, fact: &StageFinished, files: &FilesAtEnd<'_>) -> Option<String> {
        let Claim { kind, value } = claim;
        match kind.as_str() {
            "command-passed" => {
                // Hooks judge calls, and a program under test is what is judged.
                let is_own = |receipt: &&Receipt| receipt.id == *value && receipt.hook.is_none() && !receipt.subject;
                match fact.commands.receipts.iter().find(is_own) {
                    None => Some("the stage has no receipt of this id".to_owned()),
                    Some(receipt) if receipt.passed() => None,
                    Some(receipt) => {
                        let code =
                            receipt.code.map_or_else(|| "no exit code".to_owned(), |code| format!("exit code {code}"));
                        Some(format!("the command {} with {code}", receipt.how))
                    }
                }
            }
            "artifact" if self.artifacts.contains(value) => None,
            "artifact" => Some("no artifact of this name was kept".to_owned()),
            "file-written" if ScopePath::parse(value).is_ok_and(|path| files.has_written(&path, fact)) => None,
            "file-written" => Some("its write scope has no file of this path at the end".to_owned()),
            _ => Some("this kind of claim is unknown".to_owned()),
        }
    }
}

impl FilesAtEnd<'_> {
    /// True for a file that the stage was allowed to write and that is there at its end: in its changes, else in the workspace it began
    /// from.
    fn has_written(&self, path: &ScopePath, fact: &StageFinished) -> bool {
        if self.scope.as_ref().is_none_or(|scope| scope.access(path) != Access::Write) {
            return false;
        }
        let last = fact.files.changes.iter().rev().find(|change| change.path == *path);
        match last.map(|change| change.op) {
            Some(ChangeOp::Write) => true,
            Some(ChangeOp::Delete | ChangeOp::Rmdir | ChangeOp::Mkdir | ChangeOp::Symlink) => false,
            None => {
                let found = self.run.symlink_metadata(format!("{}/{path}", self.workspace));
                found.is_ok_and(|found| found.is_file())
            }
        }
    }
}

#[cfg(test)]
mod tests;
