//! Tests each kind of claim against what the host recorded.

use super::*;
use glovebox_journal::event::{
    Artifact, Attempt, AttemptId, BranchId, CommandSource, Digest, FileChange, Recoverable, Task, Work,
};
use glovebox_record::scope::Entry;
use glovebox_record::{CommandEnding, Hook, HookKind, Outcome, Receipt, Status};
use glovebox_state::simulation::receipt;

fn fact() -> StageFinished {
    let task = Task { generation: 0, branch: BranchId::main(), node: "a".into(), visit: 1, work: Work::Handler };
    let attempt = Attempt { task, ordinal: 1, id: AttemptId::new("a-1".to_owned()) };
    StageFinished::new(attempt, Outcome::new(Status::Success))
}

/// The record of a stage after its statement was checked.
fn checked(change: impl FnOnce(&mut StageFinished), statement: Statement) -> StageFinished {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("workspace")).unwrap();
    std::fs::create_dir(folder.path().join("workspace/d")).unwrap();
    for file in ["there.txt", "unwritable.txt"] {
        std::fs::write(folder.path().join("workspace").join(file), "x").unwrap();
    }
    let run = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
    let mut fact = fact();
    change(&mut fact);
    let entry = |text: &str| Entry::parse(text).unwrap();
    let (read, write) =
        (vec![entry("./")], vec![entry("there.txt"), entry("new.txt"), entry("missing.txt"), entry("d/")]);
    let scope = Some(Scope { read, write, ..Scope::default() });
    statement.check(&mut fact, &FilesAtEnd { run: &run, workspace: "workspace", scope });
    fact
}

/// The statement of a stage that kept one artifact.
fn statement(kind: &str, value: &str) -> Statement {
    let artifacts = BTreeSet::from(["report.md".to_owned()]);
    let claims = vec![Claim { kind: kind.to_owned(), value: value.to_owned() }];
    Statement { claims, artifacts, ..Statement::default() }
}

/// Whether a stage with these records succeeds with a claim.
fn holds(change: impl FnOnce(&mut StageFinished), kind: &str, value: &str) -> bool {
    let fact = checked(change, statement(kind, value));
    let code = fact.outcome.failure.as_ref().map(|failure| failure.code.as_str());
    assert!(code.is_none_or(|code| code == FailureCode::CLAIM_UNPROVEN.as_str()), "{code:?}");
    code.is_none()
}

#[test]
fn a_failure_says_what_is_claimed_and_what_the_records_say() {
    let failed = |how: CommandEnding, code: Option<i32>| {
        move |fact: &mut StageFinished| fact.commands.receipts = vec![receipt(code, how)]
    };
    let check = |change: &dyn Fn(&mut StageFinished), kind: &str, value: &str, expected: &str| {
        let failure = checked(change, statement(kind, value)).outcome.failure.unwrap();
        assert_eq!(failure.class, FailureClass::Contract);
        assert_eq!(failure.reason, format!("the stage claims `{kind}` for `{value}`, but {expected}"));
    };
    check(&|_| {}, "command-passed", "r", "the stage has no receipt of this id");
    let exited = failed(CommandEnding::Exited, Some(3));
    check(&exited, "command-passed", "r", "the command exited with exit code 3");
    let killed = failed(CommandEnding::TimedOut, None);
    check(&killed, "command-passed", "r", "the command timed-out with no exit code");
    check(&|_| {}, "artifact", "a.md", "no artifact of this name was kept");
    check(&|_| {}, "file-written", "missing.txt", "its write scope has no file of this path at the end");
    check(&|_| {}, "all-is-well", "x", "this kind of claim is unknown");
}

#[test]
fn an_unproven_claim_records_the_command_that_failed_and_whether_hold_outs_were_missing() {
    let failed_command = Some(FailedCommand { line: "make".to_owned(), source: CommandSource::Explicit });
    for (value, expected) in [("none.md", (failed_command.clone(), true)), ("report.md", (None, false))] {
        let claim = statement("artifact", value);
        let statement = Statement { failed_command: failed_command.clone(), misses_holdouts: true, ..claim };
        let commands = checked(|_| {}, statement).commands;
        assert_eq!((commands.failed_command, commands.misses_holdouts), expected, "{value}");
    }
}

#[test]
fn a_call_that_did_not_return_is_not_failed_again() {
    let trapped = |fact: &mut StageFinished| fact.ending = Ending::Trapped("unreachable".to_owned());
    assert!(holds(trapped, "artifact", "none.md"));
}

#[test]
fn a_command_has_passed_if_a_receipt_of_the_stage_says_so() {
    let with = |receipts: Vec<Receipt>| move |fact: &mut StageFinished| fact.commands.receipts = receipts;
    let passed = receipt(Some(0), CommandEnding::Exited);
    assert!(holds(with(vec![passed.clone()]), "command-passed", "r"));
    assert!(!holds(with(Vec::new()), "command-passed", "r"), "no receipt");
    assert!(!holds(with(vec![passed.clone()]), "command-passed", "another"), "another receipt");
    assert!(!holds(with(vec![receipt(Some(1), CommandEnding::Exited)]), "command-passed", "r"), "it failed");
    assert!(!holds(with(vec![receipt(Some(0), CommandEnding::TimedOut)]), "command-passed", "r"), "it was killed");
    let hook = Hook { kind: HookKind::Pre, tool: "write_file".to_owned(), call: "1".to_owned() };
    let of_hook = Receipt { hook: Some(hook), ..passed.clone() };
    assert!(!holds(with(vec![of_hook]), "command-passed", "r"), "a hook judges a call, not the work");
    let of_subject = Receipt { subject: true, ..passed };
    assert!(!holds(with(vec![of_subject]), "command-passed", "r"), "a program under test proves nothing of itself");
}

#[test]
fn a_file_was_written_if_it_is_there_at_the_end() {
    let path = |text: &str| ScopePath::parse(text).unwrap();
    let after = |ops: &'static [(&'static str, ChangeOp)]| {
        move |fact: &mut StageFinished| {
            fact.files.changes = ops.iter().map(|(text, op)| FileChange::bare(path(text), *op)).collect();
        }
    };
    for (ops, value, expected) in [
        (&[][..], "there.txt", true),
        (&[], "missing.txt", false),
        (&[], "", false),
        (&[], "d", false),
        (&[], "unwritable.txt", false),
        (&[("unwritable.txt", ChangeOp::Write)], "unwritable.txt", false),
        (&[("new.txt", ChangeOp::Symlink)], "new.txt", false),
        (&[("new.txt", ChangeOp::Mkdir)], "new.txt", false),
        (&[("new.txt", ChangeOp::Write)], "new.txt", true),
        (&[("there.txt", ChangeOp::Delete)], "there.txt", false),
        (&[("there.txt", ChangeOp::Rmdir)], "there.txt", false),
        (&[("there.txt", ChangeOp::Delete), ("there.txt", ChangeOp::Write)], "there.txt", true),
        (&[("new.txt", ChangeOp::Write), ("new.txt", ChangeOp::Delete)], "new.txt", false),
    ] {
        assert_eq!(holds(after(ops), "file-written", value), expected, "{ops:?} {value}");
    }
}

#[test]
fn a_stage_without_files_has_written_none() {
    let mut fact = fact();
    fact.files.changes = vec![FileChange::bare(ScopePath::parse("new.txt").unwrap(), ChangeOp::Write)];
    let folder = tempfile::tempdir().unwrap();
    let run = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
    let files = FilesAtEnd { run: &run, workspace: "workspace", scope: None };
    statement("file-written", "new.txt").check(&mut fact, &files);
    assert_eq!(fact.outcome.failure.map(|failure| failure.code), Some(FailureCode::CLAIM_UNPROVEN));
}

#[test]
fn an_artifact_was_kept_if_the_component_kept_one_of_that_name() {
    assert!(holds(|_| {}, "artifact", "report.md"));
    assert!(!holds(|_| {}, "artifact", "report.txt"));
    let of_runtime = |fact: &mut StageFinished| {
        let (name, media_type) = ("transcript.ndjson".to_owned(), "application/x-ndjson".to_owned());
        fact.files.artifacts.push(Artifact { name, media_type, digest: Digest::ZERO, bytes: 0 });
    };
    assert!(!holds(of_runtime, "artifact", "transcript.ndjson"), "a file of the runtime proves nothing");
}

#[test]
fn a_claim_of_an_unknown_kind_is_unproven() {
    assert!(!holds(|_| {}, "all-is-well", "x"));
}

#[test]
fn only_a_success_needs_proof() {
    let mut fact = fact();
    fact.outcome = Outcome::new(Status::Skipped);
    let claims = vec![Claim { kind: "artifact".to_owned(), value: "none".to_owned() }];
    let statement = Statement { claims, ..Statement::default() };
    let folder = tempfile::tempdir().unwrap();
    let run = Dir::open_ambient_dir(folder.path(), cap_std::ambient_authority()).unwrap();
    let files = FilesAtEnd { run: &run, workspace: "workspace", scope: None };
    statement.check(&mut fact, &files);
    assert!(fact.outcome.failure.is_none());
    // An outcome that a person may turn into a success is checked too.
    let recoverable = Recoverable {
        outcome: Outcome::new(Status::Success),
        verifying: false,
        proposed: Vec::new(),
        signature: None,
        timeout_ms: None,
    };
    fact.files.recoverable = Some(Box::new(recoverable));
    statement.check(&mut fact, &files);
    let own = fact.files.recoverable.unwrap().outcome;
    assert_eq!(own.failure.map(|failure| failure.code), Some(FailureCode::CLAIM_UNPROVEN));
}
