//! The decoder of status files, in all dialects (decision status-dialects).
//!
//! A failure class in the file is ignored, because the host decides classes. Bounds of names and of context values are those
//! of every outcome, and are checked by the caller.

use super::{StatedOwner, StatedStatus};
use glovebox_journal::event::StatusFound;
use glovebox_names::visible;
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of characters of a value in a message.
const SHOWN_CHARACTERS_MAX: usize = 64;

/// Why the text of a status could not be parsed.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The text is not a JSON object.
    #[error("it is not a JSON object: {0}")]
    Syntax(#[from] serde_json::Error),
    /// The field `outcome` is missing under both names.
    #[error("it has neither `outcome` nor `status`")]
    NoOutcome,
    /// A field has different values under its two names.
    #[error("`{first}` and `{second}` have different values for the same field")]
    Contradiction {
        /// The name in the specification.
        first: &'static str,
        /// The other name.
        second: &'static str,
    },
    /// The value is not an outcome.
    #[error("its outcome is `{0}`, expected `success`, `partial_success`, `retry`, `fail` or `skipped`")]
    UnknownOutcome(String),
    /// A key occurs twice, so that readers could see different values.
    #[error("the key `{0}` occurs twice")]
    DuplicateKey(String),
    /// A field has the wrong type.
    #[error("`{field}` is not {expected}")]
    Type {
        /// The name of the field.
        field: &'static str,
        /// The expected value.
        expected: &'static str,
    },
}

impl StatusError {
    /// Returns the error without the text of the file, for the event.
    pub fn found(&self) -> StatusFound {
        match self {
            Self::Syntax(_) => StatusFound::NotJson,
            Self::NoOutcome => StatusFound::NoOutcome,
            Self::Contradiction { .. } => StatusFound::Contradiction,
            Self::UnknownOutcome(_) => StatusFound::UnknownOutcome,
            Self::DuplicateKey(_) => StatusFound::DuplicateKey,
            Self::Type { .. } => StatusFound::WrongType,
        }
    }
}

/// Parses a status in any dialect (decision status-dialects): `outcome` or `status`, `preferred_label` or
/// `preferred_next_label`, any case, and `ok`, `error`, `failure` and `skip` for the names in the specification. Unknown
/// fields belong to other programs and are ignored.
pub fn decode(text: &[u8]) -> Result<StatedStatus, StatusError> {
    let Object { values: mut object, repeated } = serde_json::from_slice(text)?;
    if let Some(key) = repeated {
        return Err(StatusError::DuplicateKey(shown(&key)));
    }
    let word =
        either(&object, "outcome", "status", |text| text.trim().to_lowercase())?.ok_or(StatusError::NoOutcome)?;
    let status = status_of(&word).ok_or_else(|| StatusError::UnknownOutcome(shown(&word)))?;
    let label = either(&object, "preferred_label", "preferred_next_label", str::to_owned)?;
    let reason = text_of(&object, "failure_reason")?.unwrap_or_default();
    let outcome = Outcome {
        status,
        preferred_label: label,
        suggested_next_ids: texts_of(&object, "suggested_next_ids")?,
        context_updates: match object.remove("context_updates") {
            None | Some(Value::Null) => BTreeMap::new(),
            Some(Value::Object(updates)) => updates.into_iter().collect(),
            Some(_) => return Err(StatusError::Type { field: "context_updates", expected: "an object" }),
        },
        notes: text_of(&object, "notes")?.unwrap_or_default(),
        failure: failure_of(status, reason),
    };
    Ok(StatedStatus { outcome, owner: owner_of(&object)? })
}

/// A JSON object, and a key that occurs twice at its top level or in its `context_updates`.
struct Object {
    values: Map<String, Value>,
    repeated: Option<String>,
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor)
    }
}

/// The value of `context_updates`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Updates {
    Object(Object),
    Other(Value),
}

struct ObjectVisitor;

impl<'de> Visitor<'de> for ObjectVisitor {
    type Value = Object;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Object, A::Error> {
        let mut object = Object { values: Map::new(), repeated: None };
        while let Some(key) = entries.next_key::<String>()? {
            let (value, repeated) = match key.as_str() {
                "context_updates" => match entries.next_value()? {
                    Updates::Object(updates) => (Value::Object(updates.values), updates.repeated),
                    Updates::Other(value) => (value, None),
                },
                _ => (entries.next_value()?, None),
            };
            let is_repeated = object.values.contains_key(&key);
            object.repeated = object.repeated.or(repeated).or_else(|| is_repeated.then(|| key.clone()));
            object.values.insert(key, value);
        }
        Ok(object)
    }
}

/// Returns the failure that a status states. The status decides the class.
fn failure_of(status: Status, reason: String) -> Option<Failure> {
    let class = match status {
        Status::Fail => FailureClass::Deterministic,
        Status::Retry => FailureClass::Transient,
        Status::Success | Status::PartialSuccess | Status::Skipped => return None,
    };
    let reason = match reason.is_empty() {
        true => format!("the stage ended with `{}` and no reason", status.as_str()),
        false => reason,
    };
    Some(Failure::new(class, FailureCode::STATUS_FAILED, reason))
}

fn owner_of(object: &Map<String, Value>) -> Result<StatedOwner, StatusError> {
    let text = |field| Ok::<_, StatusError>(text_of(object, field)?.map(|text| shown(&text)));
    let generation = match object.get("status_owner_run_generation") {
        Some(Value::Number(number)) => Some(number.to_string()),
        _ => text("status_owner_run_generation")?,
    };
    Ok(StatedOwner {
        node: text("status_owner_node_id")?,
        branch: text("status_owner_branch_id")?,
        attempt: text("status_owner_attempt_id")?,
        generation,
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
            if same_meaning { Ok(Some(one)) } else { Err(StatusError::Contradiction { first, second }) }
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

/// Returns the beginning of a text of the file, for a message.
fn shown(text: &str) -> String {
    let head: String = text.chars().take(SHOWN_CHARACTERS_MAX).collect();
    visible::line(&head).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, status: Status, label: Option<&str>) {
        let outcome = decode(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}")).outcome;
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
    fn the_value_of_a_context_key_is_kept_as_it_is() {
        let text = r#"{"outcome":"ok","context_updates":{"a":{"b":[1,-2,0.1,null,"x"]},"context_updates":7}}"#;
        let updates = decode(text.as_bytes()).unwrap().outcome.context_updates;
        let expected = serde_json::json!({ "a": { "b": [1, -2, 0.1, null, "x"] }, "context_updates": 7 });
        assert_eq!(serde_json::to_value(updates).unwrap(), expected);
    }

    #[test]
    fn what_cannot_be_believed_is_refused() {
        for (text, found) in [
            ("", StatusFound::NotJson),
            ("[]", StatusFound::NotJson),
            ("{}", StatusFound::NoOutcome),
            (r#"{"outcome":""}"#, StatusFound::NoOutcome),
            (r#"{"outcome":"done"}"#, StatusFound::UnknownOutcome),
            (r#"{"outcome":"success","status":"fail"}"#, StatusFound::Contradiction),
            (r#"{"outcome":true}"#, StatusFound::WrongType),
            (r#"{"outcome":"success","preferred_label":"a","preferred_next_label":"b"}"#, StatusFound::Contradiction),
            (r#"{"outcome":"success","suggested_next_ids":"a"}"#, StatusFound::WrongType),
            (r#"{"outcome":"success","context_updates":[]}"#, StatusFound::WrongType),
            (r#"{"outcome":"fail","outcome":"success"}"#, StatusFound::DuplicateKey),
            (r#"{"outcome":"success","\u006futcome":"success"}"#, StatusFound::DuplicateKey),
            (r#"{"outcome":"success","details":1,"details":1}"#, StatusFound::DuplicateKey),
            (r#"{"outcome":"success","context_updates":{"a":1,"a":2}}"#, StatusFound::DuplicateKey),
            (r#"{"outcome":"success","status_owner_node_id":1}"#, StatusFound::WrongType),
            (r#"{"outcome":"success","status_owner_run_generation":[0]}"#, StatusFound::WrongType),
        ] {
            assert_eq!(decode(text.as_bytes()).map_err(|error| error.found()), Err(found), "{text}");
        }
    }

    #[test]
    fn a_class_in_the_file_is_not_believed() {
        let text = br#"{"status":"fail","failure_reason":"net","failure_class":"transient","failure_code":"limit/x"}"#;
        let failure = decode(text).expect("status").outcome.failure.expect("failure");
        assert_eq!((failure.class, failure.code), (FailureClass::Deterministic, FailureCode::STATUS_FAILED));
        assert_eq!(failure.reason, "net");
    }

    #[test]
    fn a_message_shows_only_the_beginning_of_a_value_and_no_control_characters() {
        let text = format!(r#"{{"outcome":"\u001b[2J{}"}}"#, "x".repeat(9000));
        let message = decode(text.as_bytes()).expect_err("no outcome").to_string();
        assert!(message.len() < 300 && !message.contains('\u{1b}'), "{message}");
    }
}
