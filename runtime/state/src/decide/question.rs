//! The question of a human gate, and the route of its answer.
//!
//! The deadline of a question is computed from the record that asks it, so it is the same on any machine.

use super::BranchDecision;
use glovebox_journal::event::{Event, QuestionAnswered, QuestionAsked};
use glovebox_pipeline::gate::Gate;
use glovebox_pipeline::ir::Node;
use jiff::{SignedDuration, Timestamp};
use std::time::Duration;

impl BranchDecision<'_> {
    pub(super) fn ask(&self, node: &Node) -> Event {
        let task = self.next_task(&node.id);
        let Gate { kind, text, choices, default, timeout } = Gate::new(self.pipeline, node);
        let due_at = timeout.map(|timeout| self.due(timeout));
        Event::QuestionAsked(Box::new(QuestionAsked {
            question: QuestionAsked::id_of(&task),
            generation: task.generation,
            branch: task.branch,
            node: task.node,
            visit: task.visit,
            question_type: kind,
            text,
            choices,
            default,
            due_at,
            recovery: None,
        }))
    }

    /// Returns the end of a timeout that begins now.
    pub(super) fn due(&self, timeout: Duration) -> Timestamp {
        let at = self.state.at.unwrap_or(Timestamp::UNIX_EPOCH);
        at.checked_add(SignedDuration::try_from(timeout).unwrap_or(SignedDuration::MAX)).unwrap_or(Timestamp::MAX)
    }

    pub(super) fn leave_gate(&self, answered: &QuestionAnswered) -> Vec<Event> {
        self.leave_stage(&answered.node, &answered.outcome())
    }
}
