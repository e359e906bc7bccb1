//! Questions to people in the state of a run: the open questions, and the effect of an answer.
//!
//! Branches may wait for several answers at once, so a question is always looked up by its id.

use super::pending_outcome::FailedStage;
use super::{Branch, Position};
use crate::run_state::RunState;
use glovebox_journal::event::{QuestionAnswered, QuestionAsked, QuestionId};
use std::sync::Arc;

/// What a branch waits for other than an attempt or branches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// The answer to a question.
    Answer(OpenQuestion),
}

/// A question without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenQuestion {
    /// The question.
    pub asked: Arc<QuestionAsked>,
    /// Sequence number of the last record about the question.
    pub head: u64,
}

impl RunState {
    /// Returns the open questions, in the order of their branches.
    pub fn questions(&self) -> impl Iterator<Item = &OpenQuestion> {
        self.branches.values().filter_map(|branch| branch.question())
    }

    /// Returns the open question with this id.
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
    /// Returns the question whose answer the branch waits for.
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
            // The effect of this answer is recorded by the `recovery.decided` event that follows.
            return;
        }
        let outcome = answered.outcome();
        // These are keys of the engine, which no handler can set.
        self.context.set_all(&outcome.context_updates);
        self.record_outcome(&answered.node, &outcome);
        self.complete(&answered.node);
        self.last_failed = self.last_failure.as_ref().map(|_| Arc::new(FailedStage::silent(&answered.node)));
        self.note_end_in_chain(&answered.node, true);
    }
}
