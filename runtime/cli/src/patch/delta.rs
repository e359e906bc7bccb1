//! What a run made of each path: the version before and the version after.
//!
//! Git knows files and links. A file that became a link is a deletion and a new path, as git has it.

use glovebox_record::path::ScopePath;
use glovebox_record::{ChangeOp, Digest, FileChange};
use glovebox_workspace::commit::fold;
use glovebox_workspace::project::Base;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;

/// A file's mode, as git has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Mode {
    /// A regular file.
    #[serde(rename = "100644")]
    File,
    /// A file that its owner may execute.
    #[serde(rename = "100755")]
    Executable,
    /// A symbolic link; its bytes are the target.
    #[serde(rename = "120000")]
    Link,
}

impl Mode {
    /// The six digits.
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
        /// Digest of its bytes.
        digest: Digest,
        /// Their number.
        bytes: u64,
        /// Whether its owner may execute it.
        executable: bool,
    },
    /// A symbolic link to this target.
    Link(String),
}

impl Version {
    /// Its mode.
    pub fn mode(&self) -> Mode {
        match self {
            Self::File { executable: false, .. } => Mode::File,
            Self::File { executable: true, .. } => Mode::Executable,
            Self::Link(_) => Mode::Link,
        }
    }

    /// The length of its bytes.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::File { bytes, .. } => *bytes,
            Self::Link(target) => target.len() as u64,
        }
    }

    /// The version at a path before the run; none where there was no file and no link.
    pub fn before(base: &Base, path: &ScopePath) -> Option<Self> {
        if let Some(file) = base.files.get(path.as_str()) {
            return Some(Self::File { digest: file.digest, bytes: file.bytes, executable: file.executable });
        }
        base.symlinks.get(path.as_str()).map(|target| Self::Link(target.clone()))
    }

    /// The version that a change leaves; none where it leaves no file and no link.
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
    /// The path after the run, or the one that is gone.
    pub path: ScopePath,
    /// The path before, and how many percent of the file are the same, if the run moved it.
    pub renamed: Option<(ScopePath, u8)>,
    /// The version before.
    pub old: Option<Version>,
    /// The version after.
    pub new: Option<Version>,
}

impl Delta {
    fn new(path: &ScopePath, old: Option<Version>, new: Option<Version>) -> Self {
        Self { path: path.clone(), renamed: None, old, new }
    }

    /// The path before the run.
    pub fn old_path(&self) -> &ScopePath {
        self.renamed.as_ref().map_or(&self.path, |(path, _)| path)
    }
}

/// Every path whose file is not what it was, by path.
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

/// Directories that a patch cannot bring, since git has none without a file: those that the run made or left empty, and those without
/// a file that it removed.
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

/// The directories that a path lies in.
fn above(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}
