//! The visits of stages with their attempts, folded from the records.

use glovebox_journal::event::{AttemptId, Record, StageFinished, Task};
use glovebox_record::Status;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// One visit of a stage.
pub(super) struct Visit {
    pub(super) task: Task,
    /// In the order of the run; never empty.
    pub(super) attempts: Vec<Attempt>,
}

/// One attempt of a visit.
pub(super) struct Attempt {
    pub(super) id: AttemptId,
    pub(super) ordinal: u32,
    pub(super) started: Timestamp,
    /// `None` if the process that executed it ended before.
    pub(super) finished: Option<(Timestamp, StageFinished)>,
    /// A resume went back to before it.
    pub(super) is_undone: bool,
}

impl Attempt {
    pub(super) fn stage(&self) -> Option<&StageFinished> {
        self.finished.as_ref().map(|(_, stage)| stage)
    }

    /// Returns when it ended; of an attempt without an end, when it began.
    pub(super) fn ended(&self) -> Timestamp {
        self.finished.as_ref().map_or(self.started, |(at, _)| *at)
    }
}

impl Visit {
    pub(super) fn started(&self) -> Timestamp {
        self.attempts.iter().map(|attempt| attempt.started).min().unwrap_or_default()
    }

    pub(super) fn ended(&self) -> Timestamp {
        self.attempts.iter().map(Attempt::ended).max().unwrap_or_default()
    }

    /// Returns the last result.
    pub(super) fn last(&self) -> Option<&StageFinished> {
        self.attempts.iter().rev().find_map(Attempt::stage)
    }

    pub(super) fn status(&self) -> Option<Status> {
        self.last().map(|stage| stage.outcome.status)
    }

    /// Returns the name of the stage: the node, or its verification.
    pub(super) fn stage(&self) -> String {
        self.task.stage().to_string()
    }
}

/// Returns the visits in the order in which they began.
pub(super) fn of(records: &[Record], in_force: &BTreeSet<u64>) -> Vec<Visit> {
    let (mut visits, mut by_task): (Vec<Visit>, BTreeMap<Task, usize>) = (Vec::new(), BTreeMap::new());
    for record in records {
        let is_undone = !in_force.contains(&record.seq);
        if let Some(started) = record.event.stage_started() {
            let task = &started.attempt.task;
            let at = *by_task.entry(task.clone()).or_insert(visits.len());
            if at == visits.len() {
                visits.push(Visit { task: task.clone(), attempts: Vec::new() });
            }
            let (id, ordinal) = (started.attempt.id.clone(), started.attempt.ordinal);
            visits[at].attempts.push(Attempt { id, ordinal, started: record.at, finished: None, is_undone });
        } else if let Some(stage) = record.event.stage_finished() {
            let visit = by_task.get(&stage.attempt.task).and_then(|at| visits.get_mut(*at));
            let attempt = visit.and_then(|visit| visit.attempts.iter_mut().find(|known| known.id == stage.attempt.id));
            if let Some(attempt) = attempt {
                attempt.finished = Some((record.at, stage.clone()));
            }
        }
    }
    visits
}
