//! Table-driven tests of decisions. A row has a graph, the outcomes of its stages, and the result of the run.

mod bounds;
mod branches;
mod cancel;
mod child;
mod cycle;
mod failure_source;
mod gates;
mod human;
mod infra;
mod lost_sandbox;
mod merge;
mod model;
mod no_change;
mod parallel;
mod promises;
mod properties;
mod resume;
mod retries;
mod stall;
mod verification;
mod verify_limits;

use super::*;
use crate::run_state::OpenTask;
use crate::simulation::{Simulation, finished, pipeline, started};
use glovebox_journal::event::{Ending, RunCanceled};

const FRAME: &str = "start [shape=Mdiamond]; exit [shape=Msquare]; a; b; c; d; e; p; q; r; s;";

/// Returns the outcomes that `words` lists, each as a status or as `fail:CLASS:CODE`. The last outcome is repeated.
fn answers(words: &str) -> impl FnMut(&OpenTask) -> StageFinished {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let mut turn = 0;
    move |open| {
        let word = &words[turn.min(words.len() - 1)];
        turn += 1;
        finished(open, outcome(word))
    }
}

fn outcome(word: &str) -> Outcome {
    let quoted = |text: &str| serde_json::from_str(&format!("\"{text}\"")).unwrap();
    let mut parts = word.split(':');
    let status: Status = quoted(parts.next().unwrap());
    let mut outcome = Outcome::new(status);
    if status == Status::Fail {
        let class = parts
            .next()
            .map_or(FailureClass::Deterministic, |class| serde_json::from_str(&format!("\"{class}\"")).unwrap());
        outcome.failure = Some(Failure::new(class, parts.next().unwrap_or("test/failed").to_owned(), "it broke"));
    }
    outcome
}

#[track_caller]
fn check(graph: &str, words: &str, attempts: &str, verdict: &str) {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} {graph} }}"));
    let run = Simulation::run(&pipeline, 20, &mut answers(words));
    assert_eq!((run.attempts().as_str(), run.verdict().as_str()), (attempts, verdict));
}

#[test]
fn success_follows_edges_in_the_order_of_the_rules() {
    check("start -> a -> exit", "success", "a", "success exit");
    check("start -> a; a -> b; a -> c [weight=2]; b -> exit; c -> exit", "success", "a c", "success exit");
    check("start -> a; a -> c; a -> b; b -> exit; c -> exit", "success", "a b", "success exit");
    check(
        "start -> a; a -> b [default=true]; a -> c [weight=9]; b -> exit; c -> exit",
        "success",
        "a b",
        "success exit",
    );
    check(
        "start -> a; a -> b [condition=\"outcome=success\"]; a -> c [weight=9]; b -> exit; c -> exit",
        "success",
        "a b",
        "success exit",
    );
    check(
        "start -> a; a -> b [condition=\"outcome=fail\"]; b -> exit",
        "success",
        "a",
        "fail route/none: no route from node a for outcome success",
    );
    check(
        "start -> a; a -> b [condition=\"outcome=fail\"]; b -> exit",
        "partial_success",
        "a",
        "fail route/none: no route from node a for outcome partial_success",
    );
    check("start -> a; a -> exit", "skipped", "a", "success exit");
}

#[test]
fn labels_and_suggestions_choose_among_plain_edges() {
    let pipeline = pipeline(&format!(
        "digraph g {{ {FRAME} start -> a; a -> b [label=\"[N] No\"]; a -> c [label=\"Yes\"]; a -> d; b -> exit; c -> exit; d -> exit }}"
    ));
    for (label, ids, expected) in
        [(Some("yes"), vec![], "a c"), (Some("no"), vec![], "a b"), (None, vec!["d".into()], "a d")]
    {
        let run = Simulation::run(&pipeline, 20, &mut |open| {
            let ids: Vec<String> = ids.clone();
            finished(
                open,
                Outcome {
                    preferred_label: label.map(str::to_owned),
                    suggested_next_ids: ids,
                    ..Outcome::new(Status::Success)
                },
            )
        });
        assert_eq!(run.attempts(), expected);
    }
}

#[test]
fn a_failure_goes_where_failures_go() {
    let stop = "fail test/failed: it broke";
    check("start -> a -> b -> exit", "fail", "a", stop);
    check(
        "start -> a; a -> b [condition=\"outcome=fail\"]; a -> exit; b -> exit",
        "fail success",
        "a b",
        "success exit",
    );
    check("start -> a; a -> exit; a [retry_target=b]; b -> exit", "fail success", "a b", "success exit");
    check("start -> a; a -> exit; a [fallback_retry_target=b]; b -> exit", "fail success", "a b", "success exit");
    check(
        "start -> a; a -> b [condition=\"outcome=fail\"]; a -> exit; a [retry_target=c]; b -> exit; c -> exit",
        "fail success",
        "a b",
        "success exit",
    );
    check(
        "start -> a; a -> b [condition=\"outcome!=success\"]; a -> exit; b -> exit",
        "fail success",
        "a b",
        "success exit",
    );
}

#[test]
fn a_diamond_passes_the_outcome_through() {
    let graph = "start -> a -> d; d [shape=diamond]; d -> b [condition=\"outcome=fail\"]; d -> exit [condition=\"outcome=success\"]; b -> a";
    check(graph, "success", "a", "success exit");
    check(graph, "fail success success", "a b a", "success exit");
    check(
        "start -> a -> d; d [shape=diamond]; d -> exit [condition=\"outcome=success\"]",
        "fail",
        "a",
        "fail test/failed: it broke",
    );
    check(
        "start -> a -> d -> e; d [shape=diamond]; e [shape=diamond]; e -> b [condition=\"outcome=fail\"]; b -> exit",
        "fail success",
        "a b",
        "success exit",
    );
}

#[test]
fn retries_follow_the_decision_table() {
    let graph = |attributes: &str| format!("a [{attributes}]; start -> a -> exit");
    let exhausted = "fail retry/exhausted: max retries exceeded";
    let stop = "fail test/failed: it broke";
    // An explicit `max_retries` repeats `retry` and `fail`.
    check(&graph("max_retries=2"), "fail retry success", "a a a", "success exit");
    check(&graph("max_retries=2"), "fail", "a a a", stop);
    check(&graph("max_retries=2"), "retry", "a a a", exhausted);
    check(&graph("max_retries=0"), "retry", "a", exhausted);
    // Classes that the host decides and refusals of a provider are final.
    for class in ["scope", "contract", "canceled", "budget"] {
        check(&graph("max_retries=2"), &format!("fail:{class}"), "a", stop);
    }
    check(
        &graph("max_retries=2"),
        "fail:deterministic:provider/authentication",
        "a",
        "fail provider/authentication: it broke",
    );
    check(&graph("max_retries=1"), "fail:transient:provider/rate_limit success", "a a", "success exit");
    check(&graph("max_retries=1"), "fail:internal success", "a a", "success exit");
    // The default of the graph repeats `retry` and transient failures.
    let default = |words: &str, attempts: &str, verdict: &str| {
        check(&format!("graph [default_max_retries=1]; {}", graph("")), words, attempts, verdict);
    };
    default("retry success", "a a", "success exit");
    default("fail:transient success", "a a", "success exit");
    default("fail success", "a", stop);
    // Without a default there is one attempt.
    check(&graph(""), "retry", "a", exhausted);
    // A preset sets the number of attempts.
    check(&graph("retry_policy=linear"), "retry retry success", "a a a", "success exit");
    check(&graph("retry_policy=linear"), "retry", "a a a", exhausted);
    // A partial result may be accepted only after the retries are used up.
    check(&graph("max_retries=1, allow_partial=true"), "retry", "a a", "success exit");
    check(&graph("max_retries=1, allow_partial=true"), "fail", "a a", stop);
}

#[test]
fn a_repeated_attempt_is_one_visit() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} a [max_retries=2]; start -> a -> exit }}"));
    let run = Simulation::run(&pipeline, 20, &mut answers("fail fail success"));
    let branch = run.state.main();
    assert_eq!(branch.completed.kept().map(NodeId::as_str).collect::<Vec<_>>(), ["start", "a"]);
    let history = branch.nodes.get("a").unwrap();
    assert_eq!((history.attempts, history.visits, history.turns), (3, 1, 3));
    assert_eq!(history.retries, 0, "a success resets the counter");
    let ordinals = run.records.iter().filter_map(|record| match &record.event {
        Event::StageStarted(started) => Some((started.attempt.task.visit, started.attempt.ordinal)),
        _ => None,
    });
    assert_eq!(ordinals.collect::<Vec<_>>(), [(1, 1), (1, 2), (1, 3)]);
}

#[test]
fn back_off_grows_within_its_jitter_and_never_by_chance() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} a [max_retries=4]; start -> a -> exit }}"));
    let delays = || {
        let run = Simulation::run(&pipeline, 20, &mut answers("retry"));
        let delays = run.records.iter().filter_map(|record| match &record.event {
            Event::StageRetrying(retrying) => Some((record.at, retrying.clone())),
            _ => None,
        });
        delays.collect::<Vec<_>>()
    };
    let first = delays();
    assert_eq!(first, delays());
    assert_eq!(first.len(), 4);
    for (index, (at, retrying)) in first.iter().enumerate() {
        let base = 200 << index;
        assert!((base / 2..=base * 3 / 2).contains(&retrying.delay_ms), "{retrying:?}");
        assert_eq!(retrying.due_at.duration_since(*at).as_millis(), i128::from(retrying.delay_ms));
    }
}

#[test]
fn goal_gates_are_asked_at_the_exit() {
    let unmet = |text: &str| {
        format!("fail GoalGateUnsatisfied: GoalGateUnsatisfied: goal gate `a` {text} and no retry target is set")
    };
    let gate = "a [goal_gate=true]; start -> a; a -> b [condition=\"outcome=fail\"]; a -> exit; b -> exit";
    check(gate, "success", "a", "success exit");
    check(gate, "partial_success", "a", "success exit");
    check(gate, "fail success", "a b", &format!("{}: it broke", unmet("ended with `fail`")));
    check(
        "a [goal_gate=true]; start -> b; b -> a [condition=\"outcome=fail\"]; b -> exit; a -> exit",
        "success",
        "b",
        &unmet("was never visited"),
    );
    // Order of the targets: `retry_target` and `fallback_retry_target` of the node, then those of the graph.
    let levels = [
        ("retry_target=p, fallback_retry_target=q", "retry_target=r; fallback_retry_target=s;", "a b p a"),
        ("fallback_retry_target=q", "retry_target=r; fallback_retry_target=s;", "a b q a"),
        ("", "retry_target=r; fallback_retry_target=s;", "a b r a"),
        ("", "fallback_retry_target=s;", "a b s a"),
    ];
    for (node, graph, expected) in levels {
        // The fail edge has priority, so the failure itself does not use the node's target.
        let gate = format!(
            "{graph} a [goal_gate=true, {node}]; start -> a; a -> b [condition=\"outcome=fail\"]; a -> exit; b -> exit; p -> a; q -> a; r -> a; s -> a"
        );
        check(&gate, "fail success success success", expected, "success exit");
    }
}

#[test]
fn every_loop_ends_at_the_step_bound() {
    let message = "fail limit/max_steps: Pipeline exceeded maximum step count (20). Use --max-steps to increase.";
    check("start -> a; a -> a", "success", &["a"; 19].join(" "), message);
    check(
        "start -> d; d [shape=diamond]; e [shape=diamond]; d -> e; e -> d; e -> exit [condition=\"outcome=fail\"]",
        "success",
        "",
        message,
    );
    check("a [goal_gate=true, retry_target=exit]; start -> exit; a -> exit", "success", "", message);
    check("a [goal_gate=true, retry_target=start]; start -> exit; a -> exit", "success", "", message);
    check("a [max_retries=100]; start -> a -> exit", "fail", &["a"; 19].join(" "), message);
}

#[test]
fn a_run_ends_when_its_time_is_used_up() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> b -> c -> exit }}"));
    let mut run = Simulation::new(&pipeline);
    run.attempt_ms = 40;
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 20, Some(80))))]);
    run.go_on(&mut answers("success"));
    assert_eq!(run.attempts(), "a b");
    assert_eq!(
        run.verdict(),
        "fail limit/max_wall_time: Pipeline exceeded maximum wall time (80 ms). Use --max-wall-time to increase."
    );
}

#[test]
fn after_a_cancel_nothing_starts_and_no_edge_is_chosen() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} a [max_retries=3]; start -> a -> b -> exit }}"));
    for word in ["success", "fail", "retry"] {
        let mut run = Simulation::new(&pipeline);
        run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 20, None)))]);
        let mut answer = answers(word);
        run.go_on(&mut |open| {
            let mut answer = answer(open);
            answer.outcome.status = Status::Skipped;
            answer
        });
        // The run is canceled while `a` is running.
        let under_way =
            run.records.iter().position(|record| matches!(record.event, Event::StageStarted(_))).unwrap() + 1;
        let mut canceled = Simulation::from_prefix(&pipeline, &run.records[..under_way]);
        canceled.append(vec![Event::RunCanceled(RunCanceled { by: "signal INT".into() })]);
        assert!(canceled.state.verdict.is_none(), "the attempt under way is waited for");
        let open = canceled.state.main().open().cloned().unwrap();
        let mut last = finished(&open, outcome(word));
        finalize_attempt(&pipeline, None, &canceled.state, false, &mut last);
        assert!(!last.follow_up.retrying);
        canceled.append(vec![Event::StageFinished(Box::new(last))]);
        assert_eq!(canceled.verdict(), "fail run/canceled: canceled by signal INT");
        let kinds: Vec<_> = canceled.records[under_way..].iter().map(|record| record.event.kind()).collect();
        assert_eq!(kinds, ["run.canceled", "stage.finished", "branch.exited", "run.finished"]);
    }
}

#[test]
fn silence_is_success_only_where_it_is_silence() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} a [auto_status=true]; start -> a -> exit }}"));
    let run = |code: &str, ending: Ending| {
        let run = Simulation::run(&pipeline, 20, &mut |open| StageFinished {
            ending: ending.clone(),
            ..finished(open, outcome(&format!("fail:contract:{code}")))
        });
        (run.verdict().starts_with("success"), run.state.main().outcome(&"a".into()).unwrap().notes.clone())
    };
    let note = "auto-status: handler completed without writing status".to_owned();
    assert_eq!(run("outcome/missing", Ending::Returned), (true, note));
    assert!(!run("tool/exit-code", Ending::Returned).0);
    assert!(!run("outcome/missing", Ending::Trapped("unreachable".into())).0);
    assert!(!run("outcome/missing", Ending::LimitHit("wall_ms".into())).0);
}

#[test]
fn a_handler_this_version_does_not_have_fails_the_run() {
    check(
        "start -> p -> exit; p [shape=house]",
        "success",
        "",
        "fail handler/unavailable: this version does not execute `stack.manager_loop`, the handler of node `p`",
    );
}
