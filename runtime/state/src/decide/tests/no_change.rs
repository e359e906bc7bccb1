//! Work that changed nothing: how often it is repeated, what confirms it, and that every resume decides the same.

use super::{FRAME, outcome};
use crate::run_state::OpenTask;
use crate::simulation::{Simulation, finished, pipeline, receipt, started};
use glovebox_journal::event::{ChangeOp, Event, FileChange, StageFinished, Work};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::CommandEnding;
use glovebox_record::no_change::{Confirmation, NoChange, NoChangeRule};
use glovebox_record::path::ScopePath;

/// Returns the end of an attempt by its letter: `n` success without a change, `c` success with a change, `f` failure,
/// `p` a verification that passes.
fn answer(open: &OpenTask, letter: char) -> StageFinished {
    let is_success = matches!(letter, 'n' | 'c' | 'p');
    let mut ended = finished(open, outcome(if is_success { "success" } else { "fail" }));
    if letter == 'c' {
        ended.files.changes = vec![FileChange::bare(ScopePath::parse("src/a").unwrap(), ChangeOp::Write)];
    }
    if open.task.work == Work::Verify {
        ended.commands.receipts = vec![receipt(Some(i32::from(letter != 'p')), CommandEnding::Exited)];
    }
    ended
}

fn rule(recovery_attempts: u32, confirm: Confirmation) -> NoChangeRule {
    NoChangeRule { setting: NoChange { recovery_attempts, confirm }, nodes: ["a".into()].into() }
}

fn graph(node: &str) -> Pipeline {
    pipeline(&format!("digraph g {{ {FRAME} a [{node}]; start -> a -> exit }}"))
}

/// Runs a node whose attempts end in this way, and again from each prefix of the records. Returns the verdict.
fn run(node: &str, rule: &NoChangeRule, letters: &str) -> String {
    let graph = graph(node);
    let letters: Vec<char> = letters.chars().collect();
    let mut whole = Simulation::new(&graph);
    whole.no_change = Some(rule);
    whole.append(vec![Event::RunStarted(Box::new(started(&graph, 50, None)))]);
    let mut used = 0;
    whole.go_on(&mut |open| {
        used += 1;
        answer(open, letters[used - 1])
    });
    assert_eq!(used, letters.len(), "{node} {letters:?}");
    for kept in 1..whole.records.len() {
        let mut resumed = Simulation::from_prefix(&graph, &whole.records[..kept]);
        resumed.no_change = Some(rule);
        let before = resumed.attempts().split_whitespace().count();
        let mut rest = letters[before..].iter();
        resumed.go_on(&mut |open| answer(open, *rest.next().unwrap()));
        assert_eq!(resumed.verdict(), whole.verdict(), "after {kept} records of {letters:?}");
        assert_eq!(resumed.attempts(), whole.attempts(), "after {kept} records of {letters:?}");
    }
    whole.verdict()
}

const SUCCESS: &str = "success exit";
const REFUSED: &str = "fail no_actionable_changes: no changes were made: ";

#[test]
fn it_is_repeated_so_often_and_then_fails() {
    let check = |node: &str, attempts: u32, letters: &str, expected: &str| {
        let ended = run(node, &rule(attempts, Confirmation::Verify), letters);
        assert!(ended.starts_with(expected), "{letters}: {ended}");
    };
    check("", 2, "nnn", REFUSED);
    check("", 0, "n", REFUSED);
    check("", 2, "nnc", SUCCESS);
    check("", 2, "c", SUCCESS);
    check("", 2, "nf", "fail test/failed");
    check("max_retries=1", 2, "nfnc", SUCCESS);
    check("max_retries=1", 1, "nfn", REFUSED);
    check("max_retries=1", 1, "nff", "fail test/failed");
    check("max_steps=2", 5, "nn", "fail no_actionable_changes: No changes detected.");
}

#[test]
fn a_verification_confirms_it_where_the_operator_says_so() {
    let check = |confirm: Confirmation, letters: &str, expected: &str| {
        let ended = run("verify_command=x", &rule(1, confirm), letters);
        assert!(ended.starts_with(expected), "{letters}: {ended}");
    };
    check(Confirmation::Verify, "np", SUCCESS);
    check(Confirmation::Verify, "nf", "fail test/failed");
    check(Confirmation::Verify, "cp", SUCCESS);
    check(Confirmation::Off, "nn", REFUSED);
    check(Confirmation::Off, "ncp", SUCCESS);
}

#[test]
fn a_node_that_is_not_meant_may_change_nothing() {
    let rule = NoChangeRule { nodes: ["b".into()].into(), ..rule(2, Confirmation::Verify) };
    assert_eq!(run("", &rule, "n"), SUCCESS);
}

#[test]
fn the_end_counts_the_attempts_and_keeps_the_words_of_the_stage() {
    let reason = |count: &str, most: u32| {
        format!(
            "{REFUSED}{count} of `a` ended with success and changed no file, expected a change \
             (`no_change_recovery_attempts` is {most})"
        )
    };
    assert_eq!(run("", &rule(0, Confirmation::Verify), "n"), reason("1 attempt", 0));
    assert_eq!(run("", &rule(1, Confirmation::Verify), "nn"), reason("2 attempts", 1));
    let (graph, rule) = (graph("verify_command=x"), rule(0, Confirmation::Verify));
    let notes = |is_confirmed: bool, recovery: &NoChangeRule| {
        let mut run = Simulation::new(&graph);
        run.no_change = Some(recovery);
        run.append(vec![Event::RunStarted(Box::new(started(&graph, 50, None)))]);
        run.go_on(&mut |open| {
            let mut ended = answer(open, if is_confirmed { 'p' } else { 'n' });
            ended.outcome.notes = "all is done".into();
            ended
        });
        run.state.main().outcome(&"a".into()).unwrap().notes.clone()
    };
    let confirmed = "no-op success: nothing was changed, and the verification passed\nall is done";
    assert_eq!(notes(true, &rule), confirmed);
    let unconfirmed = NoChangeRule { setting: NoChange { confirm: Confirmation::Off, ..rule.setting }, ..rule };
    assert_eq!(notes(false, &unconfirmed), "all is done");
}

/// A verifier that ran no command has no receipt, so it confirms nothing.
#[test]
fn only_a_receipt_confirms_it() {
    let (graph, rule) = (graph("verify_command=x"), rule(1, Confirmation::Verify));
    let mut run = Simulation::new(&graph);
    run.no_change = Some(&rule);
    run.append(vec![Event::RunStarted(Box::new(started(&graph, 50, None)))]);
    run.go_on(&mut |open| finished(open, outcome("success")));
    assert!(run.verdict().starts_with("fail claim/unproven"), "{}", run.verdict());
}

/// A new visit starts with a fresh count of repetitions.
#[test]
fn each_visit_counts_for_itself() {
    let graph = pipeline(&format!(
        "digraph g {{ {FRAME} start -> a; a -> b [condition=\"outcome=success\"]; a -> exit [condition=\"outcome=fail\"]; b -> a }}"
    ));
    let rule = rule(1, Confirmation::Verify);
    let mut run = Simulation::new(&graph);
    run.no_change = Some(&rule);
    run.append(vec![Event::RunStarted(Box::new(started(&graph, 50, None)))]);
    let mut letters = "nccnn".chars();
    run.go_on(&mut |open| answer(open, letters.next().unwrap()));
    assert_eq!(run.attempts(), "a a b a a");
}
