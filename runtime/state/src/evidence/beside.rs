//! Which files that stages wrote a stage with hold-outs in reach could run code of, because its own commands saw the project.
//!
//! An isolated verdict has none. The summary names them: nothing stops an in-process test runner from reading them.

use super::readers;
use super::startup::any_reader;
use glovebox_journal::event::{ChangeOp, Isolation, StageFinished};
use glovebox_record::NodeId;
use glovebox_record::path::ScopePath;
use std::collections::BTreeMap;

/// Files with names that builds and test runners look for, as far as stages wrote them.
#[derive(Debug, Clone, Default)]
pub struct BesideHoldouts {
    /// The stage that last wrote each of them.
    written: BTreeMap<ScopePath, NodeId>,
    /// Those that a stage could see beside hold-outs, at its last visit.
    seen: BTreeMap<NodeId, BTreeMap<ScopePath, NodeId>>,
}

impl BesideHoldouts {
    /// The files that a stage could see, each with the stage that wrote it and who takes code or settings from it.
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

/// The program that takes code or settings from a file, if there is one.
fn reader(path: &ScopePath) -> Option<&'static str> {
    readers::reader(path).or_else(|| any_reader(path))
}
