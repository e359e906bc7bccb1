//! Changes of a stage at ignored paths: counted while the changes of the stage are collected, and summarized in one
//! line.
//!
//! The stage chooses the names, so only the most frequent ones are kept, up to a limit. A change at an ignored path is
//! never committed.

use crate::change::{FoundChange, Op, Verdict};
use crate::tree;
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

/// Maximum number of names that are counted.
const NAMES_COUNTED_MAX: usize = 1_000;
/// Maximum number of names in the summary.
const NAMES_LISTED_MAX: usize = 4;
/// Maximum length of a name in the summary, in characters.
const NAME_CHARACTERS_MAX: usize = 80;

/// A change at an ignored path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IgnoredChange {
    /// Last component of the topmost path that git ignores, with a final `/` for a folder.
    pub(crate) name: String,
    /// True if the change may be stored for a later stage. Names of files that make programs run, and deceptive names,
    /// are never stored.
    pub(crate) lasts: bool,
}

/// Changes of a stage at ignored paths.
#[derive(Debug, Default)]
pub struct IgnoredChanges {
    entries: u64,
    files: u64,
    bytes: u64,
    names: BTreeMap<String, u64>,
    above: HashSet<PathBuf>,
    /// The changes that may be stored for a later stage.
    pub(crate) lasting: Vec<(PathBuf, Op)>,
}

impl IgnoredChanges {
    /// Returns the number of files, links and directories that the stage wrote.
    pub fn entries(&self) -> u64 {
        self.entries
    }

    /// Returns the number of files and links that the stage wrote.
    pub fn files(&self) -> u64 {
        self.files
    }

    /// Returns the total length of the written files in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the most frequent names of ignored paths, such as `target/`, the most frequent first. The stage chooses the names.
    pub fn names(&self) -> Vec<String> {
        let mut names: Vec<(&String, &u64)> = self.names.iter().collect();
        names.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), (*name).clone()));
        let told = names.into_iter().take(NAMES_LISTED_MAX);
        told.map(|(name, _)| name.chars().take(NAME_CHARACTERS_MAX).collect()).collect()
    }

    pub(crate) fn add(&mut self, path: &Path, op: Op, IgnoredChange { name, lasts }: IgnoredChange) {
        self.entries += u64::from(!op.removes());
        if matches!(op, Op::Write { .. } | Op::Link { .. } | Op::Special { .. }) {
            self.files += 1;
            if self.names.len() < NAMES_COUNTED_MAX || self.names.contains_key(&name) {
                *self.names.entry(name).or_default() += 1;
            }
        }
        if let Op::Write { bytes, .. } = op {
            self.bytes = self.bytes.saturating_add(bytes);
        }
        for above in path.ancestors().skip(1) {
            // If a folder is known, the folders above it are known too.
            if !self.above.insert(above.to_owned()) {
                break;
            }
        }
        if lasts {
            self.lasting.push((path.to_owned(), op));
        }
    }

    /// Returns the change that left an entry at an ignored path.
    pub(crate) fn left_at(&self, path: &Path) -> Option<FoundChange> {
        let (raw, op) = self.lasting.iter().find(|(raw, op)| raw == path && !op.removes())?;
        Some(FoundChange {
            path: tree::shown(raw),
            op: op.clone(),
            verdict: Verdict::Allowed,
            is_only_out_of_scope: false,
            raw: raw.clone(),
        })
    }

    /// Returns the changes without new folders that contain only ignored changes.
    pub(crate) fn without_folders_for_it(&self, found: Vec<FoundChange>) -> Vec<FoundChange> {
        let is_for_it =
            |change: &FoundChange| matches!(change.op, Op::MakeDir { .. }) && self.above.contains(&change.raw);
        if !found.iter().any(is_for_it) {
            return found;
        }
        let content = found.iter().filter(|change| !is_for_it(change));
        let filled: HashSet<PathBuf> =
            content.flat_map(|change| change.raw.ancestors().skip(1)).map(Path::to_owned).collect();
        found.into_iter().filter(|change| !is_for_it(change) || filled.contains(&change.raw)).collect()
    }
}
