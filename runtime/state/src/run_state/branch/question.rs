//! Questions to people in the state of a run: which are open, and what an answer leaves behind.
//!
//! Branches may wait for several answers at once, so everything is found by the id of the question.

use super::pending_outcome::FailedStage;
use super::{Branch, Position};
use crate::run_state::RunState;
use glovebox_journal::event::{QuestionAnswered, QuestionAsked, QuestionId};
use std::sync::Arc;

/// A wait of a branch for something other than an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// For the answer to a question.
    Answer(OpenQuestion),
}

/// A question that nobody has answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The question.
    pub asked: Arc<QuestionAsked>,
    /// The last record about it.
    pub head: u64,
}

impl RunState {
    /// The questions that nobody has answered, by branch.
    pub fn questions(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.branches.values().filter_map(|branch| branch.question())
    }

    /// An open question.
    pub fn question(&self, id: &QuestionId) -> Option<&OpenQuestion> {
        self.questions().find(|open| open.asked.question == *id)
    }

    pub(crate) fn question_mut(&mut self, id: &QuestionId) -> Option<&mut OpenQuestion> {
        let asks = |branch: &Arc<Branch>| branch.question().is_some_and(|open| open.asked.question == *id);
        let branch = self.branches.values_mut().find(|branch| asks(branch))?;
        match &mut Arc::make_mut(branch).at {
            Position::Waiting(Wait::Answer(open)) => Some(open),
            _ => None,
        }
    }
}

impl Branch {
    /// The question whose answer it waits for.
    pub fn question(&self) -> Option<&OpenQuestion> {
        match &self.at {
            Position::Waiting(Wait::Answer(open)) => Some(open),
            _ => None,
        }
    }

    pub(crate) fn ask(&mut self, asked: &QuestionAsked) {
        self.arrive(&asked.node, asked.visit);
        self.at = Position::Waiting(Wait::Answer(OpenQuestion { asked: Arc::new(asked.clone()), head: 0 }));
    }

    pub(crate) fn answer(&mut self, answered: &QuestionAnswered) {
        self.at = Position::Deciding;
        if answered.recovery {
            // What it comes to is said by the event that follows.
            return;
        }
        let outcome = answered.outcome();
        // The engine's own keys: no handler can set them.
        self.context.set_all(&outcome.context_updates);
        self.record_outcome(&answered.node, &outcome);
        self.complete(&answered.node);
        self.last_failed = self.last_failure.as_ref().map(|_| Arc::new(FailedStage::silent(&answered.node)));
        self.note_end_in_chain(&answered.node, true);
    }
}
