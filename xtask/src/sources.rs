//! A digest of what the built-in components are made from, so that a build notices components that are older than their source.
//!
//! Two programs share this file: `cargo xtask components` writes the digest, the build script of the binary compares it.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;

/// The folders of the repository that components are made from.
pub(crate) const FOLDERS: [&str; 4] = ["plugins", "plugin-sdk", "runtime/schema", "wit"];
/// The file beside the components that has the digest.
pub(crate) const FILE: &str = "sources";

/// Returns the digest of these folders' names and contents. It is compared on one machine only, so the standard hash will do.
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
