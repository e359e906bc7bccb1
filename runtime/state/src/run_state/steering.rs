//! What people told the agents of a run. An attempt that is made again is told the same.

use super::{OpenTask, RunState};
use glovebox_journal::event::{NodeId, StageSteered};
use glovebox_record::steering::STEERING_MAX;
use glovebox_record::{MessageId, SteeringMessage};

impl RunState {
    /// The open attempts that a message reaches: those of its node that are under way, have not heard it, and have room.
    pub fn steerable<'a>(&'a self, node: &'a NodeId, message: &'a MessageId) -> impl Iterator<Item = &'a OpenTask> {
        let open = self.branches.values().filter_map(|branch| branch.open());
        open.filter(move |open| {
            let mut said = self.said_to(open);
            open.task.node == *node
                && open.attempt_id.is_some()
                && said.all(|steered| steered.message != *message)
                && self.said_to(open).count() < STEERING_MAX
        })
    }

    /// The steering messages that an attempt of this task has from its beginning.
    pub fn steering(&self, open: &OpenTask) -> impl Iterator<Item = SteeringMessage> {
        self.said_to(open).map(SteeringMessage::from)
    }

    fn said_to(&self, open: &OpenTask) -> impl Iterator<Item = &StageSteered> {
        let is_same =
            move |steered: &&StageSteered| steered.attempt.task == open.task && steered.attempt.ordinal == open.ordinal;
        self.steered.iter().map(|steered| &**steered).filter(is_same)
    }
}
