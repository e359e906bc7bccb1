//! Files of other stages whose code could run in a stage with access to hold-outs, because the commands of that stage
//! saw the project.
//!
//! If the verdict of a stage is isolated, the stage has no such files. The summary lists the files, because code in an
//! in-process test runner can read the hold-outs.

use super::readers;
use super::startup::any_reader;
use glovebox_journal::event::{ChangeOp, Isolation, StageFinished};
use glovebox_record::NodeId;
use glovebox_record::path::ScopePath;
use std::collections::BTreeMap;

/// Files that stages wrote and that builds or test runners load by name.
#[derive(Debug, Clone, Default)]
pub struct BesideHoldouts {
    /// The stage that last wrote each of these files.
    written: BTreeMap<ScopePath, NodeId>,
    /// For each stage, the files that it could see during its last visit while it had access to hold-outs.
    seen: BTreeMap<NodeId, BTreeMap<ScopePath, NodeId>>,
}

impl BesideHoldouts {
    /// Returns the files that a stage could see, each with the stage that wrote it and the program that takes code or
    /// settings from it.
    pub fn of(&self, node: &NodeId) -> impl Iterator<Item = (&ScopePath, &NodeId, &'static str)> {
        let files = self.seen.get(node).into_iter().flatten();
        files.filter_map(|(path, author)| Some((path, author, reader(path)?)))
    }

    pub(super) fn note(&mut self, stage: &StageFinished) {
        let node = &stage.attempt.task.node;
        match stage.commands.isolation {
            Some(Isolation::NotIsolated) => _ = self.seen.insert(node.clone(), self.written.clone()),
            _ => _ = self.seen.remove(node),
        }
        for change in &stage.files.changes {
            match change.op {
                ChangeOp::Write | ChangeOp::Symlink if reader(&change.path).is_some() => {
                    self.written.insert(change.path.clone(), node.clone());
                }
                _ => _ = self.written.remove(&change.path),
            }
        }
    }
}

/// Returns the program that takes code or settings from a file, if there is one.
fn reader(path: &ScopePath) -> Option<&'static str> {
    readers::reader(path).or_else(|| any_reader(path))
}
