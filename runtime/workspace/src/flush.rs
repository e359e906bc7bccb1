//! Makes folders durable before a record that names them is appended.
//!
//! A new copy may still be in memory only, and a power failure would lose it. This module does not know the purpose of
//! the files and folders.

use crate::regular_file;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of entries that are flushed one by one. If there are more, the whole file system is flushed.
const FLUSHED_ONE_BY_ONE_MAX: usize = 256;

/// Makes new folders and everything below them durable: files first, then the folders that contain them. A missing
/// folder is not an error.
///
/// # Errors
/// The system's error. Entries that were flushed before it are durable.
pub fn flush_all(folders: &[&Path]) -> io::Result<()> {
    let mut below = Vec::new();
    for folder in folders.iter().filter(|folder| folder.exists()) {
        if !list(folder, &mut below)? {
            return Ok(rustix::fs::syncfs(regular_file::open_folder(folder)?)?);
        }
    }
    below.iter().try_for_each(|path| regular_file::open_unlinked(path)?.sync_all())
}

/// Lists the entries below a folder that must be flushed, each folder after its content. Returns false if there are too many.
fn list(folder: &Path, below: &mut Vec<PathBuf>) -> io::Result<bool> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_file() {
            below.push(entry.path());
        }
        if below.len() > FLUSHED_ONE_BY_ONE_MAX || kind.is_dir() && !list(&entry.path(), below)? {
            return Ok(false);
        }
    }
    below.push(folder.to_owned());
    Ok(true)
}
