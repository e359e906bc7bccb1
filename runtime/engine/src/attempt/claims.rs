//! Checks the claims of a stage against the records of the stage (decision receipts-prove-verdicts).
//!
//! A claim that the records do not support fails the stage with class `contract`: a stage that claims that the tests
//! passed must name a receipt that proves it. Claims are checked only here, after the changes of the stage are known. A
//! file whose change was not allowed counts as not written.

use super::replace;
use cap_std::fs::Dir;
use glovebox_host::call::{Claim, Report};
use glovebox_journal::event::{ChangeOp, Ending, FailedCommand, StageFinished};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Access, Scope};
use glovebox_record::{Failure, FailureClass, FailureCode, Receipt};
use glovebox_workspace::refusal::escaped;
use std::collections::BTreeSet;

/// The claims of a stage, and what is needed to check them or to explain a failure of the stage.
#[derive(Debug, Default)]
pub(super) struct Statement {
    /// The claims of the stage.
    claims: Vec<Claim>,
    /// Names of the artifacts that the component kept. Artifacts that the runtime adds prove no claim.
    artifacts: BTreeSet<String>,
    /// The command that caused a failure of the stage, if there is one.
    pub(super) failed_command: Option<FailedCommand>,
    /// True if a failure of the stage might be fixed by letting it read hold-outs.
    pub(super) misses_holdouts: bool,
}

/// The files of a stage after its end.
pub(super) struct FilesAtEnd<'f> {
    /// The run directory.
    pub(super) run: &'f Dir,
    /// The workspace from which the stage began, relative to the run directory.
    pub(super) workspace: &'f str,
    /// The scope of the component. `None` if it has no files.
    pub(super) scope: Option<Scope>,
}

impl Statement {
    /// Takes the claims out of a report, without checking them.
    pub(super) fn from_report(report: &mut Report) -> Self {
        let artifacts = report.artifacts.iter().map(|artifact| artifact.name.clone()).collect();
        Self { claims: std::mem::take(&mut report.claims), artifacts, ..Self::default() }
    }

    /// Checks every claim. The first claim that fails replaces the outcome. `fact` must already contain the stage's changes.
    /// If a person may decide about the writes of the stage, the stage's own outcome is checked too.
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
                // Receipts of hooks and of the program under test prove nothing about the stage's own work.
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
    /// Returns true for a file that the stage was allowed to write and that exists after the stage: its last change is
    /// a write or, if the stage did not change it, it is in the workspace from which the stage began.
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
