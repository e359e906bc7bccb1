//! A folder of the user's project, read with limits: regular files up to 1 MiB, and only names that can be written into a pipeline.

use glovebox_workspace::regular_file::{self, Links};
use std::fs;
use std::path::{Path, PathBuf};

/// Maximum size of a file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of names of a folder that are read.
const NAMES_MAX: usize = 2_000;
/// Maximum depth at which a file is searched for.
const DEPTH_MAX: usize = 5;
/// Maximum number of names that one search reads.
const SEARCHED_NAMES_MAX: usize = 10_000;
/// Maximum number of folders above a folder in which the root of the repository is looked for.
const FOLDERS_ABOVE_MAX: usize = 32;

/// A folder of the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Folder {
    path: PathBuf,
    /// The path from the project's root, with a final `/`. Empty for the root.
    below: String,
}

/// A name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The name, with a final `/` for a folder.
    pub(super) name: String,
}

impl Entry {
    pub(super) fn is_folder(&self) -> bool {
        self.name.ends_with('/')
    }
}

impl Folder {
    /// Creates the root folder of a project.
    pub(super) fn root(path: &Path) -> Self {
        Self { path: path.to_owned(), below: String::new() }
    }

    /// Returns a folder directly in this one.
    pub(super) fn inner(&self, entry: &Entry) -> Self {
        Self { path: self.path.join(&entry.name), below: format!("{}{}", self.below, entry.name) }
    }

    /// Returns the path from the project's root, with a final `/`. Empty for the root.
    pub(super) fn below(&self) -> &str {
        &self.below
    }

    /// Returns the path on this machine.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns true if a file, folder or symbolic link has this name.
    pub(super) fn has(&self, name: impl AsRef<Path>) -> bool {
        self.path.join(name).symlink_metadata().is_ok()
    }

    /// Reads a regular file as text. Returns an empty text if the file is missing, too long, not UTF-8, or a symbolic
    /// link that leads out of the project.
    pub(super) fn text(&self, name: impl AsRef<Path>) -> String {
        regular_file::read_text(&self.path.join(name), Links::Within(self.project()), FILE_BYTES_MAX)
            .unwrap_or_default()
    }

    /// Returns the root of the project.
    pub(super) fn project(&self) -> &Path {
        let depth = Path::new(&self.below).components().count();
        self.path.ancestors().nth(depth).unwrap_or(&self.path)
    }

    /// Returns the files and folders in this folder, sorted. Skips hidden entries, symbolic links, and names that are
    /// not plain.
    pub(super) fn entries(&self) -> Vec<Entry> {
        let listed = fs::read_dir(&self.path).into_iter().flatten().flatten().take(NAMES_MAX);
        let plain = listed.filter_map(|entry| {
            let (kind, name) = (entry.file_type().ok()?, entry.file_name().into_string().ok()?);
            let name = if kind.is_dir() { format!("{name}/") } else { name };
            let is_listed = (kind.is_dir() || kind.is_file()) && is_plain(name.trim_end_matches('/'));
            is_listed.then_some(Entry { name })
        });
        let mut entries: Vec<Entry> = plain.collect();
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        entries
    }

    /// Returns true if `is_wanted` accepts a file in this folder or below it. Searches breadth first, in the folders that
    /// `is_entered` accepts, and reads a limited number of names, because a folder may contain any number of files.
    pub(super) fn has_file(&self, is_entered: impl Fn(&str) -> bool, is_wanted: impl Fn(&Self, &str) -> bool) -> bool {
        let mut level = vec![self.clone()];
        let mut names = 0;
        for _ in 0..DEPTH_MAX {
            let mut next = Vec::new();
            for folder in level {
                for entry in folder.entries() {
                    names += 1;
                    match entry.is_folder() {
                        true if is_entered(&entry.name) => next.push(folder.inner(&entry)),
                        false if is_wanted(&folder, &entry.name) => return true,
                        _ => {}
                    }
                }
                if names > SEARCHED_NAMES_MAX {
                    return false;
                }
            }
            level = next;
        }
        false
    }

    /// Returns a folder below this one, by its path with a final `/`.
    pub(super) fn at(&self, path: &str) -> Self {
        Self { path: self.path.join(path), below: format!("{}{path}", self.below) }
    }

    /// Returns true if a `.gitignore` has a line for this folder or file, such as `target/`, `/target` or `**/target`.
    /// Reads the `.gitignore` of this folder and of the folders above it in the same repository. Also looks for `*` in
    /// the `.gitignore` of the named folder itself.
    pub(super) fn ignores(&self, name: &str) -> bool {
        let wanted = name.trim_end_matches('/');
        let is_line = |line: &str| line.trim().trim_start_matches("**/").trim_matches('/') == wanted;
        let real = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let mut above = real.ancestors().map(Self::root).take(FOLDERS_ABOVE_MAX);
        let root = above.clone().position(|folder| folder.has(".git")).unwrap_or_default();
        let ignores_itself = || self.at(name).text(".gitignore").lines().any(|line| line.trim() == "*");
        above.by_ref().take(root + 1).any(|folder| folder.text(".gitignore").lines().any(is_line)) || ignores_itself()
    }
}

/// Returns true for a name that means the same in a shell, a pipeline and a path: letters, digits, `.`, `_` and `-`; not
/// hidden, not an option.
pub(super) fn is_plain(name: &str) -> bool {
    let is_known = |character: char| character.is_ascii_alphanumeric() || "._-".contains(character);
    !name.is_empty() && !name.starts_with(['.', '-']) && name.len() <= 100 && name.chars().all(is_known)
}

#[cfg(test)]
mod tests {
    use super::is_plain;

    #[test]
    fn only_names_that_need_no_quotes_are_plain() {
        assert!(["src", "my-app_2", "a.b"].into_iter().all(is_plain));
        for name in ["", ".git", "-rf", "a b", "a\"b", "$(id)", "a\nb", "a;b", "ä", "a'b", "a\\b", "a/b"] {
            assert!(!is_plain(name), "{name:?}");
        }
    }
}
