//! The stages that changed each path of a branch, and the last change of the path before each of them.
//!
//! From this list, a verifier can count only the changes of some stages. A stage is listed once for each path, however
//! often it changes the path.

use super::Branch;
use glovebox_journal::event::{FileChange, NodeId};
use glovebox_record::path::ScopePath;
use rpds::RedBlackTreeMapSync;
use std::sync::Arc;

/// A stage that changed a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Author {
    /// The node of the stage.
    pub node: NodeId,
    /// The last change of the path before the first change by this stage; `None` if the path was unchanged since the
    /// start of the run.
    pub before: Option<FileChange>,
}

/// The stages that changed each path, in the order of their first changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Authors {
    of: RedBlackTreeMapSync<ScopePath, Arc<[Author]>>,
}

impl Authors {
    /// Returns the authors of one path.
    pub fn of(&self, path: &ScopePath) -> &[Author] {
        self.of.get(path).map(AsRef::as_ref).unwrap_or_default()
    }

    pub(crate) fn note(&mut self, node: &NodeId, path: &ScopePath, before: Option<FileChange>) {
        let known = self.of(path);
        if known.iter().all(|author| author.node != *node) {
            let author = Author { node: node.clone(), before };
            let all = known.iter().cloned().chain([author]).collect();
            self.of.insert_mut(path.clone(), all);
        }
    }
}

impl Branch {
    /// Stores the last change of a path, and the stage that made it.
    pub(crate) fn note_change(&mut self, node: &NodeId, change: &FileChange) {
        let before = self.last_change(&change.path).cloned();
        self.authors.note(node, &change.path, before);
        self.changes.insert_mut(change.path.clone(), change.to_owned());
    }
}
