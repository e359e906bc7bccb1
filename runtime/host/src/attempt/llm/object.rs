//! Answers that must match a schema. The host validates every final answer itself.
//!
//! The object in the context is always the object that the host validated, never one that the component returned.

use super::access::ModelAccess;
use super::model::Model;
use crate::attempt::Attempt;
use crate::bindings::control::Host as _;
use glovebox_models::chat::{Answer, Finish};
use glovebox_models::error::{ErrorKind, ModelError};
use glovebox_record::{Failure, FailureClass, Outcome, Status};
use glovebox_schema::{Schema, document};
use serde_json::Value;

/// Number of successive answers without a match after which the stage fails.
const MISMATCHES_MAX: u32 = 3;
/// Maximum nesting depth of the object.
const LEVELS_MAX: usize = 64;
/// Maximum number of the object's properties that get a context key of their own.
const KEYS_MAX: usize = 64;
/// Name of the artifact with the object.
const FILE: &str = "output.json";

/// Validation of a final answer against the schema of the stage.
#[derive(Debug, Default)]
pub(crate) struct ObjectCheck {
    /// The object, or why the last answer is invalid; `None` after an answer that calls tools.
    last: Option<Result<Value, String>>,
    /// Number of successive answers that did not match.
    mismatches: u32,
    /// True if the provider got the schema.
    is_schema_mode: bool,
}

impl ObjectCheck {
    /// Validates an answer. The length of its text is limited by `outcome_bytes`.
    pub(super) fn note(
        &mut self,
        schema: &Schema,
        answer: &Answer,
        is_schema_mode: bool,
        bytes_max: u64,
    ) -> Result<(), ModelError> {
        self.last = None;
        if answer.tool_calls().next().is_some() || matches!(answer.finish, Finish::Length | Finish::ContentFilter) {
            return Ok(());
        }
        self.is_schema_mode = is_schema_mode;
        let read = read(schema, &answer.text(), bytes_max);
        self.mismatches = if read.is_ok() { 0 } else { self.mismatches + 1 };
        let problem = read.as_ref().err().filter(|_| self.mismatches >= MISMATCHES_MAX);
        let problem = problem.map(|problem| {
            let message = format!("{MISMATCHES_MAX} answers in a row do not match `output_schema`: {problem}");
            ModelError::new(ErrorKind::NoObjectGenerated, message)
        });
        self.last = Some(read);
        problem.map_or(Ok(()), Err)
    }

    /// Returns the result of the validation as a field for the component.
    pub(super) fn field(&self) -> Option<(String, String)> {
        let (name, value) = match self.last.as_ref()? {
            Ok(_) => ("output", "valid"),
            Err(problem) => ("output-problem", problem.as_str()),
        };
        Some((name.to_owned(), value.to_owned()))
    }

    /// Returns the class of a failure without a valid object. If the provider got the schema, another attempt would fail in the same way.
    pub(super) fn class(&self) -> FailureClass {
        if self.is_schema_mode { FailureClass::Deterministic } else { FailureClass::Contract }
    }
}

/// Reads the object from a text that consists only of the object or of one code block.
fn read(schema: &Schema, text: &str, bytes_max: u64) -> Result<Value, String> {
    let text = text.trim();
    if text.len() as u64 > bytes_max {
        return Err(format!("the answer has {} bytes, expected at most {bytes_max}", text.len()));
    }
    let block = text.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let text = block.and_then(|block| block.split_once('\n')).map_or(text, |(_, inner)| inner);
    let value = document::read(text.as_bytes())
        .map_err(|error| format!("the answer is not exactly one JSON value: {error}"))?;
    if levels(&value) > LEVELS_MAX {
        return Err(format!("the answer has more than {LEVELS_MAX} levels"));
    }
    let wrong: Vec<String> = schema.check(&value).iter().map(ToString::to_string).collect();
    if wrong.is_empty() { Ok(value) } else { Err(wrong.join("; ")) }
}

impl ModelAccess {
    /// Returns the failure of a stage that reported success without a valid object.
    pub(crate) fn missing_object(&self, status: Status) -> Option<Failure> {
        let has_passed = matches!(status, Status::Success | Status::PartialSuccess);
        let is_missing =
            self.model.as_ref().and_then(Model::schema).is_some() && !matches!(self.object.last, Some(Ok(_)));
        let reason = match &self.object.last {
            Some(Err(problem)) => format!("the last answer does not match `output_schema`: {problem}"),
            _ => "the stage ended without an answer that matches `output_schema`".to_owned(),
        };
        let code = format!("provider/{}", ErrorKind::NoObjectGenerated);
        (has_passed && is_missing).then(|| Failure::new(self.object.class(), code, reason))
    }
}

impl Attempt {
    /// Returns the outcome with the object in its context updates. Also stores the object as an artifact.
    pub(crate) fn with_object(&mut self, mut outcome: Outcome) -> wasmtime::Result<Outcome> {
        let has_passed = matches!(outcome.status, Status::Success | Status::PartialSuccess);
        let object = self.llm.access.object.last.take().and_then(Result::ok).filter(|_| has_passed);
        let schema = self.llm.access.model.as_ref().and_then(Model::schema);
        let (Some(object), Some((schema, name))) = (object, schema) else { return Ok(outcome) };
        let key = format!("{name}.output");
        let names = schema.properties().filter(|name| is_key(name)).take(KEYS_MAX);
        for name in names {
            let value = object.get(name).filter(|value| !value.is_object() && !value.is_array());
            outcome.context_updates.insert(format!("{key}.{name}"), value.cloned().unwrap_or_default());
        }
        let text = format!("{object:#}\n");
        outcome.context_updates.insert(key, object);
        // If the artifact exceeds a limit, a refusal is recorded.
        let _kept = self.put_artifact(FILE.to_owned(), "application/json".to_owned(), text.into_bytes())?;
        Ok(outcome)
    }
}

/// Returns the nesting depth of lists and objects. The parser has limited it.
pub(crate) fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

/// Returns true for a name that conditions of edges can refer to.
fn is_key(name: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    name.bytes().all(is_part) && name.bytes().next().is_some_and(|first| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_models::chat::{call_part, text_part};

    const SCHEMA: &str = r#"{"type":"object","required":["verdict"],"properties":{"verdict":{"enum":["good","bad"]}}}"#;

    fn answer(text: &str) -> Answer {
        Answer { parts: vec![text_part(text)], ..Answer::default() }
    }

    #[test]
    fn an_object_is_read_alone_or_in_one_block() {
        let schema = Schema::parse(SCHEMA).unwrap();
        let check = |text: &str, expected: &str| match read(&schema, text, 1000) {
            Ok(value) => assert_eq!(value.to_string(), expected, "{text}"),
            Err(problem) => assert!(problem.starts_with(expected) && !expected.is_empty(), "{text}: {problem}"),
        };
        check(r#" {"verdict":"good"} "#, r#"{"verdict":"good"}"#);
        check("```json\n{\"verdict\":\"bad\"}\n```", r#"{"verdict":"bad"}"#);
        check(r#"Here it is: {"verdict":"good"}"#, "the answer is not exactly one JSON value: ");
        check(r#"{"verdict":"good"} {"verdict":"bad"}"#, "the answer is not exactly one JSON value: ");
        check(r#"{"verdict":"fine"}"#, "at `/verdict`: expected one of");
        check("", "the answer is not exactly one JSON value: ");
        let deep = format!(r#"{{"verdict":"good","x":{}{}}}"#, "[".repeat(70), "]".repeat(70));
        check(&deep, "the answer has more than 64 levels");
        check(&format!(r#"{{"verdict":"good","x":"{}"}}"#, "x".repeat(1000)), "the answer has 10");
    }

    #[test]
    fn the_third_answer_in_a_row_that_does_not_match_is_an_error() {
        let schema = Schema::parse(SCHEMA).unwrap();
        let mut checked = ObjectCheck::default();
        let mut note = |answer: &Answer| checked.note(&schema, answer, true, 1000).map_err(|error| error.kind);
        let call = Answer { parts: vec![call_part("1", "glob", "{}")], ..Answer::default() };
        assert_eq!((note(&answer("no")), note(&call), note(&answer("no"))), (Ok(()), Ok(()), Ok(())));
        assert_eq!(note(&answer(r#"{"verdict":"bad"}"#)), Ok(()), "a match begins anew");
        assert_eq!((note(&answer("no")), note(&answer("no"))), (Ok(()), Ok(())));
        assert_eq!(note(&answer("no")), Err(ErrorKind::NoObjectGenerated));
        assert_eq!(checked.class(), FailureClass::Deterministic);
    }

    #[test]
    fn only_plain_names_become_keys() {
        assert!(is_key("verdict") && is_key("_a1"));
        assert!(!is_key("") && !is_key("1a") && !is_key("a.b") && !is_key("a b"));
    }
}
