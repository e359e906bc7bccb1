//! What one stage adds to the summary: its visits, its commands, its changes and its refusals.

use super::*;
use glovebox_journal::event::{IgnoredFiles, StageModel};
use glovebox_record::spend::Money;
use glovebox_record::{NodeId, Refusal, Tokens, Traffic};

#[test]
fn a_stage_is_verified_by_a_receipt_of_a_verifier_and_by_nothing_else() {
    let graph = graph("a; b; t; start -> a -> b -> t -> exit");
    let run = run(&graph, &[("a", &["+x"]), ("b", &[""]), ("t", &["passed"])]);
    let summary = summary(&run);
    assert_eq!((receipts(&summary), unverified(&summary)), (vec!["t-1-1 verified".to_owned()], vec!["a", "b"]));
    assert!(summary.has_pipeline_command());
    let none = Simulation::run(&graph, 30, &mut |open| StageFinished {
        handler: "codergen".into(),
        ..attempt(open, "passed")
    });
    let none = super::summary(&none);
    assert_eq!(receipts(&none), ["a-1-1 ran", "b-1-1 ran", "t-1-1 ran"], "a model chose these commands");
    assert!(!none.has_pipeline_command());
}

#[test]
fn a_plugin_that_the_operator_bound_as_a_verifier_verifies() {
    let graph = graph("a; start -> a -> exit");
    let verified = |verifiers: &[&str]| {
        let mut run = Simulation::new(&graph);
        let verifiers = verifiers.iter().map(|name| (*name).to_owned()).collect();
        let mut begun = started(&graph, 30, None);
        begun.plan.verifiers = verifiers;
        run.append(vec![Event::RunStarted(Box::new(begun))]);
        run.go_on(&mut |open| StageFinished { handler: "acme.check".into(), ..attempt(open, "passed") });
        receipts(&summary(&run))
    };
    assert_eq!((verified(&["acme.check"]), verified(&[])), (vec!["a-1-1 verified".into()], vec!["a-1-1 ran".into()]));
}

#[test]
fn the_last_attempt_of_a_visit_and_the_last_visit_of_a_stage_speak_for_it() {
    let graph =
        graph("a [max_retries=1]; t [max_retries=1]; start -> a -> t; t -> a [condition=\"outcome=fail\"]; t -> exit");
    let run = run(&graph, &[("a", &["fail", ""]), ("t", &["failed fail", "failed fail", "failed fail", "passed"])]);
    let summary = summary(&run);
    let visits: Vec<(&str, u32, u32, &str)> =
        summary.visited.iter().map(|one| (one.node.as_str(), one.visit, one.attempts, one.status)).collect();
    let expected = [("a", 1, 2, "success"), ("t", 1, 2, "fail"), ("a", 2, 1, "success"), ("t", 2, 2, "success")];
    assert_eq!(visits, expected);
    assert_eq!((receipts(&summary), unverified(&summary)), (vec!["t-2-2 verified".to_owned()], vec!["a"]));
}

#[test]
fn a_second_visit_replaces_the_commands_of_its_own_stage_only() {
    let graph = graph("t; u; start -> t -> u; u -> u [condition=\"outcome=fail\"]; u -> exit");
    let summary = summary(&run(&graph, &[("t", &["passed"]), ("u", &["failed fail", "passed"])]));
    assert_eq!(receipts(&summary), ["t-1-1 verified", "u-2-1 verified"]);
}

#[test]
fn what_a_stage_ran_itself_stays_beside_what_verified_it() {
    let graph = graph("a [verify_command=x, max_retries=1]; start -> a; a -> a [condition=\"context.k=1\"]; a -> exit");
    let mut turn = 0;
    let run = Simulation::run(&graph, 30, &mut |open| {
        turn += 1;
        let mut ended = attempt(open, if turn == 2 { "failed fail" } else { "passed" });
        ended.commands.receipts.iter_mut().for_each(|receipt| receipt.id = format!("r{turn}"));
        ended.handler = if open.task.work == Work::Verify { "verify" } else { "codergen" }.into();
        ended.outcome.context_updates.extend((turn == 3).then(|| ("k".to_owned(), 1.into())));
        ended.outcome.context_updates.extend((turn == 5).then(|| ("k".to_owned(), 2.into())));
        ended
    });
    let summary = summary(&run);
    let visits: Vec<(u32, u32, &str)> =
        summary.visited.iter().map(|one| (one.visit, one.attempts, one.status)).collect();
    assert_eq!(visits, [(1, 2, "success"), (2, 1, "success")], "a verification is no attempt");
    assert_eq!(receipts(&summary), ["r5 ran", "r6 verified"]);
    assert_eq!(unverified(&summary), [""; 0]);
}

#[test]
fn changes_count_by_path_and_the_last_one_wins() {
    let graph = graph("a; b; start -> a -> b -> exit");
    let summary = summary(&run(&graph, &[("a", &["+x +y"]), ("b", &["-x"])]));
    let changed: Vec<(&str, ChangeOp)> =
        summary.files.changed.values().map(|change| (change.path.as_str(), change.op)).collect();
    assert_eq!(changed, [("x", ChangeOp::Delete), ("y", ChangeOp::Write)]);
}

#[test]
fn a_command_that_passed_before_a_builder_changed_files_is_outdated() {
    let order = |first: &str, second: &str, words: &[(&str, &[&str])]| {
        let graph = graph(&format!("a; t; start -> {first} -> {second} -> exit"));
        outdated(&summary(&run(&graph, words)))
    };
    let both: [(&str, &[&str]); 2] = [("a", &["+x"]), ("t", &["passed"])];
    assert_eq!(order("a", "t", &both), None);
    assert_eq!(order("t", "a", &both), Some((vec!["t".into()], "a".into())));
    assert_eq!(order("t", "a", &[("t", &["passed"])]), None, "nothing was changed since");
    assert_eq!(order("t", "a", &[("t", &["failed"]), ("a", &["+x"])]), None, "nothing had passed");
    assert_eq!(order("t", "a", &[("t", &["passed"]), ("a", &["+x failed"])]), None, "a verifier is no builder");
}

#[test]
fn what_a_run_was_refused_and_what_it_dropped_is_listed_once() {
    let graph = graph("a; b; start -> a -> b -> exit");
    let refusal = |operation: &str, path: &str| Refusal::new(operation, path, "no grant", "");
    let run = Simulation::run(&graph, 30, &mut |open| {
        let mut ended = attempt(open, "");
        let is_first = open.task.node == "a";
        ended.refusals.listed =
            vec![refusal("read", "x"), refusal("read", "x"), refusal("write", "x"), refusal("read", "y")];
        ended.files.quarantined =
            vec![glovebox_journal::event::RefusedChange { path: "z".into(), reason: "no grant".into() }];
        ended.commands.misses_holdouts = is_first;
        ended.commands.dropped_checks.extend(is_first.then(|| "cargo test".to_owned()));
        ended
    });
    let summary = summary(&run);
    let refused: Vec<(&str, &str, &str, usize)> = summary
        .access
        .refused
        .iter()
        .map(|one| (one.node.as_str(), one.refusal.operation.as_str(), one.refusal.path.as_str(), one.times))
        .collect();
    let of = |node| [(node, "read", "x", 2), (node, "write", "x", 1), (node, "read", "y", 1)];
    assert_eq!(refused, [of("a"), of("b")].concat());
    let set_aside: Vec<&str> = summary.files.quarantined.iter().map(|file| file.node.as_str()).collect();
    assert_eq!(set_aside, ["a", "b"]);
    assert_eq!(summary.proof.misses_holdouts, ["a".into()].into());
    let dropped: Vec<(&str, bool)> =
        summary.proof.dropped_checks.iter().map(|one| (one.node.as_str(), one.branch.is_none())).collect();
    assert_eq!(dropped, [("a", true)]);
    assert_eq!(summary.end.failed_node, Some("a".into()), "the run failed for it");
}

#[test]
fn the_next_visit_of_a_stage_says_anew_what_it_dropped_and_missed() {
    let graph = graph("a; start -> a; a -> a [condition=\"outcome=fail\"]; a -> exit");
    let mut turn = 0;
    let run = Simulation::run(&graph, 30, &mut |open| {
        turn += 1;
        let mut ended = attempt(open, if turn == 1 { "fail" } else { "" });
        (ended.commands.misses_holdouts, ended.commands.dropped_checks) =
            (turn == 1, vec!["cargo test".to_owned(); 2 - turn]);
        ended
    });
    let summary = summary(&run);
    assert_eq!((summary.proof.misses_holdouts.len(), summary.proof.dropped_checks.len()), (0, 0));
    assert_eq!(summary.status, RunStatus::Success);
}

#[test]
fn ignored_files_are_counted_and_the_first_four_names_are_kept() {
    let graph = graph("a; b; start -> a -> b -> exit");
    let run = Simulation::run(&graph, 30, &mut |open| {
        let names = if open.task.node == "a" { vec!["t/", "u/"] } else { vec!["u/", "v/", "w/", "x/", "y/"] };
        let names = names.into_iter().map(str::to_owned).collect();
        let mut ended = attempt(open, "");
        ended.files.ignored = Some(IgnoredFiles { files: 2, bytes: 10, names });
        ended
    });
    let ignored = summary(&run).files.ignored.unwrap();
    assert_eq!((ignored.files, ignored.bytes, ignored.names.join(" ")), (4, 20, "t/ u/ v/ w/".to_owned()));
}

#[test]
fn spending_is_the_sum_of_all_attempts() {
    let graph = graph("a [max_retries=1]; b; start -> a -> b -> exit");
    let mut turn = 0;
    let run = Simulation::run(&graph, 30, &mut |open| {
        turn += 1;
        let mut ended = attempt(open, if turn == 1 { "fail" } else { "" });
        ended.commands.network = Some(Traffic::default());
        let tokens = Tokens { input: 10, output: 1 };
        ended.model = StageModel { tokens, cost: Money(3), is_estimated: turn == 1, ..ended.model };
        ended
    });
    let summary = summary(&run);
    assert_eq!((summary.model.tokens.input, summary.model.tokens.output, summary.model.cost), (30, 3, Money(9)));
    assert!(summary.model.is_estimated, "a sum with an estimate in it is one");
    assert_eq!(summary.access.traffic.keys().map(NodeId::as_str).collect::<Vec<_>>(), ["a", "b"]);
}

#[test]
fn a_stage_with_a_simulated_answer_is_named() {
    let graph = graph("a; b; start -> a -> b -> exit");
    let mut run = Simulation::new(&graph);
    let simulated = ["a".into(), "z".into()].into();
    let mut begun = started(&graph, 30, None);
    begun.model.simulated = simulated;
    run.append(vec![Event::RunStarted(Box::new(begun))]);
    run.go_on(&mut |open| attempt(open, ""));
    assert_eq!(summary(&run).model.simulated, ["a".into()].into());
}
