//! How often work is repeated after a failure of its verification: by category, by the operator's limit and by failure
//! signature, and after which delay.

use super::pipeline;
use crate::run_state::OpenTask;
use crate::simulation::{Simulation, finished, started};
use glovebox_journal::event::{Digest, Event, FollowUp, StageFinished};
use glovebox_record::VerifyLimits;
use glovebox_record::{Failure, FailureClass, Outcome, Status};

const LOOP: &str = "check [type=verification]; start -> check; check -> exit [condition=\"outcome=success\"]; \
                    check -> fix [condition=\"outcome=fail\"]; fix -> check";
const ONE_WAY: &str = "check [type=verification]; start -> check; check -> exit [condition=\"outcome=success\"]; \
                       check -> fix [condition=\"outcome=fail\"]; fix -> exit";

/// Returns the outcome of `check` for a word: `ok`, or a failure code, optionally followed by `@` and the text of the
/// failure signature. A code that begins with `~` is transient.
fn answer(open: &OpenTask, word: &str) -> StageFinished {
    let handler = "verification".to_owned();
    if word == "ok" {
        return StageFinished { handler, ..finished(open, Outcome::new(Status::Success)) };
    }
    let (code, said) = word.split_once('@').map_or((word, None), |(code, said)| (code, Some(said)));
    let (class, code) = match code.strip_prefix('~') {
        Some(code) => (FailureClass::Transient, code),
        None => (FailureClass::Deterministic, code),
    };
    let failure = Failure::new(class, code.to_owned(), "it broke");
    let signature = said.map(|said| Digest::hash(said.as_bytes()));
    let follow_up = FollowUp { signature, ..FollowUp::default() };
    StageFinished { handler, follow_up, ..finished(open, Outcome::failed(failure)) }
}

fn simulate<'a>(
    pipeline: &'a glovebox_pipeline::ir::Pipeline,
    retry: Option<VerifyLimits>,
    words: &str,
) -> Simulation<'a> {
    let words: Vec<&str> = words.split_whitespace().collect();
    let mut turn = 0;
    let mut run = Simulation::new(pipeline);
    let mut begun = started(pipeline, 100, None);
    begun.plan.verify_retry = retry;
    run.append(vec![Event::RunStarted(Box::new(begun))]);
    run.go_on(&mut |open| {
        if open.task.node.as_str() != "check" {
            return finished(open, Outcome::new(Status::Success));
        }
        turn += 1;
        answer(open, words[(turn - 1).min(words.len() - 1)])
    });
    run
}

/// Returns how often `check` was executed, and the verdict.
fn end_of(graph: &str, retry: Option<VerifyLimits>, words: &str) -> (usize, String) {
    let pipeline = pipeline(&format!(
        "digraph g {{ graph [max_steps=100, loop_restart_signature_limit=50]; start [shape=Mdiamond]; \
         exit [shape=Msquare]; fix; {graph} }}"
    ));
    let run = simulate(&pipeline, retry, words);
    (run.attempts().split(' ').filter(|node| *node == "check").count(), run.verdict())
}

const BY_CATEGORY: Option<VerifyLimits> =
    Some(VerifyLimits { max_retries: None, repeated_signature_threshold: Some(4), cooldown_seconds: 0 });

#[track_caller]
fn check(retry: Option<VerifyLimits>, words: &str, tries: usize, says: &str) {
    let (tried, end) = end_of(LOOP, retry, words);
    assert_eq!((tried, end.contains(says)), (tries, true), "{end}");
    // The same limit applies to retries within a visit: the last failure ends the run with its own reason.
    let within = "check [type=verification, max_retries=40]; start -> check -> exit";
    let (tried, end) = end_of(within, retry, words);
    assert_eq!(tried, tries, "{end}");
}

#[test]
fn a_category_bounds_the_repetitions() {
    let limit =
        |category: &str, limit: u32| format!("category `{category}`, the limit of the category is {limit} retries");
    check(BY_CATEGORY, "verification_command_failed", 4, &limit("test", 3));
    check(BY_CATEGORY, "environment_issue", 6, &limit("env", 5));
    check(BY_CATEGORY, "setup_or_bootstrap_issue", 4, &limit("setup", 3));
    check(BY_CATEGORY, "policy_violation", 4, &limit("policy", 3));
    check(BY_CATEGORY, "~verification/timeout", 7, &limit("flaky", 6));
    check(BY_CATEGORY, "verification/plan-invalid", 4, &limit("model", 3));
    check(BY_CATEGORY, "model_doom_loop", 2, &limit("model_loop", 1));
    // Each category has its own count.
    check(BY_CATEGORY, "test_failure test_failure ~x ~x test_failure test_failure", 6, &limit("test", 3));
    check(BY_CATEGORY, "test_failure test_failure test_failure ok", 4, "success exit");
}

#[test]
fn what_cannot_be_mended_is_not_repeated() {
    for code in ["verification_command_missing_script", "no_actionable_changes", "external_directory_permission_prompt"]
    {
        check(BY_CATEGORY, code, 1, "fail loop/not_retryable: `check` failed with");
    }
}

#[test]
fn the_lower_of_two_bounds_acts() {
    let most = |most: u32| Some(VerifyLimits { max_retries: Some(most), ..VerifyLimits::default() });
    check(most(1), "test_failure", 2, "`max_retries` of `[verify.retry]` is 1 retries");
    check(most(0), "test_failure", 1, "`max_retries` of `[verify.retry]` is 0 retries");
    check(most(3), "test_failure", 4, "the limit of the category is 3 retries");
    check(most(100), "test_failure", 4, "the limit of the category is 3 retries");
}

#[test]
fn the_same_signature_in_a_row_ends_a_run() {
    let threshold = |times| Some(VerifyLimits { repeated_signature_threshold: Some(times), ..VerifyLimits::default() });
    let same = |times: u32| {
        format!(
            "fail loop/repeated_signature: repeated_same_failure_signature: `check` failed {times} times in a row in the same way, \
             `repeated_signature_threshold` of `[verify.retry]` is {times}: it broke"
        )
    };
    assert_eq!(end_of(LOOP, threshold(2), "test_failure@x"), (2, same(2)));
    assert_eq!(end_of(LOOP, BY_CATEGORY, "environment_issue@x"), (4, same(4)));
    let within = "check [type=verification, max_retries=40]; start -> check -> exit";
    assert_eq!(end_of(within, BY_CATEGORY, "environment_issue@x"), (4, same(4)));
    let mixed = "environment_issue@x environment_issue@x environment_issue@y environment_issue@x";
    assert_eq!(end_of(LOOP, threshold(3), mixed).0, 6, "three in a row, and not three in all");
    let lower = LOOP.replacen("check", "graph [loop_restart_signature_limit=2]; check", 1);
    let (tried, end) = end_of(&lower, BY_CATEGORY, "environment_issue@x");
    assert_eq!((tried, end.contains("`loop_restart_signature_limit` is 2")), (2, true), "{end}");
}

#[test]
fn the_lower_bound_that_is_set_counts_equal_failures() {
    let ends = |graph: &str, retry: Option<VerifyLimits>| {
        let pipeline = pipeline(&format!(
            "digraph g {{ graph [max_steps=100{graph}]; start [shape=Mdiamond]; exit [shape=Msquare]; fix; {LOOP} }}"
        ));
        let run = simulate(&pipeline, retry, "environment_issue@x");
        let broken = run.records.iter().find_map(|record| match &record.event {
            Event::CycleBroken(broken) => Some((broken.count, broken.limit, broken.limit_name.clone())),
            _ => None,
        });
        let (count, limit, name) = broken.unwrap();
        let named = format!("`{name}`");
        assert!(run.verdict().contains(&named), "{named}: {}", run.verdict());
        (count, limit, name)
    };
    let threshold = |times| Some(VerifyLimits { repeated_signature_threshold: Some(times), ..VerifyLimits::default() });
    let (of_graph, of_verify) = ("loop_restart_signature_limit".to_owned(), "repeated_signature_threshold".to_owned());
    let none = Some(VerifyLimits::default());
    assert_eq!(ends("", None), (3, 3, of_graph.clone()), "nothing set, no `[verify]`");
    assert_eq!(ends("", none), (4, 4, of_verify.clone()), "nothing set");
    assert_eq!(ends("", threshold(5)), (5, 5, of_verify.clone()), "a default of 3 is not set");
    assert_eq!(ends(", loop_restart_signature_limit=5", none), (5, 5, of_graph.clone()), "a default of 4 is not set");
    assert_eq!(ends(", loop_restart_signature_limit=5", threshold(3)), (3, 3, of_verify));
    assert_eq!(ends(", loop_restart_signature_limit=2", threshold(3)), (2, 2, of_graph));
}

#[test]
fn a_way_that_does_not_come_back_is_not_touched() {
    for word in ["verification_command_missing_script", "test_failure@x"] {
        let retry = Some(VerifyLimits { max_retries: Some(0), ..VerifyLimits::default() });
        assert_eq!(end_of(ONE_WAY, retry, word), (1, "success exit".to_owned()));
    }
    let gated = "check [type=verification, goal_gate=true, retry_target=fix]; start -> check -> exit; \
                 check -> other [condition=\"outcome=fail\"]; other; other -> exit; fix -> check";
    let (tried, end) = end_of(gated, BY_CATEGORY, "verification_command_missing_script");
    assert_eq!((tried, end.contains("loop/not_retryable")), (1, true), "an arrival by way of a goal gate: {end}");
}

#[test]
fn without_the_settings_nothing_changes() {
    let (tried, end) = end_of(LOOP, None, "verification_command_missing_script");
    assert_eq!((tried, end.contains("maximum step count")), (50, true), "{end}");
}

#[test]
fn a_way_back_that_may_not_be_repeated_is_not_begun() {
    let pipeline = pipeline(&format!(
        "digraph g {{ graph [max_steps=100, loop_restart_signature_limit=50]; start [shape=Mdiamond]; \
         exit [shape=Msquare]; fix; {LOOP} }}"
    ));
    let run = simulate(&pipeline, BY_CATEGORY, "model_doom_loop");
    assert_eq!(run.attempts(), "check fix check", "nothing is mended that is not checked again");
}

#[test]
fn a_repetition_that_comes_when_the_cooldown_ends_waits_no_longer() {
    let pipeline = pipeline(&format!("digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]; fix; {LOOP} }}"));
    let due = |attempt_ms: i64| {
        let mut run = Simulation::new(&pipeline);
        run.attempt_ms = attempt_ms;
        let verify_retry = Some(VerifyLimits { cooldown_seconds: 30, ..VerifyLimits::default() });
        let mut begun = started(&pipeline, 100, None);
        begun.plan.verify_retry = verify_retry;
        run.append(vec![Event::RunStarted(Box::new(begun))]);
        let mut words = ["environment_issue", "ok", "ok"].into_iter();
        run.go_on(&mut |open| answer(open, words.next().unwrap()));
        let ready: Vec<_> = run.records.iter().filter_map(|record| record.event.stage_ready()).collect();
        ready.last().unwrap().due_at.is_some()
    };
    assert_eq!((due(29_999), due(30_000)), (true, false));
}

#[test]
fn a_repetition_waits_for_the_cooldown() {
    let due = |graph: &str, word: &str| {
        let source = format!("digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]; fix; {graph} }}");
        let pipeline = pipeline(&source);
        let retry = VerifyLimits { cooldown_seconds: 30, ..VerifyLimits::default() };
        let run = simulate(&pipeline, Some(retry), &format!("{word} ok"));
        let mut begun = run.records.iter().filter(|record| {
            matches!(&record.event, Event::StageStarted(started) if started.attempt.task.node.as_str() == "check")
        });
        let (first, second) = (begun.next().unwrap(), begun.next().unwrap());
        second.at.as_millisecond() - first.at.as_millisecond()
    };
    let within = "check [type=verification, max_retries=4, retry_policy=standard]; start -> check -> exit";
    for graph in [LOOP, within] {
        for waits in ["environment_issue", "~x", "model_or_unknown_failure"] {
            assert!((30_000..31_000).contains(&due(graph, waits)), "{waits}");
        }
        assert!(due(graph, "test_failure") < 2_000);
    }
}
