//! How a stage ended, read from the model's answer: a declared outcome, an `OUTCOME:` line, or the specification's default.
//!
//! A declaration that cannot be read is an error and never taken for success. When lines disagree, FAIL wins (seed 0).

use glovebox_plugin_sdk::llm::Message;
use glovebox_plugin_sdk::{Outcome, Status, Value};

/// How much of the answer goes into the context, in characters (spec §4.5).
const RESPONSE_CHARS_MAX: usize = 200;

/// What the model declared about the stage.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declaration {
    pub(crate) status: Status,
    label: Option<String>,
    suggested: Vec<String>,
    updates: Vec<(String, Value)>,
    notes: Option<String>,
    reason: Option<String>,
}

/// Nothing was declared: text without tool calls is success (spec §4.5).
impl Default for Declaration {
    fn default() -> Self {
        Self::of(Status::Success)
    }
}

impl Declaration {
    fn of(status: Status) -> Self {
        Self { status, label: None, suggested: Vec::new(), updates: Vec::new(), notes: None, reason: None }
    }
}

/// Reads what an answer declares: an `outcome` part, else a line of its text, else nothing.
///
/// # Errors
/// The `outcome` part is no outcome.
pub(crate) fn declared(message: &Message) -> Result<Option<Declaration>, String> {
    match message.parts.iter().rev().find(|part| part.kind == "outcome") {
        Some(part) => parse(&part.text).map(Some),
        None => Ok(line(&message.whole_text())),
    }
}

/// Makes the stage's outcome.
pub(crate) fn outcome(node_id: &str, response: &str, declared: Declaration) -> Outcome {
    let default_reason = |word: &str| format!("the model declared {word} for stage {node_id} without a reason");
    let outcome = match declared.status {
        Status::Success => Outcome::success(),
        Status::PartialSuccess => Outcome::partial_success(),
        Status::Skipped => Outcome::skipped(),
        Status::Fail => Outcome::fail("agent/declared-fail", declared.reason.unwrap_or_else(|| default_reason("fail"))),
        Status::Retry => {
            Outcome::retry("agent/declared-retry", declared.reason.unwrap_or_else(|| default_reason("retry")))
        }
    };
    let shortened: String = response.chars().take(RESPONSE_CHARS_MAX).collect();
    let mut outcome = outcome
        .notes(declared.notes.unwrap_or_else(|| format!("Stage completed: {node_id}")))
        .set("last_stage", node_id)
        .set("last_response", shortened);
    if let Some(label) = declared.label {
        outcome = outcome.label(label);
    }
    outcome = declared.suggested.into_iter().fold(outcome, Outcome::suggest);
    declared.updates.into_iter().fold(outcome, |outcome, (key, value)| outcome.set(key, value))
}

fn parse(text: &str) -> Result<Declaration, String> {
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("the declared outcome is no JSON: {error}"))?;
    let object = value.as_object().ok_or("the declared outcome is no JSON object")?;
    let text = |name: &str| object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let word = text("status").or_else(|| text("outcome")).ok_or("the declared outcome has no `status`")?;
    let mut declaration =
        Declaration::of(status(&word).ok_or_else(|| format!("the declared outcome has the status `{word}`"))?);
    declaration.label = text("preferred_label");
    declaration.notes = text("notes");
    declaration.reason = text("failure_reason");
    if let Some(ids) = object.get("suggested_next_ids").and_then(Value::as_array) {
        declaration.suggested = ids.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    if let Some(updates) = object.get("context_updates").and_then(Value::as_object) {
        declaration.updates = updates.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    }
    Ok(declaration)
}

fn status(word: &str) -> Option<Status> {
    match word.to_ascii_lowercase().as_str() {
        "success" => Some(Status::Success),
        "partial_success" => Some(Status::PartialSuccess),
        "fail" => Some(Status::Fail),
        "retry" => Some(Status::Retry),
        "skipped" => Some(Status::Skipped),
        _ => None,
    }
}

/// Reads `OUTCOME: SUCCESS`, `OUTCOME: PASS` or `OUTCOME: FAIL reason` lines: any case, `:` or `=`.
fn line(text: &str) -> Option<Declaration> {
    let mut found = None;
    for line in text.lines() {
        let Some((word, rest)) = marker(line) else { continue };
        match word.as_str() {
            "SUCCESS" | "PASS" => found = found.or(Some(Declaration::of(Status::Success))),
            "FAIL" => {
                let reason =
                    rest.trim_matches(|character: char| character.is_whitespace() || ":-*`".contains(character));
                let reason = Some(reason.to_owned()).filter(|reason| !reason.is_empty());
                return Some(Declaration { reason, ..Declaration::of(Status::Fail) });
            }
            _ => {}
        }
    }
    found
}

/// Splits a marker line into its upper-case word and the rest; Markdown around it is looked through.
fn marker(line: &str) -> Option<(String, &str)> {
    let line = line.trim_start_matches(|character: char| character.is_whitespace() || "#*`>-_".contains(character));
    let name = line.get(..7).filter(|name| name.eq_ignore_ascii_case("OUTCOME"))?;
    let rest = line[name.len()..].trim_start_matches([' ', '*', '`']).strip_prefix([':', '='])?;
    let rest = rest.trim_start_matches([' ', '*', '`']);
    let end = rest.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(rest.len());
    Some((rest[..end].to_ascii_uppercase(), &rest[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::llm::Part;

    #[test]
    fn reads_marker_lines() {
        let check = |text: &str, expected: Option<(Status, Option<&str>)>| {
            let found = line(text).map(|declared| (declared.status, declared.reason));
            assert_eq!(found, expected.map(|(status, reason)| (status, reason.map(str::to_owned))), "{text}");
        };
        check("all done\nOUTCOME: SUCCESS", Some((Status::Success, None)));
        check("outcome=pass", Some((Status::Success, None)));
        check("**OUTCOME:** `PASS`", Some((Status::Success, None)));
        check("OUTCOME: FAIL", Some((Status::Fail, None)));
        check("OUTCOME: FAIL - no compiler here", Some((Status::Fail, Some("no compiler here"))));
        check("OUTCOME: SUCCESS\nOUTCOME: FAIL", Some((Status::Fail, None)));
        check("OUTCOME: FAIL\nOUTCOME: SUCCESS", Some((Status::Fail, None)));
        check("OUTCOME: SUCCESSFUL", None);
        check("the OUTCOME: SUCCESS is near", None);
        check("OUTCOMES: SUCCESS", None);
        check("outcom\u{00e9}: pass", None);
        check("", None);
    }

    fn message(parts: Vec<Part>) -> Message {
        Message { role: "assistant".to_owned(), parts }
    }

    #[test]
    fn a_declared_outcome_comes_before_a_line() {
        let json = r#"{"status":"fail","failure_reason":"no","preferred_label":"fix","suggested_next_ids":["a"],
            "context_updates":{"n":1,"last_stage":"mine"},"notes":""}"#;
        let declared = declared(&message(vec![Part::new("text", "OUTCOME: SUCCESS"), Part::new("outcome", json)]));
        let outcome = outcome("n1", "text", declared.unwrap().unwrap());
        assert_eq!(outcome.status(), Status::Fail);
        assert_eq!(outcome.failure().map(|failure| failure.reason.as_str()), Some("no"));
        assert_eq!((outcome.value("n"), outcome.value("last_stage")), (Some("1"), Some("\"mine\"")));
    }

    #[test]
    fn what_cannot_be_read_is_no_success() {
        let check = |json: &str, expected: &str| {
            let error = declared(&message(vec![Part::new("outcome", json)])).unwrap_err();
            assert!(error.contains(expected), "{json}: {error}");
        };
        check("success", "no JSON");
        check("[]", "no JSON object");
        check("{}", "no `status`");
        check(r#"{"status":"great"}"#, "status `great`");
    }

    #[test]
    fn text_alone_is_the_specifications_success() {
        let long = "ä".repeat(RESPONSE_CHARS_MAX + 1);
        let outcome = outcome(
            "n1",
            &long,
            declared(&message(vec![Part::new("text", long.clone())])).unwrap().unwrap_or_default(),
        );
        assert_eq!(outcome.status(), Status::Success);
        assert_eq!(outcome.value("last_stage"), Some("\"n1\""));
        assert_eq!(outcome.value("last_response").map(|text| text.chars().count()), Some(RESPONSE_CHARS_MAX + 2));
    }

    #[test]
    fn a_failure_without_a_reason_gets_one() {
        let outcome = outcome("n1", "", Declaration::of(Status::Retry));
        let reason = outcome.failure().map(|failure| failure.reason.as_str());
        assert_eq!(reason, Some("the model declared retry for stage n1 without a reason"));
    }
}
