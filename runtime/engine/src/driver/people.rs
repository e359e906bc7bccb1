//! Waits for people: answers that have arrived are recorded, and a run that only waits for an answer is paused.
//!
//! A waiting run needs no process (decision unanswered-gates-pause): the driver returns as soon as the run only waits for answers.

use super::commit::{Batch, Committed};
use super::{Driver, Follow, RunError};
use crate::inbox::{GivenSteering, Inbox, Mail};
use glovebox_journal::event::{Event, Record, RunCanceled, RunPaused, StreamKey};
use glovebox_journal::ports::{ClaimQueue, RunLog, Signals};
use glovebox_state::decide::next_due;

impl<J: RunLog + ClaimQueue, S: Signals, F: Follow> Driver<'_, J, S, F> {
    /// Records one answer that has arrived, unless the run was canceled or has ended. `None` if there is none.
    pub(super) async fn answer_one<M: Mail>(&mut self, inbox: &mut Inbox<M>) -> Result<Option<Vec<Record>>, RunError> {
        if self.replay.state.is_ending() {
            return Ok(None);
        }
        let now = self.clock.now();
        let found = self.replay.state.questions().find_map(|open| Some((inbox.answer(open, now)?, open.head)));
        let Some((answered, head)) = found else {
            inbox.ask(self.replay.state.questions());
            return Ok(None);
        };
        let question = answered.question.clone();
        let events = [Event::QuestionAnswered(Box::new(answered))];
        let committed = self.append(|state| {
            state.question(&question).filter(|open| open.head == head)?;
            let expect = vec![(StreamKey::from(&question), head), (StreamKey::Run, state.head)];
            Some(Batch { expect, ..Batch::of_run(state, &events) })
        });
        let Committed { records, .. } = committed.await?;
        inbox.done(&question);
        Ok(Some(records))
    }

    /// Records a person's message to the agents of a node, for the attempts that are in progress. No later attempt gets the
    /// message, and it is recorded only once.
    pub(super) async fn steer<M: Mail>(
        &mut self,
        inbox: &mut Inbox<M>,
        given: &GivenSteering,
    ) -> Result<Vec<Record>, RunError> {
        let committed = self.append(|state| {
            let goes_on = !state.is_ending();
            let to = state.steerable(&given.node, &given.message).filter(|_| goes_on && given.is_bounded());
            let told = to.filter_map(|open| {
                let attempt = open.attempt(open.attempt_id.as_ref()?);
                Some(Event::StageSteered(Box::new(given.to(attempt))))
            });
            let told: Vec<Event> = told.collect();
            (!told.is_empty()).then(|| Batch::of_run(state, &told))
        });
        let Committed { records, .. } = committed.await?;
        inbox.steered(given);
        Ok(records)
    }

    /// Returns true if a question has no answer yet.
    pub(super) fn waits_for_people(&self) -> bool {
        self.replay.state.questions().next().is_some()
    }

    /// Handles the case that no attempt is in progress or ready: waits for a person at the terminal, or pauses the run.
    /// Returns false if no process is needed any more.
    pub(super) async fn wait_for_people<M: Mail>(
        &mut self,
        inbox: &mut Inbox<M>,
    ) -> Result<(Vec<Record>, bool), RunError> {
        let now = self.clock.now();
        if inbox.is_pausing() || !self.replay.state.questions().any(|open| inbox.waits_for(&open.asked, now)) {
            return self.pause(inbox).await;
        }
        let due = self
            .replay
            .state
            .questions()
            .filter_map(|open| open.asked.due_at)
            .chain(next_due(&self.replay.state))
            .min();
        let records = tokio::select! {
            biased;
            by = self.signals.canceled() => self.cancel(RunCanceled { by }).await?,
            end = self.deadline() => self.end(end).await?,
            () = self.clock.wait_until(due) => Vec::new(),
            () = inbox.arrival(self.signals) => Vec::new(),
        };
        Ok((records, true))
    }

    /// Records that the run is paused. No process drives it until it is resumed.
    pub(super) async fn pause<M: Mail>(&mut self, inbox: &mut Inbox<M>) -> Result<(Vec<Record>, bool), RunError> {
        let asked = inbox.take_pause();
        let committed = self.append(|state| {
            let questions = state.questions().map(|open| open.asked.question.clone()).collect();
            let waits = state.waiting_for_quota().map(|(_, wait)| wait.resume_at);
            let resume_at = waits.chain(asked.resume_at).min();
            let paused = RunPaused { questions, resume_at, ..asked.clone() };
            state.verdict.is_none().then(|| Batch::of_run(state, &[Event::RunPaused(Box::new(paused))]))
        });
        Ok((committed.await?.records, false))
    }
}
