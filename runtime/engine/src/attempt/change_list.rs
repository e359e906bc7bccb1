//! The changes of a run's stages, for a `diff-limits` stage: each path with its kind and its changed lines, computed by the host.
//!
//! The list is made from the changes in the journal, the list of files that the run began with, and blobs. It never uses the
//! workspace, which a stage might have manipulated. The cost depends on what was changed, and each part of the work has a
//! limit. A file that exceeds a limit is listed as not counted, and is never left out.

mod lines;

use glovebox_journal::event::{ChangeOp, Digest, FileChange, NodeId};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_pipeline::diff_limits::{FILES_MAX, SINCE_RUN, listed};
use glovebox_pipeline::ir::Node;
use glovebox_pipeline::key;
use glovebox_record::path::ScopePath;
use glovebox_state::run_state::Branch;
use glovebox_workspace::project::Base;
use lines::{Effort, Lines};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The name of the input entry with the list.
pub(super) const ENTRY: &str = "changes";

/// Maximum size of a version of a file whose lines are counted, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Maximum number of bytes that are read, of all versions together.
const BYTES_MAX: u64 = 512 << 20;
/// Maximum number of comparisons for all files.
const STEPS_MAX: u64 = 200_000_000;

/// The list, as JSON in the entry [`ENTRY`].
#[derive(Debug, Default, Serialize)]
struct ChangeList<'a> {
    /// Number of changed files, including files that are not listed.
    total: u64,
    files: Vec<Changed<'a>>,
}

/// A changed path.
#[derive(Debug, Serialize)]
struct Changed<'a> {
    path: &'a str,
    /// How the path changed: `added`, `removed` or `changed`.
    kind: &'static str,
    /// Length of the new version, in bytes.
    bytes: u64,
    added: u64,
    removed: u64,
    /// True if the new version is not text, and the old version was not text either.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    binary: bool,
    /// Why the lines are not counted. `None` if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    uncounted: Option<String>,
}

/// A version of a path: a file or a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version<'a> {
    File { digest: Digest, bytes: u64, executable: bool },
    Link(&'a str),
}

impl<'a> Version<'a> {
    fn before(base: &'a Base, path: &ScopePath) -> Option<Self> {
        let file = base.files.get(path.as_str());
        let file = file.map(|fact| Self::File { digest: fact.digest, bytes: fact.bytes, executable: fact.executable });
        file.or_else(|| base.symlinks.get(path.as_str()).map(|target| Self::Link(target)))
    }

    fn after(change: &'a FileChange) -> Option<Self> {
        match (change.op, change.digest, &change.target) {
            (ChangeOp::Write, Some(digest), _) => {
                Some(Self::File { digest, bytes: change.bytes, executable: change.executable })
            }
            (ChangeOp::Symlink, _, Some(target)) => Some(Self::Link(target)),
            _ => None,
        }
    }

    fn digest(self) -> Option<Digest> {
        match self {
            Self::File { digest, .. } => Some(digest),
            Self::Link(_) => None,
        }
    }

    fn bytes(self) -> u64 {
        match self {
            Self::File { bytes, .. } => bytes,
            Self::Link(target) => target.len() as u64,
        }
    }
}

/// Creates the list for a node. Blocks.
///
/// # Errors
///
/// Fails if a blob cannot be read.
pub(super) fn text(
    node: &Node,
    branch: &Branch,
    base: &Base,
    blobs: &impl BlobStore,
) -> Result<(String, String), PortError> {
    let since = node.attributes.get(key::SINCE).into_iter().flat_map(listed);
    let named: BTreeSet<&str> = since.filter(|name| *name != SINCE_RUN).collect();
    let is_named = |author: &NodeId| named.contains(author.as_str());
    let mut counter = Counter { blobs, bytes: BYTES_MAX, effort: Effort(STEPS_MAX) };
    let mut list = ChangeList::default();
    for (path, change) in last_changes(branch) {
        let old = match named.is_empty() {
            true => Version::before(base, path),
            false => match branch.first_author(path, &is_named) {
                None => continue,
                Some(author) => author.before.as_ref().map_or_else(|| Version::before(base, path), Version::after),
            },
        };
        let new = Version::after(change);
        if old == new {
            continue;
        }
        list.total += 1;
        if list.total <= FILES_MAX {
            list.files.push(counter.changed(path, old, new)?);
        }
    }
    let text = serde_json::to_string(&list).map_err(|error| PortError::Unavailable(error.to_string()))?;
    Ok((ENTRY.to_owned(), text))
}

/// Returns the last change of every path since the run began.
fn last_changes(branch: &Branch) -> BTreeMap<&ScopePath, &FileChange> {
    let mut all = branch.origin.as_ref().map(|origin| last_changes(&origin.branch)).unwrap_or_default();
    all.extend(branch.changes.iter());
    all
}

/// Counts lines within the limits of a list.
struct Counter<'a, B> {
    blobs: &'a B,
    /// Number of bytes that may still be read.
    bytes: u64,
    effort: Effort,
}

impl<B: BlobStore> Counter<'_, B> {
    fn changed<'a>(
        &mut self,
        path: &'a ScopePath,
        old: Option<Version<'_>>,
        new: Option<Version<'_>>,
    ) -> Result<Changed<'a>, PortError> {
        let kind = match (old, new) {
            (None, _) => "added",
            (_, None) => "removed",
            _ => "changed",
        };
        let bytes = new.map_or(0, Version::bytes);
        let mut changed =
            Changed { path: path.as_str(), kind, bytes, added: 0, removed: 0, binary: false, uncounted: None };
        // Only the mode changed.
        if old.and_then(Version::digest).is_some_and(|digest| new.and_then(Version::digest) == Some(digest)) {
            return Ok(changed);
        }
        let (old, new) = match (self.read(old)?, self.read(new)?) {
            (Ok(old), Ok(new)) => (old, new),
            (Err(reason), _) | (_, Err(reason)) => {
                changed.uncounted = Some(reason);
                return Ok(changed);
            }
        };
        // Text that becomes binary is still counted as text, so that a NUL byte hides no line.
        let of_texts = [&old, &new].into_iter().filter(|bytes| !bytes.is_empty());
        if of_texts.clone().count() > 0 && of_texts.into_iter().all(|bytes| lines::is_binary(bytes)) {
            changed.binary = !new.is_empty();
            return Ok(changed);
        }
        match lines::count(&old, &new, &mut self.effort) {
            Some(Lines { added, removed }) => (changed.added, changed.removed) = (added, removed),
            None => changed.uncounted = Some("it has over 1,000,000 lines".to_owned()),
        }
        Ok(changed)
    }

    /// Returns the bytes of a version, or why they are not read.
    fn read<'v>(&mut self, version: Option<Version<'v>>) -> Result<Result<Cow<'v, [u8]>, String>, PortError> {
        let (digest, bytes) = match version {
            None => return Ok(Ok(Cow::Borrowed(&[]))),
            Some(Version::Link(target)) => return Ok(Ok(Cow::Borrowed(target.as_bytes()))),
            Some(Version::File { digest, bytes, .. }) => (digest, bytes),
        };
        if bytes > FILE_BYTES_MAX {
            return Ok(Err(format!(
                "it has {bytes} bytes, and lines are counted only in files of up to {FILE_BYTES_MAX}"
            )));
        }
        let Some(left) = self.bytes.checked_sub(bytes) else {
            return Ok(Err(format!("the changed files have over {BYTES_MAX} bytes")));
        };
        self.bytes = left;
        self.blobs.read_all(&digest, FILE_BYTES_MAX).map(|bytes| Ok(Cow::Owned(bytes)))
    }
}
