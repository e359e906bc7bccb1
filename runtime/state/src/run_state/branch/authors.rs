//! Which stages changed each path of a branch, and what was there before the first change of each.
//!
//! So a verifier can count what some stages changed alone. A stage stands once for each path, however often it changes it.

use super::Branch;
use glovebox_journal::event::{FileChange, NodeId};
use glovebox_record::path::ScopePath;
use rpds::RedBlackTreeMapSync;
use std::sync::Arc;

/// A stage that changed a path.
#[derive(Debug, Clone, PartialEq)]
pub struct Author {
    /// Its node.
    pub node: NodeId,
    /// The change of the path before its first one; none if the path was as the run found it.
    pub before: Option<FileChange>,
}

/// The stages that changed each path, in the order of their first changes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Authors {
    of: RedBlackTreeMapSync<ScopePath, Arc<[Author]>>,
}

impl Authors {
    /// Those of one path.
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
    /// Remembers the last change of a path, and the stage that made it.
    pub(crate) fn note_change(&mut self, node: &NodeId, change: &FileChange) {
        let before = self.last_change(&change.path).cloned();
        self.authors.note(node, &change.path, before);
        self.changes.insert_mut(change.path.clone(), change.to_owned());
    }
}
