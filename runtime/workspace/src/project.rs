//! The run's private copy of the user's project, and the list of the copied files.
//!
//! Ignored files are not copied unless git tracks them or `workspace.include` names them. `.git`, `.glovebox` and
//! folders that contain a run are never copied. Links are never followed. The user's tree is only read. Invariant:
//! [`Base`] lists exactly the files of the copy.

mod bounds;
mod copiers;
mod listing;
pub(crate) mod missing;

pub use missing::MissingPaths;

use crate::commit::is_closed;
use crate::ignored::{self, IgnoreMatcher, IgnoreRules, IndexEntry, RulesTooLong};
use crate::link;
use crate::repository_shape::{self, Folders};
use crate::run_folder;
use crate::tree::{self, Tree, WalkEntry, WalkError};
use copiers::{Copiers, Job, Shared};
use glovebox_names::visible::is_deceptive;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, EntryProblem};
use glovebox_record::{ChangeOp, Digest, FileChange};
use ignore::DirEntry;
use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names that are never copied, at any depth.
const NEVER: [&str; 2] = [".git", ".glovebox"];

/// Ignored paths that are copied nevertheless (`workspace.include`), and the limits of the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Include {
    /// Entries: `dir/` for a subtree, otherwise exactly that path.
    pub entries: Vec<Entry>,
    /// Entries that are never copied, even if `workspace.include` names them: the folder of the runs, and sealed hold-outs.
    pub leave_out: Vec<Entry>,
    /// Maximum number of copied files; limit `project_files`.
    pub files_max: u64,
    /// Maximum number of copied bytes; limit `project_bytes`.
    pub bytes_max: u64,
}

impl Default for Include {
    fn default() -> Self {
        Self { entries: Vec::new(), leave_out: Vec::new(), files_max: 200_000, bytes_max: 8 << 30 }
    }
}

impl Include {
    /// Parses the entries of `workspace.include`, with the default limits.
    pub fn parse<S: AsRef<str>>(texts: &[S]) -> Result<Self, EntryProblem> {
        let entries = texts.iter().map(|text| Entry::parse(text.as_ref())).collect::<Result<_, _>>()?;
        Ok(Self { entries, ..Self::default() })
    }

    /// Finds the file or folder of an entry in the project at `from`. Returns `None` for the whole project.
    ///
    /// # Errors
    /// [`ProjectError`] for an entry that is never copied, and for one that does not exist.
    pub fn find(from: &Path, entry: &Entry) -> Result<Option<Stat>, ProjectError> {
        let source = Tree::open(from).map_err(|source| ProjectError::io(from, source))?;
        find_included(&source, from, entry)
    }
}

fn find_included(source: &Tree, from: &Path, entry: &Entry) -> Result<Option<Stat>, ProjectError> {
    let path = Path::new(entry.path().as_str());
    if entry.path().names().any(|name| NEVER.contains(&name)) {
        return Err(ProjectError::IncludeNever(entry.to_string()));
    }
    if path.ancestors().any(|above| !above.as_os_str().is_empty() && run_folder::is_run(&from.join(above))) {
        return Err(ProjectError::IncludeRun(entry.to_string()));
    }
    if entry.path().is_root() {
        return Ok(None);
    }
    let found = source.stat(path).map_err(|source| ProjectError::io(path, source))?;
    found.map(Some).ok_or_else(|| ProjectError::IncludeMissing(entry.to_string()))
}

/// Metadata and digest of a project file at the time of the copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileFact {
    /// Digest of the content.
    pub digest: Digest,
    /// Length in bytes.
    pub bytes: u64,
    /// True if the owner may execute it.
    pub executable: bool,
}

/// An entry of the project that was not copied, and the reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SkippedEntry {
    /// Path relative to the project, with unprintable characters escaped.
    pub path: String,
    /// Why the entry was not copied.
    pub reason: String,
}

/// The initial content of the copy. `diff` and `apply` compare with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// Regular files by path.
    pub files: BTreeMap<String, FileFact>,
    /// Links that were copied as links, with their targets.
    pub symlinks: BTreeMap<String, String>,
    /// Directories, including empty ones, without the root.
    pub directories: BTreeSet<String>,
    /// Permissions of the directories that their owner may not read, change and enter. The copies have these permissions
    /// too; a stage sees the original ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub closed: BTreeMap<String, u32>,
    /// Skipped entries, without ignored files.
    pub skipped: Vec<SkippedEntry>,
    /// The ignore rules at the time of the copy.
    #[serde(default, skip_serializing_if = "IgnoreRules::is_empty")]
    pub ignored: IgnoreRules,
    /// Files of the project whose content was missing when it was copied. The start of the run records them, not this list.
    #[serde(skip)]
    pub missing: Vec<MissingPaths>,
}

impl Base {
    /// Returns the list as it is recorded in a run.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("maps with text keys have a JSON form")
    }

    /// Returns the digest of [`Base::to_json`].
    pub fn digest(&self) -> Digest {
        Digest::hash(&self.to_json())
    }

    /// Returns the list after changes, which are applied in order.
    #[must_use]
    pub fn after<'a>(mut self, changes: impl IntoIterator<Item = &'a FileChange>) -> Self {
        for change in changes {
            let path = change.path.as_str();
            note_closed(&mut self.closed, change);
            self.files.remove(path);
            self.symlinks.remove(path);
            match (change.op, change.digest, &change.target) {
                (ChangeOp::Write, Some(digest), _) => {
                    let FileChange { bytes, executable, .. } = *change;
                    self.files.insert(path.to_owned(), FileFact { digest, bytes, executable });
                }
                (ChangeOp::Symlink, _, Some(target)) => {
                    self.symlinks.insert(path.to_owned(), target.to_owned());
                }
                (ChangeOp::Mkdir, ..) => {
                    self.directories.insert(path.to_owned());
                }
                (ChangeOp::Rmdir, ..) => {
                    self.directories.remove(path);
                }
                _ => {}
            }
        }
        self
    }

    /// Returns [`Base::closed`] after changes, which are applied in order.
    pub fn closed_after<'a>(&self, changes: impl IntoIterator<Item = &'a FileChange>) -> BTreeMap<String, u32> {
        let mut closed = self.closed.clone();
        changes.into_iter().for_each(|change| note_closed(&mut closed, change));
        closed
    }
}

fn note_closed(closed: &mut BTreeMap<String, u32>, change: &FileChange) {
    let path = change.path.as_str();
    match (change.op, change.mode.filter(|_| is_closed(change.mode))) {
        (ChangeOp::Mkdir, Some(mode)) => _ = closed.insert(path.to_owned(), mode),
        (ChangeOp::Mkdir | ChangeOp::Rmdir, _) => _ = closed.remove(path),
        _ => {}
    }
}

impl Folders for Base {
    fn entries(&self, folder: &Path) -> io::Result<Vec<(String, repository_shape::FolderEntry)>> {
        let files = self.files.keys().map(|path| (path, repository_shape::FolderEntry::File));
        let others = self.symlinks.keys().map(|path| (path, repository_shape::FolderEntry::Other));
        let folders = self.directories.iter().map(|path| (path, repository_shape::FolderEntry::Folder));
        let all = files.chain(others).chain(folders);
        let named = all.filter_map(|(path, entry)| {
            let (above, name) = path.rsplit_once('/').unwrap_or(("", path));
            (Path::new(above) == folder).then(|| (name.to_owned(), entry))
        });
        Ok(named.collect())
    }

    fn beginning(&self, _: &Path) -> io::Result<Option<Vec<u8>>> {
        Ok(None)
    }
}

/// Why a project could not be copied.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A limit was exceeded.
    #[error("the project exceeds the limit `{limit}` ({max}): add unneeded files to `.gitignore`")]
    Limit {
        /// Name of the limit.
        limit: &'static str,
        /// Value of the limit.
        max: u64,
    },
    /// An entry of `workspace.include` does not exist.
    #[error("`workspace.include` names `{0}`, which does not exist in the project")]
    IncludeMissing(String),
    /// An entry of `workspace.include` names a path that is never copied.
    #[error("`workspace.include` names `{0}`, but `.git` and `.glovebox` are never copied")]
    IncludeNever(String),
    /// An entry of `workspace.include` names a run or a path in one.
    #[error("`workspace.include` names `{0}`, which is in a run's folder: runs contain hold-outs and are never copied")]
    IncludeRun(String),
    /// The ignore rules exceed a limit.
    #[error(transparent)]
    Rules(#[from] RulesTooLong),
    /// The operating system refused.
    #[error("could not copy `{path}`: {source}")]
    Io {
        /// Path on which it failed.
        path: String,
        /// The system's error.
        source: io::Error,
    },
}

impl ProjectError {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: tree::shown(path), source }
    }
}

impl From<WalkError> for ProjectError {
    fn from(error: WalkError) -> Self {
        Self::io(&error.path, error.source)
    }
}

/// Copies the project at `from` to the new folder `to`.
///
/// `.gitignore` files apply, even without a repository. Hidden files are copied. Links are copied as links, whatever
/// they lead to: a target outside of the copy does not exist in a sandbox. Everything else except regular files and directories is listed in [`Base::skipped`].
///
/// # Errors
/// [`ProjectError`] if `to` exists, a limit is exceeded, an entry of `include` does not exist or the system refuses.
pub fn copy(from: &Path, to: &Path, include: &Include) -> Result<Base, ProjectError> {
    let source = Tree::open(from).map_err(|source| ProjectError::io(from, source))?;
    let target = Tree::create(to).map_err(|source| ProjectError::io(to, source))?;
    let own = std::fs::canonicalize(to).map_err(|source| ProjectError::io(to, source))?;
    let (shared, index) = (Shared::new(include.bytes_max), ignored::index_of(from));
    let (mut base, copied) = std::thread::scope(|scope| {
        let copiers = Copiers::new(scope, &shared);
        let (base, place) = (Base::default(), None);
        let mut copying = ProjectCopy {
            source: &source,
            target: &target,
            include,
            from,
            own: &own,
            index: &index,
            base,
            place,
            copiers,
        };
        let listed = copying.all();
        let ProjectCopy { base, copiers, .. } = copying;
        // An error of a copy is returned first, because an error of the list may be a consequence of it.
        let copied = copiers.finish()?;
        listed.map(|()| (base, copied))
    })?;
    base.files.extend(copied.into_iter().map(|(path, fact)| (path.as_str().to_owned(), fact)));
    base.missing = missing::find(from, &target, &index, &base, &include.leave_out);
    base.skipped.sort_by(|a, b| a.path.cmp(&b.path));
    base.skipped.dedup();
    Ok(base)
}

struct ProjectCopy<'c, 'e> {
    source: &'c Tree,
    target: &'c Tree,
    include: &'c Include,
    /// The project's folder.
    from: &'c Path,
    own: &'c Path,
    /// The index of the project's repository.
    index: &'c [IndexEntry],
    /// The copied entries. A file has an empty [`FileFact`] until all files are copied.
    base: Base,
    /// The folder of the last entry.
    place: Option<OpenFolders>,
    copiers: Copiers<'c, 'e>,
}

/// A folder of the project, and of the copy once it has that folder.
struct OpenFolders {
    path: PathBuf,
    source: Arc<OwnedFd>,
    target: Option<Arc<OwnedFd>>,
}

impl ProjectCopy<'_, '_> {
    fn all(&mut self) -> Result<(), ProjectError> {
        let listed = listing::list(self.from, self.own)?;
        for entry in listed.walk {
            let entry = entry.map_err(|error| {
                // The kind of the error is needed for the help.
                let kind = error.io_error().map_or(io::ErrorKind::Other, io::Error::kind);
                ProjectError::io(self.from, io::Error::new(kind, error))
            })?;
            self.copy_listed(&entry)?;
        }
        for run in listed.noted.finish()? {
            self.skip_run(&run);
        }
        for entry in &self.include.entries {
            self.copy_included(entry)?;
        }
        self.read_rules()
    }

    /// Returns the folder of a path. Consecutive entries of one folder share the open descriptor.
    fn place(&mut self, path: &Path) -> io::Result<&mut OpenFolders> {
        let folder = path.parent().unwrap_or(Path::new(""));
        let place = match self.place.take().filter(|place| place.path == folder) {
            Some(place) => place,
            None => {
                let source = Arc::new(self.source.directory(folder)?);
                OpenFolders { path: folder.to_owned(), source, target: None }
            }
        };
        Ok(self.place.insert(place))
    }

    fn copy_listed(&mut self, entry: &DirEntry) -> Result<(), ProjectError> {
        let Ok(path) = entry.path().strip_prefix(self.from) else { return Ok(()) };
        let Some(name) = path.file_name() else { return Ok(()) };
        let stat = match self.place(path) {
            Ok(place) => tree::stat_at(&place.source, name),
            Err(error) if tree::is_absent(&error) => Ok(None),
            Err(error) => Err(error),
        };
        match stat.map_err(|source| ProjectError::io(path, source))? {
            Some(stat) => self.copy_entry(path, &stat),
            None => Ok(()),
        }
    }

    fn copy_included(&mut self, entry: &Entry) -> Result<(), ProjectError> {
        let path = Path::new(entry.path().as_str());
        let Some(stat) = find_included(self.source, self.from, entry)? else { return self.copy_below(path) };
        self.copy_entry(path, &stat)?;
        if entry.is_subtree() { self.copy_below(path) } else { Ok(()) }
    }

    /// Reads the ignore rules, and copies tracked files that match them.
    fn read_rules(&mut self) -> Result<(), ProjectError> {
        let mut rules = IgnoreRules::read(self.from, self.base.directories.iter().map(String::as_str))?;
        let ignored = IgnoreMatcher::new(&rules);
        for file in ignored::tracked_files(self.index) {
            let is_ignored =
                ScopePath::parse(file).is_ok_and(|path| ignored.covers(&path, ignored::EntryKind::File).is_some());
            if is_ignored {
                self.copy_tracked(Path::new(file))?;
            }
        }
        rules.keep(self.base.files.keys().chain(self.base.symlinks.keys()).map(String::as_str));
        self.base.ignored = rules;
        Ok(())
    }

    fn copy_tracked(&mut self, path: &Path) -> Result<(), ProjectError> {
        let is_never = path.iter().any(|name| NEVER.iter().any(|never| name == *never));
        let in_run = || {
            path.ancestors()
                .skip(1)
                .any(|above| !above.as_os_str().is_empty() && run_folder::is_run(&self.from.join(above)))
        };
        if is_never || in_run() {
            return Ok(());
        }
        match self.source.stat(path).map_err(|source| ProjectError::io(path, source))? {
            Some(stat) if FileType::from_raw_mode(stat.st_mode) != FileType::Directory => self.copy_entry(path, &stat),
            _ => Ok(()),
        }
    }

    fn copy_below(&mut self, path: &Path) -> Result<(), ProjectError> {
        let below = self.source.below(path).map_err(|source| ProjectError::io(path, source))?;
        tree::walk(&below, &mut |entry: &WalkEntry<'_>| {
            let never = NEVER.iter().any(|name| entry.name == *name);
            let path = path.join(entry.path);
            let is_own = self.own.file_name() == Some(entry.name)
                && self.target.inode().ok() == Some((entry.stat.st_dev, entry.stat.st_ino));
            if never || is_own {
                return Ok(false);
            }
            if FileType::from_raw_mode(entry.stat.st_mode) == FileType::Directory
                && run_folder::is_run(&self.from.join(&path))
            {
                self.skip_run(&path);
                return Ok(false);
            }
            self.copy_entry(&path, &entry.stat)?;
            Ok(true)
        })
    }

    /// Copies one path, unless it was already copied or must not be copied.
    fn copy_entry(&mut self, path: &Path, stat: &Stat) -> Result<(), ProjectError> {
        let failed = |source: io::Error| ProjectError::io(path, source);
        if self.is_left_out(path) {
            return Ok(());
        }
        let named = path.to_str().filter(|text| !text.chars().any(is_deceptive)).map(ScopePath::parse);
        let Some(Ok(scope_path)) = named else {
            self.skip(path, "its name is not valid UTF-8 or has characters that could deceive a reader");
            return Ok(());
        };
        if self.has(&scope_path) {
            return Ok(());
        }
        if let Some(parent) = scope_path.parent().filter(|parent| !parent.is_root()) {
            self.make_directory(&parent).map_err(failed)?;
        }
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => self.make_directory(&scope_path).map_err(failed),
            FileType::RegularFile => self.copy_file(&scope_path, stat),
            FileType::Symlink => self.copy_link(&scope_path).map_err(failed),
            _ => {
                self.skip(path, "it is not a regular file, directory or link");
                Ok(())
            }
        }
    }

    /// Returns true for a path that must appear neither in the copy nor in the list of skipped entries.
    fn is_left_out(&self, path: &Path) -> bool {
        self.include.leave_out.iter().any(|entry| path.starts_with(entry.path().as_str()))
    }

    fn has(&self, path: &ScopePath) -> bool {
        self.base.files.contains_key(path.as_str()) || self.base.symlinks.contains_key(path.as_str())
    }

    fn make_directory(&mut self, path: &ScopePath) -> io::Result<()> {
        let mut at = ScopePath::root();
        for name in path.names() {
            let parent = at;
            at = parent.join(name).map_err(io::Error::other)?;
            if self.base.directories.contains(at.as_str()) {
                continue;
            }
            let parent = self.target.directory(Path::new(parent.as_str()))?;
            let stat = self.source.stat(Path::new(at.as_str()))?;
            let mode = stat.map_or(tree::DIRECTORY_MODE, |stat| tree::copied_directory_mode(&stat));
            rustix::fs::mkdirat(parent, name, mode)?;
            let original = stat.map(|stat| stat.st_mode & tree::PERMISSIONS);
            if let Some(original) = original.filter(|original| original & mode.as_raw_mode() != mode.as_raw_mode()) {
                self.base.closed.insert(at.as_str().to_owned(), original);
            }
            self.base.directories.insert(at.as_str().to_owned());
        }
        Ok(())
    }

    fn copy_file(&mut self, path: &ScopePath, stat: &Stat) -> Result<(), ProjectError> {
        if self.base.files.len() as u64 >= self.include.files_max {
            return Err(ProjectError::Limit { limit: "project_files", max: self.include.files_max });
        }
        let (source, target) = self
            .folders(Path::new(path.as_str()))
            .map_err(|source| ProjectError::io(Path::new(path.as_str()), source))?;
        let fact = FileFact { digest: Digest::ZERO, bytes: 0, executable: false };
        self.base.files.insert(path.as_str().to_owned(), fact);
        let goes_on = self.copiers.copy(Job { path: path.clone(), source, target, stat: *stat });
        // `Copiers::finish` returns the error of the thread that failed.
        if goes_on {
            Ok(())
        } else {
            Err(ProjectError::io(Path::new(path.as_str()), io::ErrorKind::Interrupted.into()))
        }
    }

    /// Returns the folder of a file in the project and in the copy, where it must exist.
    fn folders(&mut self, path: &Path) -> io::Result<(Arc<OwnedFd>, Arc<OwnedFd>)> {
        let target = self.target;
        let place = self.place(path)?;
        let made = match place.target.take() {
            Some(made) => made,
            None => Arc::new(target.directory(&place.path)?),
        };
        Ok((Arc::clone(&place.source), Arc::clone(place.target.insert(made))))
    }

    fn copy_link(&mut self, path: &ScopePath) -> io::Result<()> {
        let at = Path::new(path.as_str());
        let (parent, name) = self.source.parent(at)?;
        let target = tree::read_link(&parent, name)?;
        let Some(text) = target.to_str().filter(|text| !text.chars().any(is_deceptive)) else {
            self.skip(at, "its target is not valid UTF-8 or has characters that could deceive a reader");
            return Ok(());
        };
        // A dangling link would reveal the name of the omitted file. An absolute target can name it too.
        let inside = link::destination(path, Path::new(text)).ok().map(|inside| PathBuf::from(inside.as_str()));
        let inside = inside.or_else(|| Path::new(text).strip_prefix(self.from).ok().map(Path::to_owned));
        if inside.is_some_and(|inside| self.is_left_out(&inside)) {
            return Ok(());
        }
        let (parent, name) = self.target.parent(at)?;
        rustix::fs::symlinkat(text, parent, name)?;
        self.base.symlinks.insert(path.as_str().to_owned(), text.to_owned());
        Ok(())
    }

    /// Adds a run to the skipped entries, unless its name must not appear.
    fn skip_run(&mut self, path: &Path) {
        if !self.is_left_out(path) {
            self.skip(path, "it contains a run, and runs contain hold-outs");
        }
    }

    fn skip(&mut self, path: &Path, reason: &str) {
        self.base.skipped.push(SkippedEntry { path: tree::shown(path), reason: reason.to_owned() });
    }
}

/// Copies at most `bytes_max` plus one bytes. Returns the digest and the length.
pub(crate) fn copy_hashed(from: &mut impl Read, mut to: impl Write, bytes_max: u64) -> io::Result<(Digest, u64)> {
    let mut hasher = blake3::Hasher::new();
    let mut limited = from.take(bytes_max.saturating_add(1));
    let mut buffer = vec![0; 128 << 10];
    let mut bytes = 0;
    loop {
        let got = tree::read_full(&mut limited, &mut buffer)?;
        if got == 0 {
            return Ok((hasher.finalize().into(), bytes));
        }
        hasher.update(&buffer[..got]);
        to.write_all(&buffer[..got])?;
        bytes += got as u64;
    }
}
