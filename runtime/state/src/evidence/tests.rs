//! Table-driven tests of what the records of a run prove. A row has a graph, the attempts of its stages, and the
//! summary.

mod branches;
mod commands;
mod ends;
mod stages;
mod startup;

use super::*;
use crate::run_state::OpenTask;
use crate::simulation::{Simulation, finished, pipeline, receipt, started};
use glovebox_journal::event::{ChangeOp, FileChange, Receipt};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::path::ScopePath;
use glovebox_record::{CommandEnding, Failure, FailureClass, Outcome, Status};
use std::collections::BTreeMap;

const FRAME: &str = "start [shape=Mdiamond]; exit [shape=Msquare];";

fn graph(text: &str) -> Pipeline {
    pipeline(&format!("digraph g {{ {FRAME} {text} }}"))
}

/// Returns a parallel node with the branches `a -> t` and `b -> u`, joined by a fan-in with these attributes.
fn split(join: &str) -> Pipeline {
    graph(&format!(
        "f [shape=component]; j [shape=tripleoctagon, {join}]; a; b; t; u; c; start -> f; f -> a -> t -> j; f -> b -> u -> j; \
         j -> c -> exit"
    ))
}

fn change(path: &str, op: ChangeOp) -> FileChange {
    FileChange::bare(ScopePath::parse(path).unwrap(), op)
}

/// Returns the attempt that `words` describes: `+PATH` writes, `-PATH` deletes, `passed` and `failed` are commands,
/// `fail` is the status. A stage with a command is a tool.
fn attempt(open: &OpenTask, words: &str) -> StageFinished {
    let mut ended = StageFinished { handler: "codergen".into(), ..finished(open, Outcome::new(Status::Success)) };
    for word in words.split_whitespace() {
        match (word, word.split_at(1)) {
            (_, ("+", path)) => ended.files.changes.push(change(path, ChangeOp::Write)),
            (_, ("-", path)) => ended.files.changes.push(change(path, ChangeOp::Delete)),
            ("passed" | "failed", _) => {
                ended.handler = "tool".into();
                let id = format!("{}-{}-{}", open.task.node, open.task.visit, open.ordinal);
                let code = Some(i32::from(word == "failed"));
                ended.commands.receipts.push(Receipt { id, ..receipt(code, CommandEnding::Exited) });
            }
            _ => {
                let failure = Failure::new(FailureClass::Deterministic, "test/failed", format!("{word} broke"));
                ended.outcome = Outcome::failed(failure);
            }
        }
    }
    ended
}

/// Runs a graph. `words` describes the attempts of each node in order.
fn run<'p>(pipeline: &'p Pipeline, words: &[(&str, &[&str])]) -> Simulation<'p> {
    let mut turns: BTreeMap<String, usize> = BTreeMap::new();
    Simulation::run(pipeline, 30, &mut |open| {
        let turn = turns.entry(open.task.node.to_string()).or_default();
        *turn += 1;
        let words = words.iter().find(|(node, _)| open.task.node == **node).map_or(&[""][..], |(_, words)| words);
        attempt(open, words[(*turn - 1).min(words.len() - 1)])
    })
}

fn summary(run: &Simulation<'_>) -> RunSummary {
    RunSummary::from_records(&run.records)
}

/// Returns one word for each command of a summary: its receipt, whether it verifies, and its branch.
fn receipts(summary: &RunSummary) -> Vec<String> {
    let row = |evidence: &CommandEvidence| {
        let proof = if evidence.verified { "verified" } else { "ran" };
        let taken = if evidence.not_taken { " not-taken" } else { "" };
        let branch = evidence.branch.as_ref().map(|branch| format!(" in {branch}")).unwrap_or_default();
        format!("{} {proof}{taken}{branch}", evidence.receipt.id)
    };
    summary.proof.receipts.iter().map(row).collect()
}

fn unverified(summary: &RunSummary) -> Vec<&str> {
    summary.proof.unverified.iter().map(|stage| stage.node.as_str()).collect()
}

fn outdated(summary: &RunSummary) -> Option<(Vec<String>, String)> {
    let (nodes, by) = summary.outdated()?;
    Some((nodes.iter().map(ToString::to_string).collect(), by.to_string()))
}

/// Returns the numbered records of a run, followed by more events.
fn followed_by(run: &Simulation<'_>, events: Vec<Event>) -> Vec<Record> {
    let mut records = run.records.clone();
    for event in events {
        let last = records.last().unwrap().clone();
        records.push(Record { seq: last.seq + 1, event, ..last });
    }
    records
}
