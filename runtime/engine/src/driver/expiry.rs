//! Appends events that are caused by time or by people: answers, steering messages, the timeouts of parallel nodes, and the end of
//! a stalled run.

use super::commit::Batch;
use super::stops::Stops;
use super::{Driver, Follow, RunError};
use crate::inbox::{Inbox, Mail};
use glovebox_journal::event::Record;
use glovebox_journal::ports::{ClaimQueue, RunLog, Signals};
use glovebox_state::decide;
use glovebox_state::run_state::RunState;

impl<J: RunLog + ClaimQueue, S: Signals, F: Follow> Driver<'_, J, S, F> {
    /// Records one answer, one message, the timeout of one parallel node, or a stall. `None` if there is none of these.
    pub(super) async fn note_one<M: Mail>(
        &mut self,
        inbox: &mut Inbox<M>,
        stops: &mut Stops,
    ) -> Result<Option<Vec<Record>>, RunError> {
        if let Some(records) = self.stall_one(stops).await? {
            return Ok(Some(records));
        }
        if let Some(records) = self.answer_one(inbox).await? {
            return Ok(Some(records));
        }
        if let Some(given) = inbox.next_steering() {
            return Ok(Some(self.steer(inbox, &given).await?));
        }
        let now = self.clock.now();
        let goes_on = |state: &RunState| !state.is_ending();
        let pipeline = self.pipeline;
        let noted = |state: &RunState| decide::due(pipeline, state, now);
        if !goes_on(&self.replay.state) || noted(&self.replay.state).is_none() {
            return Ok(None);
        }
        let committed = self.append(|state| {
            let noted = noted(state).filter(|_| goes_on(state))?;
            Some(Batch::of_run(state, &[noted]))
        });
        Ok(Some(committed.await?.records))
    }
}
