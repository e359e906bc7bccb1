//! The conversation that a stage of a branch can continue, and the edge that led to the stage.
//!
//! This is a fold of the branch's events. The conversations are artifacts, and only their digests are kept here.

use glovebox_journal::event::{Digest, Ending, Event, NodeId, StageFinished};
use glovebox_pipeline::ir::EdgeIndex;
use glovebox_record::{AttemptId, Status, ThreadId};
use rpds::RedBlackTreeMapSync;
use std::sync::Arc;

/// Name of the artifact with the conversation of an attempt.
pub const CONVERSATION_FILE: &str = "conversation.json";

/// The last conversation of a node or a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastConversation {
    /// The node whose stage had the conversation.
    pub node: NodeId,
    /// The attempt that had the conversation.
    pub attempt: AttemptId,
    /// Digest of the artifact; `None` if the conversation was not stored.
    pub digest: Option<Digest>,
}

/// The conversations of a branch.
#[derive(Debug, Clone, PartialEq)]
pub struct Conversations {
    /// The last edge that was taken, and the node that it led to.
    arrived: Option<(NodeId, EdgeIndex)>,
    threads: RedBlackTreeMapSync<ThreadId, Arc<LastConversation>>,
    /// The last conversation of the branch.
    last: Option<Arc<LastConversation>>,
}

impl Default for Conversations {
    fn default() -> Self {
        Self { arrived: None, threads: RedBlackTreeMapSync::new_sync(), last: None }
    }
}

impl Conversations {
    /// Returns the edge that led to a node, or `None` if no edge did.
    pub fn edge_into(&self, node: &NodeId) -> Option<EdgeIndex> {
        self.arrived.as_ref().filter(|(to, _)| to == node).map(|(_, edge)| *edge)
    }

    /// Returns the last conversation of a thread.
    pub fn of_thread(&self, thread: &ThreadId) -> Option<&LastConversation> {
        self.threads.get(thread).map(Arc::as_ref)
    }

    /// Returns the conversation of the last stage that called a model.
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

    /// Notes the conversation of an attempt. An attempt that is repeated, was cut off or was skipped changes nothing.
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
