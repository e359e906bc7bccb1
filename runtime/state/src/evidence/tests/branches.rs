//! What commands of branches prove after a fan-in has chosen, and which branches failed.

use super::*;
use glovebox_journal::event::{RunCanceled, StageStarted};
use glovebox_record::path::ScopePath;
use glovebox_record::{Failure, NodeId};

/// Runs a parallel node with the branches `a -> t` and `b -> u`. Both tools pass unless `words` says otherwise.
fn chosen(join: &str, words: &[(&str, &[&str])]) -> RunSummary {
    let pipeline = split(join);
    let tools: [(&str, &[&str]); 2] = [("t", &["passed"]), ("u", &["passed"])];
    let all: Vec<(&str, &[&str])> = words.iter().copied().chain(tools).collect();
    summary(&run(&pipeline, &all))
}

#[test]
fn a_command_of_a_branch_proves_something_only_if_its_changes_were_taken() {
    let best = chosen("merge=best", &[("a", &["+x"]), ("b", &["+y"])]);
    assert_eq!(receipts(&best), ["t-1-1 verified", "u-1-1 ran not-taken"]);
    let all = chosen("merge=all", &[("a", &["+x"]), ("b", &["+y"])]);
    assert_eq!(receipts(&all), ["t-1-1 verified", "u-1-1 verified"]);
    let untouched = chosen("merge=best", &[]);
    assert_eq!(receipts(&untouched), ["t-1-1 verified", "u-1-1 verified"], "the files are the same in both");
    let one = chosen("merge=best", &[("b", &["+y"])]);
    assert_eq!(receipts(&one), ["t-1-1 verified", "u-1-1 ran not-taken"], "the best branch changed nothing");
    let other = chosen("merge=best", &[("a", &["+x"])]);
    assert_eq!(receipts(&other), ["t-1-1 verified", "u-1-1 ran not-taken"]);
}

#[test]
fn a_fork_that_failed_leaves_nothing_that_is_proven() {
    let graph = graph(
        "f [shape=component, error_policy=fail_fast, max_parallel=1]; j [shape=tripleoctagon]; a; t; b; c; start -> f; \
         f -> a -> t -> j; f -> b -> j; j -> c [condition=\"outcome=fail\"]; j -> exit; c -> exit",
    );
    let summary = summary(&run(&graph, &[("a", &["+x"]), ("t", &["passed"]), ("b", &["fail"])]));
    assert_eq!((summary.status, receipts(&summary)), (RunStatus::Success, vec!["t-1-1 ran not-taken".to_owned()]));
    let failed: Vec<(&str, &str, Option<&str>)> = summary
        .proof
        .failed_branches
        .iter()
        .map(|one| (one.branch.as_str(), one.parallel.as_str(), one.node.as_ref().map(NodeId::as_str)))
        .collect();
    assert_eq!(failed, [("f-b", "f", Some("b"))]);
}

#[test]
fn after_a_merge_of_several_branches_what_passed_in_one_of_them_is_outdated() {
    let changes: [(&str, &[&str]); 2] = [("a", &["+x"]), ("b", &["+y"])];
    assert_eq!(outdated(&chosen("merge=all", &changes)), Some((vec!["t".into(), "u".into()], "j".into())));
    assert_eq!(outdated(&chosen("merge=best", &changes)), None, "`t` ran over what was taken");
    assert_eq!(outdated(&chosen("merge=all", &[])), None, "nothing was changed");
    let changed = |join: &str| {
        let summary = chosen(join, &changes);
        summary.files.changed.keys().map(ScopePath::to_string).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((changed("merge=all"), changed("merge=best")), ("x y".to_owned(), "x".to_owned()));
}

#[test]
fn a_conflict_is_the_failure_of_the_fan_in_and_any_other_that_of_its_stage() {
    let conflict = chosen("merge=all", &[("a", &["+x"]), ("b", &["-x"])]);
    assert_eq!((conflict.status, conflict.end.failed_node), (RunStatus::Fail, Some("j".into())));
    let failed = chosen("merge=all", &[("a", &["fail"]), ("b", &["fail"])]);
    assert_eq!(
        (failed.status, failed.end.failed_node),
        (RunStatus::Fail, Some("b".into())),
        "the same failure, seen last"
    );
}

/// Returns a graph in which a stage runs before the parallel node and on its branches, and the parallel node is visited
/// twice.
fn twice() -> Pipeline {
    graph(
        "f [shape=component]; j [shape=tripleoctagon]; a; b; t; c; start -> t; t -> f; f -> a -> j; f -> b; b -> j; \
         b -> j [condition=\"outcome=fail\"]; a -> j [condition=\"outcome=fail\"]; \
         j -> c; c -> f [condition=\"outcome=fail\"]; c -> exit",
    )
}

#[test]
fn the_next_visit_of_a_fork_forgets_which_branches_failed_in_the_one_before() {
    let pipeline = twice();
    let failed = |b: &'static [&'static str], c: &'static [&'static str]| {
        let summary = summary(&run(&pipeline, &[("b", b), ("c", c)]));
        let row = |one: &FailedBranch| one.branch.to_string();
        summary.proof.failed_branches.iter().map(row).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(failed(&["fail"], &[""]), "f-b");
    assert_eq!(failed(&["fail", ""], &["fail", ""]), "");
    assert_eq!(failed(&["fail", "fail"], &["fail", ""]), "f-2-b");
}

#[test]
fn another_fork_forgets_no_branch_that_failed() {
    let graph = graph(
        "f [shape=component]; j [shape=tripleoctagon]; g [shape=component]; k [shape=tripleoctagon]; a; b; c; d; \
         start -> f; f -> a -> j; f -> b -> j; j -> g; g -> c -> k; g -> d -> k; k -> exit",
    );
    let summary = summary(&run(&graph, &[("b", &["fail"]), ("d", &["fail"])]));
    let failed: Vec<&str> = summary.proof.failed_branches.iter().map(|one| one.branch.as_str()).collect();
    assert_eq!((summary.status, failed), (RunStatus::Success, vec!["f-b", "g-d"]));
}

#[test]
fn a_fork_inside_of_a_branch_leaves_the_commands_of_the_other_branches_alone() {
    let graph = graph(
        "f [shape=component]; j [shape=tripleoctagon]; g [shape=component]; h [shape=tripleoctagon]; t; t2; x; \
         start -> f; f -> t2 -> j; f -> g; g -> t -> h; g -> x -> h; h -> j; j -> exit",
    );
    let mut run = run(&graph, &[("t", &["passed"]), ("t2", &["passed"])]);
    // Renames stages so that the same stage runs on two branches, one of them within the other parallel node.
    for record in &mut run.records {
        if let Event::StageFinished(ended) = &mut record.event
            && ended.attempt.task.node == "t2"
        {
            ended.attempt.task.node = "t".into();
        }
    }
    let mut rows = receipts(&summary(&run));
    rows.sort();
    assert_eq!(rows, ["t-1-1 verified", "t2-1-1 verified"]);
}

#[test]
fn an_earlier_row_of_a_stage_stays_unless_a_branch_that_was_taken_visited_it_again() {
    let graph = graph(
        "f [shape=component]; j [shape=tripleoctagon]; a; b; t; u; start -> t -> u -> f; f -> a -> t2; t2 -> j; \
         f -> b -> u2; u2 -> j; j -> exit; t2; u2",
    );
    let words: [(&str, &[&str]); 6] = [
        ("t", &["passed"]),
        ("u", &["passed"]),
        ("a", &["+x"]),
        ("b", &["+y"]),
        ("t2", &["passed"]),
        ("u2", &["passed"]),
    ];
    // Renames stages so that the nodes before the parallel node are also the tools of the branches.
    let mut run = run(&graph, &words);
    for record in &mut run.records {
        if let Event::StageFinished(ended) = &mut record.event {
            let node = match ended.attempt.task.node.as_str() {
                "t2" => "t",
                "u2" => "u",
                _ => continue,
            };
            (ended.attempt.task.node, ended.attempt.task.visit) = (node.into(), 2);
        }
    }
    let summary = summary(&run);
    let rows = ["u-1-1 verified", "t2-1-1 verified", "u2-1-1 ran not-taken"];
    assert_eq!(receipts(&summary), rows, "`u` was not visited again by what was taken");
}

#[test]
fn a_dropped_check_counts_for_the_run_only_if_its_branch_was_taken() {
    let pipeline = split("merge=best");
    let dropped = |node: &str| {
        let run = Simulation::run(&pipeline, 30, &mut |open| {
            let words = if open.task.node == "a" {
                "+x"
            } else if open.task.node == "b" {
                "+y"
            } else {
                ""
            };
            let mut ended = attempt(open, words);
            ended.commands.dropped_checks.extend((open.task.node == *node).then(|| "cargo test".to_owned()));
            ended
        });
        let dropped = summary(&run).proof.dropped_checks;
        dropped.iter().map(|one| format!("{} {}", one.node, one.branch.is_none())).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((dropped("t"), dropped("u")), ("t true".to_owned(), String::new()));
}

/// Returns the summary of a run that is resumed at `from` after the parallel node was joined, or after its last branch
/// has ended.
fn resumed_at(join_seen: bool, from: &str) -> RunSummary {
    let pipeline = split("merge=best");
    let words: [(&str, &[&str]); 4] = [("a", &["+x"]), ("b", &["fail"]), ("t", &["passed"]), ("u", &["passed"])];
    let run = run(&pipeline, &words);
    let kind = if join_seen { "parallel.joined" } else { "branch.finished" };
    let end = run.records.iter().rposition(|record| record.event.kind() == kind).unwrap();
    let mut records = run.records[..=end].to_vec();
    let last = records.last().unwrap().clone();
    let resumed = RunResumed { from: Some(from.into()), ..RunResumed::default() };
    records.push(Record { seq: last.seq + 1, event: Event::RunResumed(Box::new(resumed)), ..last });
    RunSummary::from_records(&records)
}

#[test]
fn a_resume_elsewhere_leaves_the_commands_of_open_branches_behind() {
    let at_fan_in = resumed_at(true, "j");
    assert_eq!(receipts(&at_fan_in), ["t-1-1 verified in f-a"], "the fan-in still has to choose");
    assert_eq!(at_fan_in.proof.failed_branches.len(), 1);
    let elsewhere = resumed_at(false, "a");
    assert_eq!((receipts(&elsewhere), elsewhere.proof.failed_branches.len()), (vec![], 0));
}

#[test]
fn a_restart_begins_with_no_proofs() {
    let graph =
        graph("s; t; a; start -> s -> t -> a; a -> exit; a -> t [condition=\"outcome=fail\", loop_restart=true]");
    let mut run = Simulation::new(&graph);
    run.append(vec![Event::RunStarted(Box::new(started(&graph, 30, None)))]);
    let mut turn = 0;
    run.go_on(&mut |open| {
        turn += 1;
        let mut ended = attempt(open, if turn <= 2 { "passed" } else { "" });
        if turn == 3 {
            ended.outcome = Outcome::failed(Failure::new(FailureClass::Transient, "test/passing", "it may pass"));
        }
        ended
    });
    let summary = summary(&run);
    assert_eq!((summary.status, receipts(&summary)), (RunStatus::Success, vec![]));
    let visits: Vec<(u32, u32)> = summary.visited.iter().map(|one| (one.generation, one.visit)).collect();
    assert_eq!(visits, [(0, 1), (0, 1), (0, 1), (1, 1), (1, 1)]);
    assert_eq!((is_first(&0), is_first(&1)), (true, false));
}

#[test]
fn a_canceled_run_names_no_branch_that_failed() {
    let pipeline = split("merge=best");
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 30, None)))]);
    let open = run.state.branches.values().find_map(|branch| branch.open()).cloned().unwrap();
    let last = attempt(&open, "");
    run.append(vec![Event::StageStarted(StageStarted {
        attempt: last.attempt.clone(),
        worker: "w".into(),
        machine: None,
        moved: None,
    })]);
    run.append(vec![Event::RunCanceled(RunCanceled { by: "ada".into() })]);
    run.append(vec![Event::StageFinished(Box::new(last))]);
    assert_eq!((summary(&run).proof.failed_branches.len(), summary(&run).end.exit), (0, ExitClass::Interrupted));
}
