//! Which conversation a stage of a branch can continue, and the edge that led to it.
//!
//! A fold of the branch's events. The conversations themselves are artifacts, of which this keeps the digests.

use glovebox_journal::event::{Digest, Ending, Event, NodeId, StageFinished};
use glovebox_pipeline::ir::EdgeIndex;
use glovebox_record::{AttemptId, Status, ThreadId};
use rpds::RedBlackTreeMapSync;
use std::sync::Arc;

/// The artifact with the conversation of an attempt.
pub const CONVERSATION_FILE: &str = "conversation.json";

/// The last conversation of a node or a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastConversation {
    /// Its owner.
    pub node: NodeId,
    /// The attempt that had it.
    pub attempt: AttemptId,
    /// Its bytes; none if it was not kept.
    pub digest: Option<Digest>,
}

/// The conversations of a branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversations {
    /// The node that the last edge led to, and the edge.
    arrived: Option<(NodeId, EdgeIndex)>,
    threads: RedBlackTreeMapSync<ThreadId, Arc<LastConversation>>,
    /// The last of all.
    last: Option<Arc<LastConversation>>,
}

impl Default for Conversations {
    fn default() -> Self {
        Self { arrived: None, threads: RedBlackTreeMapSync::new_sync(), last: None }
    }
}

impl Conversations {
    /// The edge that led to a node; none if no edge did.
    pub fn edge_into(&self, node: &NodeId) -> Option<EdgeIndex> {
        self.arrived.as_ref().filter(|(to, _)| to == node).map(|(_, edge)| *edge)
    }

    /// The last conversation of a thread.
    pub fn of_thread(&self, thread: &ThreadId) -> Option<&LastConversation> {
        self.threads.get(thread).map(Arc::as_ref)
    }

    /// The conversation of the last stage that asked a model.
    pub fn last(&self) -> Option<&LastConversation> {
        self.last.as_deref()
    }

    pub(super) fn fold(&mut self, event: &Event) {
        match event {
            Event::RouteTaken(route) => self.arrived = route.edge.map(|edge| (route.to.clone(), EdgeIndex(edge))),
            Event::StageFinished(finished) => self.note(finished),
            _ => {}
        }
    }

    /// An attempt that is repeated, was cut off or was skipped leaves the conversation as it was.
    fn note(&mut self, finished: &StageFinished) {
        let is_last = !finished.follow_up.retrying && finished.outcome.status != Status::Skipped;
        let Some(session) = &finished.model.session else { return };
        if !is_last || finished.ending != Ending::Returned || finished.model.turns_used == 0 {
            return;
        }
        let kept = finished.files.artifacts.iter().find(|artifact| artifact.name == CONVERSATION_FILE);
        let last = Arc::new(LastConversation {
            node: finished.attempt.task.node.clone(),
            attempt: finished.attempt.id.clone(),
            digest: kept.map(|artifact| artifact.digest),
        });
        if let Some(thread) = &session.thread {
            self.threads.insert_mut(thread.clone(), Arc::clone(&last));
        }
        self.last = Some(last);
    }
}
