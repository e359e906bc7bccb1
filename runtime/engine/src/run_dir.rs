//! The directory of a run: its handle, and what lies where in it.

use cap_std::fs::Dir;
use glovebox_journal::event::BranchId;
use glovebox_workspace::user_key::UserKey;
use std::io;
use std::path::PathBuf;

/// The lock of the process that drives the run.
pub const OWNER_FILE: &str = "owner.sqlite";
/// The run's copy of the project.
pub const WORKSPACE_DIR: &str = "workspace";
/// Folder of the sealed hold-outs in a run directory.
pub const HOLDOUTS_DIR: &str = "holdouts";
/// Folder of the private copies in a run directory.
pub const STAGE_DIR: &str = "stage";
/// Folder of what was set aside in a run directory.
pub const QUARANTINE_DIR: &str = "quarantine";
/// The folder in a run's directory.
pub const EXCHANGES_DIR: &str = "exchanges";
/// Folder of synthetic repositories in the run's folder.
pub const REPOSITORIES_DIR: &str = "repository";
/// Folders of the tasks of branches other than `main` (decision branch-folders).
pub const BRANCHES_DIR: &str = "branches";

/// The directory of one run. It exists before it gets here: where it lies is the caller's business.
pub struct RunDir {
    /// Its absolute path, for the stores that open files by path.
    pub path: PathBuf,
    /// The same directory, opened.
    pub dir: Dir,
    /// The key that signs its journal. Without one the journal is unsigned, and no later command acts on it.
    pub key: Option<UserKey>,
}

impl RunDir {
    /// The run's copy of the project.
    pub fn workspace(&self) -> PathBuf {
        self.path.join(WORKSPACE_DIR)
    }

    /// The same directory for what must not sign anything.
    pub(crate) fn without_key(&self) -> io::Result<Self> {
        Ok(Self { path: self.path.clone(), dir: self.dir.try_clone()?, key: None })
    }
}

/// The folder with everything of a branch but its files, relative to the run's; empty for the branch that the run began with.
pub fn branch_folder(id: &BranchId) -> String {
    match *id == BranchId::main() {
        true => String::new(),
        false => format!("{BRANCHES_DIR}/{id}"),
    }
}

/// The workspace of a branch, relative to the run's folder.
pub fn branch_workspace(id: &BranchId) -> String {
    match *id == BranchId::main() {
        true => WORKSPACE_DIR.to_owned(),
        false => format!("{}/{WORKSPACE_DIR}", branch_folder(id)),
    }
}
