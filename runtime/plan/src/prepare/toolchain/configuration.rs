//! Files of `/etc` that a toolchain reads through symbolic links in its own folders.
//!
//! Distributions move the configuration of Java and Maven to `/etc`, and a jail has its own `/etc`. Only regular files that
//! every user may read are listed, and only in folders with a name of the toolchain. A jail checks them again.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

/// Maximum depth at which symbolic links are looked for. In a JDK they are four folders below `conf`.
const DEPTH_MAX: usize = 5;
/// Maximum number of files that are listed. A JDK links to about thirty.
const FILES_MAX: usize = 200;
const FOR_OTHERS: u32 = 0o004;

/// Returns the files of `/etc` to which symbolic links in these folders lead, if they are in a folder of `/etc` whose
/// name begins with one of `names`.
pub(super) fn linked_configuration(folders: &[PathBuf], names: &[&str]) -> Vec<PathBuf> {
    linked_below(Path::new("/etc"), folders, names)
}

/// As [`linked_configuration`], but with another folder than `/etc`.
pub(super) fn linked_below(etc: &Path, folders: &[PathBuf], names: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    folders.iter().for_each(|folder| links(folder, DEPTH_MAX, &mut found));
    let mut files = Vec::new();
    for target in found.iter().filter(|target| is_named(etc, target, names)) {
        files_in(target, DEPTH_MAX, &mut files);
    }
    files.sort();
    files.dedup();
    files.truncate(FILES_MAX);
    files
}

/// Returns true for a path in a folder `etc/<name>…`, and false for a file directly in `etc`.
fn is_named(etc: &Path, target: &Path, names: &[&str]) -> bool {
    let Ok(below) = target.strip_prefix(etc) else { return false };
    let Some(Component::Normal(first)) = below.components().next() else { return false };
    let is_folder = below.components().count() > 1 || target.is_dir();
    is_folder && names.iter().any(|name| first.to_string_lossy().starts_with(name))
}

/// Adds the real targets of the symbolic links in a folder and below it.
fn links(folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_symlink() => found.extend(entry.path().canonicalize().ok()),
            Ok(kind) if kind.is_dir() && depth > 0 => links(&entry.path(), depth - 1, found),
            _ => {}
        }
    }
}

/// Adds the file, or the files of the folder, that every user may read. Symbolic links in the folder are not followed.
fn files_in(path: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(status) = fs::symlink_metadata(path) else { return };
    if status.is_file() && status.permissions().mode() & FOR_OTHERS != 0 {
        files.push(path.to_owned());
    } else if status.is_dir() && depth > 0 {
        let entries = fs::read_dir(path).into_iter().flatten().flatten();
        entries.for_each(|entry| files_in(&entry.path(), depth - 1, files));
    }
}
