//! Nothing of a text gets through, whatever field it stands in; verdict, counts and public hints do.

use super::*;
use crate::event::{Quarantined, Receipt, TaskId};
use crate::outcome::{FailureClass, Status};
use serde_json::json;

const SECRET: &str = "expected 42 apples";

fn receipt(code: Option<i32>, how: &str) -> Receipt {
    let nothing = String::new;
    Receipt {
        id: "r".to_owned(),
        argv: vec!["sh".to_owned()],
        cwd: nothing(),
        env_names: Vec::new(),
        tier: "full".to_owned(),
        how: how.to_owned(),
        code,
        duration_ms: 1,
        subject: false,
        stdout_digest: nothing(),
        stdout_bytes: 0,
        stderr_digest: nothing(),
        stderr_bytes: 0,
        degradations: Vec::new(),
        over: None,
    }
}

fn fact(handler: &str, code: &str, reason: &str) -> StageFinished {
    let failure = Failure::new(FailureClass::Deterministic, code, reason);
    let updates = json!({ "tool.output": SECRET, "ok": false, "n": 3, "list": [SECRET], "expected 42": true });
    StageFinished {
        task: TaskId::new("n", 1),
        node: "n".to_owned(),
        visit: 1,
        ordinal: 1,
        attempt_id: "A".to_owned(),
        handler: handler.to_owned(),
        outcome: Outcome {
            preferred_label: Some(SECRET.to_owned()),
            suggested_next_ids: vec!["e".to_owned(), SECRET.to_owned()],
            context_updates: serde_json::from_value(updates).expect("updates"),
            notes: SECRET.to_owned(),
            ..Outcome::failed(failure)
        },
        retrying: false,
        ending: Ending::Returned,
        usage: Vec::new(),
        refusals: Vec::new(),
        refusals_total: 0,
        receipts: vec![receipt(Some(0), "exited"), receipt(Some(3), "exited"), receipt(None, "timed-out")],
        changes: Vec::new(),
        quarantined: vec![Quarantined { path: SECRET.to_owned(), reason: String::new() }],
        artifacts: Vec::new(),
        isolation: None,
        stdout: None,
        stderr: None,
        turns_used: 0,
        duration_ms: 0,
    }
}

fn redacted(mut fact: StageFinished) -> StageFinished {
    let text = "digraph g { s [shape=Mdiamond] n [prompt=p] e [shape=Msquare] s -> n -> e }";
    let pipeline = glovebox_pipeline::check(text, &glovebox_pipeline::Inputs::default()).pipeline.expect("valid");
    redact(&mut fact, &pipeline, &Public { lines: 12, hints: vec!["hint: count them".to_owned()] });
    fact
}

#[test]
fn verdict_counts_and_hints_are_told_and_no_text_is() {
    let fact = redacted(fact("verify", "verify/exit-code", SECRET));
    let outcome = &fact.outcome;
    assert_eq!(
        outcome.notes,
        "3 commands run, 2 failed (exit 3, timed-out)\noutput: 12 lines, withheld: hold-out scenarios were in reach of \
         that stage\nhint: count them"
    );
    assert_eq!((outcome.status, outcome.preferred_label.as_deref()), (Status::Fail, None));
    assert_eq!(outcome.suggested_next_ids, ["e"], "a name of the graph tells nothing");
    let keys: Vec<&str> = outcome.context_updates.keys().map(String::as_str).collect();
    assert_eq!(keys, ["list", "n", "ok", "tool.output"]);
    assert_eq!((&outcome.context_updates["ok"], &outcome.context_updates["n"]), (&json!(false), &json!(3)));
    let whole = serde_json::to_string(outcome).expect("JSON");
    assert!(!whole.contains("42") && !whole.contains("apples"), "{whole}");
}

#[test]
fn a_reason_of_numbers_stays_and_a_quote_does_not() {
    let check = |handler: &str, code: &str, reason: &str, expected: &str| {
        let failure = redacted(fact(handler, code, reason)).outcome.failure.expect("failure");
        assert_eq!(failure.class, FailureClass::Deterministic);
        assert_eq!(format!("{}|{}", failure.code, failure.reason), expected);
    };
    check("tool", "tool/exit-code", "tool_exit_code_3", "tool/exit-code|tool_exit_code_3");
    check("tool", "limit/wall_ms", "limit `wall_ms` (5) reached", "limit/wall_ms|limit `wall_ms` (5) reached");
    check("verify", "tool/exit-code", SECRET, &format!("tool/exit-code|tool/exit-code: {WITHHELD}"));
    check("verify", "verify/exit-code", SECRET, &format!("verify/exit-code|verify/exit-code: {WITHHELD}"));
    check("codergen", SECRET, SECRET, &format!("stage/failed|stage/failed: {WITHHELD}"));
    check("tool", "trap/unreachable", SECRET, &format!("trap/unreachable|trap/unreachable: {WITHHELD}"));
    let scope = format!("scope/write|guardrail_violation: wrote disallowed files: 1 paths, {WITHHELD}");
    check("tool", "scope/write", SECRET, &scope);
    let trapped = StageFinished { ending: Ending::Trapped(SECRET.to_owned()), ..fact("tool", "trap/x", SECRET) };
    assert_eq!(redacted(trapped).ending, Ending::Trapped(WITHHELD.to_owned()));
}
