//! A node's folder: status, output, receipts and artifacts of its latest attempt. `artifacts/` keeps the artifacts of every
//! attempt.
//!
//! Files of an earlier attempt that the latest attempt did not write are removed, so that every file in the folder
//! belongs to the latest attempt.

use super::run_files::{history_folder, task_folder};
use super::status::{Owner, StatusFile, StatusOrigin, encode};
use super::{Content, ProjectError, Projector};
use glovebox_journal::event::{
    Artifact, Attempt, FailureMeta, QuestionAnswered, Receipt, Record, RecoveryDecided, StageFinished, StagePassed,
    Work,
};
use glovebox_journal::ports::BlobStore;
use glovebox_record::Outcome;
use glovebox_state::run_state::RunState;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// The file with the host's receipts of an attempt's commands. It exists only if there are any.
const RECEIPTS_FILE: &str = "receipts.json";
/// Names in a node's folder that artifacts cannot use.
const OWN_NAMES: [&str; 4] = ["status.json", "stdout.log", "stderr.log", RECEIPTS_FILE];

/// The contents of `<node>/receipts.json`.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(title = "receipts.json")]
pub struct ReceiptsFile<'a> {
    /// Always 1.
    pub schema_version: u32,
    /// The attempt that ran the commands.
    #[serde(flatten)]
    pub attempt: &'a Attempt,
    /// The receipts of the commands, in order.
    pub receipts: &'a [Receipt],
}

/// Returns a line of the log in `checkpoint.json`.
pub(super) fn log_line(record: &Record, finished: &StageFinished) -> String {
    let status = finished.outcome.status.as_str();
    let reason = finished.outcome.failure.as_ref().map(|failure| format!(": {}", failure.reason)).unwrap_or_default();
    let Attempt { task, ordinal, .. } = &finished.attempt;
    format!(
        "{} {}#{} attempt {ordinal} {status}{reason}",
        glovebox_journal::event::time_format::text(&record.at),
        task.node,
        task.visit
    )
}

impl<B: BlobStore> Projector<B> {
    pub(super) fn stage(&mut self, finished: &StageFinished) -> Result<(), ProjectError> {
        let Attempt { task, id, .. } = &finished.attempt;
        let folder = task_folder(task);
        // If a person may decide about the writes of the attempt, its own outcome may still become the status.
        let ingested = match finished.files.recoverable {
            Some(_) => self.answers.get(id).cloned(),
            None => self.answers.remove(id),
        };
        let status = |task| StatusFile {
            error_meta: FailureMeta::for_stage(finished),
            origin: StatusOrigin::new(&finished.outcome, ingested.as_ref()),
            ..encode(&finished.outcome, Owner { task, attempt: Some(id) })
        };
        self.file(&folder, "status.json", &status(task))?;
        if task.work == Work::Verify {
            // The result of the verification is the result of the node.
            let task = &task.handling();
            self.file(&task_folder(task), "status.json", &status(task))?;
        }
        self.kept(&folder, finished)
    }

    pub(super) fn passed(&mut self, passed: &StagePassed, state: &RunState) -> Result<(), ProjectError> {
        let task = passed.task();
        let outcome = state.branch(&passed.branch).outcome(&passed.node).cloned();
        let outcome = outcome.unwrap_or_else(|| Outcome::new(passed.status));
        let owner = Owner { task: &task, attempt: None };
        self.file(&task_folder(&task), "status.json", &encode(&outcome, owner))
    }

    /// Writes the status of a human gate. Its folder has no other files, because question and answer are in the journal.
    pub(super) fn answered(&mut self, answered: &QuestionAnswered) -> Result<(), ProjectError> {
        let (task, outcome) = (answered.task(), answered.outcome());
        self.file(&task_folder(&task), "status.json", &encode(&outcome, Owner { task: &task, attempt: None }))
    }

    /// Writes the status of a stage after the decision about its disallowed writes.
    pub(super) fn decided(&mut self, decided: &RecoveryDecided) -> Result<(), ProjectError> {
        let Attempt { task, id, .. } = &decided.attempt;
        let ingested = self.answers.remove(id);
        let origin = StatusOrigin::new(&decided.outcome, ingested.as_ref());
        let status = StatusFile { origin, ..encode(&decided.outcome, Owner { task, attempt: Some(id) }) };
        self.file(&task_folder(task), "status.json", &status)
    }

    fn kept(&mut self, folder: &str, finished: &StageFinished) -> Result<(), ProjectError> {
        let mut names = BTreeSet::new();
        if !finished.commands.receipts.is_empty() {
            let receipts =
                ReceiptsFile { schema_version: 1, attempt: &finished.attempt, receipts: &finished.commands.receipts };
            self.file(folder, RECEIPTS_FILE, &receipts)?;
            names.insert(RECEIPTS_FILE.to_owned());
        }
        for (name, captured) in [("stdout.log", &finished.files.stdout), ("stderr.log", &finished.files.stderr)] {
            if let Some(captured) = captured {
                self.hold(folder, name, Content::Blob(captured.digest));
                names.insert(name.to_owned());
            }
        }
        let history = history_folder(&finished.attempt);
        for artifact in finished.files.artifacts.iter().filter(|artifact| has_valid_name(artifact)) {
            let digest = artifact.digest;
            self.hold(&history, &artifact.name, Content::Blob(digest));
            self.hold(folder, &artifact.name, Content::Link { folder: history.clone(), digest });
            names.insert(artifact.name.clone());
        }
        let earlier = self.names.remove(folder).unwrap_or_default();
        for name in earlier.difference(&names) {
            self.hold(folder, name, Content::Nothing);
        }
        self.names.insert(folder.to_owned(), names);
        Ok(())
    }
}

/// Returns true if the name is valid. The host has already checked it, but the run directory does not rely on that.
fn has_valid_name(Artifact { name, .. }: &Artifact) -> bool {
    (1..=64).contains(&name.len())
        && !name.starts_with('.')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        && !OWN_NAMES.iter().any(|own| own.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::has_valid_name;
    use glovebox_journal::event::{Artifact, Digest};

    fn is_valid(name: &str) -> bool {
        let media_type = "text/plain".to_owned();
        has_valid_name(&Artifact { name: name.to_owned(), media_type, digest: Digest::ZERO, bytes: 0 })
    }

    #[test]
    fn no_artifact_takes_a_name_of_the_engine_or_leads_elsewhere() {
        for name in ["prompt.md", "response.md", "tool.stdout.txt", "a-b_c"] {
            assert!(is_valid(name), "{name}");
        }
        for name in ["", "..", ".status.json.new", "a/b", "status.json", "STATUS.json", "receipts.json", "x\0"] {
            assert!(!is_valid(name), "{name}");
        }
        assert!(!is_valid(&"a".repeat(65)));
    }
}
