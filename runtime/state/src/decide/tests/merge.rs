//! The result of a fan-in: the changes of the best branch, or the changes on which all branches agree, and the
//! conflicts.

use super::*;
use crate::simulation::receipt;
use ChangeOp::{Delete, Mkdir, Rmdir, Write};
use glovebox_journal::event::{BranchEnd, ChangeOp, FanInFinished, FileChange};
use glovebox_record::CommandEnding;
use glovebox_record::path::ScopePath;

/// Changes of a branch: path, operation and length in bytes.
type Changes = &'static [(&'static str, ChangeOp, u64)];

/// Simulates a run whose two branches `f-a` and `f-b` make these changes.
fn run<'p>(pipeline: &'p Pipeline, branches: [Changes; 2]) -> Simulation<'p> {
    Simulation::run(pipeline, 50, &mut |open| {
        let mut ended = finished(open, Outcome::new(Status::Success));
        let changes = match open.task.node.as_str() {
            "a" => branches[0],
            "b" => branches[1],
            _ => &[],
        };
        let change = |&(path, op, bytes): &(&str, ChangeOp, u64)| FileChange {
            bytes,
            ..FileChange::bare(ScopePath::parse(path).unwrap(), op)
        };
        ended.files.changes = changes.iter().map(change).collect();
        if open.task.work == Work::Verify {
            ended.commands.receipts = vec![receipt(Some(0), CommandEnding::Exited)];
        }
        ended
    })
}

fn split(join: &str) -> Pipeline {
    pipeline(&format!(
        "digraph g {{ start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon, {join}];
         a; b; start -> f; f -> a -> j; f -> b -> j; j -> exit }}"
    ))
}

fn fan_in<'r>(run: &'r Simulation<'_>) -> &'r FanInFinished {
    let found = run.records.iter().find_map(|record| match &record.event {
        Event::FanInFinished(finished) => Some(&**finished),
        _ => None,
    });
    found.expect("the parallel node was joined")
}

/// Checks the merged paths and the conflicting paths.
#[track_caller]
fn check(branches: [Changes; 2], taken: &[&str], conflicts: &[&str]) {
    let pipeline = split("merge=all");
    let run = run(&pipeline, branches);
    let ended = fan_in(&run);
    let paths: Vec<&str> = ended.changes.iter().map(|change| change.path.as_str()).collect();
    let disputed: Vec<&str> = ended.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
    assert_eq!((paths.as_slice(), disputed.as_slice()), (taken, conflicts));
    let merged: Vec<&str> = ended.merged.iter().map(BranchId::as_str).collect();
    assert_eq!((merged.as_slice(), ended.best_outcome), (["f-a", "f-b"].as_slice(), Some(BranchEnd::Success)));
    assert_eq!(ended.signature.is_some(), ended.failure.is_some(), "a conflict can be the same again");
    let expected = match conflicts {
        [] => "success exit".to_owned(),
        paths => {
            format!("fail fan_in/conflict: branches changed the same paths in different ways: {}", paths.join(", "))
        }
    };
    assert_eq!(run.verdict(), expected);
}

#[test]
fn all_branches_give_what_they_agree_on() {
    check([&[("x", Write, 1)], &[("y", Write, 1)]], &["x", "y"], &[]);
    check([&[("x", Write, 1)], &[("x", Write, 1)]], &["x"], &[]);
    check([&[("x", Write, 1), ("y", Write, 1)], &[("x", Write, 2)]], &["y"], &["x"]);
    check([&[("x", Write, 1)], &[("x", Delete, 0)]], &[], &["x"]);
}

#[test]
fn no_folder_is_taken_that_another_branch_leaves_no_place_for() {
    check([&[("d", Mkdir, 0)], &[("d/x", Write, 1)]], &["d", "d/x"], &[]);
    check([&[("d", Rmdir, 0)], &[("d/x", Write, 1)]], &[], &["d", "d/x"]);
    check([&[("d", Write, 0)], &[("d/e/x", Write, 1)]], &[], &["d", "d/e/x"]);
    check([&[("d", Rmdir, 0)], &[("d/x", Delete, 1)]], &["d", "d/x"], &[]);
    check([&[("d", Write, 0)], &[("d/x", Delete, 1)]], &[], &["d", "d/x"]);
    // The changes of one branch never conflict with each other.
    check([&[("d", Write, 0), ("d/x", Write, 1)], &[]], &["d", "d/x"], &[]);
    check([&[("d", Write, 1)], &[("dx", Write, 1)]], &["d", "dx"], &[]);
}

#[test]
fn without_merge_all_the_best_branch_gives_everything_and_the_others_nothing() {
    let pipeline = split("merge=best");
    let run = run(&pipeline, [&[("x", Write, 1), ("y", Write, 1)], &[("x", Write, 2), ("z", Write, 1)]]);
    let ended = fan_in(&run);
    let paths: Vec<(&str, u64)> = ended.changes.iter().map(|change| (change.path.as_str(), change.bytes)).collect();
    assert_eq!(paths, [("x", 1), ("y", 1)]);
    assert_eq!((ended.merged.as_slice(), ended.conflicts.len()), ([BranchId::new("f-a")].as_slice(), 0));
    assert_eq!(run.verdict(), "success exit");
}

#[test]
fn what_a_fan_in_took_is_verified_before_the_run_goes_on() {
    let pipeline = split("merge=all, verify_command=x");
    let whole = run(&pipeline, [&[("x", Write, 1)], &[("y", Write, 1)]]);
    assert_eq!((whole.attempts().as_str(), whole.verdict().as_str()), ("a b j", "success exit"));
    let disputed = run(&pipeline, [&[("x", Write, 1)], &[("x", Write, 2)]]);
    assert_eq!(disputed.attempts(), "a b", "nothing was taken that could be verified");
}
