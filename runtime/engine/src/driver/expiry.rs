//! Facts that time or a person brings about, not an attempt: answers, what agents are told, and forks whose time is over.

use super::commit::Batch;
use super::{Driver, RunError};
use crate::decide;
use crate::event::{BranchId, Event, ForkExpired, Record};
use crate::inbox::Inbox;
use crate::ports::{ClaimQueue, RunLog, Signals};
use crate::state::{Branch, Fork, RunState};
use glovebox_pipeline::ir::Pipeline;
use jiff::Timestamp;
use std::sync::Arc;

impl RunState {
    /// The next moment at which the time of a fork is over or a supervisor looks at its child; none when there is none.
    pub(super) fn fork_due(&self) -> Option<Timestamp> {
        let open = self.forks().filter(|(_, fork)| !fork.has_expired);
        open.flat_map(|(_, fork)| [fork.due_at, fork.observe_at]).flatten().min()
    }

    /// A fork whose time is over and that does not know it, as the event that says so.
    fn expired(&self, now: Timestamp) -> Option<Event> {
        let is_late = |fork: &Fork| !fork.has_expired && fork.due_at.is_some_and(|due| due <= now);
        let (branch, fork) = self.forks().find(|(_, fork)| is_late(fork))?;
        let (node, visit, generation) = (fork.node.clone(), fork.visit, self.generation());
        Some(Event::ForkExpired(ForkExpired { generation, branch: branch.clone(), node, visit }))
    }

    /// What a supervisor sees whose time to look has come.
    fn observed(&self, pipeline: &Pipeline, now: Timestamp) -> Option<Event> {
        let is_due = |fork: &Fork| !fork.has_expired && fork.observe_at.is_some_and(|at| at <= now);
        let (branch, fork) = self.forks().find(|(_, fork)| is_due(fork))?;
        decide::observation(pipeline, self, (branch, fork), now)
    }

    fn forks(&self) -> impl Iterator<Item = (&BranchId, &Arc<Fork>)> {
        self.branches.iter().filter_map(|(id, branch): (_, &Arc<Branch>)| Some((id, branch.fork()?)))
    }
}

impl<J: RunLog + ClaimQueue, S: Signals> Driver<'_, J, S> {
    /// Records one answer or message that is there, or that the time of one fork is over. None when there is nothing of it.
    pub(super) async fn note_one(&mut self, inbox: &mut Inbox) -> Result<Option<Vec<Record>>, RunError> {
        if let Some(records) = self.answer_one(inbox).await? {
            return Ok(Some(records));
        }
        if let Some(given) = inbox.next_steering() {
            return Ok(Some(self.steer(inbox, &given).await?));
        }
        let now = Timestamp::now();
        let goes_on = |state: &RunState| state.canceled.is_none() && state.verdict.is_none();
        let pipeline = self.pipeline;
        let noted = |state: &RunState| state.expired(now).or_else(|| state.observed(pipeline, now));
        if !goes_on(&self.state) || noted(&self.state).is_none() {
            return Ok(None);
        }
        let committed = self.append(|state| {
            let noted = noted(state).filter(|_| goes_on(state))?;
            Some(Batch::of_run(state, &[noted]))
        });
        Ok(Some(committed.await?.records))
    }
}
