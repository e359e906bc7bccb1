//! Attempts that failed because a quota at the provider of their model is used up.
//!
//! If the provider named the time at which the quota resumes, the attempt waits in the queue for that time, and the run
//! goes on by itself. Otherwise only a person can help, and the run pauses. In both cases nothing of the attempt is
//! committed, and it is executed again with the answers that were already paid for.

use super::attempt::EndedAttempt;
use super::commit::{Batch, Committed};
use super::{Driver, Follow, RunError};
use crate::inbox::{Inbox, Mail};
use glovebox_journal::event::{Event, HeldStage, Record, StageHeld, StreamKey};
use glovebox_journal::ports::{ClaimQueue, RunLog, Signals};
use glovebox_record::Failure;
use jiff::{SignedDuration, Timestamp};

/// Maximum number of waits of one attempt. A provider that always names a time must not keep a run in a loop.
const WAITS_MAX: u32 = 20;
/// Minimum time of a wait.
const WAIT_MIN: SignedDuration = SignedDuration::from_secs(1);

/// An attempt that is not committed.
pub(super) struct HeldAttempt<X> {
    ended: Box<EndedAttempt<X>>,
    failure: Failure,
}

impl<J: RunLog + ClaimQueue, S: Signals, F: Follow> Driver<'_, J, S, F> {
    /// Returns the attempt if it failed because of a quota and its result is needed. Any other attempt is returned
    /// unchanged as `Err`.
    pub(super) fn held<X>(&self, mut ended: Box<EndedAttempt<X>>) -> Result<HeldAttempt<X>, Box<EndedAttempt<X>>> {
        let is_held = self.is_needed(&ended);
        match ended.result.finished.outcome.failure.take_if(|failure| is_held && failure.is_of_quota()) {
            Some(failure) => Ok(HeldAttempt { ended, failure }),
            None => Err(ended),
        }
    }

    /// Returns true if the run still needs an attempt that ended: its branch continues, and no one asked the attempt to stop.
    pub(super) fn is_needed<X>(&self, ended: &EndedAttempt<X>) -> bool {
        let branch = self.replay.state.branch(&ended.delivery.task.branch);
        let goes_on = !self.replay.state.is_ending() && branch.canceled.is_none();
        goes_on && ended.stop.is_none() && !self.is_asked_to_stop()
    }

    /// Makes the attempt wait for the time that its provider named. Without a time, or after too many waits, asks the run
    /// to pause. The attempt then counts as interrupted, and is executed again when the run is resumed.
    pub(super) async fn hold<X, M: Mail>(
        &mut self,
        held: HeldAttempt<X>,
        inbox: &mut Inbox<M>,
    ) -> Result<Vec<Record>, RunError> {
        let HeldAttempt { ended, failure } = held;
        let EndedAttempt { delivery, token, id, result, .. } = *ended;
        let finished = result.finished;
        let open = self.replay.state.branch(&delivery.task.branch).open();
        let waits = open.and_then(|open| open.quota.as_ref()).map_or(0, |quota| quota.waits);
        let node = delivery.task.node.clone();
        let Some(resume_at) = finished.model.resume_at.filter(|_| waits < WAITS_MAX) else {
            inbox.hold(HeldStage { node, failure, waits }, finished.model.resume_at);
            return Ok(Vec::new());
        };
        let provider = finished.model.asked.map_or_else(String::new, |asked| asked.provider);
        let resume_at = self.resume_at(resume_at);
        let held = [Event::StageHeld(Box::new(StageHeld { attempt: finished.attempt, failure, provider, resume_at }))];
        let task = &delivery.task;
        let committed = self.append(|state| {
            let branch = state.branch(&task.branch);
            branch.open().filter(|open| open.task == *task && open.attempt_id.as_ref() == Some(&id))?;
            let expect = vec![
                (StreamKey::from(&task.branch), branch.head),
                (StreamKey::from(task), token),
                (StreamKey::Run, state.head),
            ];
            Some(Batch { expect, events: held.to_vec(), because: Vec::new(), claim: None })
        });
        let Committed { records, is_stored } = committed.await?;
        if is_stored {
            self.journal.done(&delivery).await?;
        }
        Ok(records)
    }

    /// Returns the time at which the attempt is executed again, in whole milliseconds and at least [`WAIT_MIN`] from now.
    fn resume_at(&self, named: Timestamp) -> Timestamp {
        let first = self.clock.now().checked_add(WAIT_MIN).unwrap_or(Timestamp::MAX);
        let at = self.clock.converted(named).max(first);
        let up = at.checked_add(SignedDuration::from_nanos(999_999)).unwrap_or(at);
        glovebox_journal::event::whole_milliseconds(up)
    }
}
