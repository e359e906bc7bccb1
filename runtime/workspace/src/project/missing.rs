//! Files of a project whose content was missing when it was copied: empty submodules, pointers of Git LFS, and what a sparse checkout
//! leaves out.
//!
//! A check over such a project passes without having read these files, so the run names them. They are found once for a run, from
//! the index that the copy reads anyway. Only small files are opened, and only in a project that uses Git LFS. A project brings its
//! index, so every path is parsed and every number is bounded.

use super::Base;
use crate::canonical::canonical;
use crate::ignored::{self, IndexEntry};
use crate::regular_file::{self, Links};
use crate::tree::{self, Tree};
use crate::work_tree;
use glovebox_names::visible::is_deceptive;
use glovebox_record::MissingKind;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Entry;
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Mode of a submodule in an index.
const SUBMODULE: u32 = 0o160_000;
/// Maximum number of submodules whose own index is read, because a submodule can have submodules.
const INDEXES_MAX: usize = 256;
/// Maximum size of the index of a submodule, bytes.
const INDEX_BYTES_MAX: u64 = 128 << 20;
/// Maximum size of a file that git reads for attributes or submodules, bytes.
const SETTINGS_BYTES_MAX: u64 = 1 << 20;
/// Length of a pointer in bytes: with a digest, and shorter than the specification of Git LFS allows.
const POINTER_BYTES: std::ops::Range<u64> = 100..1_024;
/// The beginning of a pointer of Git LFS.
pub(crate) const POINTER: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Missing files of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingPaths {
    /// Why the files are missing.
    pub kind: MissingKind,
    /// Their paths, sorted. A folder ends with a slash.
    pub paths: BTreeSet<String>,
}

/// Finds the missing files of a project at `from` that was copied to `copy`. `index` is the index of its repository. Paths in
/// `leave_out` never appear.
pub(crate) fn find(
    from: &Path,
    copy: &Tree,
    index: &[IndexEntry],
    base: &Base,
    leave_out: &[Entry],
) -> Vec<MissingPaths> {
    let mut search = Search { from, base, leave_out, submodules: BTreeSet::new(), sparse: BTreeSet::new() };
    match index {
        // An archive of a repository has the list of submodules, but no index.
        [] => search.listed_submodules(copy),
        entries => {
            let mut left = INDEXES_MAX;
            search.entries("", entries, &mut left);
        }
    }
    let Search { submodules, sparse, .. } = search;
    let pointers = pointers(copy, base);
    [(MissingKind::Submodule, submodules), (MissingKind::LfsPointer, pointers), (MissingKind::SparseCheckout, sparse)]
        .into_iter()
        .filter(|(_, paths)| !paths.is_empty())
        .map(|(kind, paths)| MissingPaths { kind, paths })
        .collect()
}

struct Search<'p> {
    from: &'p Path,
    base: &'p Base,
    leave_out: &'p [Entry],
    submodules: BTreeSet<String>,
    sparse: BTreeSet<String>,
}

impl Search<'_> {
    /// Adds what is missing of the entries of an index. `below` is the submodule with this index, with a slash at its end.
    fn entries(&mut self, below: &str, entries: &[IndexEntry], left: &mut usize) {
        for entry in entries {
            let Ok(path) = std::str::from_utf8(&entry.path) else { continue };
            let path = format!("{below}{path}");
            let is_submodule = entry.mode & 0o170_000 == SUBMODULE;
            if !is_submodule && !entry.is_skipped {
                continue;
            }
            let Some(path) = self.shown(path.trim_end_matches('/')) else { continue };
            if entry.is_skipped {
                if !self.is_copied(&path) {
                    let is_folder = is_submodule || entry.mode & 0o170_000 == 0o040_000;
                    self.sparse.insert(if is_folder { format!("{path}/") } else { path.to_string() });
                }
            } else if self.is_copied(&path) {
                self.nested(&path, left);
            } else if self.is_empty(&path) {
                self.submodules.insert(format!("{path}/"));
            }
        }
    }

    /// Adds what is missing of a submodule that is checked out. No link is followed on the way to it.
    fn nested(&mut self, path: &ScopePath, left: &mut usize) {
        let folder = self.from.join(path.as_str());
        let is_folder = || Tree::open(self.from).and_then(|tree| tree.directory(Path::new(path.as_str()))).is_ok();
        if *left == 0 || !is_folder() || folder.join(".git").symlink_metadata().is_err() {
            return;
        }
        *left -= 1;
        let index = own_repository(&folder).and_then(|repository| {
            regular_file::read(&repository.join("index"), Links::Within(&repository), INDEX_BYTES_MAX).ok()
        });
        if let Some(entries) = index.and_then(|bytes| ignored::index_entries(&bytes)) {
            self.entries(&format!("{path}/"), &entries, left);
        }
    }

    /// Adds the empty folders that `.gitmodules` names.
    fn listed_submodules(&mut self, copy: &Tree) {
        let Ok(text) = settings(copy, ".gitmodules") else { return };
        let paths = text.lines().filter_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == "path").then(|| value.trim().trim_matches('"').trim_end_matches('/'))
        });
        let paths: Vec<_> = paths.take(INDEXES_MAX).filter_map(|path| self.shown(path)).collect();
        let empty = paths.into_iter().filter(|path| !self.is_copied(path) && self.is_empty(path));
        let empty: Vec<_> = empty.map(|path| format!("{path}/")).collect();
        self.submodules.extend(empty);
    }

    /// Parses a path. Returns `None` for one that must not appear.
    fn shown(&self, path: &str) -> Option<ScopePath> {
        let path = ScopePath::parse(path).ok().filter(|path| !path.as_str().chars().any(is_deceptive))?;
        let is_left_out = self.leave_out.iter().any(|entry| path.starts_with(entry.path()));
        (!is_left_out).then_some(path)
    }

    /// Returns true if the copy has a file or link at or below the path.
    fn is_copied(&self, path: &ScopePath) -> bool {
        let (path, below) = (path.as_str(), format!("{path}/"));
        let files = self.base.files.range(below.clone()..).next().map(|(path, _)| path);
        let links = self.base.symlinks.range(below.clone()..).next().map(|(path, _)| path);
        self.base.files.contains_key(path)
            || self.base.symlinks.contains_key(path)
            || files.into_iter().chain(links).any(|path| path.starts_with(&below))
    }

    /// Returns true if the project has no file at or below the path. A folder that git ignores may have files that are not copied.
    fn is_empty(&self, path: &ScopePath) -> bool {
        let folder = Tree::open(self.from).and_then(|tree| tree.directory(Path::new(path.as_str())));
        match folder {
            Ok(folder) => tree::names(&folder).is_ok_and(|names| names.iter().all(|name| name == ".git")),
            Err(error) => tree::is_absent(&error),
        }
    }
}

/// Returns the repository of a submodule. `None` if its `.git` is a link, or leads to a repository that does not name this folder as its
/// work tree: the names of files in another repository of the user must not appear.
///
/// It is stricter than the rule of `repository` for a project: linked worktrees are refused. That module imports this one, so its rule
/// cannot be used here.
fn own_repository(folder: &Path) -> Option<PathBuf> {
    let (at, own) = (folder.join(".git"), work_tree::own_folder(folder)?);
    if work_tree::shared_folder(&own) != own || at.symlink_metadata().ok()?.is_symlink() {
        return None;
    }
    if own == at {
        return Some(own);
    }
    let own = canonical(&own).ok()?;
    let config = regular_file::read_text(&own.join("config"), Links::Within(&own), SETTINGS_BYTES_MAX).ok()?;
    let (mut is_core, mut named) = (false, None);
    for line in config.lines().map(str::trim) {
        if line.starts_with('[') {
            is_core = line.eq_ignore_ascii_case("[core]");
        } else if let (true, Some((key, value))) = (is_core, line.split_once('='))
            && key.trim().eq_ignore_ascii_case("worktree")
        {
            named = Some(value.trim());
        }
    }
    let is_named = canonical(&own.join(named?)).ok()? == canonical(folder).ok()?;
    is_named.then_some(own)
}

/// Returns the files of the copy that are pointers of Git LFS.
fn pointers(copy: &Tree, base: &Base) -> BTreeSet<String> {
    let is_attributes = |path: &&String| path.rsplit('/').next() == Some(".gitattributes");
    let uses_lfs = |path: &String| settings(copy, path).is_ok_and(|text| text.contains("filter=lfs"));
    if !base.files.keys().filter(is_attributes).any(uses_lfs) {
        return BTreeSet::new();
    }
    let small = base.files.iter().filter(|(_, fact)| POINTER_BYTES.contains(&fact.bytes)).map(|(path, _)| path);
    small.filter(|path| is_pointer(copy, path).unwrap_or(false)).cloned().collect()
}

fn is_pointer(copy: &Tree, path: &str) -> io::Result<bool> {
    let mut beginning = [0; POINTER.len()];
    copy.file(Path::new(path))?.read_exact(&mut beginning)?;
    Ok(beginning == POINTER)
}

/// Reads a text file of the copy.
fn settings(copy: &Tree, path: &str) -> io::Result<String> {
    let mut text = Vec::new();
    copy.file(Path::new(path))?.take(SETTINGS_BYTES_MAX).read_to_end(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
