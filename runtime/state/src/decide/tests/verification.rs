//! The effect of a verification on the outcome that it verifies, at a stage, a diamond, a fan-in and an exit.

use super::*;
use crate::simulation::receipt;
use glovebox_record::CommandEnding;

/// Runs a pipeline whose verifications pass or fail in this order. The work succeeds with the notes `done`.
fn run<'p>(pipeline: &'p Pipeline, verdicts: &'static [bool]) -> Simulation<'p> {
    run_with(pipeline, verdicts, "done")
}

fn run_with<'p>(pipeline: &'p Pipeline, verdicts: &'static [bool], notes: &str) -> Simulation<'p> {
    let mut verdicts = verdicts.iter();
    Simulation::run(pipeline, 30, &mut |open| {
        let mut ended = finished(open, Outcome::new(Status::Success));
        ended.outcome.notes = notes.to_owned();
        if open.task.work == Work::Verify {
            let passes = *verdicts.next().expect("one more verification");
            ended.outcome = outcome(if passes { "success" } else { "fail" });
            ended.outcome.notes = "checked".into();
            ended.commands.receipts = vec![receipt(Some(i32::from(!passes)), CommandEnding::Exited)];
        }
        ended
    })
}

fn graph(text: &str) -> Pipeline {
    pipeline(&format!("digraph g {{ {FRAME} {text} }}"))
}

/// Returns each ended attempt: node, work, notes, and whether it verified an exit.
fn ends(run: &Simulation<'_>) -> Vec<(String, Work, String, bool)> {
    let ended = run.records.iter().filter_map(|record| record.event.stage_finished());
    let row = |last: &StageFinished| {
        (last.attempt.task.node.to_string(), last.attempt.task.work, last.outcome.notes.clone(), last.follow_up.at_exit)
    };
    ended.map(row).collect()
}

#[test]
fn a_verification_that_passed_keeps_the_words_of_the_stage_and_one_that_failed_has_its_own() {
    let pipeline = graph("a [verify_command=x]; start -> a -> exit");
    let row = |work, notes: &str| ("a".to_owned(), work, notes.to_owned(), false);
    let passed = run(&pipeline, &[true]);
    assert_eq!(ends(&passed), [row(Work::Handler, "done"), row(Work::Verify, "done")]);
    let silent = run_with(&pipeline, &[true], "");
    assert_eq!(ends(&silent), [row(Work::Handler, ""), row(Work::Verify, "checked")]);
    let failed = run(&pipeline, &[false]);
    assert_eq!(ends(&failed), [row(Work::Handler, "done"), row(Work::Verify, "checked")]);
    assert_eq!(failed.verdict(), "fail test/failed: it broke");
}

#[test]
fn a_diamond_is_verified_only_where_what_came_before_has_passed() {
    let pipeline = graph(
        "d [shape=diamond, verify_command=x]; start -> a; a -> d; d -> exit [condition=\"outcome=success\"]; \
         d -> b [condition=\"outcome=fail\"]; b -> exit",
    );
    assert_eq!(run(&pipeline, &[true]).attempts(), "a d");
    assert_eq!(run(&pipeline, &[false]).attempts(), "a d b");
    let failed = Simulation::run(&pipeline, 30, &mut answers("fail success"));
    assert_eq!(failed.attempts(), "a b", "a failure stays one without it");
}

#[test]
fn an_exit_whose_verification_failed_ends_the_run_and_leads_nowhere() {
    let pipeline = graph("exit [verify_command=x, retry_target=a]; start -> a -> exit");
    let failed = run(&pipeline, &[false]);
    assert_eq!((failed.attempts().as_str(), failed.verdict().as_str()), ("a exit", "fail test/failed: it broke"));
    let marks: Vec<bool> = ends(&failed).into_iter().map(|(.., at_exit)| at_exit).collect();
    assert_eq!(marks, [false, true]);
}

#[test]
fn nothing_more_is_repeated_once_the_run_is_stopping() {
    let pipeline = graph("a [max_retries=3]; start -> a; a -> b [condition=\"outcome=retry\"]; a -> exit; b -> exit");
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 20, None)))]);
    let open = run.state.main().open().cloned().unwrap();
    for (stopping, retrying, status) in [(false, true, Status::Retry), (true, false, Status::Fail)] {
        let mut last = finished(&open, Outcome::new(Status::Retry));
        finalize_attempt(&pipeline, None, &run.state, stopping, &mut last);
        assert_eq!((last.follow_up.retrying, last.outcome.status), (retrying, status), "no edge is waited for");
    }
}

#[test]
fn the_judge_of_a_fan_in_always_says_how_it_ended() {
    let pipeline = pipeline(
        "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; a; b;
         j [shape=tripleoctagon, prompt=x]; start -> f; f -> a -> j; f -> b -> j; j -> exit;
         j -> exit [condition=\"outcome=retry\"] }",
    );
    let mut turns = ["success", "success", "retry"].into_iter();
    let run = Simulation::run(&pipeline, 30, &mut |open| finished(open, outcome(turns.next().unwrap())));
    let judged = run.records.iter().filter_map(|record| record.event.stage_finished()).next_back().unwrap();
    assert_eq!((judged.attempt.task.node.as_str(), judged.outcome.status), ("j", Status::Fail));
}
