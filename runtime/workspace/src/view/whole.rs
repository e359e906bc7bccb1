//! Operations on whole files: reading a part, replacing the content, and creating missing parents.
//!
//! Replacing charges the quota and then writes in place. It is not atomic, because a temporary file next to a granted
//! file would be outside the scope. An incomplete file never leaves the stage, because a killed attempt commits
//! nothing.

use super::View;
use super::error::ViewError;
use super::metadata::Kind;
use super::open::OpenOptions;
use super::refuse::Operation;
use glovebox_record::LimitName;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;
use std::sync::Arc;

impl View {
    /// Reads at most `bytes_max` bytes from `offset`; fewer only at the end of the file. Allocates no more than the
    /// length of the file.
    pub fn read_file(self: &Arc<Self>, path: &ScopePath, offset: u64, bytes_max: usize) -> Result<Vec<u8>, ViewError> {
        let file = self.open_file(path, OpenOptions::READ)?;
        let left = file.metadata()?.size.saturating_sub(offset);
        let mut content = vec![0; usize::try_from(left).unwrap_or(usize::MAX).min(bytes_max)];
        let mut filled = 0;
        while filled < content.len() {
            match file.read_at(&mut content[filled..], offset + filled as u64)? {
                0 => break,
                count => filled += count,
            }
        }
        content.truncate(filled);
        Ok(content)
    }

    /// Replaces or creates a file. Missing parents in the write scope or above its entries are created. The bytes are
    /// charged before the old content is dropped.
    pub fn write_file(self: &Arc<Self>, path: &ScopePath, content: &[u8]) -> Result<(), ViewError> {
        self.require(Operation::Write, path, Access::Write)?;
        self.make_parents(path)?;
        let length = content.len() as u64;
        if self.limits.write_bytes.saturating_sub(self.written_bytes()) < length {
            return Err(self.refuse_quota(path, LimitName::WriteBytes));
        }
        self.open_file(path, OpenOptions::REPLACE)?.write_at(content, 0)
    }

    fn make_parents(&self, path: &ScopePath) -> Result<(), ViewError> {
        let Some(parent) = path.parent().filter(|parent| !parent.is_root()) else { return Ok(()) };
        if self.has_parent_directory(&parent) {
            return Ok(());
        }
        self.make_parents(&parent)?;
        match self.make_directory(&parent) {
            Ok(()) | Err(ViewError::Exists) => Ok(()),
            Err(denied) => Err(denied),
        }
    }

    /// Returns true if the path is a directory, even one that the stage cannot see. Using such a directory fails later.
    fn has_parent_directory(&self, path: &ScopePath) -> bool {
        match self.files.on_disk() {
            Ok(root) => self.hidden.directory(root, path).is_ok(),
            Err(_) => {
                let found = self.find(Operation::Write, path).ok().and_then(|place| place.found);
                found.is_some_and(|found| found.kind == Kind::Directory)
            }
        }
    }
}
