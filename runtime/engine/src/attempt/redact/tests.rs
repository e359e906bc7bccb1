//! Tests that no text, number or name passes the redaction, in any field, and that the verdict and public hints do.

use super::*;
use glovebox_journal::event::{
    Attempt, CommandSource, FailedCommand, FollowUp, LimitUse, Recoverable, RefusedChange, StageCommands, StageFiles,
    StageModel, StageRefusals,
};
use glovebox_pipeline::Source;
use glovebox_record::{CommandEnding, NoProof, Receipt};
use glovebox_state::simulation::receipt;
use serde_json::{Value, json};

const SECRET: &str = "expected 42 apples";

fn fact(handler: &str, code: &str, reason: &str) -> StageFinished {
    let failure = Failure::new(FailureClass::Deterministic, code.to_owned(), reason);
    let updates = json!({ "tool.output": SECRET, "ok": false, "n": 3, "list": [SECRET], "expected 42": true });
    StageFinished {
        attempt: Attempt { task: glovebox_state::simulation::task("n"), ordinal: 1, id: "A".into() },
        handler: handler.to_owned(),
        outcome: Outcome {
            preferred_label: Some(SECRET.to_owned()),
            suggested_next_ids: vec!["e".to_owned(), SECRET.to_owned()],
            context_updates: serde_json::from_value(updates).expect("updates"),
            notes: SECRET.to_owned(),
            ..Outcome::failed(failure)
        },
        ending: Ending::Returned,
        machine: None,
        duration_ms: 0,
        usage: vec![LimitUse { name: glovebox_record::LimitName::WallMs, used: Some(42), limit: 5 }],
        refusals: StageRefusals::default(),
        commands: StageCommands {
            receipts: vec![
                receipt(Some(0), CommandEnding::Exited),
                receipt(Some(3), CommandEnding::Exited),
                receipt(None, CommandEnding::TimedOut),
            ],
            ..StageCommands::default()
        },
        files: StageFiles {
            recoverable: Some(Box::new(Recoverable {
                outcome: Outcome { notes: SECRET.to_owned(), ..Outcome::new(Status::Success) },
                verifying: false,
                proposed: Vec::new(),
                signature: None,
                timeout_ms: None,
            })),
            quarantined: vec![RefusedChange { path: SECRET.to_owned(), reason: String::new() }],
            ..StageFiles::default()
        },
        model: StageModel::default(),
        liveness: None,
        follow_up: FollowUp::default(),
    }
}

fn pipeline(edges: &str) -> Pipeline {
    let text =
        format!("digraph g {{ s [shape=Mdiamond] n [prompt=p] e [shape=Msquare] f [shape=Msquare] s -> n {edges} }}");
    let checked = glovebox_pipeline::check(Source::new(&text), &glovebox_pipeline::Inputs::default());
    checked.pipeline.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
}

const PLAIN: &str = "n -> e [label=\"go on\"]; n -> f";
const HINT: &str = "hint: count them";

fn redacted_in(mut fact: StageFinished, edges: &str) -> StageFinished {
    redact(&mut fact, &pipeline(edges), &[HINT.to_owned()]);
    fact
}

fn redacted(fact: StageFinished) -> StageFinished {
    redacted_in(fact, PLAIN)
}

#[test]
fn the_verdict_and_hints_are_told_and_nothing_else() {
    let fact = redacted(fact("verify", "verify/exit-code", SECRET));
    let outcome = &fact.outcome;
    assert_eq!(outcome.notes, format!("verdict: fail; {WITHHELD}\n{HINT}"));
    assert_eq!((outcome.status, outcome.preferred_label.as_deref()), (Status::Fail, None));
    assert!(outcome.suggested_next_ids.is_empty() && outcome.context_updates.is_empty());
    let whole = serde_json::to_string(outcome).expect("JSON");
    assert!(!whole.contains("42") && !whole.contains("apples") && !whole.contains('3'), "{whole}");
}

#[test]
fn a_reason_has_no_path_number_or_text_of_the_stage() {
    let check = |handler: &str, code: &str, reason: &str, expected: &str| {
        let failure = redacted(fact(handler, code, reason)).outcome.failure.expect("failure");
        assert_eq!(failure.class, FailureClass::Deterministic);
        assert_eq!(format!("{}|{}", failure.code, failure.reason), expected);
    };
    let withheld = |code: &str| format!("{code}|{WITHHELD}");
    check("tool", "tool/exit-code", "tool_exit_code_42", &withheld("tool/exit-code"));
    check("tool", "tool/signal", "tool_command ended by 42", &withheld("tool/signal"));
    let at = "the stage reached `limits.wall_ms` (5) at `expected 42 apples`";
    check("tool", "limit/wall_ms", at, "limit/wall_ms|the stage reached `limits.wall_ms` (5)");
    check("tool", "limit/depth", at, "limit/depth|the stage reached `limits.depth`");
    check("tool", "canceled", SECRET, "canceled|the run was asked to stop");
    let leak = "holdout/leak|holdout_leak: a file of the stage contains text of a hold-out scenario";
    check("tool", "holdout/leak", SECRET, leak);
    check("verify", "verify/exit-code", SECRET, &withheld("verify/exit-code"));
    check("codergen", SECRET, SECRET, &withheld("stage/failed"));
    check("tool", "trap/unreachable", SECRET, &withheld("trap/unreachable"));
    let scope = format!("scope/write|guardrail_violation: wrote disallowed files: {WITHHELD}");
    check("tool", "scope/write", SECRET, &scope);
    assert_eq!(redacted(fact("tool", "scope/write", SECRET)).files.recoverable, None);
    let trapped = StageFinished { ending: Ending::Trapped(SECRET.to_owned()), ..fact("tool", "trap/x", SECRET) };
    assert_eq!(redacted(trapped).ending, Ending::Trapped(WITHHELD.to_owned()));
}

#[test]
fn the_verdict_is_pass_or_fail() {
    let check = |status: Status, expected: Status, class: Option<FailureClass>| {
        let mut fact = fact("codergen", "agent/x", SECRET);
        fact.outcome.status = status;
        fact.outcome.failure = None;
        let outcome = redacted(fact).outcome;
        assert_eq!((outcome.status, outcome.failure.map(|failure| failure.class)), (expected, class), "{status:?}");
    };
    check(Status::Success, Status::Success, None);
    check(Status::PartialSuccess, Status::Success, None);
    check(Status::Retry, Status::Fail, Some(FailureClass::Transient));
    check(Status::Fail, Status::Fail, Some(FailureClass::Deterministic));
    check(Status::Skipped, Status::Fail, Some(FailureClass::Deterministic));
}

#[test]
fn a_pass_whose_commands_prove_nothing_is_a_failure_and_a_failure_keeps_its_code() {
    let unproven = Receipt { no_proof: Some(NoProof::NoTests), ..receipt(Some(0), CommandEnding::Exited) };
    let check = |outcome: Outcome, receipts: &[Receipt], expected: Option<&str>| {
        let mut fact = fact("tool", "tool/exit-code", SECRET);
        (fact.outcome, fact.commands.receipts) = (outcome, receipts.to_vec());
        let failure = redacted(fact).outcome.failure;
        assert_eq!(failure.as_ref().map(|failure| failure.code.as_str()), expected);
        assert!(failure.is_none_or(|failure| failure.reason == WITHHELD));
    };
    let failed = || Outcome::failed(Failure::new(FailureClass::Deterministic, "tool/signal", SECRET));
    check(Outcome::new(Status::Success), std::slice::from_ref(&unproven), Some("verify/no-tests"));
    check(Outcome::new(Status::PartialSuccess), std::slice::from_ref(&unproven), Some("verify/no-tests"));
    check(Outcome::new(Status::Success), &[unproven.clone(), receipt(Some(0), CommandEnding::Exited)], None);
    check(Outcome::new(Status::Success), &[], None);
    check(failed(), &[unproven], Some("tool/signal"));
}

#[test]
fn the_failed_command_is_withheld() {
    let mut fact = fact("verify", "verify/exit-code", SECRET);
    fact.commands.failed_command = Some(FailedCommand { line: SECRET.to_owned(), source: CommandSource::Explicit });
    assert_eq!(redacted(fact).commands.failed_command, None);
}

#[test]
fn only_artifacts_with_output_are_searched_for_hints() {
    for (name, expected) in [
        ("tool.stdout.txt", true),
        ("1.stderr.txt", true),
        ("a.output", true),
        ("n.verify_output", true),
        ("notes.txt", false),
        ("stdout.txt.md", false),
    ] {
        assert_eq!(is_printed(name), expected, "{name}");
    }
}

#[test]
fn a_key_counts_where_a_condition_names_it_and_as_far_as_conditions_tell_values_apart() {
    let edges =
        "n -> e [condition=\"context.work.kind=red && ready && count!=3\"]; n -> f [condition=\"work.kind=green\"]";
    let check = |key: &str, value: Value, expected: Option<Value>| {
        let mut fact = fact("codergen", "agent/x", SECRET);
        fact.outcome.context_updates = [(key.to_owned(), value)].into();
        let kept: Vec<Value> = redacted_in(fact, edges).outcome.context_updates.into_values().collect();
        assert_eq!(kept, expected.into_iter().collect::<Vec<_>>(), "{key}");
    };
    check("work.kind", json!("red"), Some(json!("red")));
    check("context.work.kind", json!("green"), Some(json!("green")));
    check("work.kind", json!(SECRET), Some(Value::Null));
    check("work.kind", json!(true), Some(json!(true)));
    check("count", json!(3), Some(json!("3")));
    check("count", json!(42), Some(Value::Null));
    for (value, seen) in [(json!(SECRET), true), (json!(42), true), (json!(""), false), (json!([SECRET]), true)] {
        check("ready", value, Some(json!(seen)));
    }
    for key in ["answer.expected.42.apples", "outcome", "work", "kind", "context", "tool.output"] {
        check(key, json!(true), None);
    }
    let mut fact = fact("codergen", "agent/x", SECRET);
    fact.outcome.context_updates = [("context.outcome".to_owned(), json!(true))].into();
    let reserved = redacted_in(fact, "n -> e [condition=\"outcome=success\"]; n -> f");
    assert!(reserved.outcome.context_updates.is_empty(), "an edge asks for it, but only the engine writes it");
}

#[test]
fn a_way_is_asked_for_only_where_the_edges_leave_it_open() {
    let check = |label: &str, next: &[&str], edges: &str, expected: (Option<&str>, &[&str])| {
        let mut fact = fact("codergen", "agent/x", SECRET);
        fact.outcome.status = Status::Success;
        fact.outcome.preferred_label = Some(label.to_owned());
        fact.outcome.suggested_next_ids = next.iter().map(|id| (*id).to_owned()).collect();
        let outcome = redacted_in(fact, edges).outcome;
        assert_eq!((outcome.preferred_label.as_deref(), outcome.suggested_next_ids), (expected.0, strings(expected.1)));
    };
    check("go on", &["f", "e"], PLAIN, (Some("go on"), &[]));
    check("", &["f"], PLAIN, (None, &["f"]));
    check("Go on", &[SECRET, "f", "e", "f"], PLAIN, (None, &["f"]));
    check(SECRET, &[SECRET], PLAIN, (None, &[]));
    let asked = "n -> e [condition=\"outcome=success\"]; n -> f [label=\"go on\"]";
    check("go on", &["f"], asked, (None, &[]));
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
