//! A folder below the system's folder for temporary files, removed on drop.

use std::io;
use std::path::{Path, PathBuf};

/// A temporary folder of this process.
pub struct TemporaryFolder(PathBuf);

impl TemporaryFolder {
    /// Creates a folder whose name contains `purpose`. Its path contains no symbolic links, because the sandbox bind-mounts it by file
    /// descriptor.
    pub fn new(purpose: &str) -> io::Result<Self> {
        let parent = std::fs::canonicalize(std::env::temp_dir())?;
        let folder = parent.join(format!("glovebox-{purpose}-{}", ulid::Ulid::generate()));
        std::fs::create_dir(&folder)?;
        Ok(Self(folder))
    }

    /// Returns the path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryFolder {
    fn drop(&mut self) {
        let _removed = std::fs::remove_dir_all(&self.0);
    }
}
