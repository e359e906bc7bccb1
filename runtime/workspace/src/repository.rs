//! A git repository with one commit, so that `git` works in the sandbox.
//!
//! The commit has the files of the project's last commit that the stage may see; if that commit cannot be read, the
//! files of the workspace. Of the project's own repository, only this commit, the branch, the tags of the commit and the
//! remotes are read: other commits, reflogs and stashes contain hidden content. The repository is created without
//! running a program. Its objects are in one packfile, so a large project costs little more than reading it once. Stages
//! share it, so it must be mounted read-only. [`make_own`] creates the repository that an attempt may write: it borrows
//! the objects, and ends with the attempt.

mod commit_files;
mod digest;
mod facts;
#[cfg(any(test, feature = "fuzz"))]
pub mod fuzz;
mod history;
mod last_commit;
mod objects;
mod pack;
mod packed_objects;
mod snapshot;
mod submodules;

pub use facts::{RepositoryFacts, TagKind, head};
pub use history::make_with_history;
pub use last_commit::{LastCommit, SealedText};
pub use submodules::{Submodule, SubmoduleLink, submodules};

use crate::tree::{self, Tree, WalkError};
use commit_files::CommitFiles;
use digest::{ObjectId, ObjectKind};
use glovebox_record::scope::{Entry, Scope};
use pack::Pack;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the repository in a workspace.
pub const REPOSITORY_DIR: &str = ".git";
/// Name of the repository in the folder where it is stored. With the name `.git`, git would take that folder for a work
/// tree, and `git clean` would leave it behind in the project.
const STORED_DIR: &str = "stored";
/// Maximum size in bytes of a file in the commit. Larger files are listed in `info/exclude`, so that git ignores them.
const FILE_BYTES_MAX: u64 = 32 << 20;
/// The configuration lets git compare only lengths and times of files, because other fields of their status differ
/// between views of the workspace.
const CONFIG: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = false\n\t\
    autocrlf = false\n\tcheckStat = minimal\n\ttrustctime = false\n[gc]\n\tauto = 0\n\
    [advice]\n\tdetachedHead = false\n";
/// Folders of a repository. Git refuses a repository without the first ones.
const FOLDERS: [&str; 7] = ["objects", "objects/pack", "objects/info", "refs", "refs/heads", "refs/tags", "info"];
/// Files that [`make_own`] copies.
const COPIED: [&str; 5] = ["HEAD", "config", "index", "packed-refs", "info/exclude"];
const AUTHOR: &str = "glovebox <glovebox@localhost>";
/// What the commit contains, with and without the project's last commit.
const MESSAGES: [&str; 2] = ["the last commit of the project, as this stage sees it", "the workspace of this run"];

/// Why a repository could not be created.
#[derive(Debug, thiserror::Error)]
pub enum RepositoryError {
    /// The workspace could not be read.
    #[error("could not read `{path}`: {source}")]
    Read {
        /// The path, with unprintable characters escaped.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// The repository could not be written.
    #[error("could not write the repository: {0}")]
    Write(#[from] io::Error),
    /// The project's repository cannot be shown with its history.
    #[error("the history of the project cannot be shown: {0}")]
    NoHistory(&'static str),
}

impl From<WalkError> for RepositoryError {
    fn from(error: WalkError) -> Self {
        Self::Read { path: tree::shown(&error.path), source: error.source }
    }
}

/// Returns true if the project has a repository and a folder of `path` contains a `git` program. Otherwise no repository is needed.
pub fn is_wanted(project: &Path, path: &[PathBuf]) -> bool {
    let has_git = |folder: &PathBuf| folder.join("git").is_file();
    project.join(REPOSITORY_DIR).symlink_metadata().is_ok() && path.iter().any(has_git)
}

/// Returns true if the creation of a repository below `all` was started.
pub fn has_any(all: &Path) -> bool {
    all.symlink_metadata().is_ok()
}

/// What a repository of stages takes from the repository of the project. The default is nothing.
#[derive(Default)]
pub struct RepositorySource<'p> {
    /// Branch, tags, remotes and author.
    pub facts: RepositoryFacts,
    /// The project's last commit. `None` if the project has no commit, or no repository of its own.
    pub commit: Option<LastCommit<'p>>,
    /// The submodules that have a repository of their own in the stage.
    pub submodules: Vec<SubmoduleLink>,
}

/// Returns the repository below `all` for the files that a scope shows. The first call for these files creates it from
/// `source`.
///
/// # Errors
/// As [`make`].
pub fn open_or_make<'p>(
    workspace: &Path,
    scope: &Scope,
    all: &Path,
    source: impl FnOnce() -> RepositorySource<'p>,
) -> Result<PathBuf, RepositoryError> {
    open_or_make_at(workspace, scope, all, &format!("{:?}", shown(scope)), source)
}

/// As [`open_or_make`], for the repository with this key.
fn open_or_make_at<'p>(
    workspace: &Path,
    scope: &Scope,
    all: &Path,
    key: &str,
    source: impl FnOnce() -> RepositorySource<'p>,
) -> Result<PathBuf, RepositoryError> {
    let key = blake3::hash(key.as_bytes()).to_hex();
    let into = all.join(&key.as_str()[..32]);
    let repository = into.join(STORED_DIR);
    if repository.symlink_metadata().is_ok() {
        return Ok(repository);
    }
    if all.symlink_metadata().is_err() {
        drop(Tree::create(all)?);
    }
    // A crash can leave an unfinished repository.
    tree::remove_all(&into)?;
    make(workspace, scope, &into, &source())?;
    Ok(repository)
}

/// Returns the entries that decide which files a scope shows: the granted and the hidden ones. An entry that another
/// one covers is omitted.
fn shown(scope: &Scope) -> [Vec<&Entry>; 2] {
    let granted: Vec<&Entry> = [&scope.read, &scope.write, &scope.scratch].into_iter().flatten().collect();
    [granted, scope.hidden.iter().collect()].map(|entries| {
        let is_covered = |entry: &&Entry| entries.iter().any(|other| other != entry && other.covers(entry));
        let widest: BTreeSet<&Entry> = entries.iter().filter(|entry| !is_covered(entry)).copied().collect();
        widest.into_iter().collect()
    })
}

/// Creates a repository of the files that `scope` shows, as `<into>/stored`. The folder `into` must not
/// exist, and is created with mode 0700.
///
/// # Errors
/// [`RepositoryError`]. The folder `into` is removed again.
pub fn make(
    workspace: &Path,
    scope: &Scope,
    into: &Path,
    source: &RepositorySource<'_>,
) -> Result<(), RepositoryError> {
    drop(Tree::create(into)?);
    // The repository gets its final name last, so a repository with that name is complete.
    let (unfinished, finished) = (into.join("unfinished"), into.join(STORED_DIR));
    let made = fill(workspace, scope, &unfinished, source).and_then(|()| Ok(std::fs::rename(&unfinished, &finished)?));
    if made.is_err() {
        tree::remove_all(into)?;
    }
    made
}

/// Creates the repository of one attempt at `at`, which must not exist. It uses the objects of `shared` as
/// alternates, at the path `objects` as the attempt sees it, and stores new objects itself. References, index and settings are copies, so that git can add, commit and
/// switch, and nothing of that reaches another attempt.
///
/// # Errors
/// [`RepositoryError::Write`] if the system refuses.
pub fn make_own(shared: &Path, at: &Path, objects: &Path) -> Result<(), RepositoryError> {
    let own = make_folders(at)?;
    let shared = Tree::open(shared)?;
    for name in COPIED {
        let (parent, file) = own.parent(Path::new(name))?;
        let mut target = tree::create_file(parent, file, tree::file_mode(false))?;
        let mut source = shared.file(Path::new(name))?;
        io::copy(&mut source, &mut target)?;
        // Git reads a file again if it may have changed after the index was written, so the index keeps its time.
        tree::keep_times(&target, &rustix::fs::fstat(&source).map_err(io::Error::from)?)?;
    }
    let objects = [objects.as_os_str().as_bytes(), b"\n"].concat();
    Ok(write(&own, "objects/info/alternates", &objects)?)
}

fn make_folders(at: &Path) -> Result<Tree, RepositoryError> {
    let repository = Tree::create(at)?;
    for folder in FOLDERS {
        drop(Tree::create(&at.join(folder))?);
    }
    Ok(repository)
}

fn fill(workspace: &Path, scope: &Scope, at: &Path, source: &RepositorySource<'_>) -> Result<(), RepositoryError> {
    let RepositorySource { facts, commit: last, submodules } = source;
    let repository = make_folders(at)?;
    let packs = repository.directory(Path::new("objects/pack"))?;
    let mut pack = Pack::begin(pack::file(&packs, "new")?)?;
    let CommitFiles { files, excluded, note, is_last } =
        commit_files::add(workspace, scope, *last, submodules, &mut pack)?;
    let tree = snapshot::trees(&files, &mut pack)?;
    let person = person();
    let commit = pack.add(ObjectKind::Commit, commit(tree, &person, is_last, &note).as_bytes())?;
    let tag = |(name, object): (_, String)| Ok((name, pack.add(ObjectKind::Tag, object.as_bytes())?));
    let tags = facts.tag_objects(commit, &person).into_iter().map(tag).collect::<io::Result<BTreeMap<_, _>>>()?;
    let (name, index) = pack.finish()?;
    rustix::fs::renameat(&packs, "new", &packs, format!("pack-{name}.pack")).map_err(io::Error::from)?;
    write(&repository, &format!("objects/pack/pack-{name}.idx"), &index)?;
    write(&repository, "index", &snapshot::index(&files))?;
    // The user's own rules can name hold-outs.
    let may_show_rules = last.is_some_and(|last| last.holdouts.is_none());
    let rules = if may_show_rules { facts.exclude.as_slice() } else { &[] };
    write(&repository, "info/exclude", &[rules, &excluded].concat())?;
    let active: String = submodules.iter().map(SubmoduleLink::setting).collect();
    write(&repository, "config", [CONFIG, &facts.settings(), &active].concat().as_bytes())?;
    write(&repository, "packed-refs", facts.packed_refs(commit, &tags).as_bytes())?;
    Ok(write(&repository, "HEAD", facts.head(commit).as_bytes())?)
}

/// Returns a line of `info/exclude` that matches exactly this path. The line is empty for a name with a line break,
/// which no line can contain.
fn pattern(path: &[u8]) -> Vec<u8> {
    if path.contains(&b'\n') {
        return Vec::new();
    }
    let mut line = b"/".to_vec();
    for byte in path {
        if matches!(byte, b'*' | b'?' | b'[' | b'\\' | b' ') {
            line.push(b'\\');
        }
        line.push(*byte);
    }
    line.push(b'\n');
    line
}

/// Returns the author of the commit and of tags, with the present time.
fn person() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    format!("{AUTHOR} {now} +0000")
}

fn commit(tree: ObjectId, person: &str, is_last: bool, note: &str) -> String {
    let message = MESSAGES[usize::from(!is_last)];
    let note = if note.is_empty() { String::new() } else { format!("\n{note}\n") };
    format!("tree {tree}\nauthor {person}\ncommitter {person}\n\n{message}\n{note}")
}

fn write(repository: &Tree, path: &str, content: &[u8]) -> io::Result<()> {
    let (parent, name) = repository.parent(Path::new(path))?;
    tree::create_file(parent, name, tree::file_mode(false))?.write_all(content)
}
