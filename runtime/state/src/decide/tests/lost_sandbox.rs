//! Attempts whose sandbox was killed: one of each visit is repeated, and only that one does not count as a retry.

use super::FRAME;
use crate::run_state::OpenTask;
use crate::simulation::{Simulation, finished, pipeline, receipt, started};
use glovebox_journal::event::{Event, StageFinished, Work};
use glovebox_record::{CommandEnding, Failure, FailureClass, FailureCode, Outcome, Status};

/// Returns the end of an attempt by its letter: `l` a lost sandbox, `f` a failure, `i` a failure of the machine that a
/// verifier found, `p` a success.
fn answer(open: &OpenTask, letter: char) -> StageFinished {
    let failure = match letter {
        'l' => Some(Failure::new(FailureClass::Transient, FailureCode::SANDBOX_LOST, "killed")),
        'i' => Some(Failure::new(FailureClass::Transient, FailureCode::VERIFY_INFRA, "port taken")),
        'f' => Some(Failure::new(FailureClass::Deterministic, "test/failed", "it broke")),
        _ => None,
    };
    let code = i32::from(failure.is_some());
    let mut ended = finished(open, failure.map_or_else(|| Outcome::new(Status::Success), Outcome::failed));
    if open.task.work == Work::Verify {
        ended.handler = "verify".into();
        ended.commands.receipts = vec![receipt(Some(code), CommandEnding::Exited)];
    }
    ended
}

/// Runs a pipeline whose attempts end in this way, and again from each prefix of its records. Returns the attempts,
/// with `?` after a verification, and the verdict.
fn run(graph: &str, letters: &str) -> (String, String) {
    let graph = pipeline(&format!("digraph g {{ {FRAME} {graph} }}"));
    let letters: Vec<char> = letters.chars().collect();
    let mut whole = Simulation::new(&graph);
    whole.append(vec![Event::RunStarted(Box::new(started(&graph, 50, None)))]);
    let mut attempts = Vec::new();
    whole.go_on(&mut |open| {
        attempts.push(format!("{}{}", open.task.node, if open.task.work == Work::Verify { "?" } else { "" }));
        answer(open, letters[attempts.len() - 1])
    });
    assert_eq!(attempts.len(), letters.len(), "{letters:?}");
    for kept in 1..whole.records.len() {
        let mut resumed = Simulation::from_prefix(&graph, &whole.records[..kept]);
        let before = resumed.attempts().split_whitespace().count();
        let mut rest = letters[before..].iter();
        resumed.go_on(&mut |open| answer(open, *rest.next().unwrap()));
        assert_eq!(resumed.verdict(), whole.verdict(), "after {kept} records of {letters:?}");
    }
    (attempts.join(" "), whole.verdict())
}

#[track_caller]
fn check(graph: &str, letters: &str, attempts: &str, verdict: &str) {
    assert_eq!(run(graph, letters), (attempts.to_owned(), verdict.to_owned()), "{letters}");
}

const SUCCESS: &str = "success exit";
const LOST: &str = "fail host/sandbox_lost: killed";
const FAILED: &str = "fail test/failed: it broke";

#[test]
fn a_lost_sandbox_is_repeated_once_in_each_visit() {
    check("start -> a -> exit", "lp", "a a", SUCCESS);
    check("start -> a -> exit", "ll", "a a", LOST);
    check("a [max_retries=0]; start -> a -> exit", "lp", "a a", SUCCESS);
    let again = "start -> a -> b; b -> a [condition=\"outcome=fail\"]; b -> exit [condition=\"outcome=success\"]";
    check(again, "lpflpp", "a a b a a b", SUCCESS);
}

#[test]
fn it_is_no_retry_of_the_stage_and_the_next_one_is() {
    check("a [max_retries=1]; start -> a -> exit", "lfp", "a a a", SUCCESS);
    check("a [max_retries=1]; start -> a -> exit", "lff", "a a a", FAILED);
    check("a [max_retries=1]; start -> a -> exit", "flp", "a a a", SUCCESS);
    check("a [max_retries=1]; start -> a -> exit", "lll", "a a a", LOST);
    check("a [max_retries=1]; start -> a -> exit", "llp", "a a a", SUCCESS);
    check("graph [default_max_retries=1]; start -> a -> exit", "llp", "a a a", SUCCESS);
}

#[test]
fn a_verification_that_lost_its_sandbox_is_repeated_alone() {
    let graph = "a [verify_command=x]; start -> a -> exit";
    check(graph, "plp", "a a? a?", SUCCESS);
    check(graph, "pll", "a a? a?", LOST);
    check(graph, "plf", "a a? a?", FAILED);
    check(graph, "lpl", "a a a?", LOST);
    let retried = "a [verify_command=x, max_retries=1]; start -> a -> exit";
    check(retried, "plfpp", "a a? a? a a?", SUCCESS);
    check(retried, "plfpf", "a a? a? a a?", FAILED);
}
