//! Makes folders durable before a record that names them.
//!
//! A new copy may exist in memory only, and a power failure would lose it. This module knows files and folders, not their purpose.

use crate::regular_file;
use std::io;
use std::path::{Path, PathBuf};

/// Entries that are flushed one by one; a tree with more is flushed with its whole file system.
const FLUSHED_ONE_BY_ONE_MAX: usize = 256;

/// Makes new folders and everything below them durable: files first, then the folders that name them. A missing folder is not an error.
///
/// # Errors
/// The system's error; what was flushed by then is durable.
pub fn flush_all(folders: &[&Path]) -> io::Result<()> {
    let mut below = Vec::new();
    for folder in folders.iter().filter(|folder| folder.exists()) {
        if !list(folder, &mut below)? {
            return Ok(rustix::fs::syncfs(regular_file::open_folder(folder)?)?);
        }
    }
    below.iter().try_for_each(|path| regular_file::open_unlinked(path)?.sync_all())
}

/// Lists the entries below a folder that must be flushed, a folder after its content. False if there are too many.
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
