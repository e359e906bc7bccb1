//! The beginning of a generation: generation 0 begins with the run, and a later generation begins at an edge with
//! `loop_restart`.
//!
//! A generation begins with the current files, with the context of a new run, and without visits, outcomes or
//! conversations. Two counts continue over all generations: repeated failures, so that a loop over restarts ends too,
//! and the position in a script or a simulation.

use super::{Branch, NodeHistory, RunState, Visits};
use crate::context::Context;
use glovebox_journal::event::{BranchId, LoopRestarted, RunStarted};
use serde_json::Value;
use std::sync::Arc;

impl RunState {
    pub(super) fn start(&mut self, started: &RunStarted) {
        self.generation = started.generation;
        self.branch_mut(&BranchId::main()).context = Context::beginning(started);
        self.run = Some(Arc::new(started.clone()));
    }

    pub(super) fn restart(&mut self, restarted: &LoopRestarted) {
        self.generation = restarted.generation;
        let context = self.run.as_ref().map(|run| Context::beginning(run)).unwrap_or_default();
        self.branch_mut(&restarted.branch).restart(restarted, context);
    }
}

impl Context {
    /// Returns the context at the start of a run and of each generation.
    fn beginning(started: &RunStarted) -> Self {
        let mut context = Self::default();
        for (key, value) in &started.pipeline.graph {
            context.set(format!("graph.{key}"), Value::String(value.clone()));
        }
        context.set("graph.goal", Value::String(started.pipeline.goal.clone()));
        context
    }
}

impl Branch {
    fn restart(&mut self, restarted: &LoopRestarted, mut context: Context) {
        for key in &restarted.kept {
            context.take_over(key, &self.context);
        }
        context.set("loop_restart.iteration_count", Value::from(restarted.generation));
        context.set("loop_restart.from_node", Value::String(restarted.from.to_string()));
        let nodes = self.nodes.iter().map(|(node, history)| (node.clone(), history.of_next_generation())).collect();
        let (changes, authors) = (std::mem::take(&mut self.changes), std::mem::take(&mut self.authors));
        let last = self.completed.total();
        *self = Self {
            head: self.head,
            context,
            nodes,
            changes,
            authors,
            completed: Visits::after(last),
            ..Self::default()
        };
    }
}

impl NodeHistory {
    /// Returns the part of the history that stays when a child pipeline begins. It includes the visits, because they
    /// are part of the names of attempts.
    pub(super) fn of_next_generation_with_visits(&self) -> Self {
        Self { visits: self.visits, counted: self.counted, ..self.of_next_generation() }
    }

    /// Returns the part of the history that stays when a generation begins.
    fn of_next_generation(&self) -> Self {
        let (turns, attempts) = (self.turns, self.attempts);
        let verify_failures = self.verify_failures.clone();
        Self { turns, attempts, verify_failures, signatures: self.signatures.clone(), ..Self::default() }
    }
}
