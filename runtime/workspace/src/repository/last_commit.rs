//! The files of the project's last commit that a stage may see.
//!
//! A path is included only if the scope shows it, as in the workspace. What the copy of the project leaves out is left
//! out here too: hold-outs, names that deceive, and files that a sparse checkout does not have. The content of a file
//! that differs from the workspace is read from the repository's objects. In a run with hold-outs, such a content is
//! included only if it shares no line with a hold-out, because an earlier version of a file can contain text that has
//! become a hold-out since then.

use super::digest::{ObjectId, ObjectKind};
use super::facts::Folders;
use super::objects::{ObjectError, Objects};
use super::snapshot::Mode;
use super::{FILE_BYTES_MAX, REPOSITORY_DIR};
use crate::holdout::canary::Canary;
use crate::holdout::{Seal, SealError};
use crate::ignored::{self, IndexEntry};
use crate::lower::is_seen;
use crate::project::Base;
use crate::project::missing::POINTER;
use crate::regular_file::{self, Links};
use crate::tree;
use glovebox_names::visible::is_deceptive;
use glovebox_record::scope::Scope;
use rustix::fs::{FileType, Stat};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{DefaultHasher, Hasher};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Maximum number of entries of all folders of the commit.
const ENTRIES_MAX: usize = 300_000;
/// Maximum size of a folder's list or of a commit, bytes.
const LIST_BYTES_MAX: usize = 16 << 20;
/// Maximum length of a path, bytes.
const PATH_BYTES_MAX: usize = 4_096;
/// Maximum length of all paths together, bytes.
const PATHS_BYTES_MAX: usize = 64 << 20;
/// Maximum size of an index, bytes.
const INDEX_BYTES_MAX: u64 = 512 << 20;
/// Minimum number of visible characters of a line that is compared with hold-outs.
const LINE_CHARS_MIN: usize = 4;

/// The last commit of a project, and what a run knows of its files.
#[derive(Clone, Copy)]
pub struct LastCommit<'p> {
    /// The project.
    pub project: &'p Path,
    /// The id of the commit when the run began.
    pub id: &'p str,
    /// The folder of a submodule in the workspace, with a slash at its end; empty for the project itself. Lists of files and hold-outs
    /// have paths of the workspace.
    pub below: &'p str,
    /// The files with which the run began.
    pub base: &'p Base,
    /// The hold-outs. `None` if the run has none.
    pub holdouts: Option<SealedText<'p>>,
}

/// The hold-outs of a run, to find their text in earlier versions of files.
#[derive(Clone, Copy)]
pub struct SealedText<'p> {
    /// The sealed files.
    pub seal: &'p Seal,
    /// The fragments of them for the leak check.
    pub canary: &'p Canary,
}

/// Why the last commit cannot be shown.
#[derive(Debug, thiserror::Error)]
pub(super) enum CommitError {
    #[error("`.git` does not belong to this folder")]
    Foreign,
    #[error("the repository does not use SHA-1")]
    OtherIds,
    #[error("its commit has more than {ENTRIES_MAX} entries, or their paths are too long")]
    TooManyEntries,
    #[error(transparent)]
    Object(#[from] ObjectError),
    #[error(transparent)]
    Holdouts(#[from] SealError),
}

/// A file, link or submodule of the commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CommittedEntry {
    pub(super) id: ObjectId,
    pub(super) mode: Mode,
}

/// The entries of the commit that a scope shows, and the objects of the repository.
pub(super) struct CommittedFiles<'p> {
    pub(super) entries: BTreeMap<Vec<u8>, CommittedEntry>,
    commit: LastCommit<'p>,
    objects: Objects,
    index: Index,
}

/// The user's index.
#[derive(Default)]
struct Index {
    entries: HashMap<Vec<u8>, IndexEntry>,
    /// When the index was written, in seconds.
    written: i64,
    /// Folders that a sparse checkout leaves out, each with a trailing slash.
    skipped: HashSet<Vec<u8>>,
}

impl<'p> CommittedFiles<'p> {
    /// Reads the commit's lists of files.
    pub(super) fn read(commit: LastCommit<'p>, scope: &Scope) -> Result<Self, CommitError> {
        let id = ObjectId::from_hex(commit.id).ok_or(CommitError::OtherIds)?;
        let folders = Folders::for_project(commit.project).ok_or(CommitError::Foreign)?;
        let mut objects = Objects::open(&folders.shared)?;
        let content = objects.read(id, ObjectKind::Commit, LIST_BYTES_MAX)?;
        let line = content.split(|byte| *byte == b'\n').next().and_then(|line| line.strip_prefix(b"tree "));
        let root = line.and_then(|id| ObjectId::from_hex(std::str::from_utf8(id).ok()?));
        let root = root.ok_or(ObjectError::Damaged)?;
        let sealed = commit.holdouts.map_or(&[][..], |holdouts| holdouts.seal.folders());
        let entries = entries(&mut objects, root, &|kind, path| {
            let is_holdout = || {
                let path = format!("{}{path}", commit.below);
                sealed.iter().any(|folder| path.starts_with(folder))
            };
            is_shown(kind, scope, path) && !is_holdout()
        })?;
        let index = Index::read(&folders);
        Ok(Self { entries, commit, objects, index })
    }

    /// Returns the content of an entry that differs from the workspace.
    pub(super) fn content(&mut self, id: ObjectId) -> Result<Vec<u8>, ObjectError> {
        self.objects.read(id, ObjectKind::Blob, usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX))
    }

    /// Returns true if a path that the workspace does not have belongs to the commit of the stage: the user or a stage
    /// has removed it. False for a path that the workspace does not have for another reason.
    pub(super) fn was_removed(&self, path: &[u8]) -> bool {
        let Ok(text) = std::str::from_utf8(path) else { return false };
        let (base, known_as) = (self.commit.base, format!("{}{text}", self.commit.below));
        let known_as = known_as.as_str();
        if base.files.contains_key(known_as)
            || base.symlinks.contains_key(known_as)
            || base.directories.contains(known_as)
        {
            return true;
        }
        // In a project with hold-outs, a removed file can be one that has become a hold-out.
        let is_in_project = self.commit.project.join(text).symlink_metadata().is_ok();
        self.commit.holdouts.is_none() && !is_in_project && !self.index.skips(path)
    }

    /// Returns true if git considered the file unchanged when it last examined it. Its bytes may differ from the commit,
    /// because a filter has changed them: line ends, an encoding, Git LFS.
    pub(super) fn is_unchanged(&self, path: &[u8], entry: CommittedEntry, stat: &Stat) -> bool {
        self.index
            .entries
            .get(path)
            .is_some_and(|known| known.id == entry.id.0 && self.index.written > stat.st_mtime && known.matches(stat))
    }

    /// Returns the paths of changed files whose committed content must not be shown. `current` returns the content in the
    /// workspace.
    pub(super) fn withheld(
        &mut self,
        changed: &[(Vec<u8>, ObjectId)],
        current: &dyn Fn(&[u8]) -> Option<Vec<u8>>,
    ) -> Result<HashSet<Vec<u8>>, CommitError> {
        let Some(SealedText { seal, canary }) = self.commit.holdouts else { return Ok(HashSet::new()) };
        let mut withheld = HashSet::new();
        let mut by_line: HashMap<u64, Vec<usize>> = HashMap::new();
        for (number, (path, id)) in changed.iter().enumerate() {
            // What cannot be read cannot be compared. A later read may succeed.
            let Ok(committed) = self.content(*id) else {
                withheld.insert(path.clone());
                continue;
            };
            let now = current(path).unwrap_or_default();
            let kept: HashSet<u64> = lines(&now).collect();
            lines(&committed).filter(|line| !kept.contains(line)).for_each(|line| {
                by_line.entry(line).or_default().push(number);
            });
            if canary.find_bytes(&committed).is_some() {
                withheld.insert(path.clone());
            }
        }
        seal.each_line(&mut |line| {
            for number in lines(line).filter_map(|line| by_line.remove(&line)).flatten() {
                withheld.insert(changed[number].0.clone());
            }
        })?;
        Ok(withheld)
    }
}

/// Returns true for the content of a file that stands for a large one.
pub(super) fn is_pointer(content: &[u8]) -> bool {
    content.starts_with(POINTER)
}

/// Returns the hashes of the lines that are compared, without white space.
fn lines(content: &[u8]) -> impl Iterator<Item = u64> {
    content.split(|byte| *byte == b'\n').filter_map(|line| {
        let (mut hasher, mut length) = (DefaultHasher::new(), 0);
        for byte in line.iter().filter(|byte| byte.is_ascii_graphic() || **byte >= 128) {
            hasher.write_u8(*byte);
            length += 1;
        }
        (length >= LINE_CHARS_MIN).then(|| hasher.finish())
    })
}

/// Returns true if the stage may see an entry of the commit.
fn is_shown(kind: FileType, scope: &Scope, path: &str) -> bool {
    let is_plain = path.split('/').all(|name| !name.eq_ignore_ascii_case(REPOSITORY_DIR) && name != ".glovebox");
    is_plain && !path.chars().any(is_deceptive) && is_seen(kind, scope, Path::new(path))
}

/// Lists the files, links and submodules below a folder.
fn entries(
    objects: &mut Objects,
    root: ObjectId,
    is_shown: &dyn Fn(FileType, &str) -> bool,
) -> Result<BTreeMap<Vec<u8>, CommittedEntry>, CommitError> {
    let (mut found, mut pending, mut count) = (BTreeMap::new(), vec![(root, String::new())], 0);
    let mut paths_bytes = 0;
    while let Some((id, folder)) = pending.pop() {
        let list = objects.read(id, ObjectKind::Tree, LIST_BYTES_MAX)?;
        let mut rest = &list[..];
        while !rest.is_empty() {
            let listed;
            (listed, rest) = next(rest).ok_or(ObjectError::Damaged)?;
            let ListedEntry { mode, name, id } = listed;
            count += 1;
            if count > ENTRIES_MAX {
                return Err(CommitError::TooManyEntries);
            }
            let is_name = !name.is_empty() && !name.contains('/') && name != "." && name != "..";
            let path = format!("{folder}{name}");
            paths_bytes += path.len();
            if paths_bytes > PATHS_BYTES_MAX {
                return Err(CommitError::TooManyEntries);
            }
            if !is_name || path.len() > PATH_BYTES_MAX {
                continue;
            }
            let (kind, mode) = match mode & 0o170_000 {
                0o040_000 if is_shown(FileType::Directory, &path) => {
                    pending.push((id, format!("{path}/")));
                    continue;
                }
                0o100_000 if mode & 0o100 != 0 => (FileType::RegularFile, Mode::Executable),
                0o100_000 => (FileType::RegularFile, Mode::File),
                0o120_000 => (FileType::Symlink, Mode::Link),
                // A submodule is shown if a file at its path would be.
                0o160_000 => (FileType::RegularFile, Mode::Submodule),
                _ => continue,
            };
            if is_shown(kind, &path) {
                found.insert(path.into_bytes(), CommittedEntry { id, mode });
            }
        }
    }
    Ok(found)
}

/// An entry of a folder's list. A name that is not UTF-8 is empty.
pub(super) struct ListedEntry<'l> {
    mode: u32,
    name: &'l str,
    id: ObjectId,
}

/// Splits the first entry off a folder's list.
pub(super) fn next(list: &[u8]) -> Option<(ListedEntry<'_>, &[u8])> {
    let space = list.iter().take(8).position(|byte| *byte == b' ')?;
    let mode = u32::from_str_radix(std::str::from_utf8(&list[..space]).ok()?, 8).ok()?;
    let rest = &list[space + 1..];
    let end = rest.iter().position(|byte| *byte == 0)?;
    let id = ObjectId::from_bytes(rest.get(end + 1..end + 21)?)?;
    let name = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    Some((ListedEntry { mode, name, id }, &rest[end + 21..]))
}

impl Index {
    /// Reads the index of a work tree. An index that cannot be read has no entries.
    fn read(folders: &Folders) -> Self {
        let at = folders.own.join("index");
        let Ok(bytes) = regular_file::read(&at, Links::Within(&folders.own), INDEX_BYTES_MAX) else {
            return Self::default();
        };
        let written = at.symlink_metadata().map_or(0, |found| found.mtime());
        let entries = ignored::index_entries(&bytes).unwrap_or_default();
        let is_folder = |entry: &&IndexEntry| entry.is_skipped && entry.mode & 0o170_000 == 0o040_000;
        let skipped = entries.iter().filter(is_folder).map(|entry| entry.path.clone()).collect();
        Self { entries: entries.into_iter().map(|entry| (entry.path.clone(), entry)).collect(), written, skipped }
    }

    /// Returns true if a sparse checkout leaves out the path.
    fn skips(&self, path: &[u8]) -> bool {
        let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        self.entries.get(path).is_some_and(|entry| entry.is_skipped)
            || slashes.into_iter().any(|at| self.skipped.contains(&path[..=at]))
    }
}

impl IndexEntry {
    /// Returns true if a file has the length and the time that git has noted.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "git truncates them too")]
    fn matches(&self, stat: &Stat) -> bool {
        let (seconds, nanoseconds) = self.modified;
        let same_time =
            seconds == stat.st_mtime as u32 && (nanoseconds == 0 || nanoseconds == stat.st_mtime_nsec as u32);
        same_time && self.bytes == tree::length(stat) as u32
    }
}
