//! Verifies a commitment: compares a folder with its seal, and the seal with the root in the journal.
//!
//! The paths of differences are names of hold-outs. They may be shown to the run's owner, but never to a stage.

use super::gather::{self, HoldoutEntry};
use super::{Leaf, Seal, SealError};
use crate::project::copy_hashed;
use crate::tree::{self, Tree};
use glovebox_record::Digest;
use glovebox_record::path::ScopePath;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// A difference from the sealed content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SealDifference {
    /// The seal is not the one that was published.
    Root,
    /// A committed file is missing.
    Missing,
    /// A file exists that the commitment does not cover.
    Added,
    /// The content differs.
    Content,
    /// Only the executable bit differs.
    Mode,
    /// The path is a link or a special file.
    Unsupported,
}

/// One difference and its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Deviation {
    /// The path relative to the project, with unprintable characters escaped; `seal.json` for the seal itself.
    pub path: String,
    /// The difference.
    pub difference: SealDifference,
}

impl Seal {
    /// Compares the seal with a published root, and the files below `dir` with the seal. Returns the differences by
    /// path. `dir` has the project's layout: it is [`Seal::files`] or the project. No link is followed and no file is
    /// changed.
    ///
    /// # Errors
    /// [`SealError::Io`] if `dir` cannot be read.
    pub fn verify(&self, root: &Digest, dir: &Path) -> Result<Vec<Deviation>, SealError> {
        let mut deviations = Vec::new();
        if self.root() != *root {
            deviations.push(Deviation { path: super::SEAL_FILE.to_owned(), difference: SealDifference::Root });
        }
        let source = Tree::open(dir).map_err(|source| SealError::io(dir, source))?;
        let mut expected: BTreeMap<&str, &Leaf> = self.leaves().iter().map(|leaf| (leaf.path.as_str(), leaf)).collect();
        gather::each(&source, &self.folder_paths()?, &mut |path, entry| {
            let difference = match entry {
                HoldoutEntry::Directory => None,
                HoldoutEntry::Unsupported(_) => {
                    expected.remove(path);
                    Some(SealDifference::Unsupported)
                }
                HoldoutEntry::File { mut file, executable } => match expected.remove(path) {
                    None => Some(SealDifference::Added),
                    Some(leaf) => compare(leaf, &mut file, executable)
                        .map_err(|source| SealError::Io { path: path.to_owned(), source })?,
                },
            };
            deviations.extend(difference.map(|difference| Deviation { path: path.to_owned(), difference }));
            Ok(())
        })?;
        let missing =
            |path: &&str| Deviation { path: tree::shown(Path::new(path)), difference: SealDifference::Missing };
        deviations.extend(expected.keys().map(missing));
        deviations.sort();
        Ok(deviations)
    }

    fn folder_paths(&self) -> Result<Vec<ScopePath>, SealError> {
        let parse = |text: &String| {
            let path = ScopePath::parse(text.trim_end_matches('/'));
            path.map_err(|problem| SealError::Folder { text: text.clone(), problem })
        };
        self.folders().iter().map(parse).collect()
    }
}

fn compare(leaf: &Leaf, file: &mut std::fs::File, executable: bool) -> io::Result<Option<SealDifference>> {
    let (digest, bytes) = copy_hashed(file, io::sink(), leaf.bytes)?;
    Ok(match (digest == leaf.digest && bytes == leaf.bytes, executable == leaf.executable) {
        (false, _) => Some(SealDifference::Content),
        (true, false) => Some(SealDifference::Mode),
        (true, true) => None,
    })
}
