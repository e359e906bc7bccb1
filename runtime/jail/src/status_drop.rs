//! The drop folder of an attempt: a private folder in which the stage's program can leave its status file.
//!
//! Only the stage's own commands see the folder: no program under test, no tool hook and no tool server. Its size counts
//! towards the disk limit of the commands.

use crate::jail::{Bind, HOME_INSIDE, JailSetting, STATUS_DIR};
use glovebox_record::Attempt;
use glovebox_workspace::left_file::LeftFile;
use glovebox_workspace::tree;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// Name of the folder in the attempt's folder, and below `HOME` inside a jail with a private root.
const NAME: &str = "status";
/// The variables with the identity of the attempt, for the owner fields of a status file.
const NODE_ID: &str = "GLOVEBOX_STATUS_NODE_ID";
const BRANCH_ID: &str = "GLOVEBOX_STATUS_BRANCH_ID";
const ATTEMPT_ID: &str = "GLOVEBOX_STATUS_ATTEMPT_ID";
const RUN_GENERATION: &str = "GLOVEBOX_STATUS_RUN_GENERATION";

/// The drop folder of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusDrop {
    /// The attempt's folder, which contains the drop folder.
    attempt: PathBuf,
}

impl StatusDrop {
    /// Creates an empty drop folder in the folder of an attempt.
    ///
    /// # Errors
    /// Returns an error if the name is already in use.
    pub fn make(attempt: &Path) -> io::Result<Self> {
        DirBuilder::new().mode(0o700).create(attempt.join(NAME))?;
        Ok(Self { attempt: attempt.to_owned() })
    }

    fn folder(&self) -> PathBuf {
        self.attempt.join(NAME)
    }

    /// Empties the folder. The previous jail is dead.
    ///
    /// # Errors
    /// Returns the error of the system.
    pub fn reset(&self) -> io::Result<()> {
        tree::remove_all(&self.folder())?;
        DirBuilder::new().mode(0o700).create(self.folder())
    }

    /// Shows the folder to the commands of a jail, and tells them its path and the identity of the attempt.
    pub fn offer(&self, setting: &mut JailSetting, Attempt { task, id, .. }: &Attempt) {
        let at = if setting.tier.has_own_root() { Path::new(HOME_INSIDE).join(NAME) } else { self.folder() };
        let variables = [
            (STATUS_DIR, at.to_string_lossy().into_owned()),
            (NODE_ID, task.node.to_string()),
            (BRANCH_ID, task.branch.to_string()),
            (ATTEMPT_ID, id.to_string()),
            (RUN_GENERATION, task.generation.to_string()),
        ];
        setting.policy.env.extend(variables.map(|(name, value)| (name.to_owned(), value)));
        setting.kept.push(Bind::writable(self.folder(), at));
    }

    /// Reads a file that a command left in the folder. No process of the jail may be alive.
    pub fn read(&self, name: &str, bytes_max: u64) -> LeftFile {
        LeftFile::in_folder(&self.attempt, NAME, name, bytes_max)
    }
}
