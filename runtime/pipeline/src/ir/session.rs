//! The settings of a node, an edge or the graph for the conversation of a stage's model.

use glovebox_record::{Fidelity, ThreadId};

/// The session settings of a node, an edge or the graph.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionSettings {
    /// `fidelity`; on the graph `default_fidelity`.
    pub fidelity: Option<Fidelity>,
    /// `thread_id`.
    pub thread: Option<ThreadId>,
    /// Class of the innermost subgraph that contains the node.
    pub class: Option<ThreadId>,
}

impl SessionSettings {
    pub(crate) fn is_full(&self) -> bool {
        self.fidelity == Some(Fidelity::Full)
    }
}
