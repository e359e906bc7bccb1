//! Determines the outcome of a stage from the model's answer: a declared outcome, an `OUTCOME:` line, or the specification's default.
//!
//! A declaration that cannot be read is an error and is never treated as success. If declarations disagree, `FAIL` takes
//! precedence. `SUCCESS` is recognized only at the beginning of a line, and every other word at any position
//! (decision fail-wins-over-success).

use glovebox_plugin_sdk::llm::{Message, Part};
use glovebox_plugin_sdk::{Outcome, Stage, Status, Value};

/// Maximum length of the answer in the context, in characters (spec §4.5). The fan-in gets the whole answer of a branch.
const RESPONSE_CHARS_MAX: usize = 200;
/// Maximum length of the answer in the notes of a failed branch, in characters.
const NOTES_CHARS_MAX: usize = 2000;
/// Context key of the answer.
const LAST_RESPONSE: &str = "last_response";

/// An outcome that the model declared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Declaration {
    pub(crate) status: Status,
    label: Option<String>,
    suggested: Vec<String>,
    updates: Vec<(String, Value)>,
    notes: Option<String>,
    reason: Option<String>,
    /// The plan for a verification stage.
    pub(crate) plan: Option<Value>,
}

/// Without a declaration, an answer without tool calls is a success (spec §4.5).
impl Default for Declaration {
    fn default() -> Self {
        Self::new(Status::Success)
    }
}

impl Declaration {
    fn new(status: Status) -> Self {
        Self { status, label: None, suggested: Vec::new(), updates: Vec::new(), notes: None, reason: None, plan: None }
    }
}

/// Reads the declaration of an answer: an `outcome` part, or else the markers in its text.
///
/// # Errors
/// The `outcome` part is not an outcome, or the word after a marker is unknown.
pub(crate) fn declared(message: &Message) -> Result<Option<Declaration>, String> {
    match message.parts.iter().rev().find(|part| part.kind == "outcome") {
        Some(part) => explicit(part).map(Some),
        None => marked(message),
    }
}

/// Returns true if an answer has an `outcome` part. Such a part is always a declaration, even if the answer also calls tools.
pub(crate) fn is_explicit(message: &Message) -> bool {
    message.parts.iter().any(|part| part.kind == "outcome")
}

/// The last answer of a stage.
pub(crate) struct StageAnswer<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) response: &'a str,
}

impl StageAnswer<'_> {
    /// Returns the part of the answer that is stored in the context.
    fn told(&self) -> String {
        let chars_max = if is_of_branch(self.stage) { usize::MAX } else { RESPONSE_CHARS_MAX };
        self.response.chars().take(chars_max).collect()
    }

    /// Returns the branch that a judge at a fan-in chose: the only candidate that the last line of its answer names.
    fn choice(&self) -> Option<&str> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        let line =
            self.response.lines().rev().find(|line| !line.trim().is_empty() && markers(line).next().is_none())?;
        let words = || line.split(|letter| !is_part(letter));
        let mut named = self.stage.extra("candidates")?.lines().filter(|id| words().any(|word| word == *id));
        named.next().filter(|_| named.next().is_none())
    }

    /// Adds the answer to the notes of a failed branch, so that the fan-in gets it. The engine drops everything else that a failed
    /// handler sets.
    pub(crate) fn beside(&self, outcome: Outcome) -> Outcome {
        if outcome.failure().is_none() || outcome.value(LAST_RESPONSE).is_some() || !is_of_branch(self.stage) {
            return outcome;
        }
        outcome.notes(self.response.chars().take(NOTES_CHARS_MAX).collect::<String>())
    }
}

fn is_of_branch(stage: &Stage) -> bool {
    stage.extra("branch").is_some()
}

impl Declaration {
    /// Returns true if the declaration says that the stage does not succeed.
    pub(crate) fn gives_up(&self) -> bool {
        matches!(self.status, Status::Fail | Status::Retry)
    }

    /// Creates the outcome of the stage.
    pub(crate) fn into_outcome(self, answered: StageAnswer<'_>) -> Outcome {
        let node_id = answered.stage.node_id();
        let default_reason = |word: &str| format!("the model declared {word} for stage {node_id} without a reason");
        let outcome = match self.status {
            Status::Success => Outcome::success(),
            Status::PartialSuccess => Outcome::partial_success(),
            Status::Skipped => Outcome::skipped(),
            Status::Fail => Outcome::fail("agent/declared-fail", self.reason.unwrap_or_else(|| default_reason("fail"))),
            Status::Retry => {
                Outcome::retry("agent/declared-retry", self.reason.unwrap_or_else(|| default_reason("retry")))
            }
        };
        let mut outcome = outcome
            .notes(self.notes.unwrap_or_else(|| format!("Stage completed: {node_id}")))
            .set("last_stage", node_id)
            .set(LAST_RESPONSE, answered.told());
        if let Some(label) = self.label.or_else(|| answered.choice().map(str::to_owned)) {
            outcome = outcome.label(label);
        }
        outcome = self.suggested.into_iter().fold(outcome, Outcome::suggest);
        self.updates.into_iter().fold(outcome, |outcome, (key, value)| outcome.set(key, value))
    }
}

fn explicit(part: &Part) -> Result<Declaration, String> {
    let value: Value =
        serde_json::from_str(&part.text).map_err(|error| format!("the declared outcome is not valid JSON: {error}"))?;
    let Value::Object(mut object) = value else { return Err("the declared outcome is not a JSON object".to_owned()) };
    let text = |name: &str| object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty()).map(str::to_owned);
    let word = text("status").or_else(|| text("outcome")).ok_or("the declared outcome has no `status`")?;
    let status = match word.to_ascii_lowercase().as_str() {
        "success" => Status::Success,
        "partial_success" => Status::PartialSuccess,
        "fail" => Status::Fail,
        "retry" => Status::Retry,
        "skipped" => Status::Skipped,
        _ => {
            return Err(format!(
                "the declared outcome has the status `{word}`, expected `success`, `partial_success`, `retry`, `fail` or `skipped`"
            ));
        }
    };
    let mut declaration = Declaration::new(status);
    declaration.label = text("preferred_label");
    declaration.notes = text("notes");
    declaration.reason = text("failure_reason");
    if let Some(ids) = object.get("suggested_next_ids").and_then(Value::as_array) {
        declaration.suggested = ids.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    }
    if let Some(Value::Object(updates)) = object.remove("context_updates") {
        declaration.updates = updates.into_iter().collect();
    }
    declaration.plan = object.remove("verification_plan");
    Ok(declaration)
}

/// Marker before an outcome in a text, in upper or lower case and followed by `:` or `=`.
const MARKER: &str = "OUTCOME";

/// Markdown characters that may precede a marker at the beginning of a line.
const MARKDOWN: &[char] = &[' ', '\t', '#', '*', '`', '>', '-', '_'];

/// Reads the markers of a text. In order of precedence: `FAIL`, an unknown word, `RETRY`, success. Inside a line, only `OUTCOME` in
/// capitals is a marker: "the outcome: a list" is prose.
///
/// # Errors
///
/// Fails if the word after a marker is unknown.
fn marked(message: &Message) -> Result<Option<Declaration>, String> {
    let text = message.whole_text();
    let (mut found, mut unknown) = (None::<Declaration>, None);
    for line in text.lines() {
        for marker in markers(line) {
            let Marker { at, word, .. } = marker;
            let is_first = line[..at].chars().all(|character| MARKDOWN.contains(&character));
            let is_meant = is_first || line[at..].starts_with(MARKER);
            match word.to_ascii_uppercase().as_str() {
                "FAIL" | "FAILED" | "FAILURE" => return Ok(Some(marker.with_reason(Status::Fail))),
                "RETRY" => found = Some(marker.with_reason(Status::Retry)),
                "SUCCESS" | "PASS" if !is_first => {}
                "SUCCESS" | "PASS" => found = found.or(Some(Declaration::new(Status::Success))),
                "PARTIAL_SUCCESS" if is_first => found = found.or(Some(Declaration::new(Status::PartialSuccess))),
                _ if is_meant => unknown = unknown.or(Some(word)),
                _ => {}
            }
        }
    }
    match unknown {
        Some(word) => Err(format!(
            "the answer declares the outcome `{word}`, expected a line `OUTCOME: SUCCESS`, `OUTCOME: FAIL` or `OUTCOME: RETRY`"
        )),
        None => Ok(found),
    }
}

/// One marker of a line.
struct Marker<'a> {
    /// Byte offset at which the marker begins.
    at: usize,
    /// The word after the marker; empty if there is none.
    word: &'a str,
    /// The text after the word.
    rest: &'a str,
}

impl Marker<'_> {
    fn with_reason(&self, status: Status) -> Declaration {
        let reason = self.rest.trim_matches(|character: char| character.is_whitespace() || ":-*`_".contains(character));
        Declaration { reason: Some(reason.to_owned()).filter(|reason| !reason.is_empty()), ..Declaration::new(status) }
    }
}

/// Finds the markers of a line. Only whole words are recognized, and Markdown between marker and word is ignored.
fn markers(line: &str) -> impl Iterator<Item = Marker<'_>> {
    let is_part = |character: char| character.is_alphanumeric();
    let places = line.char_indices().map(|(at, _)| at).filter(move |at| {
        line.get(*at..at + MARKER.len()).is_some_and(|name| name.eq_ignore_ascii_case(MARKER))
            && !line[..*at].ends_with(is_part)
    });
    places.filter_map(move |at| {
        let rest = line[at + MARKER.len()..].trim_start_matches([' ', '*', '`', '_']).strip_prefix([':', '='])?;
        let rest = rest.trim_start_matches(|character: char| !is_part(character) && !character.is_control());
        let end = rest.find(|character: char| !is_part(character) && character != '_').unwrap_or(rest.len());
        let word = rest[..end].trim_end_matches('_');
        Some(Marker { at, word, rest: &rest[end..] })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::testing;

    fn stage() -> Stage {
        testing::stage("n1").into()
    }

    #[test]
    fn reads_markers() {
        let check = |text: &str, expected: Option<(Status, Option<&str>)>| {
            let found =
                marked(&Message::text("assistant", text)).unwrap().map(|declared| (declared.status, declared.reason));
            assert_eq!(found, expected.map(|(status, reason)| (status, reason.map(str::to_owned))), "{text}");
        };
        let (success, fail, retry) =
            (Some((Status::Success, None)), Some((Status::Fail, None)), Some((Status::Retry, None)));
        for text in ["all done\nOUTCOME: SUCCESS", "outcome=pass", "**OUTCOME:** `PASS`", "## Outcome: _success_."] {
            check(text, success);
        }
        check("OUTCOME: partial_success", Some((Status::PartialSuccess, None)));
        for text in
            ["OUTCOME: FAIL", "OUTCOME: FAILED", "outcome = Failure", "**Outcome**: **FAILED**", "OUTCOME:❌ FAIL"]
        {
            check(text, fail);
        }
        check("OUTCOME: FAIL - no compiler here", Some((Status::Fail, Some("no compiler here"))));
        check("I stop here, OUTCOME: FAILED: two tests", Some((Status::Fail, Some("two tests"))));
        check("so the outcome: failure", fail);
        for text in
            ["OUTCOME: SUCCESS\nOUTCOME: FAIL", "OUTCOME: FAILED\nOUTCOME: SUCCESS", "OUTCOME: SUCCESS, OUTCOME: FAIL"]
        {
            check(text, fail);
        }
        for text in ["OUTCOME: RETRY", "OUTCOME: SUCCESS\nno, OUTCOME: RETRY", "OUTCOME: RETRY\nOUTCOME: SUCCESS"] {
            check(text, retry);
        }
        check("OUTCOME: FAIL\nOUTCOME: RETRY", fail);
        check("OUTCOME: FAIL\nOUTCOME: GREAT", fail);
        let nothing =
            ["the OUTCOME: SUCCESS is near", "OUTCOMES: SUCCESS", "MYOUTCOME: FAIL", "outcom\u{e9}: pass", ""];
        for text in nothing.into_iter().chain(["the expected outcome: a list", "outcome success", "é\u{1f600}outcome"])
        {
            check(text, None);
        }
    }

    #[test]
    fn an_unknown_word_after_a_marker_is_an_error() {
        let check = |text: &str, word: &str| {
            let error = marked(&Message::text("assistant", text)).unwrap_err();
            assert!(error.contains(&format!("the outcome `{word}`")), "{text}: {error}");
        };
        for (text, word) in [
            ("OUTCOME: SUCCESSFUL", "SUCCESSFUL"),
            ("Outcome: all files are written", "all"),
            ("done. OUTCOME: not SUCCESS", "not"),
            ("OUTCOME: SUCCESS\u{e9}", "SUCCESS\u{e9}"),
            ("OUTCOME: SUCCESS\nOUTCOME: DONE", "DONE"),
            ("OUTCOME: DONE\nOUTCOME: RETRY", "DONE"),
            ("OUTCOME:", ""),
        ] {
            check(text, word);
        }
    }

    fn message(parts: Vec<Part>) -> Message {
        Message { role: "assistant".to_owned(), parts }
    }

    #[test]
    fn a_declared_outcome_comes_before_a_line() {
        let json = r#"{"status":"fail","failure_reason":"no","preferred_label":"fix","suggested_next_ids":["a"],
            "context_updates":{"n":1,"last_stage":"mine"},"notes":""}"#;
        let declared = declared(&message(vec![Part::new("text", "OUTCOME: SUCCESS"), Part::new("outcome", json)]));
        let outcome = declared.unwrap().unwrap().into_outcome(StageAnswer { stage: &stage(), response: "text" });
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
        check("success", "not valid JSON");
        check("[]", "not a JSON object");
        check("{}", "no `status`");
        check(r#"{"status":"great"}"#, "status `great`");
    }

    #[test]
    fn text_alone_is_the_specifications_success() {
        let long = "ä".repeat(RESPONSE_CHARS_MAX + 1);
        let declared = declared(&message(vec![Part::new("text", long.clone())])).unwrap().unwrap_or_default();
        let outcome = declared.into_outcome(StageAnswer { stage: &stage(), response: &long });
        assert_eq!(outcome.status(), Status::Success);
        assert_eq!(outcome.value("last_stage"), Some("\"n1\""));
        assert_eq!(outcome.value("last_response").map(|text| text.chars().count()), Some(RESPONSE_CHARS_MAX + 2));
    }

    #[test]
    fn the_answer_of_a_branch_is_whole() {
        let long = "ä".repeat(RESPONSE_CHARS_MAX + 1);
        let chars = |outcome: Outcome| outcome.value(LAST_RESPONSE).map(|text| text.chars().count());
        let branch = Stage::from(testing::stage("n1").extra("branch", "f-n1"));
        let said = |stage| StageAnswer { stage, response: &long };
        assert_eq!(chars(Declaration::default().into_outcome(said(&branch))), Some(RESPONSE_CHARS_MAX + 3));
        assert_eq!(chars(said(&branch).beside(Outcome::fail("agent/turn-limit", "no"))), None);
    }

    #[test]
    fn a_judge_chooses_with_the_last_line_of_its_answer() {
        let judge = Stage::from(testing::stage("join").extra("candidates", "f-a\nf-b"));
        let check = |response: &str, expected: Option<&str>| {
            assert_eq!(StageAnswer { stage: &judge, response }.choice(), expected, "{response}");
        };
        let long = format!("f-a is good, {}\n", "and long ".repeat(50));
        check(&format!("{long}but f-b is better.\nI choose `f-b`.\n\nOUTCOME: SUCCESS\n"), Some("f-b"));
        check(&format!("{long}**f-a**"), Some("f-a"));
        check(&format!("{long}f-a or f-b"), None);
        check(&format!("{long}xf-a"), None);
        check("", None);
    }

    #[test]
    fn a_failure_without_a_reason_gets_one() {
        let outcome = Declaration::new(Status::Retry).into_outcome(StageAnswer { stage: &stage(), response: "" });
        let reason = outcome.failure().map(|failure| failure.reason.as_str());
        assert_eq!(reason, Some("the model declared retry for stage n1 without a reason"));
    }
}
