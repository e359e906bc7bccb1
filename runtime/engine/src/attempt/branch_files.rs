//! The workspace folder of a branch. Until its first change, a branch uses the folder of the branch that it split from.
//! After that, it has its own folder.
//!
//! Only a commit writes into a workspace, and the parent branch commits nothing while the branches of its parallel node run.
//! So a branch without changes reads the folder of its parent branch, and a parallel node alone copies nothing.

use super::{AttemptError, Workbench};
use crate::assignment::Assignment;
use crate::run_dir::branch_workspace;
use glovebox_journal::event::BranchId;
use glovebox_journal::ports::BlobStore;
use glovebox_record::Digest;
use glovebox_state::run_state::Branch;
use glovebox_workspace::{branch_folder, commit};
use std::io;
use std::path::Path;

impl<B: BlobStore> Workbench<B> {
    /// Returns the workspace folder of an attempt, relative to the run directory. Creates it if the branch does not have one
    /// yet. Blocks.
    pub(super) fn workspace(&self, assignment: &Assignment) -> Result<String, AttemptError> {
        self.workspace_of(&assignment.attempt.task.branch, &assignment.branch, &assignment.attempt.id)
    }

    fn workspace_of(
        &self,
        id: &BranchId,
        branch: &Branch,
        attempt: &glovebox_journal::event::AttemptId,
    ) -> Result<String, AttemptError> {
        let Some(origin) = &branch.origin else { return Ok(branch_workspace(&BranchId::main())) };
        let below = self.workspace_of(&origin.parent, &origin.branch, attempt)?;
        if branch.changes.is_empty() {
            return Ok(below);
        }
        let folder = branch_workspace(id);
        if self.run.dir.symlink_metadata(&folder).is_err() {
            if let Some(parent) = Path::new(&folder).parent() {
                self.run.dir.create_dir_all(parent).map_err(AttemptError::Folder)?;
            }
            let beside = self.run.path.join(format!("{folder}.{attempt}"));
            branch_folder::copy(&self.run.path.join(below), &beside)?;
            let open = |digest: &Digest| self.blobs.open(digest).map_err(io::Error::other);
            commit::apply(&beside, branch.changes.values(), &open)?;
            branch_folder::put_in_place(&beside, &self.run.path.join(&folder)).map_err(AttemptError::Folder)?;
        }
        Ok(folder)
    }
}
