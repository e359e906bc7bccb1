//! The decision table of status files, and what a file may change.

use super::*;
use glovebox_journal::event::{AttemptId, Task, Work};
use serde_json::json;

fn attempt() -> Attempt {
    let task = Task { generation: 2, branch: "main".into(), node: "n".into(), visit: 1, work: Work::Handler };
    Attempt { task, ordinal: 1, id: AttemptId::from("A1") }
}

/// Reads one place of a case: empty for no file.
fn found(text: &str) -> FoundStatus {
    if text.is_empty() {
        return FoundStatus::Missing;
    }
    match decode(text.as_bytes()) {
        Ok(stated) => FoundStatus::Parsed(Box::new(stated)),
        Err(error) => FoundStatus::Unusable(error.found(), error.to_string()),
    }
}

/// What a case expects: the place of the file that decides and the status, or the code of the failure.
#[derive(Debug, PartialEq)]
enum Decided {
    By(StatusPlace, Status),
    Fails(FailureCode),
    Nothing,
}

const OWNED: &str =
    r#"{"outcome":"fail","status_owner_node_id":"n","status_owner_attempt_id":"A1","status_owner_run_generation":2}"#;
const FOREIGN: &str = r#"{"outcome":"fail","status_owner_node_id":"n","status_owner_attempt_id":"A0"}"#;
const LEGACY: &str = r#"{"status":"SKIP","preferred_next_label":"next"}"#;
const PLAIN: &str = r#"{"outcome":"partial_success"}"#;
const CORRUPT: &str = r#"{"outcome":"#;

/// A case: its name, the text of the file at each place, the decision, and what was found at the places that were searched.
type Case = (&'static str, [&'static str; 3], Decided, Vec<(StatusFound, Option<StatusOwnership>)>);

/// Returns the cases. The copy of the file with its source is tested with real files, in `tests/status_files.rs`.
fn cases() -> Vec<Case> {
    use StatusOwnership::{ByPath, Foreign, Named};
    use StatusPlace::{Drop, Workspace, WorkspaceAi};
    let none = (StatusFound::Missing, None);
    let parsed = |owner| (StatusFound::Parsed, Some(owner));
    let not_json = (StatusFound::NotJson, None);
    vec![
        ("a valid drop file", [OWNED, "", ""], Decided::By(Drop, Status::Fail), vec![parsed(Named)]),
        (
            "a drop file of another attempt",
            [FOREIGN, OWNED, ""],
            Decided::Fails(FailureCode::STATUS_FOREIGN),
            vec![parsed(Foreign)],
        ),
        ("a corrupt drop file", [CORRUPT, OWNED, ""], Decided::Fails(FailureCode::STATUS_UNREADABLE), vec![not_json]),
        (
            "a drop file in a legacy dialect beside a file in the workspace",
            [LEGACY, OWNED, ""],
            Decided::By(Drop, Status::Skipped),
            vec![parsed(ByPath)],
        ),
        (
            "a drop file beside a legacy dialect in the workspace",
            [PLAIN, LEGACY, ""],
            Decided::By(Drop, Status::PartialSuccess),
            vec![parsed(ByPath)],
        ),
        (
            "no drop file and a file in the workspace",
            ["", OWNED, ""],
            Decided::By(Workspace, Status::Fail),
            vec![none, parsed(Named)],
        ),
        (
            "no drop file, a corrupt file in the workspace, and one in .ai",
            ["", CORRUPT, OWNED],
            Decided::By(WorkspaceAi, Status::Fail),
            vec![none, not_json, parsed(Named)],
        ),
        (
            "no drop file and a file of another attempt in the workspace",
            ["", FOREIGN, ""],
            Decided::Nothing,
            vec![none, parsed(Foreign), none],
        ),
        (
            "a file at each place",
            [PLAIN, OWNED, FOREIGN],
            Decided::By(Drop, Status::PartialSuccess),
            vec![parsed(ByPath)],
        ),
        (
            "a file without owner in the workspace",
            ["", PLAIN, OWNED],
            Decided::By(Workspace, Status::PartialSuccess),
            vec![none, parsed(ByPath)],
        ),
        ("no file", ["", "", ""], Decided::Nothing, vec![none, none, none]),
        (
            "another node, another generation",
            [
                "",
                r#"{"outcome":"fail","status_owner_node_id":"m"}"#,
                r#"{"outcome":"fail","status_owner_run_generation":"1"}"#,
            ],
            Decided::Nothing,
            vec![none, parsed(Foreign), parsed(Foreign)],
        ),
    ]
}

#[test]
fn the_table_of_decisions() {
    for (name, files, decided, searched) in cases() {
        let decision = decide(files.map(found), &attempt());
        let was = match decision.verdict {
            StatusVerdict::NoFile => Decided::Nothing,
            StatusVerdict::Accepted(place, outcome) => Decided::By(place, outcome.status),
            StatusVerdict::Refused(failure) => {
                assert_eq!(failure.class, FailureClass::Deterministic, "{name}");
                Decided::Fails(failure.code)
            }
        };
        assert_eq!(was, decided, "{name}");
        let places: Vec<_> = decision.searched.iter().map(|one| (one.found, one.owner)).collect();
        assert_eq!(places, searched, "{name}");
        assert!(decision.searched.iter().map(|one| one.place).eq(StatusPlace::ALL.into_iter().take(places.len())));
    }
}

#[test]
fn usable_files_after_the_one_that_decides_are_named() {
    use StatusPlace::{Workspace, WorkspaceAi};
    for (files, unused) in [
        ([PLAIN, OWNED, LEGACY], vec![Workspace, WorkspaceAi]),
        ([PLAIN, FOREIGN, CORRUPT], Vec::new()),
        ([CORRUPT, OWNED, ""], vec![Workspace]),
        (["", PLAIN, OWNED], vec![WorkspaceAi]),
        (["", CORRUPT, OWNED], Vec::new()),
    ] {
        assert_eq!(decide(files.map(found), &attempt()).unused, unused, "{files:?}");
    }
}

fn outcome(status: Status) -> Outcome {
    match status {
        Status::Fail | Status::Retry => {
            let failure = Failure::new(FailureClass::Deterministic, "tool/exit-code", "tool_exit_code_1");
            Outcome { status, ..Outcome::failed(failure) }
        }
        _ => Outcome::new(status),
    }
}

fn settled(own: Status, stated: &str) -> (Outcome, StatusEffect) {
    let FoundStatus::Parsed(stated) = found(stated) else { panic!("{stated}") };
    settle(outcome(own), StatusVerdict::Accepted(StatusPlace::Drop, Box::new(stated.outcome)))
}

#[test]
fn a_file_lowers_a_status_and_never_raises_one() {
    for (own, stated, expected, effect) in [
        (Status::Success, "success", Status::Success, StatusEffect::Accepted),
        (Status::Success, "partial_success", Status::PartialSuccess, StatusEffect::Accepted),
        (Status::Success, "skipped", Status::Skipped, StatusEffect::Accepted),
        (Status::Success, "retry", Status::Retry, StatusEffect::Accepted),
        (Status::Success, "fail", Status::Fail, StatusEffect::Accepted),
        (Status::PartialSuccess, "success", Status::PartialSuccess, StatusEffect::Accepted),
        (Status::Skipped, "success", Status::Skipped, StatusEffect::Accepted),
        (Status::Fail, "success", Status::Fail, StatusEffect::Overruled),
        (Status::Fail, "skipped", Status::Fail, StatusEffect::Overruled),
        (Status::Fail, "fail", Status::Fail, StatusEffect::Accepted),
        (Status::Fail, "retry", Status::Fail, StatusEffect::Accepted),
        (Status::Retry, "success", Status::Retry, StatusEffect::Overruled),
    ] {
        let (is, was) = settled(own, &format!(r#"{{"outcome":"{stated}"}}"#));
        assert_eq!((is.status, was), (expected, effect), "{own:?} {stated}");
        assert_eq!(is.failure.is_some(), is_failure(expected), "{own:?} {stated}");
    }
}

#[test]
fn a_failure_of_the_stage_keeps_its_reason_and_gets_its_way_on_from_the_file() {
    let stated = r#"{"outcome":"fail","failure_reason":"3 tests","preferred_label":"fix","suggested_next_ids":["m"],
        "context_updates":{"a":1},"notes":"n","failure_class":"transient"}"#;
    let (is, _) = settled(Status::Fail, stated);
    assert_eq!(is.failure, outcome(Status::Fail).failure);
    assert_eq!((is.preferred_label.as_deref(), is.suggested_next_ids), (Some("fix"), vec!["m".to_owned()]));
    assert_eq!((is.notes.as_str(), &is.context_updates["a"]), ("n\nthe status file says: 3 tests", &json!(1)));
    let (is, _) = settled(Status::Fail, &stated.replace(r#""outcome":"fail""#, r#""outcome":"success""#));
    assert_eq!(is, outcome(Status::Fail), "nothing is taken from a file that contradicts the stage");
}

#[test]
fn what_the_component_reported_is_not_the_files_to_change() {
    let own = Outcome {
        context_updates: [("tool.output".to_owned(), json!("real"))].into(),
        notes: "Tool completed".to_owned(),
        ..Outcome::new(Status::Success)
    };
    let stated = r#"{"outcome":"success","context_updates":{"tool.output":"forged","b":2},"notes":"n"}"#;
    let FoundStatus::Parsed(stated) = found(stated) else { panic!("no status") };
    let (is, _) = settle(own, StatusVerdict::Accepted(StatusPlace::Drop, Box::new(stated.outcome)));
    assert_eq!((&is.context_updates["tool.output"], &is.context_updates["b"]), (&json!("real"), &json!(2)));
    assert_eq!(is.notes, "Tool completed\nn");
}

#[test]
fn a_refused_file_fails_a_success_and_leaves_a_failure_as_it_is() {
    let failure = || Failure::new(FailureClass::Deterministic, FailureCode::STATUS_UNREADABLE, "why");
    let (is, effect) = settle(outcome(Status::Success), StatusVerdict::Refused(failure()));
    assert_eq!((is.status, is.failure, effect), (Status::Fail, Some(failure()), StatusEffect::Refused));
    let (is, effect) = settle(outcome(Status::Fail), StatusVerdict::Refused(failure()));
    assert_eq!((is.failure, effect), (outcome(Status::Fail).failure, StatusEffect::Refused));
    assert_eq!(is.notes, "why");
}

#[test]
fn a_foreign_file_says_which_field_and_what_helps() {
    let StatusVerdict::Refused(failure) = decide([found(FOREIGN), found(""), found("")], &attempt()).verdict else {
        panic!("accepted")
    };
    for part in ["`status_owner_attempt_id` is `A0`, expected `A1`", "GLOVEBOX_STATUS_", "leave the field out"] {
        assert!(failure.reason.contains(part), "{}", failure.reason);
    }
}
