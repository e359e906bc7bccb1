//! Limits of nodes and of the run: when they end the run, what the failure says, and which resume would reach them
//! again.

use super::*;
use crate::failure_signature;
use crate::run_state::resume_state;
use crate::simulation::held;
use glovebox_journal::event::StageStarted;
use glovebox_record::spend::{Money, SpendBounds};
use jiff::SignedDuration;
use std::time::Duration;

#[test]
fn a_node_is_visited_no_more_often_than_its_bound_says() {
    let graph = "a [max_visits=2]; start -> a -> b -> a; a -> exit [condition=\"outcome=fail\"]";
    check(graph, "success", "a b a b", "fail limit/max_visits: node `a` exceeded `max_visits` (2).");
    let graph = "a [max_steps=2]; start -> a -> b -> a; a -> exit [condition=\"outcome=fail\"]";
    check(graph, "success", "a b a b", "fail limit/node_max_steps: node `a` exceeded `max_steps` (2)");
}

#[test]
fn a_node_works_no_longer_than_its_bound_says() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} a [max_wall_time=\"80ms\"]; start -> a -> b -> a }}"));
    let mut run = Simulation::new(&pipeline);
    run.attempt_ms = 40;
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 20, None)))]);
    run.go_on(&mut answers("success"));
    assert_eq!(run.attempts(), "a b a b");
    assert_eq!(run.verdict(), "fail limit/node_max_wall_time: node `a` exceeded `max_wall_time` (80 ms)");
}

#[test]
fn the_end_of_a_loop_names_the_failure_behind_it() {
    let often = "`a` failed 2 times in a row in the same way: it broke";
    let last = "The last failure of `a`: it broke";
    let graph = |a: &str| format!("a [{a}]; start -> a; a -> b [condition=\"outcome=fail\"]; b -> a");
    let visits = "fail limit/max_visits: node `a` exceeded `max_visits`";
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} {} }}", graph("max_visits=2")));
    let mut answer = answers("fail success fail success");
    let run = Simulation::run(&pipeline, 20, &mut |open| {
        let mut ended = answer(open);
        ended.follow_up.signature = ended.outcome.failure.as_ref().and_then(failure_signature::of_failure);
        ended
    });
    assert_eq!((run.attempts().as_str(), run.verdict()), ("a b a b", format!("{visits} (2). {often}")));
    check(&graph("max_visits=1"), "fail success", "a b", &format!("{visits} (1). {last}"));
    let steps = "fail limit/node_max_steps: node `a` exceeded `max_steps`";
    check(&graph("max_steps=1"), "fail success", "a b", &format!("{steps} (1). {last}"));
    let bound = "Pipeline exceeded maximum step count (20). Use --max-steps to increase.";
    let attempts = format!("a {}", ["b"; 18].join(" "));
    let graph = "start -> a; a -> b [condition=\"outcome=fail\"]; b -> b";
    check(graph, "fail success", &attempts, &format!("fail limit/max_steps: {bound} {last}"));
}

#[test]
fn a_bound_that_one_branch_met_ends_the_run_when_the_others_have_ended() {
    let pipeline = pipeline(
        "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon]; a; b; x;
         start -> f; f -> a -> x -> j; f -> b -> j; j -> exit }",
    );
    let mut run = Simulation::new(&pipeline);
    // The 4 steps are start, f, a and b.
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 4, None)))]);
    let opens: Vec<OpenTask> = run.state.branches.values().filter_map(|branch| branch.open()).cloned().collect();
    for open in &opens {
        let attempt = finished(open, Outcome::new(Status::Success)).attempt;
        run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
    }
    for open in &opens {
        assert!(run.state.verdict.is_none(), "an attempt is under way");
        run.append(vec![Event::StageFinished(Box::new(finished(open, Outcome::new(Status::Success))))]);
    }
    assert_eq!(run.attempts(), "a b");
    assert!(run.verdict().starts_with("fail limit/max_steps"), "{}", run.verdict());
    let exits = run.records.iter().filter_map(|record| match &record.event {
        Event::BranchExited(exit) => Some(exit.reason.as_str()),
        _ => None,
    });
    let reason = run.state.verdict.as_ref().unwrap().failure.as_ref().unwrap().reason.as_str();
    assert!(exits.into_iter().all(|exit| exit == reason), "the reason of the run");
    // The branch `f-b` has ended.
    assert_eq!(run.ending(), ["route.taken", "branch.finished", "f-a a BeforeEdge", "main f AtJoin", "run.finished"]);
}

#[test]
fn a_limit_that_cuts_an_attempt_names_the_exit_of_each_branch_and_a_resume_goes_on() {
    let pipeline = pipeline(
        "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon]; a; b;
         q [shape=hexagon]; start -> f; f -> a -> j; f -> b -> j; f -> q -> j; j -> exit }",
    );
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 50, None)))]);
    let open = run.state.branches.values().find_map(|branch| branch.open()).cloned().unwrap();
    let attempt = finished(&open, Outcome::new(Status::Success)).attempt;
    run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
    let spent = outcome("fail:budget:limit/max_tokens");
    run.append(vec![Event::StageFinished(Box::new(finished(&open, spent)))]);
    assert_eq!(
        run.ending(),
        ["f-a a InStage", "f-b b BeforeStage", "f-q q AtQuestion", "main f AtJoin", "run.finished"]
    );
    let (state, pending) = resume_state(&run.records).unwrap();
    assert_eq!(
        pending.0.iter().map(Event::kind).collect::<Vec<_>>(),
        ["parallel.started", "stage.ready", "question.asked", "stage.finished"]
    );
    assert_eq!(state.stopped.unwrap().branches.len(), 4, "the branches have not ended");
}

#[test]
fn a_wait_for_a_quota_costs_no_step_and_no_time_of_its_node() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> exit }}"));
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 50, None)))]);
    let open = |run: &Simulation<'_>| run.state.main().open().unwrap().clone();
    let begin = |run: &mut Simulation<'_>| {
        let attempt = finished(&open(run), Outcome::new(Status::Success)).attempt;
        run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
    };
    let until = Timestamp::from_second(60).unwrap();
    for waits in 1..=3 {
        begin(&mut run);
        run.append(vec![Event::StageHeld(Box::new(held(&open(&run), until)))]);
        let waiting = open(&run);
        assert_eq!((waiting.due_at, waiting.ordinal, run.state.steps), (Some(until), 1, 2));
        assert_eq!(waiting.waits_for_quota().map(|quota| quota.waits), Some(waits));
        let later = until.checked_add(SignedDuration::from_hours(1)).unwrap();
        assert_eq!(run.state.node_usages.of(&"a".into()).time(later), Duration::ZERO);
    }
    begin(&mut run);
    assert_eq!(open(&run).waits_for_quota(), None);
    run.append(vec![Event::StageFinished(Box::new(finished(&open(&run), Outcome::new(Status::Success))))]);
    assert_eq!(run.verdict(), "success exit");
}

/// Returns a run that ended with this budget failure. Its limits were 10 tokens and 5 millionths of a dollar.
fn overspent(pipeline: &Pipeline, failure: Failure) -> RunState {
    let mut run = Simulation::new(pipeline);
    let spend_max = SpendBounds { tokens_max: Some(10), cost_max: Some(Money(5)) };
    let mut begun = started(pipeline, 20, Some(80));
    begun.bounds.spend_max = spend_max;
    run.append(vec![Event::RunStarted(Box::new(begun))]);
    run.append(vec![failed(failure)]);
    run.state
}

#[test]
fn only_a_higher_bound_lets_a_run_go_on_that_has_spent_its_budget() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> exit }}"));
    let budget = |code: FailureCode| Failure::new(FailureClass::Budget, code, "it is spent");
    let tokens = |most: u64| SpendBounds { tokens_max: Some(most), cost_max: None };
    let money = |most: u64| SpendBounds { tokens_max: None, cost_max: Some(Money(most)) };
    for (code, spend_max, is_met) in [
        (FailureCode::RUN_TOKENS, SpendBounds::default(), true),
        (FailureCode::RUN_TOKENS, tokens(9), true),
        (FailureCode::RUN_TOKENS, tokens(10), true),
        (FailureCode::RUN_TOKENS, tokens(11), false),
        (FailureCode::RUN_TOKENS, money(6), true),
        (FailureCode::RUN_COST, money(4), true),
        (FailureCode::RUN_COST, money(5), true),
        (FailureCode::RUN_COST, money(6), false),
        (FailureCode::RUN_COST, tokens(11), true),
        (FailureCode::NODE_WALL_TIME, SpendBounds::default(), false),
    ] {
        let state = overspent(&pipeline, budget(code.clone()));
        let met = limit_reached(&state, &RunResumed { spend_max, ..RunResumed::default() });
        assert_eq!(met.map(|failure| failure.code), is_met.then_some(code), "{spend_max:?}");
    }
}

#[test]
fn a_resume_meets_the_bounds_of_its_own_terms() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> exit }}"));
    let mut state = overspent(&pipeline, Failure::new(FailureClass::Deterministic, "test/failed", "it broke"));
    (state.steps, state.driven_ms) = (20, 80);
    let met = |steps_max: Option<u64>, wall_max_ms: Option<u64>| {
        let resumed = RunResumed { steps_max, wall_max_ms, ..RunResumed::default() };
        limit_reached(&state, &resumed).map(|failure| failure.code)
    };
    assert_eq!(met(None, Some(81)), Some(FailureCode::RUN_STEPS));
    assert_eq!(met(Some(21), None), Some(FailureCode::RUN_WALL_TIME));
    assert_eq!(met(Some(21), Some(81)), None);
}

#[test]
fn the_time_since_the_last_record_counts_for_a_run_that_waits() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> exit }}"));
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 20, Some(80))))]);
    let after = |ms: i64| Timestamp::UNIX_EPOCH + SignedDuration::from_millis(ms);
    assert_eq!(out_of_time(&run.state, after(79)), None);
    let ended = out_of_time(&run.state, after(80)).expect("its time is over");
    assert!(
        matches!(ended, Event::RunFinished(ended) if ended.failure.as_ref().unwrap().code == FailureCode::RUN_WALL_TIME)
    );
}
