//! Computes a digest of the sources of the built-in components, so that a build detects components that are older than their sources.
//!
//! Two programs use this file: `cargo xtask components` writes the digest, and the build script of the binary compares it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;

/// Folders of the repository with sources of components.
pub(crate) const FOLDERS: [&str; 4] = ["plugins", "plugin-sdk", "runtime/schema", "wit"];
/// File with the digest, in the folder of the components.
pub(crate) const FILE: &str = "sources";

/// Returns the digest of the names and contents of these folders. It is compared only on one machine, so the standard library's hash
/// is enough.
pub(crate) fn digest(repository: &Path) -> io::Result<String> {
    let mut hasher = DefaultHasher::new();
    for folder in FOLDERS {
        add(&repository.join(folder), &mut hasher)?;
    }
    Ok(format!("{:016x}\n", hasher.finish()))
}

fn add(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        entry.file_name().hash(hasher);
        match entry.file_type()?.is_dir() {
            true => add(&entry.path(), hasher)?,
            false => fs::read(entry.path())?.hash(hasher),
        }
    }
    Ok(())
}
