//! Child pipelines: the context that goes into and out of a child, the observations of a supervisor, and what follows
//! from time alone.

use super::*;
use glovebox_journal::event::{ChildObserved, FanInFinished, StageStarted, SupervisionEnd};
use glovebox_pipeline::child::splice;
use jiff::SignedDuration;
use std::collections::BTreeMap;
use std::time::Duration;

/// Returns `start -> a -> m -> exit`, where `m` has these attributes and runs `start -> x -> y -> exit`.
fn parent(m: &str, child: &str) -> Pipeline {
    let frame = "start [shape=Mdiamond]; exit [shape=Msquare];";
    let parent = pipeline(&format!(
        "digraph g {{ {frame} a; m [{m}, \"stack.child_dotfile\"=\"c.dot\"]; start -> a -> m -> exit }}"
    ));
    let child =
        pipeline(&format!("digraph c {{ graph [goal=\"build it\"]; {frame} x; y; start -> x -> y -> exit; {child} }}"));
    let children = BTreeMap::from([("m".into(), Arc::new(child))]);
    splice(&parent, &children).expect("the child fits").lowered.pipeline
}

/// Returns the end of an attempt with context updates. The stage `failing` fails.
fn answer(open: &OpenTask, failing: &str) -> StageFinished {
    let is_failing = open.task.node == *failing;
    let mut ended = finished(open, outcome(if is_failing { "fail" } else { "success" }));
    let updates = match open.task.node.as_str() {
        "a" => vec![("k", "given".into()), ("other", "kept".into())],
        "m__x" => vec![("result", "built".into()), ("inner", "hidden".into()), ("n", 3.into())],
        _ => Vec::new(),
    };
    ended.outcome.context_updates.extend(updates.into_iter().map(|(key, value)| (key.to_owned(), value)));
    ended
}

fn run<'p>(pipeline: &'p Pipeline, failing: &str) -> Simulation<'p> {
    Simulation::run(pipeline, 50, &mut |open| answer(open, failing))
}

/// Returns the end of the fan-in behind the child.
fn fan_in<'r>(run: &'r Simulation<'_>) -> &'r FanInFinished {
    let found = run.records.iter().find_map(|record| match &record.event {
        Event::FanInFinished(finished) => Some(&**finished),
        _ => None,
    });
    found.expect("the child ended")
}

fn pairs(context: &BTreeMap<String, serde_json::Value>) -> Vec<(&str, &str)> {
    context.iter().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or("?"))).collect()
}

const SUBPIPELINE: &str = "type=subpipeline, \"stack.context_in\"=\"k\", \"stack.context_out\"=\"result\"";

#[test]
fn a_child_gets_and_gives_what_its_node_names_and_nothing_else() {
    let pipeline = parent(SUBPIPELINE, "");
    let run = run(&pipeline, "");
    assert_eq!((run.attempts().as_str(), run.verdict().as_str()), ("a m__x m__y", "success exit"));
    let given = run.records.iter().find_map(|record| match &record.event {
        Event::BranchStarted(started) => started.context.as_ref(),
        _ => None,
    });
    assert_eq!(pairs(given.unwrap()), [("graph.goal", "build it"), ("k", "given")]);
    assert_eq!(pairs(&fan_in(&run).context), [("result", "built")]);
}

#[test]
fn a_child_visits_no_more_stages_than_its_own_bound_says() {
    let bounded = |most: u32| {
        let pipeline = parent(SUBPIPELINE, &format!("graph [max_steps={most}]"));
        let run = run(&pipeline, "");
        (run.attempts(), run.verdict())
    };
    let reason = "fail limit/child_max_steps: the child pipeline of `m` exceeded its `max_steps` (2).";
    assert_eq!(bounded(2), ("a m__x".to_owned(), reason.to_owned()));
    assert_eq!(bounded(20), ("a m__x m__y".to_owned(), "success exit".to_owned()));
}

#[test]
fn a_child_that_reaches_its_exit_has_succeeded_whatever_its_last_stage_said() {
    let pipeline = parent(SUBPIPELINE, "y -> exit [condition=\"outcome=fail\"]");
    assert_eq!(run(&pipeline, "m__y").verdict(), "success exit");
    // The goal gates of a child are checked at the child's exit.
    let pipeline = parent(SUBPIPELINE, "y [goal_gate=true]; y -> exit [condition=\"outcome=fail\"]");
    let ended = run(&pipeline, "m__y").verdict();
    assert!(ended.starts_with("fail GoalGateUnsatisfied") && ended.contains("`m__y` ended with `fail`"), "{ended}");
}

fn after(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

/// Returns a run whose child has started its stage `x`, or has ended it.
fn supervised<'p>(pipeline: &'p Pipeline, stages: usize) -> Simulation<'p> {
    let mut run = Simulation::new(pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(pipeline, 50, None)))]);
    for _ in 0..=stages {
        let open = opens(&run).pop().expect("a stage is ready");
        claim(&mut run, &open);
        let ended = answer(&open, "");
        run.append(vec![Event::StageFinished(Box::new(ended))]);
    }
    let open = opens(&run).pop().expect("a stage of the child is ready");
    claim(&mut run, &open);
    run
}

fn opens(run: &Simulation<'_>) -> Vec<OpenTask> {
    run.state.branches.values().filter_map(|branch| branch.open()).cloned().collect()
}

fn claim(run: &mut Simulation<'_>, open: &OpenTask) {
    let attempt = finished(open, Outcome::new(Status::Success)).attempt;
    run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
}

/// Lets the supervisor observe its child, and returns the observation.
fn look(run: &mut Simulation<'_>, seconds: i64) -> ChildObserved {
    let seen = due(run.pipeline, &run.state, after(seconds)).expect("it looks now");
    let Event::ChildObserved(observed) = &seen else { panic!("{seen:?}") };
    let observed = (**observed).clone();
    run.append(vec![seen]);
    observed
}

/// Ends the running attempt in the child, and appends what follows.
fn end_child(run: &mut Simulation<'_>) {
    let open = opens(run).pop().expect("the child works");
    run.append(vec![Event::StageFinished(Box::new(answer(&open, "")))]);
    run.go_on(&mut |open| answer(open, ""));
}

const SUPERVISOR: &str = "shape=house, \"manager.poll_interval\"=\"10s\", \"manager.max_cycles\"=2, \
                          \"manager.actions\"=\"observe,steer,wait\", prompt=\"be quick\", \
                          \"stack.context_out\"=\"result,n\"";

#[test]
fn a_supervisor_looks_at_its_interval_and_fails_with_its_last_look() {
    let pipeline = parent(SUPERVISOR, "");
    let mut run = supervised(&pipeline, 0);
    assert_eq!(next_due(&run.state), Some(after(10)));
    assert_eq!(due(&pipeline, &run.state, after(9)), None);
    let first = look(&mut run, 10);
    assert_eq!((first.cycle, first.ends, first.observe_at), (1, None, Some(after(20))));
    assert_eq!(first.steering.as_deref(), Some("be quick"));
    let seen = |key: &str| first.context[key].clone();
    assert_eq!((seen("stack.child.status"), seen("stack.child.stage")), ("running".into(), "m__x".into()));
    assert_eq!(seen("stack.child.cycle"), 1);
    assert_eq!(next_due(&run.state), Some(after(20)));
    let last = look(&mut run, 20);
    assert_eq!((last.cycle, last.ends, last.observe_at), (2, Some(SupervisionEnd::MaxCycles), None));
    assert_eq!(last.steering, None, "it speaks once");
    let steered = run.records.iter().filter_map(|record| record.event.stage_steered());
    let steered: Vec<_> = steered.map(|told| (told.attempt.task.node.as_str(), &*told.by, &*told.text)).collect();
    assert_eq!(steered, [("m__x", "m", "be quick")], "the agent at work gets the message");
    end_child(&mut run);
    let reason = "Max cycles exceeded: `m` polled its child pipeline 2 times (`manager.max_cycles`)";
    assert_eq!(run.verdict(), format!("fail limit/max_cycles: {reason}"));
    let told = [("stack.child.outcome", "fail"), ("stack.child.status", "failed")];
    assert_eq!(pairs(&fan_in(&run).context), told);
}

#[test]
fn a_supervisor_ends_its_child_with_success_when_its_condition_holds() {
    for (condition, holds) in [
        ("context.result=built", true),
        ("context.n=3", true),
        ("context.n=4", false),
        ("context.stack.child.stage=m__y", true),
        ("outcome=success", true),
        ("outcome=fail", false),
        // The condition can also read the context of the parent.
        ("context.other=kept", true),
    ] {
        let pipeline = parent(&format!("{SUPERVISOR}, \"manager.stop_condition\"=\"{condition}\""), "");
        let mut run = supervised(&pipeline, 1);
        let observed = look(&mut run, 10);
        assert_eq!(observed.ends, holds.then_some(SupervisionEnd::StopCondition), "{condition}");
        end_child(&mut run);
        assert_eq!(run.verdict(), "success exit", "{condition}");
        let told =
            [("n", "?"), ("result", "built"), ("stack.child.outcome", "success"), ("stack.child.status", "completed")];
        assert_eq!(pairs(&fan_in(&run).context), told, "{condition}");
    }
}

#[test]
fn a_child_that_ends_in_time_is_looked_at_no_more() {
    let pipeline = parent(SUPERVISOR, "");
    let mut run = supervised(&pipeline, 0);
    end_child(&mut run);
    assert_eq!(run.verdict(), "success exit");
    assert_eq!((next_due(&run.state), due(&pipeline, &run.state, after(1_000))), (None, None));
}

#[test]
fn a_fork_whose_time_is_over_ends_its_branches_and_fails() {
    for (m, what) in [
        (SUPERVISOR, "the child pipeline of `m` did not end within its `timeout`"),
        (SUBPIPELINE, "the child pipeline of `m` did not end within its `timeout`"),
    ] {
        let pipeline = parent(&format!("{m}, timeout=\"5s\""), "");
        let mut run = supervised(&pipeline, 0);
        assert_eq!(next_due(&run.state), Some(run.state.at.unwrap() + Duration::from_secs(5)));
        assert_eq!(due(&pipeline, &run.state, after(4)), None);
        let expired = due(&pipeline, &run.state, after(5)).expect("its time is over");
        assert_eq!(expired.kind(), "parallel.expired");
        run.append(vec![expired]);
        assert_eq!((next_due(&run.state), due(&pipeline, &run.state, after(99))), (None, None), "it is over once");
        end_child(&mut run);
        assert_eq!(run.verdict(), format!("fail limit/parallel_timeout: {what}"));
    }
}

#[test]
fn a_canceled_run_ends_no_fork_whose_time_is_over() {
    let pipeline = parent(&format!("{SUBPIPELINE}, timeout=\"5s\""), "");
    let mut run = supervised(&pipeline, 0);
    let expired = due(&pipeline, &run.state, after(5)).unwrap();
    run.append(vec![Event::RunCanceled(RunCanceled { by: "the operator".into() })]);
    run.append(vec![expired]);
    let last = run.records.last().unwrap();
    assert_eq!(last.event.kind(), "parallel.expired", "nothing follows from it");
}
