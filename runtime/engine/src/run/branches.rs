//! Removes the folders of branches from the run directory.
//!
//! Like every workspace, the folders are projections: a resume removes them, and a branch that needs its folder creates
//! it again.

use crate::run_dir::{BRANCHES_DIR, REPOSITORIES_DIR, RunDir, WORKSPACE_DIR, branch_folder};
use glovebox_journal::event::BranchId;
use glovebox_workspace::{cache, tree};
use std::io;
use std::path::Path;

/// Removes the folders that only stages of an ended branch needed: its workspace, its repository and its caches.
pub(super) fn remove_files(run: &RunDir, id: &BranchId) {
    if *id == BranchId::main() {
        return;
    }
    for folder in [WORKSPACE_DIR, REPOSITORIES_DIR, cache::FOLDER] {
        remove(run, format!("{}/{folder}", branch_folder(id)));
    }
}

/// Removes the workspaces of all branches, including incomplete ones, and their caches if `with_caches` is true.
///
/// # Errors
///
/// Returns the system's error.
pub(super) fn sweep(run: &RunDir, with_caches: bool) -> io::Result<()> {
    let branches = match run.dir.read_dir(BRANCHES_DIR) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        branches => branches?,
    };
    for branch in branches {
        let branch = branch?;
        let Some(name) = branch.file_name().to_str().map(str::to_owned) else { continue };
        for entry in run.dir.read_dir(format!("{BRANCHES_DIR}/{name}"))? {
            let entry = entry?.file_name();
            let entry = entry.to_string_lossy();
            // A node's folder never has these names, and no id contains a dot.
            let is_workspace = entry == WORKSPACE_DIR || entry.starts_with(&format!("{WORKSPACE_DIR}."));
            if is_workspace || (with_caches && entry == cache::FOLDER) {
                tree::remove_all(&run.path.join(BRANCHES_DIR).join(&name).join(&*entry))?;
            }
        }
    }
    Ok(())
}

fn remove(run: &RunDir, folder: impl AsRef<Path>) {
    let folder = folder.as_ref();
    if run.dir.symlink_metadata(folder).is_ok()
        && let Err(error) = tree::remove_all(&run.path.join(folder))
    {
        tracing::warn!(folder = %folder.display(), %error, "not removed");
    }
}
