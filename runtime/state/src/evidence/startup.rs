//! Files that stages wrote and that a verifier's command loads automatically. Such a file may have decided that the
//! command passed.
//!
//! This is a fold of the changes and the receipts. A change is listed for the branch that made it, and after a merge
//! for the parent branch. The changes of a verifier are not listed for its own commands.

mod modules;
mod programs;
mod table;

pub(super) use table::any_reader;

use glovebox_journal::event::{BranchId, ChangeOp, FanInFinished, FileChange, Receipt, StageFinished, Work};
use glovebox_pipeline::ir::Role;
use glovebox_record::NodeId;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use programs::Loaded;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of files in the evidence of one command.
const FILES_MAX: usize = 20;

/// A file that a command loaded automatically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct StartupFile {
    /// The file.
    #[schemars(with = "String")]
    pub path: ScopePath,
    /// The stage that last wrote the file.
    pub by: NodeId,
    /// A description of the program that loads the file.
    pub reader: &'static str,
}

/// The author of a file: a node, and whether its handler or its verification wrote the file.
type Author = (NodeId, Work);

/// Files that stages wrote. All files are kept, because an environment variable of a command can name any file to load.
#[derive(Debug, Clone, Default)]
pub(super) struct StartupFiles {
    /// The last author of each file, by branch.
    written: BTreeMap<BranchId, Arc<BTreeMap<ScopePath, Author>>>,
}

impl StartupFiles {
    /// As [`of_commands`](Self::of_commands), but also notes the changes of the stage.
    pub(super) fn of_stage(&mut self, stage: &StageFinished, role: Role) -> Vec<Vec<StartupFile>> {
        let loaded = self.of_commands(stage, role);
        let task = &stage.attempt.task;
        self.note(&task.branch, &(task.node.clone(), task.work), &stage.files.changes);
        loaded
    }

    /// Returns the files that each command of a verifier loaded. The lists are empty for any other stage.
    pub(super) fn of_commands(&self, stage: &StageFinished, role: Role) -> Vec<Vec<StartupFile>> {
        let loaded = |receipt: &Receipt| match role {
            Role::Verifier => self.loaded(stage, receipt),
            Role::Builder => Vec::new(),
        };
        stage.commands.receipts.iter().map(loaded).collect()
    }

    /// Returns the files that a command of this stage loaded and that the stage could see.
    fn loaded(&self, stage: &StageFinished, receipt: &Receipt) -> Vec<StartupFile> {
        let task = &stage.attempt.task;
        let Some(written) = self.written.get(&task.branch).filter(|_| receipt.hook.is_none() && !receipt.subject)
        else {
            return Vec::new();
        };
        let loaded = Loaded::find(&receipt.argv, &receipt.cwd);
        let sees =
            |path: &ScopePath| stage.commands.sees.as_ref().is_none_or(|seen| seen.iter().any(|one| is_in(path, one)));
        let is_own = |(by, work): &Author| (by, work) == (&task.node, &task.work);
        let others = written.iter().filter(|(path, by)| !is_own(by) && sees(path));
        let file = |(path, (by, _)): (&ScopePath, &Author)| {
            Some(StartupFile { path: path.clone(), by: by.clone(), reader: table::reader(path, &loaded)? })
        };
        others.filter_map(file).take(FILES_MAX).collect()
    }

    /// Notes the changes of a stage, or of a person's decision.
    pub(super) fn note<'a>(
        &mut self,
        branch: &BranchId,
        by: &Author,
        changes: impl IntoIterator<Item = &'a FileChange>,
    ) {
        for change in changes {
            match change.op {
                ChangeOp::Write | ChangeOp::Symlink => {
                    let written = self.written.entry(branch.clone()).or_default();
                    Arc::make_mut(written).insert(change.path.clone(), by.clone());
                }
                ChangeOp::Delete | ChangeOp::Mkdir | ChangeOp::Rmdir => {
                    let written = self.written.get_mut(branch).filter(|written| written.contains_key(&change.path));
                    written.map(|written| Arc::make_mut(written).remove(&change.path));
                }
            }
        }
    }

    /// Starts a branch with the files of its parent.
    pub(super) fn begin_branch(&mut self, parent: &BranchId, branch: &BranchId) {
        if let Some(written) = self.written.get(parent) {
            self.written.insert(branch.clone(), Arc::clone(written));
        }
    }

    /// Removes branches that have ended.
    pub(super) fn end(&mut self, branches: &BTreeSet<BranchId>) {
        self.written.retain(|branch, _| !branches.contains(branch));
    }

    /// Adds the changes that a fan-in merged. Each change keeps its author.
    pub(super) fn merge(&mut self, finished: &FanInFinished) {
        for change in &finished.changes {
            let of_branch = |branch: &BranchId| self.written.get(branch)?.get(&change.path);
            let author = finished.merged.iter().find_map(of_branch).cloned();
            let author = author.unwrap_or_else(|| (finished.node.clone(), Work::Handler));
            self.note(&finished.branch, &author, [change]);
        }
    }
}

/// Returns true if an entry of a read scope covers a path.
fn is_in(path: &ScopePath, entry: &str) -> bool {
    Entry::parse(entry).is_ok_and(|entry| path.starts_with(entry.path()))
}
