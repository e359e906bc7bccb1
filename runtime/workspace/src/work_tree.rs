//! Git work trees: their roots, and the folders in which git stores their data.
//!
//! A project contains its `.git`, so these folders are untrusted. This module does not decide whether they belong to the project.

use crate::regular_file::{self, Links};
use std::path::{Path, PathBuf};

/// Maximum size in bytes of a file that contains the path of a folder. Git refuses longer ones too.
const POINTER_BYTES_MAX: u64 = 1 << 20;

/// Returns the root of the work tree that contains a folder.
pub fn root(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// Returns the git directory (`$GIT_DIR`) of the work tree with this root, which contains the index and HEAD.
pub fn own_folder(root: &Path) -> Option<PathBuf> {
    let at = root.join(".git");
    if at.is_dir() {
        return Some(at);
    }
    let text = pointer(&at, root)?;
    Some(root.join(text.strip_prefix("gitdir:")?.trim()))
}

/// Returns the common directory (`$GIT_COMMON_DIR`) with branches and objects, which all work trees of a repository
/// share. `own` is the git directory of one of them.
pub fn shared_folder(own: &Path) -> PathBuf {
    pointer(&own.join("commondir"), own).map_or_else(|| own.to_owned(), |text| own.join(text.trim()))
}

/// Returns the path of the `.git` file to which the git directory of a linked work tree refers.
pub fn back_link(own: &Path) -> Option<PathBuf> {
    pointer(&own.join("gitdir"), own).map(|text| own.join(text.trim()))
}

/// Reads a file that contains the path of another git folder. A symbolic link out of `folder` is refused; git creates
/// no such links.
fn pointer(file: &Path, folder: &Path) -> Option<String> {
    regular_file::read_text(file, Links::Within(folder), POINTER_BYTES_MAX).ok()
}
