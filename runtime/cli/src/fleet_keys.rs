//! The keys of this user for fleets: the one with which an operator admits machines, and the one of this machine.
//!
//! Both are in the folder of the user's other keys, in files that only this user can read. No stage sees that folder.

use crate::exit::Stop;
use crate::key_files;
use glovebox_plan::prepare::folders;
use glovebox_signing::key::SigningKey;
use std::path::{Path, PathBuf};

const FOLDER: &str = "fleet";

/// A key of this user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FleetKey {
    /// Admits and expels machines.
    Operator,
    /// Signs what this machine, or this user, does in a fleet.
    Machine,
}

impl FleetKey {
    fn file_name(self) -> &'static str {
        match self {
            Self::Operator => "operator.key",
            Self::Machine => "machine.key",
        }
    }

    /// Reads the key. Returns `None` if this user has none.
    ///
    /// # Errors
    /// Others can read the key, or it lies in the folder `project`.
    pub fn read(self, project: &Path) -> Result<Option<SigningKey>, Stop> {
        let Some(state) = folders::state_dir() else { return Ok(None) };
        let file = state.join(FOLDER).join(self.file_name());
        match file.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            _ => key_files::read_private(&file, project).map(Some),
        }
    }

    /// Reads the key, or creates it.
    ///
    /// # Errors
    /// As for [`Self::read`]; also if this user has no folder for keys.
    pub fn read_or_create(self, project: &Path) -> Result<(SigningKey, PathBuf), Stop> {
        let file = key_files::private_folder(FOLDER, "keys")?.join(self.file_name());
        let key = match self.read(project)? {
            Some(key) => key,
            None => {
                key_files::create_private(&file)?;
                key_files::read_private(&file, project)?
            }
        };
        Ok((key, file))
    }
}
