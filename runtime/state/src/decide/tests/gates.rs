//! Goal gates and skipped commands of the verify contract: what satisfies a goal gate, and how a run fails if a goal
//! gate is not satisfied.

use super::*;
use glovebox_journal::event::{ChangeOp, FileChange};

/// Returns the verdict of a run whose goal gate `a` is not satisfied.
fn unmet(found: &str) -> String {
    format!("fail GoalGateUnsatisfied: GoalGateUnsatisfied: goal gate `a` {found} and no retry target is set")
}

#[test]
fn the_end_says_how_the_gate_ended() {
    let gate = "a [goal_gate=true, gate_requires=receipt]; start -> a -> exit; a -> exit [condition=\"outcome=fail\"]";
    check(gate, "success", "a", &unmet("ended with `success` but without a receipt (`gate_requires=receipt`)"));
    check(gate, "fail", "a", &format!("{}: it broke", unmet("ended with `fail`")));
    check(gate, "skipped", "a", &unmet("ended with `skipped`, which proves nothing,"));
}

#[test]
fn a_gate_that_only_a_branch_visited_whose_changes_were_not_taken_is_unmet() {
    let pipeline = pipeline(
        "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon];
         a [goal_gate=true]; b; start -> f; f -> a -> j; f -> b -> j; j -> exit }",
    );
    let run = |best: &str| {
        let run = Simulation::run(&pipeline, 50, &mut |open| {
            let node = open.task.node.as_str();
            let mut ended = finished(open, Outcome::new(Status::Success));
            ended.outcome.context_updates.insert("score".into(), u32::from(node == best).into());
            let path = glovebox_record::path::ScopePath::parse(node).unwrap();
            ended.files.changes = vec![FileChange::bare(path, ChangeOp::Write)];
            ended
        });
        run.verdict()
    };
    assert_eq!(run("a"), "success exit");
    assert_eq!(run("b"), unmet("was visited only in a branch whose changes were not taken"));
}

/// Returns the verdict of a run in which the visits of `a` marked with `true` skip a command of the verify contract.
fn dropping(pipeline: &Pipeline, visits: [bool; 2]) -> String {
    let run = Simulation::run(pipeline, 20, &mut |open| {
        let mut last = finished(open, Outcome::new(Status::Success));
        let has_dropped = open.task.node == "a" && visits[(open.task.visit - 1) as usize];
        last.commands.dropped_checks.extend(has_dropped.then(|| "cargo test".to_owned()));
        last.outcome.preferred_label = (open.task.visit == 1).then(|| "again".to_owned());
        last
    });
    run.verdict()
}

#[test]
fn no_run_succeeds_whose_last_visit_dropped_a_check_of_the_operator() {
    let pipeline =
        pipeline(&format!("digraph g {{ {FRAME} start -> a; a -> b [label=again]; a -> exit [weight=2]; b -> a }}"));
    let dropped = "fail verification/dropped-check: `a` skipped commands of the verify contract: `cargo test`";
    assert_eq!(dropping(&pipeline, [false, true]), dropped);
    assert_eq!(dropping(&pipeline, [true, true]), dropped);
    assert_eq!(dropping(&pipeline, [true, false]), "success exit");
    assert_eq!(dropping(&pipeline, [false, false]), "success exit");
}

#[test]
fn the_start_is_left_with_success_however_it_was_reached() {
    let graph = "a [retry_target=start]; start -> a [condition=\"outcome=success\"]; a -> exit";
    check(graph, "fail success", "a a", "success exit");
}

#[test]
fn where_no_edge_fits_a_partial_success_says_what_was_left_undone() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a; a -> b [condition=\"outcome=fail\"] }}"));
    for (status, notes, told) in [
        (Status::PartialSuccess, "no docs", "partial_success: no docs"),
        (Status::PartialSuccess, "", "partial_success"),
        (Status::Success, "no docs", "success"),
    ] {
        let run = Simulation::run(&pipeline, 20, &mut |open| {
            finished(open, Outcome { notes: notes.to_owned(), ..Outcome::new(status) })
        });
        assert_eq!(run.verdict(), format!("fail route/none: no route from node a for outcome {told}"));
    }
}
