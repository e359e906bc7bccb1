//! The steering messages of people to the agents of a run. An attempt that is executed again gets the same messages.

use super::{OpenTask, RunState};
use glovebox_journal::event::{NodeId, StageSteered};
use glovebox_record::steering::STEERING_MAX;
use glovebox_record::{MessageId, SteeringMessage};

impl RunState {
    /// Returns the open attempts that a message reaches: the running attempts of the node that do not have the message
    /// yet and have room for one more.
    pub fn steerable<'a>(&'a self, node: &'a NodeId, message: &'a MessageId) -> impl Iterator<Item = &'a OpenTask> {
        let open = self.branches.values().filter_map(|branch| branch.open());
        open.filter(move |open| open.task.node == *node && self.has_room(open, message))
    }

    /// Returns true if an attempt runs, does not have this message yet and has room for one more.
    pub(crate) fn has_room(&self, open: &OpenTask, message: &MessageId) -> bool {
        open.attempt_id.is_some()
            && self.said_to(open).all(|steered| steered.message != *message)
            && self.said_to(open).count() < STEERING_MAX
    }

    /// Returns the steering messages that an attempt of this task gets at its start.
    pub fn steering(&self, open: &OpenTask) -> impl Iterator<Item = SteeringMessage> {
        self.said_to(open).map(SteeringMessage::from)
    }

    fn said_to(&self, open: &OpenTask) -> impl Iterator<Item = &StageSteered> {
        let is_same =
            move |steered: &&StageSteered| steered.attempt.task == open.task && steered.attempt.ordinal == open.ordinal;
        self.steered.iter().map(|steered| &**steered).filter(is_same)
    }
}
