//! The changes of a run to each path: the version before and the version after.
//!
//! As in git, only files and links have versions. If a file was replaced by a link, this is a deletion and an addition.

use glovebox_record::path::ScopePath;
use glovebox_record::{ChangeOp, Digest, FileChange};
use glovebox_workspace::commit::fold;
use glovebox_workspace::project::Base;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// Mode of a file, as in git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Mode {
    /// A regular file.
    #[serde(rename = "100644")]
    File,
    /// A file that its owner may execute.
    #[serde(rename = "100755")]
    Executable,
    /// A symbolic link, whose content is its target.
    #[serde(rename = "120000")]
    Link,
}

impl Mode {
    /// Returns the six digits of the mode.
    pub fn digits(self) -> &'static str {
        match self {
            Self::File => "100644",
            Self::Executable => "100755",
            Self::Link => "120000",
        }
    }
}

/// One version of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Version {
    /// A regular file.
    File {
        /// Digest of the file's bytes.
        digest: Digest,
        /// Length of the file in bytes.
        bytes: u64,
        /// Whether the owner may execute the file.
        executable: bool,
    },
    /// A symbolic link to this target.
    Link(String),
}

impl Version {
    /// Returns the mode of the version.
    pub fn mode(&self) -> Mode {
        match self {
            Self::File { executable: false, .. } => Mode::File,
            Self::File { executable: true, .. } => Mode::Executable,
            Self::Link(_) => Mode::Link,
        }
    }

    /// Returns the length of the version's content in bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::File { bytes, .. } => *bytes,
            Self::Link(target) => target.len() as u64,
        }
    }

    /// Returns the version at a path before the run; `None` if there was no file and no link.
    pub fn before(base: &Base, path: &ScopePath) -> Option<Self> {
        if let Some(file) = base.files.get(path.as_str()) {
            return Some(Self::File { digest: file.digest, bytes: file.bytes, executable: file.executable });
        }
        base.symlinks.get(path.as_str()).map(|target| Self::Link(target.clone()))
    }

    /// Returns the version after a change; `None` if the change leaves no file and no link.
    pub fn after(change: &FileChange) -> Option<Self> {
        match change.op {
            ChangeOp::Write => {
                let (bytes, executable) = (change.bytes, change.executable);
                change.digest.map(|digest| Self::File { digest, bytes, executable })
            }
            ChangeOp::Symlink => change.target.clone().map(Self::Link),
            ChangeOp::Mkdir | ChangeOp::Delete | ChangeOp::Rmdir => None,
        }
    }

    fn is_link(&self) -> bool {
        matches!(self, Self::Link(_))
    }
}

/// The change of a run to one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delta {
    /// Path after the run; for a deleted file, path before the run.
    pub path: ScopePath,
    /// Path before the run and similarity in percent, if the run moved the file; `None` otherwise.
    pub renamed: Option<(ScopePath, u8)>,
    /// Version before the run; `None` for a new file.
    pub old: Option<Version>,
    /// Version after the run; `None` for a deleted file.
    pub new: Option<Version>,
}

impl Delta {
    fn new(path: &ScopePath, old: Option<Version>, new: Option<Version>) -> Self {
        Self { path: path.clone(), renamed: None, old, new }
    }

    /// Returns the path before the run.
    pub fn old_path(&self) -> &ScopePath {
        self.renamed.as_ref().map_or(&self.path, |(path, _)| path)
    }
}

/// Returns every path whose version changed, sorted by path.
pub fn deltas(base: &Base, changes: &[FileChange]) -> Vec<Delta> {
    let mut found = Vec::new();
    for change in fold(changes) {
        let (old, new) = (Version::before(base, &change.path), Version::after(&change));
        match (old, new) {
            (old, new) if old == new => {}
            (Some(old), Some(new)) if old.is_link() != new.is_link() => {
                found.push(Delta::new(&change.path, Some(old), None));
                found.push(Delta::new(&change.path, None, Some(new)));
            }
            (old, new) => found.push(Delta::new(&change.path, old, new)),
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

/// Returns the directories that a patch cannot express, because git stores no directory without a file: those that the
/// run created empty, those that lost their last file, and empty ones that the run removed.
pub fn lost_directories(base: &Base, changes: &[FileChange]) -> Vec<ScopePath> {
    let folded = fold(changes);
    let mut files: BTreeSet<&str> = base.files.keys().chain(base.symlinks.keys()).map(String::as_str).collect();
    let before: BTreeSet<&str> = files.iter().flat_map(|path| above(path)).collect();
    for change in &folded {
        match Version::after(change) {
            Some(_) => files.insert(change.path.as_str()),
            None => files.remove(change.path.as_str()),
        };
    }
    let after: BTreeSet<&str> = files.iter().flat_map(|path| above(path)).collect();
    let is_lost = |change: &&FileChange| {
        let path = change.path.as_str();
        match change.op {
            ChangeOp::Mkdir => !base.directories.contains(path) && !after.contains(path),
            ChangeOp::Rmdir => base.directories.contains(path) && !before.contains(path),
            _ => false,
        }
    };
    let made_or_removed = folded.iter().filter(is_lost).map(|change| change.path.clone());
    let gone: BTreeSet<&str> = folded.iter().filter(|change| change.op.removes()).map(|c| c.path.as_str()).collect();
    let emptied = before.iter().filter(|path| !after.contains(**path) && !gone.contains(**path));
    let emptied = emptied.filter_map(|path| ScopePath::parse(path).ok());
    let all: BTreeSet<ScopePath> = made_or_removed.chain(emptied).collect();
    all.into_iter().collect()
}

/// Returns the directories that contain a path.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}
