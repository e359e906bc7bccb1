//! Converts the outcome that a handler returned to the type of the record, checks its bounds, and compares it with what the host
//! knows of the stage's model calls.
//!
//! A malformed outcome fails the stage; the host does not repair it. Claims are only counted here. The engine checks them, because
//! it knows the changes of the stage.

use crate::attempt::Attempt;
use crate::attempt::llm::levels;
use crate::bindings::types;
use crate::call::FileTier;
use crate::ending::CallEnd;
use crate::input::{OutgoingEdge, StageInput};
use crate::progress::Claim;
use glovebox_names::visible::is_deceptive;
use glovebox_record::{Ending, Failure, FailureClass, FailureCode, LimitName, Outcome, Status};
use glovebox_schema::document;
use glovebox_workspace::refusal::escaped;
use glovebox_workspace::view::View;
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum length of a key, label or node id, in characters.
const NAME_CHARS_MAX: usize = 256;
/// Maximum number of suggested next ids.
const SUGGESTIONS_MAX: usize = 64;
/// Maximum number of claims of one outcome.
const CLAIMS_MAX: usize = 1000;
/// Maximum nesting depth of a context value. A record adds some levels, and the JSON parser refuses more than 128.
const VALUE_LEVELS_MAX: usize = 64;
/// Maximum length of the notes and of a failure's reason, in bytes. The rest is cut off.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Converts the input of a handler to its WIT type.
pub(crate) fn input_of(input: StageInput, tier: FileTier, view: Option<&View>) -> types::StageInput {
    let glovebox_record::Attempt { task, ordinal, id } = input.attempt;
    let mounts = match view.filter(|_| tier != FileTier::None) {
        None => Vec::new(),
        Some(view) => {
            let access = if view.scope().may_write() { "write" } else { "read" };
            // The first path is the root: `/` for `std::fs`, or the empty path for the `files` interface. The other
            // names of the root follow.
            let first = if tier == FileTier::Posix { "/" } else { "" };
            let paths = std::iter::once(first).chain(view.names().iter().map(String::as_str));
            paths.map(|path| types::Mount { guest_path: path.to_owned(), access: access.to_owned() }).collect()
        }
    };
    let entry = |(key, value): (String, Value)| types::Entry { key, value: value.to_string() };
    let edge = |edge: OutgoingEdge| types::Edge {
        to: edge.to,
        label: edge.label,
        condition: edge.condition,
        weight: edge.weight,
    };
    types::StageInput {
        attempt: types::Attempt {
            run_id: input.run.into(),
            run_generation: task.generation,
            branch_id: task.branch.into(),
            node_id: task.node.into(),
            attempt_id: id.into(),
            ordinal,
            visit: task.visit,
        },
        handler_type: input.handler_type,
        label: input.label,
        prompt: input.prompt,
        goal: input.goal,
        attributes: input.attributes,
        context: input.context.into_iter().map(entry).collect(),
        outgoing: input.outgoing.into_iter().map(edge).collect(),
        mounts,
        write_paths: input.write_paths.iter().map(ToString::to_string).collect(),
        commands: types::CommandScope { any: input.commands.any, prefixes: input.commands.argv_prefixes },
        last_failure: input.last_failure.map(|failure| types::Failure {
            class: failure.class.as_str().to_owned(),
            code: failure.code.into(),
            reason: failure.reason,
        }),
        extra: input.extra,
    }
}

/// Checks the outcome that a handler returned. A malformed outcome becomes a failure, and so does an outcome after the turns
/// or the script of the model were used up.
pub(crate) fn check(mut answer: types::Outcome, attempt: &mut Attempt) -> CallEnd {
    let bytes = bytes_of(&answer);
    attempt.call.meter.outcome_bytes = bytes;
    if let Some(failure) = &answer.failure {
        attempt.call.observer.returned_failure(&failure.class, &failure.code);
    }
    let claims: Vec<Claim> =
        std::mem::take(&mut answer.claims).into_iter().map(|(kind, value)| Claim { kind, value }).collect();
    let outcome = match failure_by_host(attempt, bytes) {
        Some(failure) => Outcome::failed(failure),
        None => match check_count(&claims).and_then(|()| accept(answer)) {
            Ok(outcome) => checked(outcome, attempt),
            Err(problem) => {
                Outcome::failed(Failure::new(FailureClass::Contract, FailureCode::OUTCOME_MALFORMED, problem))
            }
        },
    };
    match attempt.with_object(outcome) {
        Ok(outcome) => CallEnd { ending: Ending::Returned, outcome, claims },
        Err(problem) => crate::ending::host_fault(problem.to_string()),
    }
}

/// Returns the failure that replaces an outcome which is too long, one after a conversation that contained a hold-out, or one after a
/// tool call that a policy could not judge.
/// The contents of such an outcome are not used.
fn failure_by_host(attempt: &Attempt, bytes: u64) -> Option<Failure> {
    if let Some(side) = attempt.llm.access.leaked {
        // The notes are dropped too: any text of the handler may quote a hold-out.
        return Some(Failure::new(FailureClass::Scope, FailureCode::HOLDOUT_LEAK, side.leak_reason()));
    }
    if let Some(fault) = &attempt.llm.policy_fault {
        return Some(Failure::new(FailureClass::Scope, FailureCode::POLICY_FAULT, fault.to_string()));
    }
    if bytes > attempt.call.limits.outcome_bytes {
        return crate::ending::limit_hit(LimitName::OutcomeBytes, &attempt.call.limits).outcome.failure;
    }
    None
}

/// Replaces the handler's status with a failure that the host knows of, if there is one.
fn checked(outcome: Outcome, attempt: &Attempt) -> Outcome {
    if let Some(failure) = &attempt.llm.access.overspent {
        return put_failure(outcome, failure.clone());
    }
    let has_failed = matches!(outcome.status, Status::Fail | Status::Retry);
    if let Some(failure) = attempt.llm.access.failure_of_model(has_failed) {
        return put_failure(outcome, failure);
    }
    if let Some(name) = attempt.llm.access.limit_hit.filter(|_| !attempt.llm.access.declared_success) {
        let bound = attempt.call.limits.get(name);
        let reason = format!("limit `{name}` ({bound}) reached without an earlier declared success");
        return put_failure(outcome, Failure::new(FailureClass::Budget, FailureCode::limit(name.as_str()), reason));
    }
    if let Some(failure) = attempt.llm.access.missing_object(outcome.status) {
        return put_failure(outcome, failure);
    }
    if attempt.call.is_canceled() && matches!(outcome.status, Status::Fail | Status::Retry) {
        return put_failure(outcome, crate::ending::cancellation());
    }
    outcome
}

/// Returns an outcome with the host's failure and the handler's notes. Hints and context updates are dropped.
fn put_failure(outcome: Outcome, failure: Failure) -> Outcome {
    Outcome { notes: outcome.notes, ..Outcome::failed(failure) }
}

fn check_count(claims: &[Claim]) -> Result<(), String> {
    if claims.len() > CLAIMS_MAX {
        return Err(format!("makes {} claims, expected at most {CLAIMS_MAX}", claims.len()));
    }
    Ok(())
}

fn accept(answer: types::Outcome) -> Result<Outcome, String> {
    let status = match answer.status {
        types::Status::Success => Status::Success,
        types::Status::PartialSuccess => Status::PartialSuccess,
        types::Status::Retry => Status::Retry,
        types::Status::Fail => Status::Fail,
        types::Status::Skipped => Status::Skipped,
    };
    let notes = cut(answer.notes);
    let outcome = Outcome {
        failure: failure_of(status, answer.failure, &notes),
        status,
        preferred_label: answer.preferred_label.filter(|label| !label.is_empty()),
        suggested_next_ids: answer.suggested_next_ids,
        context_updates: context_of(answer.context_updates)?,
        notes,
    };
    check_bounds(&outcome).map(|()| outcome)
}

/// Checks the names and the context values of an outcome that a stage chose.
///
/// # Errors
/// Returns what is outside of the bounds, and the bound.
pub fn check_bounds(outcome: &Outcome) -> Result<(), String> {
    if let Some(label) = &outcome.preferred_label {
        Name::Label(label).check()?;
    }
    let suggested = &outcome.suggested_next_ids;
    if suggested.len() > SUGGESTIONS_MAX {
        return Err(format!("suggests {} next ids, expected at most {SUGGESTIONS_MAX}", suggested.len()));
    }
    suggested.iter().try_for_each(|id| Name::Suggested(id).check())?;
    for (key, value) in &outcome.context_updates {
        Name::ContextKey(key).check()?;
        let levels = levels(value);
        if levels > VALUE_LEVELS_MAX {
            return Err(format!(
                "the value of context key `{key}` is {levels} levels deep, expected at most {VALUE_LEVELS_MAX}"
            ));
        }
    }
    Ok(())
}

/// Returns an outcome that was merged from several texts, with notes and a reason within the bounds of an outcome.
pub fn shortened(outcome: Outcome) -> Outcome {
    let failure = outcome.failure.map(|failure| Failure { reason: cut(failure.reason), ..failure });
    Outcome { notes: cut(outcome.notes), failure, ..outcome }
}

fn context_of(entries: Vec<types::Entry>) -> Result<BTreeMap<String, Value>, String> {
    let mut updates = BTreeMap::new();
    for types::Entry { key, value } in entries {
        Name::ContextKey(&key).check()?;
        let value = document::read(value.as_bytes())
            .map_err(|problem| format!("the value of context key `{key}` is not JSON: {problem}"))?;
        if updates.contains_key(&key) {
            return Err(format!("context key `{key}` occurs twice"));
        }
        updates.insert(key, value);
    }
    Ok(updates)
}

/// A name that a handler chose.
enum Name<'a> {
    Label(&'a str),
    Suggested(&'a str),
    ContextKey(&'a str),
}

impl Name<'_> {
    fn check(&self) -> Result<(), String> {
        let (what, name) = match self {
            Self::Label(name) => ("preferred label", name),
            Self::Suggested(name) => ("suggested next id", name),
            Self::ContextKey(name) => ("context key", name),
        };
        if name.is_empty() || name.chars().count() > NAME_CHARS_MAX || name.chars().any(is_deceptive) {
            let shown: String = name.chars().take(NAME_CHARS_MAX).collect();
            return Err(format!(
                "{what} `{}`, expected 1 to {NAME_CHARS_MAX} characters, none of which could deceive a reader",
                escaped(&shown)
            ));
        }
        Ok(())
    }
}

/// Returns the failure of an outcome. The host decides the class: a handler can only say that another attempt may succeed. A code that
/// is reserved for the host is replaced by `stage/failed`.
fn failure_of(status: Status, failure: Option<types::Failure>, notes: &str) -> Option<Failure> {
    if !matches!(status, Status::Fail | Status::Retry) {
        return None;
    }
    let fallback = if status == Status::Retry { "the handler asks for another attempt" } else { "the handler failed" };
    let reason_of = |text: &str| if text.is_empty() { fallback.to_owned() } else { text.to_owned() };
    let Some(failure) = failure else {
        let class = if status == Status::Retry { FailureClass::Transient } else { FailureClass::Deterministic };
        return Some(Failure::new(class, FailureCode::STAGE_FAILED, reason_of(notes)));
    };
    let class = if failure.class == "transient" { FailureClass::Transient } else { FailureClass::Deterministic };
    let code = FailureCode::from_handler(failure.code).unwrap_or(FailureCode::STAGE_FAILED);
    Some(Failure::new(class, code, reason_of(&cut(failure.reason))))
}

/// Returns the length of all texts of an outcome, in bytes.
pub(crate) fn bytes_of(answer: &types::Outcome) -> u64 {
    let pairs = |list: &[(String, String)]| list.iter().map(|(a, b)| a.len() + b.len()).sum::<usize>();
    let context: usize = answer.context_updates.iter().map(|entry| entry.key.len() + entry.value.len()).sum();
    let suggested: usize = answer.suggested_next_ids.iter().map(String::len).sum();
    let failure = answer.failure.as_ref().map_or(0, |failure| failure.code.len() + failure.reason.len());
    let label = answer.preferred_label.as_ref().map_or(0, String::len);
    (context + suggested + failure + label + answer.notes.len() + pairs(&answer.claims) + pairs(&answer.extra)) as u64
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_BYTES_MAX {
        text.truncate(text.floor_char_boundary(TEXT_BYTES_MAX));
        text.push_str(" […]");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(status: types::Status) -> types::Outcome {
        types::Outcome {
            status,
            preferred_label: None,
            suggested_next_ids: Vec::new(),
            context_updates: Vec::new(),
            notes: String::new(),
            failure: None,
            claims: Vec::new(),
            extra: Vec::new(),
        }
    }

    fn failing(class: &str, code: &str, reason: &str) -> Failure {
        let failure = types::Failure { class: class.to_owned(), code: code.to_owned(), reason: reason.to_owned() };
        accept(types::Outcome { failure: Some(failure), ..answer(types::Status::Fail) }).unwrap().failure.unwrap()
    }

    #[test]
    fn the_texts_of_a_merged_outcome_are_bounded() {
        let long = "é".repeat(TEXT_BYTES_MAX);
        let failure = Failure::new(FailureClass::Deterministic, "stage/x", long.clone());
        let is = shortened(Outcome { notes: long, ..Outcome::failed(failure) });
        let reason = is.failure.unwrap().reason;
        for text in [&is.notes, &reason] {
            assert!(text.len() <= TEXT_BYTES_MAX + " […]".len() && text.ends_with("é […]"), "{}", text.len());
        }
        let again = shortened(Outcome { notes: is.notes.clone(), ..Outcome::new(Status::Success) });
        assert_eq!(again.notes, is.notes);
    }

    #[test]
    fn the_class_and_the_hosts_codes_cannot_be_borrowed() {
        let check = |class: &str, code: &str, expected: (FailureClass, &str)| {
            let failure = failing(class, code, "why");
            assert_eq!(
                (failure.class, failure.code.as_str(), failure.reason.as_str()),
                (expected.0, expected.1, "why")
            );
        };
        check("transient", "tool/exit-code", (FailureClass::Transient, "tool/exit-code"));
        check("deterministic", "acme/x", (FailureClass::Deterministic, "acme/x"));
        check("canceled", "canceled", (FailureClass::Deterministic, "stage/failed"));
        check("budget", "limit/turns", (FailureClass::Deterministic, "stage/failed"));
        check("internal", "trap/unreachable", (FailureClass::Deterministic, "stage/failed"));
        check("whatever", "a b", (FailureClass::Deterministic, "stage/failed"));
    }

    #[test]
    fn a_failure_always_has_a_reason_and_a_success_has_none() {
        let outcome = accept(types::Outcome { notes: "broke".to_owned(), ..answer(types::Status::Fail) }).unwrap();
        assert_eq!(outcome.failure.unwrap().reason, "broke");
        assert_eq!(accept(answer(types::Status::Retry)).unwrap().failure.unwrap().class, FailureClass::Transient);
        let failure = types::Failure { class: String::new(), code: String::new(), reason: String::new() };
        let outcome = accept(types::Outcome { failure: Some(failure), ..answer(types::Status::Success) }).unwrap();
        assert_eq!(outcome.failure, None);
    }

    #[test]
    fn what_is_malformed_is_refused() {
        let context = |entries: &[(&str, &str)]| {
            let entry =
                |(key, value): &(&str, &str)| types::Entry { key: (*key).to_owned(), value: (*value).to_owned() };
            let context_updates = entries.iter().map(entry).collect();
            accept(types::Outcome { context_updates, ..answer(types::Status::Success) })
                .map(|o| o.context_updates.len())
        };
        assert_eq!(context(&[("a", "1"), ("b.c", "\"x\"")]), Ok(2));
        assert!(context(&[("a", "1"), ("a", "2")]).unwrap_err().contains("occurs twice"));
        assert!(
            context(&[("", "1")]).is_err() && context(&[("a\nb", "1")]).is_err() && context(&[("a", "{")]).is_err()
        );
        assert!(context(&[(&"k".repeat(257), "1")]).is_err());
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(context(&[("a", &nested(VALUE_LEVELS_MAX))]), Ok(1));
        assert!(context(&[("a", &nested(VALUE_LEVELS_MAX + 1))]).unwrap_err().contains("65 levels deep"));
        let claims = vec![Claim { kind: String::new(), value: String::new() }; CLAIMS_MAX + 1];
        assert!(check_count(&claims).unwrap_err().contains("1001 claims"));
        let label = |label: &str| {
            accept(types::Outcome { preferred_label: Some(label.to_owned()), ..answer(types::Status::Success) })
        };
        assert_eq!(label("").unwrap().preferred_label, None);
        assert!(label("a\u{1b}[2J").unwrap_err().contains("\\x1b"));
        let suggested_next_ids = vec!["a".to_owned(); SUGGESTIONS_MAX + 1];
        assert!(accept(types::Outcome { suggested_next_ids, ..answer(types::Status::Success) }).is_err());
    }
}
