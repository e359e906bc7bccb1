//! Work trees of git: their roots, and the folders in which git stores them.
//!
//! A project contains its `.git`, so these folders are untrusted. This module does not decide whether they belong to the project.

use crate::regular_file::{self, Links};
use std::path::{Path, PathBuf};

/// The longest file with the path of a folder: git refuses a longer one as well.
const POINTER_BYTES_MAX: u64 = 1 << 20;

/// The root of the work tree in which a folder is.
pub fn root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// The folder in which git keeps the index and HEAD of the work tree with this root.
pub fn own_folder(root: &Path) -> Option<PathBuf> {
    let at = root.join(".git");
    if at.is_dir() {
        return Some(at);
    }
    let text = pointer(&at, root)?;
    Some(root.join(text.strip_prefix("gitdir:")?.trim()))
}

/// The folder with branches and objects, which all work trees of a repository share, by the own folder of one of them.
pub fn shared_folder(own: &Path) -> PathBuf {
    pointer(&own.join("commondir"), own).map_or_else(|| own.to_owned(), |text| own.join(text.trim()))
}

/// The `.git` that the own folder of a linked work tree names.
pub fn back_link(own: &Path) -> Option<PathBuf> {
    pointer(&own.join("gitdir"), own).map(|text| own.join(text.trim()))
}

/// The text of a file that names another folder of git. A repository that git made has no link at its place.
fn pointer(file: &Path, folder: &Path) -> Option<String> {
    regular_file::read_text(file, Links::Within(folder), POINTER_BYTES_MAX).ok()
}
