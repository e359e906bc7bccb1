//! `<node>/status.json`: how a node's latest attempt ended (spec App. C, decision status-dialects).
//!
//! The file is written in one dialect and read in all three. It is a projection for people and other tools: routing never
//! reads it, and no stage can reach it. A failure class in a file of another program is ignored, because the host decides
//! classes.

use glovebox_journal::event::{AttemptId, FailureMeta, Task};
use glovebox_record::{Failure, FailureClass, Outcome, Status};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
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
    /// The node of the attempt (decision attempt-identity).
    pub status_owner_node_id: &'a str,
    /// The branch of the attempt.
    pub status_owner_branch_id: &'a str,
    /// The id of the attempt.
    pub status_owner_attempt_id: &'a str,
    /// The generation of the run: 0 for the first.
    pub status_owner_run_generation: u32,
}

/// The attempt to which a status belongs (decision attempt-identity).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owner<'a> {
    /// The task.
    pub task: &'a Task,
    /// The attempt. `None` for a control node, which the engine passed.
    pub attempt: Option<&'a AttemptId>,
}

/// Why the text of a status could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The text is not a JSON object.
    #[error("`status.json` is not a JSON object: {0}")]
    Syntax(#[from] serde_json::Error),
    /// The field `outcome` is missing under both names.
    #[error("`status.json` has neither `outcome` nor `status`")]
    NoOutcome,
    /// A field has different values under its two names.
    #[error("`status.json` has the values `{first}` and `{second}` for one field, under its two names")]
    Contradiction {
        /// The value under the name in the specification.
        first: String,
        /// The value under the other name.
        second: String,
    },
    /// The value is not an outcome.
    #[error("`status.json` has the outcome `{0}`: success, partial_success, retry, fail or skipped is expected")]
    UnknownOutcome(String),
    /// A field has the wrong type.
    #[error("`{field}` in `status.json` is not {expected}")]
    Type {
        /// The name of the field.
        field: &'static str,
        /// The expected value.
        expected: &'static str,
    },
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
        status_owner_node_id: owner.task.node.as_str(),
        status_owner_branch_id: owner.task.branch.as_str(),
        status_owner_attempt_id: owner.attempt.map_or("", AttemptId::as_str),
        status_owner_run_generation: owner.task.generation,
    }
}

/// Parses a status in any dialect (decision status-dialects): `outcome` or `status`, `preferred_label` or
/// `preferred_next_label`, any case, and `ok`, `error`, `failure` and `skip` for the names in the specification. Unknown
/// fields belong to other programs and are ignored.
pub fn decode(text: &str) -> Result<Outcome, StatusError> {
    let mut object: Map<String, Value> = serde_json::from_str(text)?;
    let word =
        either(&object, "outcome", "status", |text| text.trim().to_lowercase())?.ok_or(StatusError::NoOutcome)?;
    let status = status_of(&word).ok_or(StatusError::UnknownOutcome(word))?;
    let label = either(&object, "preferred_label", "preferred_next_label", str::to_owned)?;
    let reason = text_of(&object, "failure_reason")?.unwrap_or_default();
    let failed = matches!(status, Status::Fail | Status::Retry);
    let failure = failed.then(|| Failure {
        class: FailureClass::Deterministic,
        code: "status/failed".into(),
        reason: if reason.is_empty() {
            format!("the stage ended with `{}` and no reason", status.as_str())
        } else {
            reason
        },
    });
    Ok(Outcome {
        status,
        preferred_label: label.filter(|label| !label.is_empty()),
        suggested_next_ids: texts_of(&object, "suggested_next_ids")?,
        context_updates: match object.remove("context_updates") {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(Value::Object(updates)) => updates.into_iter().collect(),
            Some(_) => return Err(StatusError::Type { field: "context_updates", expected: "an object" }),
        },
        notes: text_of(&object, "notes")?.unwrap_or_default(),
        failure,
    })
}

fn status_of(word: &str) -> Option<Status> {
    Some(match word {
        "success" | "ok" => Status::Success,
        "partial_success" => Status::PartialSuccess,
        "retry" => Status::Retry,
        "fail" | "failure" | "error" => Status::Fail,
        "skipped" | "skip" => Status::Skipped,
        _ => return None,
    })
}

fn either(
    object: &Map<String, Value>,
    first: &'static str,
    second: &'static str,
    fold: fn(&str) -> String,
) -> Result<Option<String>, StatusError> {
    let one = text_of(object, first)?.map(|text| fold(&text)).filter(|text| !text.is_empty());
    let two = text_of(object, second)?.map(|text| fold(&text)).filter(|text| !text.is_empty());
    match (one, two) {
        (Some(one), Some(two)) if one != two => {
            let same_meaning = first == "outcome" && status_of(&one).is_some() && status_of(&one) == status_of(&two);
            if same_meaning { Ok(Some(one)) } else { Err(StatusError::Contradiction { first: one, second: two }) }
        }
        (one, two) => Ok(one.or(two)),
    }
}

fn text_of(object: &Map<String, Value>, field: &'static str) -> Result<Option<String>, StatusError> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(StatusError::Type { field, expected: "a string" }),
    }
}

fn texts_of(object: &Map<String, Value>, field: &'static str) -> Result<Vec<String>, StatusError> {
    let wrong = StatusError::Type { field, expected: "a list of strings" };
    match object.get(field) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or(wrong)
        }
        Some(_) => Err(wrong),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::FailureCode;

    fn check(text: &str, status: Status, label: Option<&str>) {
        let outcome = decode(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!((outcome.status, outcome.preferred_label.as_deref()), (status, label), "{text}");
        assert_eq!(outcome.failure.is_some(), matches!(status, Status::Fail | Status::Retry), "{text}");
    }

    #[test]
    fn every_dialect_is_read() {
        check(r#"{"outcome":"success","preferred_label":"next"}"#, Status::Success, Some("next"));
        check(r#"{"outcome":"fail","preferred_next_label":"fix","failure_reason":"x"}"#, Status::Fail, Some("fix"));
        check(r#"{"status":"retry","failure_reason":"x","details":{"a":1}}"#, Status::Retry, None);
        check(r#"{"status":"SUCCESS"}"#, Status::Success, None);
        check(r#"{"outcome":"Partial_Success","preferred_label":""}"#, Status::PartialSuccess, None);
        check(r#"{"status":"ok"}"#, Status::Success, None);
        check(r#"{"status":"error"}"#, Status::Fail, None);
        check(r#"{"status":"skip"}"#, Status::Skipped, None);
        check(r#"{"outcome":"success","status":"ok"}"#, Status::Success, None);
    }

    #[test]
    fn what_cannot_be_believed_is_refused() {
        for text in [
            "",
            "[]",
            "{}",
            r#"{"outcome":""}"#,
            r#"{"outcome":"done"}"#,
            r#"{"outcome":"success","status":"fail"}"#,
            r#"{"outcome":true}"#,
            r#"{"outcome":"success","preferred_label":"a","preferred_next_label":"b"}"#,
            r#"{"outcome":"success","suggested_next_ids":"a"}"#,
            r#"{"outcome":"success","context_updates":[]}"#,
        ] {
            assert!(decode(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_class_in_the_file_is_not_believed() {
        let outcome =
            decode(r#"{"status":"fail","failure_reason":"net","failure_class":"transient"}"#).expect("status");
        let failure = outcome.failure.expect("failure");
        assert_eq!((failure.class, failure.reason.as_str()), (FailureClass::Deterministic, "net"));
    }

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
        let read = decode(&serde_json::to_string(&file).expect("json")).expect("own dialect");
        assert_eq!(read.preferred_label, outcome.preferred_label);
        assert_eq!(
            (read.status, read.context_updates, read.notes),
            (Status::Fail, outcome.context_updates.clone(), outcome.notes.clone())
        );
        assert_eq!((file.failure_class, file.failure_code), ("scope", "scope/write"));
    }
}
