//! Claims attempts: the attempt of a delivery from the queue, or the attempt that a commit made ready.
//!
//! The second kind of claim is part of the append of the commit, so that the step from stage to stage costs one append.
//! An attempt that may not begin immediately is left to the queue, because it is due later, or because the run is
//! canceled, out of time or out of disk space.

use super::commit::{Batch, Committed};
use super::seats::SeatedAttempt;
use super::{Begin, Driver, Follow, LEASE_MS, RunError};
use crate::assignment::Assignment;
use crate::executors::{Executors, Seat};
use glovebox_host::llm::Steering;
use glovebox_jail::pulse::Pulse;
use glovebox_journal::event::{AttemptId, BranchId, Event, MachineId, NodeId, Record, StageStarted, StreamKey};
use glovebox_journal::ports::{ClaimQueue, Delivery, RunLog, Signals};
use glovebox_state::decide::out_of_time;
use glovebox_state::run_state::{OpenTask, RunState};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A claimed attempt and its delivery.
pub(super) struct ClaimedAttempt<X> {
    pub(super) assignment: Assignment,
    pub(super) delivery: Delivery,
    /// The seat that makes the attempt. `None` for an attempt that an earlier driver claimed.
    pub(super) seat: Option<X>,
}

/// The claim of the next attempt of a branch, if it is due.
#[derive(Clone)]
pub(super) struct NextClaim {
    pub(super) branch: BranchId,
    pub(super) id: AttemptId,
    pub(super) worker: String,
    pub(super) machine: Option<MachineId>,
    /// The stages that may be claimed. `None` for all.
    pub(super) stages: Option<Arc<BTreeSet<NodeId>>>,
}

impl NextClaim {
    /// Returns the claim of the branch's open task, or else of a task that one of the events made ready on another branch.
    /// `None` if no task may begin now.
    pub(super) fn event(&self, state: &RunState, at: Timestamp, events: &[Event]) -> Option<Event> {
        let can_be_made = |open: &OpenTask| self.stages.as_ref().is_none_or(|can| can.contains(&open.task.stage()));
        let is_due = |open: &&OpenTask| {
            open.attempt_id.is_none() && open.due_at.is_none_or(|due| due <= at) && can_be_made(open)
        };
        let made_ready = events.iter().filter_map(|event| Some(&event.stage_ready()?.task.branch));
        let branches = std::iter::once(&self.branch).chain(made_ready);
        let open = branches.filter_map(|id| state.branch(id).open()).find(is_due)?;
        let goes_on = !state.is_ending() && out_of_time(state, at).is_none();
        goes_on.then(|| {
            let (attempt, worker, machine) = (open.attempt(&self.id), self.worker.clone(), self.machine.clone());
            Event::StageStarted(StageStarted { attempt, worker, machine, moved: None })
        })
    }
}

/// Creates a new id for an attempt.
fn new_id() -> AttemptId {
    AttemptId::new(ulid::Ulid::generate().to_string())
}

impl<'a, J: RunLog + ClaimQueue, S: Signals, F: Follow> Driver<'a, J, S, F> {
    /// Asks for a seat for the attempt of a delivery, and extends the lease of the delivery meanwhile.
    pub(super) fn ask<'e, X: Executors>(
        &self,
        executors: &'e X,
        delivery: Delivery,
    ) -> impl Future<Output = Result<SeatedAttempt<X::Seat>, RunError>> + use<'a, 'e, J, S, F, X> {
        let Self { journal, heartbeat, clock, .. } = *self;
        let place = self.replay.state.branch(&delivery.task.branch).place.clone();
        async move {
            let seat = {
                let mut asked = std::pin::pin!(executors.seat(&delivery, place.as_deref()));
                loop {
                    tokio::select! {
                        biased;
                        seat = &mut asked => break seat,
                        () = tokio::time::sleep(heartbeat) => drop(journal.extend(&delivery, clock.now(), LEASE_MS).await?),
                    }
                }
            };
            let seat = seat.map_err(|source| RunError::Execute { node: delivery.task.node.clone(), source })?;
            Ok((delivery, seat))
        }
    }

    /// Claims the task of a delivery for a seat. If the run does not go on, the delivery is given back.
    pub(super) async fn begin<X: Seat>(
        &mut self,
        delivery: Delivery,
        seat: X,
        is_pausing: bool,
    ) -> Result<(Begin<X>, Vec<Record>), RunError> {
        let is_over = out_of_time(&self.replay.state, self.clock.now()).is_some();
        if is_pausing || is_over || self.replay.state.is_ending() || self.is_asked_to_stop() {
            self.journal.done(&delivery).await?;
            return Ok((Begin::Nothing, Vec::new()));
        }
        let (assignment, records) = self.claim(&delivery, seat.machine()).await?;
        let begin = match assignment {
            Some(assignment) => Begin::Attempt(ClaimedAttempt { assignment, delivery, seat: Some(seat) }),
            None => Begin::Nothing,
        };
        Ok((begin, records))
    }

    /// Claims the task of a delivery. The assignment is `None` if the run does not wait for this task: a delivery may
    /// come twice, or another worker may have claimed the task first.
    async fn claim(
        &mut self,
        delivery: &Delivery,
        machine: Option<&MachineId>,
    ) -> Result<(Option<Assignment>, Vec<Record>), RunError> {
        let task = &delivery.task;
        let open = self.replay.state.branch(&task.branch).open();
        let open = open.filter(|open| open.task == *task && open.ready_seq == delivery.ready_seq);
        let id = new_id();
        let Some((attempt, head)) = open.map(|open| (open.attempt(&id), open.head)) else {
            // Another driver may have changed the run. The next delivery finds the state up to date.
            let read = self.catch_up().await?;
            self.journal.done(delivery).await?;
            return Ok((None, read));
        };
        tracing::debug!(%task, attempt.ordinal, worker = self.worker, "claiming");
        let moved = self.replay.state.branch(&task.branch).moved_to(machine);
        let started = StageStarted { attempt, worker: self.worker.clone(), machine: machine.cloned(), moved };
        let started = vec![Event::StageStarted(started)];
        let Committed { records, is_stored } = self
            .append(|state| {
                state.branch(&task.branch).open().filter(|open| open.task == *task && open.head == head)?;
                let expect = vec![(StreamKey::from(task), head)];
                Some(Batch { expect, events: started.clone(), because: Vec::new(), claim: None })
            })
            .await?;
        // The delivery of a lost claim is not marked as done, because the worker that won may hold its lease.
        Ok((is_stored.then(|| self.assignment(&id, &task.branch)).flatten(), records))
    }

    /// Returns the claim of the next attempt on a branch by a seat, for the append that makes it ready.
    pub(super) fn next_claim(&self, branch: &BranchId, seat: &impl Seat) -> NextClaim {
        let (branch, id, worker) = (branch.clone(), new_id(), self.worker.clone());
        NextClaim { branch, id, worker, machine: seat.machine().cloned(), stages: seat.stages().cloned() }
    }

    /// Returns the attempt of a claim that was part of an append, and takes the lease of its delivery, as if the queue had
    /// delivered it. `None` if nothing was claimed, or if another worker has claimed the task.
    pub(super) async fn claimed<X>(
        &self,
        claim: NextClaim,
        seat: X,
        records: &[Record],
    ) -> Result<Option<ClaimedAttempt<X>>, RunError> {
        let mut started = records.iter().filter_map(|record| record.event.stage_started());
        let branch = started.find(|started| started.attempt.id == claim.id).map(|started| &started.attempt.task.branch);
        let Some(assignment) = branch.and_then(|branch| self.assignment(&claim.id, branch)) else { return Ok(None) };
        let Some(open) = assignment.branch.open() else { return Ok(None) };
        tracing::debug!(task = %open.task, ordinal = open.ordinal, worker = self.worker, "claimed in one append with a result");
        let delivery = Delivery { run: self.run.clone(), task: open.task.clone(), ready_seq: open.ready_seq };
        self.journal.hold(&delivery, self.clock.now(), LEASE_MS).await?;
        Ok(Some(ClaimedAttempt { assignment, delivery, seat: Some(seat) }))
    }

    /// Returns the assignment of an attempt. `None` if the attempt claimed nothing, or if another driver has claimed
    /// its task since. That is possible if the result of the append was lost.
    pub(super) fn assignment(&self, id: &AttemptId, branch: &BranchId) -> Option<Assignment> {
        let branch = self.replay.state.branch(branch);
        let open = branch.open().filter(|open| open.attempt_id.as_ref() == Some(id))?;
        let attempt = open.attempt(id);
        let granted = self.replay.state.granted(&attempt.task.node);
        let run = Arc::clone(self.replay.state.run.as_ref()?);
        let steering = Steering::default();
        self.replay.state.steering(open).for_each(|message| steering.push(message));
        let (token, branch, stop) = (open.head, Arc::clone(branch), Arc::default());
        Some(Assignment { token, attempt, run, granted, branch, stop, steering, pulse: Pulse::default() })
    }
}
