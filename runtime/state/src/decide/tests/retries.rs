//! Presets of retries: number and delays, and that the same run gives the same delays (spec §3.6).

use super::{FRAME, answers, check};
use crate::simulation::{Simulation, pipeline};
use glovebox_journal::event::Event;

/// Returns the delays of a run whose only stage asks for a retry each time.
fn delays(graph: &str, node: &str) -> Vec<u64> {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} graph [{graph}]; a [{node}]; start -> a -> exit }}"));
    let run = Simulation::run(&pipeline, 50, &mut answers("retry"));
    let again = Simulation::run(&pipeline, 50, &mut answers("retry"));
    assert_eq!(run.records, again.records, "jitter depends on nothing but the run");
    let delays = run.records.iter().filter_map(|record| match &record.event {
        Event::StageRetrying(retrying) => Some(retrying.delay_ms),
        _ => None,
    });
    delays.collect()
}

#[test]
fn each_preset_has_the_delays_of_the_specification() {
    let table: [(&str, &[u64]); 5] = [
        ("none", &[]),
        ("standard", &[200, 400, 800, 1600]),
        ("aggressive", &[500, 1000, 2000, 4000]),
        ("linear", &[500, 500]),
        ("patient", &[2000, 6000]),
    ];
    for (preset, expected) in table {
        for (graph, node) in
            [(String::new(), format!("retry_policy={preset}")), (format!("retry_policy={preset}"), String::new())]
        {
            let found = delays(&graph, &node);
            assert_eq!(found.len(), expected.len(), "{preset}: {found:?}");
            for (delay, base) in found.iter().zip(expected) {
                assert!((base / 2..base * 3 / 2).contains(delay), "{preset}: {delay} for {base}");
            }
        }
    }
}

#[test]
fn a_delay_is_capped_before_its_jitter() {
    let found = delays("", "retry_policy=patient, max_retries=8");
    assert_eq!(found.len(), 8);
    assert!(found.iter().all(|delay| *delay < 90_000) && found[7] >= 30_000, "{found:?}");
}

#[test]
fn the_node_wins_over_the_graph_and_a_number_over_a_preset() {
    assert_eq!(delays("retry_policy=standard", "retry_policy=none").len(), 0);
    assert_eq!(delays("retry_policy=none", "retry_policy=linear").len(), 2);
    assert_eq!(delays("retry_policy=standard, default_max_retries=1", "").len(), 1);
    assert_eq!(delays("retry_policy=standard", "max_retries=0").len(), 0);
    let found = delays("retry_policy=patient", "max_retries=1");
    assert!(found.len() == 1 && found[0] >= 1000, "the graph's delays: {found:?}");
}

#[test]
fn the_preset_of_a_graph_repeats_only_what_may_pass() {
    let fails = |graph: &str, node: &str, words: &str| {
        let pipeline = pipeline(&format!("digraph g {{ {FRAME} graph [{graph}]; a [{node}]; start -> a -> exit }}"));
        Simulation::run(&pipeline, 50, &mut answers(words)).attempts()
    };
    assert_eq!(fails("retry_policy=linear", "", "fail"), "a");
    assert_eq!(fails("retry_policy=linear", "", "fail:transient"), "a a a");
    assert_eq!(fails("", "retry_policy=linear", "fail"), "a a a");
    assert_eq!(fails("", "retry_policy=linear", "fail:scope"), "a");
}

#[test]
fn an_edge_for_retry_is_followed_when_the_retries_are_used_up() {
    let graph = |a: &str, edges: &str| {
        format!("a [{a}]; start -> a; a -> exit [condition=\"outcome=success\"]; {edges}; b -> exit; c -> exit")
    };
    let (retry, fail) = ("a -> b [condition=\"outcome=retry\"]", "a -> c [condition=\"outcome=fail\"]");
    let both = format!("{retry}; {fail}");
    let exhausted = "fail retry/exhausted: max retries exceeded";
    check(&graph("max_retries=1", &both), "retry success", "a a", "success exit");
    check(&graph("max_retries=1", &both), "retry retry success", "a a b", "success exit");
    check(&graph("max_retries=1", &both), "fail fail success", "a a c", "success exit");
    check(&graph("", retry), "fail", "a", "fail test/failed: it broke");
    check(
        &graph("goal_gate=true", retry),
        "retry success",
        "a b",
        "fail GoalGateUnsatisfied: GoalGateUnsatisfied: goal gate `a` ended with `retry` and no retry target is set: max retries exceeded",
    );
    // An edge for `retry` has priority over the retry target, and an accepted partial success has priority over both.
    check(&graph("retry_target=c", retry), "retry success", "a b", "success exit");
    check(&graph("allow_partial=true", &format!("{retry}; a -> c")), "retry success", "a c", "success exit");
    // If no condition matches `retry`, it counts as a failure.
    check(&graph("", fail), "retry success", "a c", "success exit");
    let other = "a -> b [condition=\"outcome=retry && context.k=1\"]";
    check(&graph("", &format!("{other}; {fail}")), "retry success", "a c", "success exit");
    let by_key = "a -> c [condition=\"context.outcome=fail\"]";
    check(&graph("", &format!("{other}; {by_key}")), "retry success", "a c", "success exit");
    check(&graph("retry_target=c", other), "retry success", "a c", "success exit");
    check(&graph("", other), "retry", "a", exhausted);
    // A diamond passes the status on.
    let diamond = |edges: &str| graph("", &format!("a -> d; d [shape=diamond]; {edges}"));
    let (retry, fail) = ("d -> b [condition=\"outcome=retry\"]", "d -> c [condition=\"outcome=fail\"]");
    check(&diamond(&format!("{retry}; {fail}")), "retry success", "a b", "success exit");
    check(&diamond(fail), "retry success", "a c", "success exit");
    check(
        &diamond(&format!("{fail}; d -> b [condition=\"outcome=retry && context.k=1\"]")),
        "retry success",
        "a c",
        "success exit",
    );
    check(&diamond("d -> b [condition=\"outcome=retry && context.k=1\"]"), "retry", "a", exhausted);
    check(
        &graph("retry_target=c", &format!("a -> d; d [shape=diamond]; {retry}")),
        "retry success",
        "a c",
        "success exit",
    );
}
