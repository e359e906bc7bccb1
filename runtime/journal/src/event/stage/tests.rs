//! Tests of the record of an attempt: what it proves, and how its failure is classified.

use super::*;
use crate::event::{CommandSource, FailedCommand, FailureMeta, ProposedWrite};
use glovebox_record::path::ScopePath;
use glovebox_record::{
    BranchId, CommandEnding, Digest, Failure, FailureClass, Hook, HookKind, NoProof, Status, Task, Tier, Work,
};

fn finished() -> StageFinished {
    let task = Task::for_handler(0, &BranchId::main(), &"a".into(), 1);
    StageFinished::new(Attempt { task, ordinal: 1, id: "x".into() }, Outcome::new(Status::Success))
}

fn receipt(code: i32) -> Receipt {
    Receipt {
        id: "r".into(),
        argv: vec!["sh".into()],
        program: None,
        cwd: String::new(),
        env_names: Vec::new(),
        tier: Tier::Full,
        degradations: Vec::new(),
        subject: false,
        hook: None,
        over: None,
        no_proof: None,
        printed_class: None,
        how: CommandEnding::Exited,
        code: Some(code),
        duration_ms: 1,
        stdout_digest: Digest::ZERO,
        stdout_bytes: 0,
        stderr_digest: Digest::ZERO,
        stderr_bytes: 0,
    }
}

#[test]
fn only_a_command_of_the_stage_s_own_proves_anything() {
    let hook = Some(Hook { kind: HookKind::Post, tool: "shell".into(), call: "1".into() });
    let no_proof = Some(NoProof::NoTests);
    for (receipts, passed, passing, proves_nothing) in [
        (vec![], false, false, false),
        (vec![receipt(0)], true, true, false),
        (vec![receipt(1)], false, false, false),
        (vec![receipt(1), receipt(0)], true, true, false),
        (vec![Receipt { no_proof, ..receipt(0) }], true, false, true),
        (vec![Receipt { no_proof, ..receipt(0) }, receipt(0)], true, true, false),
        (vec![Receipt { subject: true, ..receipt(0) }], false, false, false),
        (vec![Receipt { hook, ..receipt(0) }], false, false, false),
    ] {
        let commands = StageCommands { receipts, ..StageCommands::default() };
        let ended = StageFinished { commands, ..finished() };
        let found = (ended.has_passed_command(), ended.has_passing_receipt(), ended.proves_nothing());
        assert_eq!(found, (passed, passing, proves_nothing), "{:?}", ended.commands.receipts);
    }
}

/// Returns an attempt with a disallowed write that a person may allow.
fn proposing() -> StageFinished {
    let change = FileChange::bare(ScopePath::parse("lock").unwrap(), crate::event::ChangeOp::Write);
    let proposed = vec![ProposedWrite { change, why: "a test".into() }];
    let outcome = Outcome::new(Status::Skipped);
    let recoverable = Recoverable { outcome, verifying: false, proposed, signature: None, timeout_ms: None };
    let files = StageFiles { recoverable: Some(Box::new(recoverable)), ..StageFiles::default() };
    StageFinished { files, ..finished() }
}

#[test]
fn an_attempt_is_final_when_nothing_more_of_its_visit_follows() {
    assert!(finished().is_final());
    let follows = |follow_up: FollowUp| !StageFinished { follow_up, ..finished() }.is_final();
    assert!(follows(FollowUp { retrying: true, ..FollowUp::default() }));
    assert!(follows(FollowUp { verifying: true, ..FollowUp::default() }));
    assert!(!proposing().is_final());
}

#[test]
fn what_a_person_may_decide_about_has_its_own_outcome() {
    let mut ended = proposing();
    assert_eq!(ended.proposed().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["lock"]);
    ended.with_own_outcome(|own| {
        assert_eq!(own.outcome.status, Status::Skipped);
        own.outcome.notes = "changed".into();
    });
    assert_eq!((ended.outcome.status, ended.outcome.notes.as_str()), (Status::Success, ""));
    assert_eq!(ended.files.recoverable.unwrap().outcome.notes, "changed");
    finished().with_own_outcome(|_| panic!("there is no other outcome"));
}

#[test]
fn a_decision_grants_the_paths_of_what_it_committed() {
    let change = FileChange::bare(ScopePath::parse("lock").unwrap(), crate::event::ChangeOp::Write);
    let decided = crate::event::RecoveryDecided {
        attempt: finished().attempt,
        handler: String::new(),
        question: "a#1/recovery".into(),
        action: crate::event::RecoveryAction::Allow,
        reason: None,
        how: crate::event::AnsweredBy::Command,
        by: "ada".into(),
        changes: vec![change],
        outcome: Outcome::new(Status::Success),
        verifying: false,
        stored_values: BTreeSet::new(),
        signature: None,
    };
    assert_eq!(decided.granted().map(ScopePath::as_str).collect::<Vec<_>>(), ["lock"]);
}

#[test]
fn only_a_key_that_the_host_names_is_a_reference() {
    let mut ended = finished();
    let reference = StoredValue::new("\"long\"", "long").reference();
    ended.outcome.context_updates = ["a", "b"].map(|key| (key.to_owned(), reference.clone())).into();
    ended.files.stored_values = ["a".to_owned(), "absent".to_owned()].into();
    assert_eq!(ended.stored_values().map(|(key, _)| key).collect::<Vec<_>>(), ["a"]);
}

#[test]
fn a_failure_is_classified_where_a_verification_failed() {
    let ended = |handler: &str, work: Work, has_failed: bool| {
        let mut ended = StageFinished { handler: handler.into(), ..finished() };
        ended.attempt.task.work = work;
        let failure = Failure::new(FailureClass::Deterministic, "test_failure", "it broke");
        ended.outcome.failure = has_failed.then_some(failure);
        ended.commands.failed_command = Some(FailedCommand { line: "cargo test".into(), source: CommandSource::Auto });
        ended
    };
    for (handler, work, is_verification, is_bounded) in [
        ("codergen", Work::Handler, false, false),
        ("codergen", Work::Verify, true, true),
        ("verification", Work::Handler, true, true),
        ("tool", Work::Handler, false, true),
        ("verify", Work::Handler, false, true),
    ] {
        let failed = ended(handler, work, true);
        assert_eq!((failed.is_verification(), failed.is_bounded_by_category()), (is_verification, is_bounded));
        let meta = FailureMeta::for_stage(&failed);
        assert_eq!(meta.as_ref().map(|meta| meta.failure_code), is_verification.then_some("test_failure"), "{handler}");
        assert_eq!(FailureMeta::for_stage(&ended(handler, work, false)), None);
    }
    let meta = FailureMeta::for_stage(&ended("verification", Work::Handler, true)).unwrap();
    assert_eq!((meta.retryable, meta.failed_command.as_deref()), (true, Some("cargo test")));
    let sources = [CommandSource::Explicit, CommandSource::Auto];
    assert_eq!(sources.map(CommandSource::as_str), ["explicit", "auto"]);
    assert_eq!(serde_json::to_value(sources).unwrap(), serde_json::json!(["explicit", "auto"]));
}
