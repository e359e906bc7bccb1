//! The directory of a run: its handle, and the names of its files and folders.

use cap_std::fs::Dir;
use glovebox_journal::event::BranchId;
use glovebox_workspace::user_key::UserKey;
use std::io;
use std::path::PathBuf;

/// The file that marks a successful run without changes, or with changes that were all applied.
pub const APPLIED_FILE: &str = "applied";
/// The file with the lock of the process that drives the run.
pub const OWNER_FILE: &str = "owner.sqlite";
/// The folder with the run's copy of the project.
pub const WORKSPACE_DIR: &str = "workspace";
/// The folder of the sealed hold-outs in a run directory.
pub const HOLDOUTS_DIR: &str = "holdouts";
/// The folder of the private copies of attempts in a run directory.
pub const STAGE_DIR: &str = "stage";
/// The folder with the output of running commands in a run directory.
pub const LIVE_DIR: &str = "live";
/// The file with the liveness stream of a run.
pub const LIVENESS_FILE: &str = "liveness.ndjson";
/// The folder of the quarantine in a run directory.
pub const QUARANTINE_DIR: &str = "quarantine";
/// The folder of exchanges with models and tool servers in a run directory.
pub const EXCHANGES_DIR: &str = "exchanges";
/// The folder of synthetic repositories in a run directory.
pub const REPOSITORIES_DIR: &str = "repository";
/// The folder of the tasks of branches other than `main` (decision branch-folders).
pub const BRANCHES_DIR: &str = "branches";

/// The directory of one run. The caller decides where it is, and creates it.
pub struct RunDir {
    /// The absolute path, for stores that open files by path.
    pub path: PathBuf,
    /// The open directory.
    pub dir: Dir,
    /// The key that signs the run's journal. Without a key the journal is unsigned, and no later command accepts it.
    pub key: Option<UserKey>,
}

impl RunDir {
    /// Returns the path of the run's copy of the project.
    pub fn workspace(&self) -> PathBuf {
        self.path.join(WORKSPACE_DIR)
    }

    /// Returns the directory without its key, for code that must not sign anything.
    pub(crate) fn without_key(&self) -> io::Result<Self> {
        Ok(Self { path: self.path.clone(), dir: self.dir.try_clone()?, key: None })
    }
}

/// Returns the folder of a branch, relative to the run directory. Empty for the main branch, which has no folder of its own.
pub fn branch_folder(id: &BranchId) -> String {
    match *id == BranchId::main() {
        true => String::new(),
        false => format!("{BRANCHES_DIR}/{id}"),
    }
}

/// Returns the workspace of a branch, relative to the run directory.
pub fn branch_workspace(id: &BranchId) -> String {
    match *id == BranchId::main() {
        true => WORKSPACE_DIR.to_owned(),
        false => format!("{}/{WORKSPACE_DIR}", branch_folder(id)),
    }
}
