//! All commands of a run with the tree that they ran over, and what their receipts prove.

use super::*;
use crate::evidence::receipt::EndedStage;
use glovebox_journal::event::{Digest, FileChange, Isolation, QuestionAsked};
use glovebox_record::path::ScopePath;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

/// A verified journal in memory.
struct Journal(Vec<Record>);

impl ReadRecords for Journal {
    fn resumes(&self) -> &[Record] {
        &self.0
    }

    fn last_seq(&self) -> u64 {
        self.0.last().map_or(0, |last| last.seq)
    }

    fn read(&self, seqs: RangeInclusive<u64>, take: &mut dyn FnMut(&Record)) -> Result<(), PortError> {
        self.0.iter().filter(|record| seqs.contains(&record.seq)).for_each(take);
        Ok(())
    }
}

/// Returns a digest of the paths that differ from the base.
fn tree(changes: &mut dyn Iterator<Item = &FileChange>) -> Digest {
    let paths: Vec<&str> = changes.map(|change| change.path.as_str()).collect();
    Digest::hash(paths.join(" ").as_bytes())
}

fn evidence(records: Vec<Record>) -> Evidence {
    Evidence::read(&Journal(records), tree).expect("it is in memory")
}

/// Returns for each command: receipt, proof, whether a rewind undid it, and the tree.
fn rows(evidence: &Evidence) -> Vec<(&str, Proof, bool, Digest)> {
    let row = |one: &Command| (one.evidence.receipt.id.clone(), one.proof, one.is_undone, one.tree);
    let rows: Vec<_> = evidence.commands.iter().map(row).collect();
    rows.into_iter().map(|(id, proof, is_undone, tree)| (&*String::leak(id), proof, is_undone, tree)).collect()
}

fn over(paths: &str) -> Digest {
    Digest::hash(paths.as_bytes())
}

#[test]
fn each_command_ran_over_the_files_as_the_stages_before_it_left_them() {
    let graph = graph("a; b; t; u; v; start -> t -> a -> u -> b -> v -> exit");
    let run = run(
        &graph,
        &[("a", &["+x"]), ("b", &["+y"]), ("t", &["passed"]), ("u", &["failed"]), ("v", &["passed passed"])],
    );
    let found = evidence(run.records.clone());
    let expected = [
        ("t-1-1", Proof::Verified, false, over("")),
        ("u-1-1", Proof::NotVerified, false, over("x")),
        ("v-1-1", Proof::Verified, false, over("x y")),
        ("v-1-1", Proof::Verified, false, over("x y")),
    ];
    assert_eq!(rows(&found), expected);
    assert_eq!(
        found.commands[0].record,
        run.records.iter().find(|one| one.event.stage_finished().is_some()).unwrap().seq
    );
    assert_eq!(found.head(), found.summary.head);
    assert_eq!(found.head().records, run.records.len() as u64);
    let claims: Vec<(String, u32, &str)> =
        found.claims().iter().map(|claim| (claim.stage.node.to_string(), claim.visit, claim.status)).collect();
    let claim = |node: &str| (node.to_owned(), 1, "success");
    assert_eq!(claims, [claim("a"), claim("u"), claim("b")], "`u` passed without a command that did");
}

#[test]
fn a_claim_names_the_last_visit_of_its_own_stage() {
    let graph = graph("a; b; start -> a; a -> a [condition=\"outcome=fail\"]; a -> b -> exit");
    let found = evidence(run(&graph, &[("a", &["fail", ""])]).records);
    let claims: Vec<(String, u32)> =
        found.claims().iter().map(|claim| (claim.stage.node.to_string(), claim.visit)).collect();
    assert_eq!(claims, [("a".to_owned(), 2), ("b".to_owned(), 1)]);
}

#[test]
fn what_a_person_allowed_is_in_the_tree_of_the_next_command() {
    let graph = graph("t; u; start -> t -> u -> exit");
    let run = run(&graph, &[("t", &["passed"]), ("u", &["passed"])]);
    let ended = run.records.iter().position(|record| record.event.stage_finished().is_some()).unwrap();
    let last = run.records[ended].event.stage_finished().unwrap();
    let decided = glovebox_journal::event::RecoveryDecided {
        attempt: last.attempt.clone(),
        handler: "tool".into(),
        question: QuestionAsked::id_of_recovery(&last.attempt.task),
        action: glovebox_journal::event::RecoveryAction::Allow,
        reason: None,
        how: glovebox_journal::event::AnsweredBy::Command,
        by: "ada".into(),
        changes: vec![change("lock", ChangeOp::Write)],
        outcome: Outcome::new(Status::Success),
        verifying: false,
        stored_values: BTreeSet::new(),
        signature: None,
    };
    let mut records = run.records.clone();
    let event = Event::RecoveryDecided(Box::new(decided));
    records.insert(ended + 1, Record { event, ..records[ended].clone() });
    records.iter_mut().zip(1..).for_each(|(record, seq)| record.seq = seq);
    let trees: Vec<Digest> = rows(&evidence(records)).into_iter().map(|(.., tree)| tree).collect();
    assert_eq!(trees, [over(""), over("lock")]);
}

#[test]
fn a_command_after_a_resume_ran_over_the_files_that_the_run_went_back_to() {
    let graph = graph("a; t; start -> a -> t -> exit");
    let run = run(&graph, &[("a", &["+x"]), ("t", &["failed fail"])]);
    let before = run.records.iter().find(|one| one.event.stage_ready().is_some_and(|one| one.task.node == "a"));
    let back = Some(glovebox_journal::event::WentBack { visit: 1, generation: 0, seq: before.unwrap().seq - 1 });
    let resumed = RunResumed { from: Some("a".into()), back, ..RunResumed::default() };
    let again = run.records.iter().rev().find(|one| one.event.stage_finished().is_some()).unwrap().event.clone();
    let found = evidence(followed_by(&run, vec![Event::RunResumed(Box::new(resumed)), again]));
    let trees: Vec<Digest> = rows(&found).into_iter().map(|(.., tree)| tree).collect();
    assert_eq!(trees, [over("x"), over("")]);
}

#[test]
fn a_tree_is_computed_once_for_all_commands_between_two_changes() {
    let graph = graph("t; u; v; a; start -> t -> u -> a -> v -> exit");
    let passed: &[&str] = &["passed"];
    let run = run(&graph, &[("t", passed), ("u", passed), ("v", passed), ("a", &["+x"])]);
    let computed = Cell::new(0);
    let digest = |changes: &mut dyn Iterator<Item = &FileChange>| {
        computed.set(computed.get() + 1);
        tree(changes)
    };
    let found = Evidence::read(&Journal(run.records.clone()), digest).unwrap();
    assert_eq!((found.commands.len(), computed.get()), (3, 2));
}

#[test]
fn a_command_of_a_branch_ran_over_the_files_of_that_branch() {
    let pipeline = split("merge=best");
    let passed: &[&str] = &["passed"];
    let run = run(&pipeline, &[("a", &["+x"]), ("b", &["+y"]), ("t", passed), ("u", passed), ("c", passed)]);
    let found = evidence(run.records.clone());
    let mut rows = rows(&found);
    rows.sort_by_key(|(id, ..)| *id);
    let expected = [
        ("c-1-1", Proof::Verified, false, over("x")),
        ("t-1-1", Proof::Verified, false, over("x")),
        ("u-1-1", Proof::NotTaken, false, over("y")),
    ];
    assert_eq!(rows, expected);
}

#[test]
fn a_command_that_a_resume_went_back_before_is_left() {
    let graph = graph("t; u; start -> t -> u -> exit");
    let run = run(&graph, &[("t", &["passed"]), ("u", &["failed fail"])]);
    let before = run.records.iter().find(|one| one.event.stage_ready().is_some_and(|one| one.task.node == "u"));
    let back = Some(glovebox_journal::event::WentBack { visit: 1, generation: 0, seq: before.unwrap().seq - 1 });
    let resumed = RunResumed { from: Some("u".into()), back, ..RunResumed::default() };
    let records = followed_by(&run, vec![Event::RunResumed(Box::new(resumed))]);
    let found = evidence(records.clone());
    let left: Vec<(&str, bool)> = rows(&found).into_iter().map(|(id, _, is_undone, _)| (id, is_undone)).collect();
    assert_eq!(left, [("t-1-1", false), ("u-1-1", true)]);
    assert_eq!(found.summary.visited.len(), 1, "the visit of `u` counts no more");
    let mut seen = 0;
    let read = RunSummary::read(&Journal(records.clone()), |_| seen += 1).unwrap();
    assert_eq!((read.visited.len(), read.head.records, seen), (1, records.len() as u64, records.len()));
}

#[test]
fn what_a_passed_command_proves_depends_on_what_could_have_forged_it() {
    let (node, handler) = ("t".into(), "tool".to_owned());
    let proof = |isolation: Option<Isolation>, startup: bool, not_taken: bool| {
        let stage = EndedStage {
            node: &node,
            branch: None,
            handler: &handler,
            role: Role::Verifier,
            has_passed: true,
            isolation,
            at: 1,
        };
        let path = ScopePath::parse("conftest.py").unwrap();
        let files = startup.then(|| StartupFile { path, by: "a".into(), reader: "pytest" });
        let found = CommandEvidence::new(stage, receipt(Some(0), CommandEnding::Exited), files.into_iter().collect());
        CommandEvidence { not_taken, ..found }.proof()
    };
    assert_eq!(proof(None, false, false), Proof::Verified);
    assert_eq!(proof(Some(Isolation::Isolated), false, false), Proof::Verified);
    assert_eq!(proof(Some(Isolation::NotIsolated), true, false), Proof::VerifiedNotIsolated);
    assert_eq!(proof(None, true, false), Proof::VerifiedWithStartupFiles);
    assert_eq!(proof(Some(Isolation::BuildersCaches), true, false), Proof::VerifiedWithStartupFiles);
    assert_eq!(proof(Some(Isolation::BuildersCaches), false, false), Proof::VerifiedWithCaches);
    assert_eq!(proof(Some(Isolation::NotIsolated), true, true), Proof::NotTaken);
}
