//! Where a resume of a failed run begins, and loop restarts.

use super::*;
use glovebox_journal::event::StageRetrying;

fn ended(graph: &str, words: &str) -> (String, Option<String>) {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} {graph} }}"));
    let run = Simulation::run(&pipeline, 30, &mut answers(words));
    let verdict = run.state.verdict.clone().expect("it ended");
    let from = resumes_at(&pipeline, &run.state, &verdict).map(ToString::to_string);
    let used_up = visits_used_up(&pipeline, &run.state, &RunResumed::default());
    assert!(from.is_none() || used_up.is_none(), "{from:?} {used_up:?}");
    assert_eq!(
        visits_used_up(&pipeline, &run.state, &RunResumed { from: Some("a".into()), ..Default::default() }),
        None
    );
    (run.verdict(), from.or_else(|| used_up.map(|failure| failure.reason)))
}

#[track_caller]
fn check(graph: &str, words: &str, from: Option<&str>) {
    let (verdict, found) = ended(graph, words);
    assert_eq!(found.as_deref(), from, "{verdict}");
}

#[test]
fn a_resume_begins_again_at_the_first_stage_that_failed_and_was_not_handled() {
    check("start -> a -> b -> exit", "fail", Some("a"));
    check("start -> a -> b -> exit", "success fail", Some("b"));
    check("start -> a -> b -> exit", "success", None);
    // `b` only reports the failure of `a`.
    check("start -> a; a -> b [condition=\"outcome=fail\"]; a -> exit", "fail", Some("a"));
    // The run continued at the node that follows a success, also behind a diamond.
    check("start -> a; a -> b; a -> b [condition=\"outcome=fail\"]; b -> exit", "fail fail", Some("b"));
    let diamond = "d [shape=diamond]; start -> a -> d; d -> b; d -> b [condition=\"outcome=fail\"]; b -> exit";
    check(diamond, "fail fail", Some("b"));
    // `a` failed and has passed since.
    let repeated = "a [max_retries=0, retry_target=a]; start -> a -> b -> exit";
    check(repeated, "fail success fail", Some("b"));
}

#[test]
fn a_resume_begins_at_no_stage_without_visits() {
    let graph =
        |a: &str, b: &str| format!("a [{a}]; b [{b}]; start -> a; a -> b [condition=\"outcome=fail\"]; a -> exit");
    check(&graph("max_visits=2", ""), "fail", Some("a"));
    check(&graph("max_visits=1", ""), "fail", Some("b"));
    let reason = "node `b` has used up `max_visits` (1), and no other failed stage has visits left";
    check(&graph("max_visits=1", "max_visits=1"), "fail", Some(reason));
    check(&graph("max_visits=1", "max_visits=2"), "fail", Some("b"));
}

const AGAIN: &str = "start -> a; a -> exit; a -> b [condition=\"outcome=fail\", loop_restart=true]; b -> a";

/// Returns the attempts of a run and its verdict.
fn restarted(graph: &str, words: &str) -> (String, String) {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} {graph} {AGAIN} }}"));
    let run = Simulation::run(&pipeline, 30, &mut answers(words));
    (run.attempts(), run.verdict())
}

#[test]
fn only_a_failure_that_may_pass_restarts_a_run() {
    let (attempts, end) = restarted("", "fail:transient success");
    assert_eq!((attempts.as_str(), end.as_str()), ("a b a", "success exit"));
    let (attempts, end) = restarted("", "fail success");
    let blocked =
        "loop_restart blocked: failure_class=deterministic (requires transient), node=a, failure_reason=it broke";
    assert_eq!((attempts.as_str(), end), ("a", format!("fail loop/restart_blocked: {blocked}")));
}

#[test]
fn a_run_restarts_no_more_often_than_its_bound_says() {
    let (attempts, end) = restarted("graph [max_restarts=1];", "fail:transient success fail:transient success");
    let reason = "loop_restart limit exceeded (1 restarts, `max_restarts` is 1)";
    assert_eq!((attempts.as_str(), end), ("a b a", format!("fail limit/max_restarts: {reason}")));
}

#[test]
fn no_branch_of_a_fork_restarts_the_run() {
    let pipeline = pipeline(
        "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon]; a; b;
         start -> f; f -> a; a -> j [loop_restart=true]; f -> b -> j; j -> exit }",
    );
    let run = Simulation::run(&pipeline, 30, &mut answers("success"));
    let failed = run.records.iter().find_map(|record| match &record.event {
        Event::BranchFinished(ended) => ended.failure.as_ref().map(|failure| failure.reason.clone()),
        _ => None,
    });
    let reason = "loop_restart blocked: `a` is in branch `f-a`, expected an edge after the fan-in";
    assert_eq!(failed.as_deref(), Some(reason));
}

fn delays(run: &Simulation<'_>) -> Vec<u64> {
    let retrying = run.records.iter().filter_map(|record| match &record.event {
        Event::StageRetrying(StageRetrying { delay_ms, .. }) => Some(*delay_ms),
        _ => None,
    });
    retrying.collect()
}

#[test]
fn jitter_spreads_the_delays_from_half_of_them_to_one_and_a_half() {
    let pipeline =
        pipeline(&format!("digraph g {{ {FRAME} a [retry_policy=patient, max_retries=60]; start -> a -> exit }}"));
    let run = Simulation::run(&pipeline, 70, &mut answers("retry"));
    // The maximum delay of the preset is one minute.
    let capped = &delays(&run)[10..];
    let (least, most) = (capped.iter().min().unwrap(), capped.iter().max().unwrap());
    assert!((30_000..36_000).contains(least) && (84_000..90_000).contains(most), "{least} to {most}");
}
