//! The index of the project's repository: the files that git tracks, and their state when git last examined them.
//!
//! It reads the index formats 2 to 4 of git. Only the user's repository is read, never one that a stage can write. An
//! index that cannot be parsed lists no files: a tracked file that matches a rule is then treated as ignored.

use crate::regular_file::{self, Links};
use crate::work_tree;
use std::fs;
use std::path::Path;

/// Maximum size in bytes of an index that is read.
const BYTES_MAX: u64 = 512 << 20;
/// Length in bytes of the fields before the digest of an entry: times, numbers and length.
const STAT_BYTES: usize = 40;
/// Lengths in bytes of a SHA-1 and a SHA-256 digest.
const DIGEST_BYTES: [usize; 2] = [20, 32];
const MODIFIED_AT: usize = 8;
const MODE_AT: usize = 24;
const LENGTH_AT: usize = 36;
const EXTENDED: u16 = 0x4000;
const SKIPPED: u16 = 0x4000;
/// Maximum length of a path in bytes, as `PATH_MAX` on Linux.
const PATH_BYTES_MAX: usize = 4_096;
/// Maximum length of all paths together in bytes. An index of version 4 stores only where a path differs from the one before.
const PATHS_BYTES_MAX: usize = 256 << 20;

/// Returns the entries of the index below `project`, with paths relative to the project. Without an index that can be read
/// there are none.
pub(crate) fn of_project(project: &Path) -> Vec<IndexEntry> {
    let whole = fs::canonicalize(project).unwrap_or_else(|_| project.to_owned());
    let Some(root) = work_tree::root(&whole) else { return Vec::new() };
    let below = whole.strip_prefix(root).unwrap_or(Path::new("")).to_string_lossy().into_owned();
    let index = work_tree::own_folder(root).map(|folder| folder.join("index"));
    let bytes = index.and_then(|file| regular_file::read(&file, Links::Follow, BYTES_MAX).ok());
    let Some(bytes) = bytes else { return Vec::new() };
    let inside = |mut entry: IndexEntry| {
        if !below.is_empty() {
            entry.path = entry.path.strip_prefix(below.as_bytes())?.strip_prefix(b"/")?.to_vec();
        }
        Some(entry)
    };
    entries(&bytes).unwrap_or_default().into_iter().filter_map(inside).collect()
}

/// Returns the files among these entries: no submodules, and no folders of a sparse index.
pub(crate) fn files(entries: &[IndexEntry]) -> impl Iterator<Item = &str> {
    let is_file = |entry: &&IndexEntry| matches!(entry.mode & 0o170_000, 0o100_000 | 0o120_000);
    entries.iter().filter(is_file).filter_map(|entry| std::str::from_utf8(&entry.path).ok())
}

/// An entry of an index.
#[derive(Debug, Clone)]
pub(crate) struct IndexEntry {
    pub(crate) path: Vec<u8>,
    /// The id of the object.
    pub(crate) id: Vec<u8>,
    pub(crate) mode: u32,
    /// The time of the file's last modification, in seconds and nanoseconds, and its length; all truncated to 32 bits.
    pub(crate) modified: (u32, u32),
    pub(crate) bytes: u32,
    /// True if a sparse checkout leaves out the file or the folder.
    pub(crate) is_skipped: bool,
}

/// Returns all entries of an index, or `None` if the bytes are not an index.
pub(crate) fn entries(bytes: &[u8]) -> Option<Vec<IndexEntry>> {
    DIGEST_BYTES.iter().find_map(|length| Entries::new(bytes, *length)?.all())
}

/// A parser of the entries of an index.
struct Entries<'b> {
    bytes: &'b [u8],
    at: usize,
    left: u32,
    version: u32,
    digest_bytes: usize,
}

impl<'b> Entries<'b> {
    fn new(bytes: &'b [u8], digest_bytes: usize) -> Option<Self> {
        let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let (version, left) = (number(4)?, number(8)?);
        let is_known = bytes.starts_with(b"DIRC") && (2..=4).contains(&version);
        is_known.then_some(Self { bytes, at: 12, left, version, digest_bytes })
    }

    /// Returns every entry, or `None` if the bytes are not an index with digests of this length.
    fn all(mut self) -> Option<Vec<IndexEntry>> {
        let (mut found, mut last, mut bytes) = (Vec::new(), Vec::new(), 0);
        while self.left > 0 {
            self.left -= 1;
            found.push(self.next(&mut last)?);
            bytes += last.len();
            if last.len() > PATH_BYTES_MAX || bytes > PATHS_BYTES_MAX {
                return None;
            }
        }
        Some(found)
    }

    fn number(&self, at: usize) -> Option<u32> {
        Some(u32::from_be_bytes(self.bytes.get(at..at + 4)?.try_into().ok()?))
    }

    fn flags(&self, at: usize) -> Option<u16> {
        Some(u16::from_be_bytes(self.bytes.get(at..at + 2)?.try_into().ok()?))
    }

    /// Reads one entry. `path` must contain the path of the previous entry and is replaced by the path of this one.
    fn next(&mut self, path: &mut Vec<u8>) -> Option<IndexEntry> {
        let begin = self.at;
        let mode = self.number(begin + MODE_AT)?;
        let modified = (self.number(begin + MODIFIED_AT)?, self.number(begin + MODIFIED_AT + 4)?);
        let bytes = self.number(begin + LENGTH_AT)?;
        let flags_at = begin + STAT_BYTES + self.digest_bytes;
        let id = self.bytes.get(begin + STAT_BYTES..flags_at)?.to_vec();
        let is_extended = self.flags(flags_at)? & EXTENDED != 0 && self.version > 2;
        let is_skipped = is_extended && self.flags(flags_at + 2)? & SKIPPED != 0;
        self.at = flags_at + if is_extended { 4 } else { 2 };
        if self.version == 4 {
            let stripped = self.varint()?;
            path.truncate(path.len().checked_sub(stripped)?);
        } else {
            path.clear();
        }
        let rest = self.bytes.get(self.at..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        path.extend_from_slice(&rest[..length]);
        let is_named = !path.is_empty() && !path.starts_with(b"/");
        self.at += length + 1;
        if self.version < 4 {
            // Entries are padded to a multiple of eight bytes, with one to eight NULs.
            let taken = self.at - begin;
            let padded = taken.next_multiple_of(8);
            let padding = self.bytes.get(self.at..begin + padded)?;
            if padding.iter().any(|byte| *byte != 0) {
                return None;
            }
            self.at = begin + padded;
        }
        is_named.then(|| IndexEntry { path: path.clone(), id, mode, modified, bytes, is_skipped })
    }

    /// Reads a number in git's variable-length encoding.
    fn varint(&mut self) -> Option<usize> {
        let mut byte = *self.bytes.get(self.at)?;
        let mut value = usize::from(byte & 0x7f);
        self.at += 1;
        while byte & 0x80 != 0 {
            byte = *self.bytes.get(self.at)?;
            value = value.checked_add(1)?.checked_mul(128)?.checked_add(usize::from(byte & 0x7f))?;
            self.at += 1;
        }
        Some(value)
    }
}
