//! Takes a run over from another driver, without abandoning the attempts in progress (decision takeovers-adopt-attempts).
//!
//! The event `run.taken_over` is the fence between the two drivers. It moves the head of the run, which every append
//! expects, so the driver before stores nothing after it, and ends with [`RunError::TakenOver`] when it reads why. Of two
//! drivers that take over at the same time, only one succeeds.

use super::commit::Batch;
use super::{Driver, Follow, RunError};
use glovebox_journal::event::{BranchId, DriverId, Event, Record, RunTakenOver, StreamKey};
use glovebox_journal::ports::{ClaimQueue, Delivery, PortError, RunLog};
use glovebox_state::run_state::{LastEvents, RunState};

impl<J: RunLog + ClaimQueue, S, F: Follow> Driver<'_, J, S, F> {
    /// Takes the run over. `last` has the last events of the records that are folded so far; records that were appended
    /// since are read first. Attempts in progress stay claimed, and their results count.
    ///
    /// # Errors
    ///
    /// Returns [`RunError::Ended`] if the run has ended, and [`RunError::TakenOver`] if another driver took the run over at
    /// the same time.
    pub async fn take_over(&mut self, mut last: LastEvents) -> Result<Vec<Record>, RunError> {
        let driver = DriverId::new(ulid::Ulid::generate().to_string());
        self.takeover = Some(driver.clone());
        let mut records = Vec::new();
        loop {
            self.clock.advance_to(self.replay.state.at);
            self.refuse_ended()?;
            let state = &self.replay.state;
            let previous = state.driver.as_deref().map(str::to_owned);
            let taken = RunTakenOver { machine: self.worker.as_str().into(), driver: driver.clone(), previous };
            let events = vec![Event::RunTakenOver(Box::new(taken))];
            let because = last.clone().pending().0;
            let batch = Batch { expect: all_heads(state), events, because, claim: None };
            match self.try_append(batch).await {
                Ok(stored) => {
                    records.extend(stored);
                    self.release_leases().await?;
                    return self.told(records);
                }
                Err(RunError::Port(conflict @ PortError::Conflict { .. })) => {
                    let read = self.read_on().await?;
                    if read.is_empty() {
                        return Err(conflict.into());
                    }
                    self.refuse_takeover(&read)?;
                    for record in &read {
                        self.replay_records(std::slice::from_ref(record));
                        last.note(record.clone(), &self.replay.state);
                    }
                    records.extend(read);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Ends the leases of attempts that are not claimed. The driver before may hold them, and can claim nothing any more.
    async fn release_leases(&self) -> Result<(), RunError> {
        let open = self.replay.state.branches.values().filter_map(|branch| branch.open());
        for open in open.filter(|open| open.attempt_id.is_none()) {
            let delivery = Delivery { run: self.run.clone(), task: open.task.clone(), ready_seq: open.ready_seq };
            self.journal.done(&delivery).await?;
        }
        Ok(())
    }

    fn refuse_ended(&self) -> Result<(), RunError> {
        let state = &self.replay.state;
        let run_id = state.run_id().cloned().ok_or(RunError::NotStarted)?;
        match &state.verdict {
            Some(ended) => Err(RunError::Ended { run_id, verdict: ended.status }),
            None => Ok(()),
        }
    }
}

impl<J: RunLog, S, F: Follow> Driver<'_, J, S, F> {
    /// Returns an error if one of the records is the takeover by another driver.
    pub(super) fn refuse_takeover(&self, read: &[Record]) -> Result<(), RunError> {
        let taken = read.iter().filter_map(|record| record.event.run_taken_over());
        match taken.into_iter().find(|taken| Some(&taken.driver) != self.takeover.as_ref()) {
            Some(taken) => Err(RunError::TakenOver { machine: taken.machine.to_string() }),
            None => Ok(()),
        }
    }
}

/// Returns the head of every stream that can move, so that a takeover conflicts with every append that it did not read.
fn all_heads(state: &RunState) -> Vec<(StreamKey, u64)> {
    let mut heads = vec![(StreamKey::Run, state.head)];
    for (id, branch) in &state.branches {
        heads.push((StreamKey::from(id), branch.head));
        heads.extend(branch.open().map(|open| (StreamKey::from(&open.task), open.head)));
    }
    if !state.branches.contains_key(&BranchId::main()) {
        heads.push((StreamKey::from(&BranchId::main()), state.main().head));
    }
    heads.extend(state.questions().map(|open| (StreamKey::from(&open.asked.question), open.head)));
    heads
}
