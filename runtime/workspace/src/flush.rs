//! Makes folders durable before something that names them is.
//!
//! A copy that was just made is in memory alone, and a power cut takes it. Knows files and folders, nothing of what they are for.

use crate::regular_file;
use std::io;
use std::path::{Path, PathBuf};

/// Entries that are flushed one by one; a tree with more is flushed with its whole file system.
const FLUSHED_ONE_BY_ONE_MAX: usize = 256;

/// Makes what lies below folders that no stage has seen durable: files, then the folders that name them. One that is not there is fine.
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

/// Lists what is to be flushed below a folder, a folder after what is in it. False when it is too much.
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
