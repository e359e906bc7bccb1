//! `<node>/status.json`: how a node's latest attempt ended (spec App. C, decision status-dialects).
//!
//! The file is written in one dialect; [`glovebox_state::status_file`] reads all of them. It is a projection for people and
//! other tools: routing never reads it, and no stage can reach it. It says from which file the outcome was taken, if a stage
//! answered by a file (decision status-files).

use glovebox_journal::event::{AttemptId, Digest, FailureMeta, StatusIngested, StatusPlace, Task};
use glovebox_record::{FailureCode, Outcome};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the file that is written.
pub const STATUS_SCHEMA_VERSION: u32 = 1;

/// The contents of `status.json`.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(title = "status.json")]
pub struct StatusFile<'a> {
    /// Always 1.
    pub schema_version: u32,
    /// How the attempt ended: `success`, `partial_success`, `retry`, `fail` or `skipped`.
    pub outcome: &'static str,
    /// The preferred edge label. Empty if the stage gave none.
    pub preferred_label: &'a str,
    /// The same label, under the name that other tools read.
    pub preferred_next_label: &'a str,
    /// Preferred targets, best first.
    pub suggested_next_ids: &'a [String],
    /// The context updates of the stage.
    pub context_updates: &'a BTreeMap<String, Value>,
    /// Notes for people.
    pub notes: &'a str,
    /// The raw failure reason. Empty unless the attempt failed.
    pub failure_reason: &'a str,
    /// The failure class, which the host decides. Empty unless the attempt failed.
    pub failure_class: &'static str,
    /// The stable failure code, such as `limit/memory`. Empty unless the attempt failed.
    pub failure_code: &'a str,
    /// Further facts about a failed verification (decision failure-codes). Absent for anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_meta: Option<FailureMeta>,
    /// From where the outcome was taken.
    #[serde(flatten)]
    pub origin: StatusOrigin,
    /// The node of the attempt (decision attempt-identity).
    pub status_owner_node_id: &'a str,
    /// The branch of the attempt.
    pub status_owner_branch_id: &'a str,
    /// The id of the attempt.
    pub status_owner_attempt_id: &'a str,
    /// The generation of the run: 0 for the first.
    pub status_owner_run_generation: u32,
}

/// From where the outcome of a status was taken (decision status-files).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StatusOrigin {
    /// `returned` by the stage or by the engine, or taken from the stage's file: `drop`, `workspace` or `workspace-ai`.
    pub status_source: &'static str,
    /// The path of the file: below `$GLOVEBOX_STATUS_DIR`, or in the workspace. Absent if the outcome was not taken from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_source_path: Option<&'static str>,
    /// The digest of the file. Absent if the outcome was not taken from a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status_source_digest: Option<Digest>,
}

impl StatusOrigin {
    /// The outcome was returned.
    pub const RETURNED: Self = Self { status_source: "returned", status_source_path: None, status_source_digest: None };

    /// Returns the origin of an outcome, given the decision about the status files of its attempt. A failure that the file does not
    /// state was returned: the stage failed, or the host failed the attempt.
    pub fn new(outcome: &Outcome, ingested: Option<&StatusIngested>) -> Self {
        let is_stated = outcome.failure.as_ref().is_none_or(|failure| failure.code == FailureCode::STATUS_FAILED);
        match ingested.and_then(StatusIngested::accepted).filter(|_| is_stated) {
            None => Self::RETURNED,
            Some((place, copy)) => Self {
                status_source: place.as_str(),
                status_source_path: Some(StatusPlace::path(place)),
                status_source_digest: copy.map(|copy| copy.digest),
            },
        }
    }
}

/// The attempt to which a status belongs (decision attempt-identity).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The task.
    pub task: &'a Task,
    /// The attempt. `None` for a control node, which the engine passed.
    pub attempt: Option<&'a AttemptId>,
}

/// Creates the contents of the file.
pub fn encode<'a>(outcome: &'a Outcome, owner: Owner<'a>) -> StatusFile<'a> {
    let label = outcome.preferred_label.as_deref().unwrap_or_default();
    let failure = outcome.failure.as_ref();
    StatusFile {
        schema_version: STATUS_SCHEMA_VERSION,
        outcome: outcome.status.as_str(),
        preferred_label: label,
        preferred_next_label: label,
        suggested_next_ids: &outcome.suggested_next_ids,
        context_updates: &outcome.context_updates,
        notes: &outcome.notes,
        failure_reason: failure.map_or("", |failure| &failure.reason),
        failure_class: failure.map_or("", |failure| failure.class.as_str()),
        failure_code: failure.map_or("", |failure| failure.code.as_str()),
        error_meta: None,
        origin: StatusOrigin::RETURNED,
        status_owner_node_id: owner.task.node.as_str(),
        status_owner_branch_id: owner.task.branch.as_str(),
        status_owner_attempt_id: owner.attempt.map_or("", AttemptId::as_str),
        status_owner_run_generation: owner.task.generation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::{Failure, FailureClass, Status};
    use glovebox_state::status_file::decode;

    #[test]
    fn what_is_written_reads_back() {
        let outcome = Outcome {
            status: Status::Fail,
            preferred_label: Some("fix".to_owned()),
            suggested_next_ids: vec!["a".to_owned()],
            context_updates: [("k".to_owned(), Value::from(1))].into(),
            notes: "n".to_owned(),
            failure: Some(Failure {
                class: FailureClass::Scope,
                code: FailureCode::SCOPE_WRITE,
                reason: "r".to_owned(),
            }),
        };
        let task = Task {
            generation: 0,
            branch: "main".into(),
            node: "n".into(),
            visit: 1,
            work: glovebox_journal::event::Work::Handler,
        };
        let attempt = "a1".into();
        let file = encode(&outcome, Owner { task: &task, attempt: Some(&attempt) });
        let read = decode(&serde_json::to_vec(&file).expect("json")).expect("own dialect").outcome;
        assert_eq!(read.preferred_label, outcome.preferred_label);
        assert_eq!(
            (read.status, read.context_updates, read.notes),
            (Status::Fail, outcome.context_updates.clone(), outcome.notes.clone())
        );
        assert_eq!((file.failure_class, file.failure_code), ("scope", "scope/write"));
    }
}
