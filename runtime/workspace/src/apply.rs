//! Plans and applies a run's result to the user's project, and shows the differences.
//!
//! Conflicts are found before the first write: if one touched path differs from the initial copy, nothing is written. A
//! path that already has the run's result is not a conflict.

use crate::commit::{ChangeWriter, CommitError, Obstacle, digest_of, fold};
use crate::exposure::Exposure;
use crate::link;
use crate::project::{Base, FileFact};
use crate::protect::Protected;
use crate::repository_shape::{self, RepositoryChange, RepositoryFault};
use crate::tree::{self, Tree};
use glovebox_record::path::ScopePath;
use glovebox_record::{ChangeOp, Digest, FileChange};
use rustix::fs::{FileType, Stat};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;

/// A path at which the user's tree and the run's changes conflict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Conflict {
    /// Path relative to the project.
    pub path: String,
    /// Why the change cannot be applied.
    pub reason: String,
}

/// Returns the reason why a change may never be applied to a project: the path is protected, or a link leads out of the project.
pub fn fault(change: &FileChange) -> Option<String> {
    let target = change.target.as_deref().filter(|_| change.op == ChangeOp::Symlink);
    match (change.path.is_root(), target) {
        (true, _) => Some("it must be a path inside the project".to_owned()),
        (false, Some(target)) => link::destination(&change.path, Path::new(target)).err().map(str::to_owned),
        (false, None) => None,
    }
    .or_else(|| Protected::default().reason(change.path.as_str()))
}

/// The changes that `apply` would make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ApplyPlan {
    /// Files, links and directories to create, in order.
    pub writes: Vec<FileChange>,
    /// Files and directories to remove, in order.
    pub deletes: Vec<FileChange>,
    /// Conflicts. If there are any, nothing is applied.
    pub conflicts: Vec<Conflict>,
}

/// Why a plan was not applied.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// Touched paths differ from the run's base.
    #[error("{} changed since the run started; nothing was written", if let [_] = .0[..] { "1 path".to_owned() } else { format!("{} paths", .0.len()) })]
    Conflicts(Vec<Conflict>),
    /// A change could not be applied.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// A path that the run changed, for `diff`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Path relative to the project.
    pub path: String,
    /// The file before the run; `None` if there was none.
    pub before: Option<FileFact>,
    /// The change of the run; `None` if the run removed the file.
    pub after: Option<FileChange>,
}

/// The state of a path, with the properties that are compared.
#[derive(Debug, PartialEq, Eq)]
enum PathContent {
    Absent,
    Directory,
    File { digest: Option<Digest>, executable: bool },
    Link(String),
    Other,
}

impl PathContent {
    fn in_base(base: &Base, path: &str) -> Self {
        if let Some(file) = base.files.get(path) {
            return Self::File { digest: Some(file.digest), executable: file.executable };
        }
        match base.symlinks.get(path) {
            Some(target) => Self::Link(target.clone()),
            None if base.directories.contains(path) => Self::Directory,
            None => Self::Absent,
        }
    }

    fn after(change: &FileChange) -> Self {
        match change.op {
            ChangeOp::Write => Self::File { digest: change.digest, executable: change.executable },
            ChangeOp::Symlink => Self::Link(change.target.clone().unwrap_or_default()),
            ChangeOp::Mkdir => Self::Directory,
            ChangeOp::Delete | ChangeOp::Rmdir => Self::Absent,
        }
    }

    fn in_tree(tree: &Tree, path: &Path) -> io::Result<Self> {
        let Some(stat) = tree.stat_below_folders(path)? else { return Ok(Self::Absent) };
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Self::Directory,
            FileType::RegularFile => {
                Self::File { digest: Some(digest_of(tree.file(path)?)?), executable: tree::is_executable(&stat) }
            }
            FileType::Symlink => {
                let (parent, name) = tree.parent(path)?;
                Self::Link(tree::read_link(&parent, name)?.to_string_lossy().into_owned())
            }
            _ => Self::Other,
        })
    }
}

/// Compares the final state of `changes` with `base` and with the user's tree.
///
/// # Errors
/// [`CommitError`] if the user's tree cannot be read. An obstacle is reported as a conflict, not as an error.
pub fn plan<R: io::Read>(
    base: &Base,
    changes: &[FileChange],
    user_tree: &Path,
    open_blob: &dyn Fn(&Digest) -> io::Result<R>,
) -> Result<ApplyPlan, CommitError> {
    let tree = Tree::open(user_tree).map_err(|source| CommitError::io(user_tree, source))?;
    let folded = fold(changes);
    let planned: BTreeMap<&str, ChangeOp> = folded.iter().map(|change| (change.path.as_str(), change.op)).collect();
    let steps: Vec<_> = folded.iter().map(|change| compare(base, change, &tree, &planned)).collect();
    let mut plan = ApplyPlan::default();
    for (change, step) in folded.into_iter().zip(steps) {
        match step {
            Ok(PlannedStep::Nothing) => {}
            Ok(PlannedStep::Do) if change.op.removes() => plan.deletes.push(change),
            Ok(PlannedStep::Do) => plan.writes.push(change),
            Err(reason) => plan.conflicts.push(Conflict { path: change.path.to_string(), reason }),
        }
    }
    let made = repositories(&plan, &tree, open_blob).map_err(|source| CommitError::io(user_tree, source))?;
    plan.conflicts.extend(made);
    Ok(plan)
}

/// Returns conflicts for folders that the plan would turn into git repositories, and for repositories in which it would
/// change settings that name programs.
fn repositories<R: io::Read>(
    plan: &ApplyPlan,
    tree: &Tree,
    open_blob: &dyn Fn(&Digest) -> io::Result<R>,
) -> io::Result<Vec<Conflict>> {
    let open = |digest: &Digest| open_blob(digest).map(Some);
    let planned = || plan.deletes.iter().chain(&plan.writes);
    let steps: Vec<RepositoryChange<'_>> = planned().map(|change| RepositoryChange::recorded(change, &open)).collect();
    Ok(conflicts(&repository_shape::faults(tree, &steps)?, planned()))
}

/// Returns one conflict for each path of a change that makes a folder look like a git repository.
pub fn conflicts<'a>(
    faults: &[RepositoryFault],
    changes: impl Iterator<Item = &'a FileChange> + Clone,
) -> Vec<Conflict> {
    let of_fault = |fault: &RepositoryFault| {
        let brought = changes.clone().filter(|change| !change.op.removes());
        let paths: BTreeSet<String> =
            brought.filter_map(|change| Some(fault.touched(change.path.as_str())?.to_owned())).collect();
        let reason = fault.reason();
        paths.into_iter().map(move |path| Conflict { path, reason: reason.clone() })
    };
    faults.iter().flat_map(of_fault).collect()
}

enum PlannedStep {
    Nothing,
    Do,
}

/// Plans a change of the user's project, or returns why it conflicts.
fn compare(
    base: &Base,
    change: &FileChange,
    tree: &Tree,
    planned: &BTreeMap<&str, ChangeOp>,
) -> Result<PlannedStep, String> {
    if let Some(reason) = fault(change) {
        return Err(reason);
    }
    let path = Path::new(change.path.as_str());
    let (before, after) = (PathContent::in_base(base, change.path.as_str()), PathContent::after(change));
    let now = PathContent::in_tree(tree, path).map_err(|error| format!("failed to compare it: {error}"))?;
    if now == after || before == after {
        return Ok(PlannedStep::Nothing);
    }
    if now != before {
        return Err(difference(&before, &now).to_owned());
    }
    if now == PathContent::Directory && !change.op.removes() {
        only_planned_below(tree, path, planned)?;
    }
    for above in path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty()) {
        let known = above.to_str().is_some_and(|above| planned.contains_key(above));
        let stat = tree
            .stat_below_folders(above)
            .map_err(|error| format!("failed to examine `{}`: {error}", tree::shown(above)))?;
        let is_directory = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        if !known && stat.as_ref().is_some_and(|stat| !is_directory(stat)) {
            return Err(format!("`{}` is no longer a directory", tree::shown(above)));
        }
    }
    Ok(PlannedStep::Do)
}

fn difference(before: &PathContent, now: &PathContent) -> &'static str {
    match (before, now) {
        (PathContent::Absent, _) => "it was created in the project after the run started",
        (_, PathContent::Absent) => "it was removed from the project after the run started",
        _ => "it was changed in the project after the run started",
    }
}

/// Returns an error if a directory contains an entry that the plan does not remove. A file may replace a directory only
/// if the plan removes its whole content.
fn only_planned_below(tree: &Tree, path: &Path, planned: &BTreeMap<&str, ChangeOp>) -> Result<(), String> {
    let below = tree.below(path).map_err(|error| format!("failed to list it: {error}"))?;
    let visit = &mut |entry: &tree::WalkEntry<'_>| {
        let whole = path.join(entry.path);
        let goes = whole.to_str().and_then(|whole| planned.get(whole)).is_some_and(|op| op.removes());
        if goes {
            Ok(true)
        } else {
            Err(UnreadableEntry(format!("it contains `{}`, which was not in the run's copy", tree::shown(&whole))))
        }
    };
    tree::walk(&below, visit).map_err(|UnreadableEntry(reason)| reason)
}

struct UnreadableEntry(String);

impl From<tree::WalkError> for UnreadableEntry {
    fn from(error: tree::WalkError) -> Self {
        Self(format!("failed to list it: {}", error.source))
    }
}

/// Computes the plan again and applies it. Writes nothing if there is a conflict.
///
/// # Errors
/// [`ApplyError::Conflicts`]: nothing was written. [`ApplyError::Commit`]: some changes may have been written; a new
/// plan then contains only the remaining ones.
pub fn perform<R: io::Read>(
    plan: &ApplyPlan,
    base: &Base,
    user_tree: &Path,
    open_blob: &dyn Fn(&Digest) -> io::Result<R>,
) -> Result<(), ApplyError> {
    let changes: Vec<FileChange> = plan.deletes.iter().chain(&plan.writes).cloned().collect();
    let again = self::plan(base, &changes, user_tree, open_blob)?;
    if let Some(conflicts) = [&plan.conflicts, &again.conflicts].into_iter().find(|conflicts| !conflicts.is_empty()) {
        return Err(ApplyError::Conflicts(conflicts.clone()));
    }
    let tree = Tree::open(user_tree).map_err(|source| CommitError::io(user_tree, source))?;
    let applying = ChangeWriter { tree: &tree, obstacle: Obstacle::Refuse, open_blob };
    applying.all(&again.deletes)?;
    applying.all(&again.writes)?;
    Ok(())
}

/// Lists the differences between the run's result and `base`, by path. A path with its original content is omitted.
pub fn differences(base: &Base, changes: &[FileChange]) -> Vec<Difference> {
    let mut listed: Vec<Difference> = fold(changes)
        .into_iter()
        .filter(|change| PathContent::in_base(base, change.path.as_str()) != PathContent::after(change))
        .map(|change| Difference {
            path: change.path.as_str().to_owned(),
            before: base.files.get(change.path.as_str()).cloned(),
            after: Some(change).filter(|change| !change.op.removes()),
        })
        .collect();
    listed.sort_by(|a, b| a.path.cmp(&b.path));
    listed
}

/// Mode bits that no run sets: set-user-id, set-group-id and sticky.
const SPECIAL: u32 = 0o7000;

/// Returns true if the entry at the path of a change has the state that the change leaves. Symbolic links are never
/// followed, neither at the path nor above it. Adds the file to `exposure`.
///
/// # Errors
/// The system's error. [`io::ErrorKind::NotFound`] if nothing is at the path and the change does not remove it.
pub fn is_as_left(folder: &Path, change: &FileChange, exposure: &mut Exposure) -> io::Result<bool> {
    let (tree, path) = (Tree::open(folder)?, Path::new(change.path.as_str()));
    let stat = tree.stat_below_folders(path)?;
    match stat {
        None if change.op.removes() => return Ok(true),
        None => return Err(io::ErrorKind::NotFound.into()),
        // A file of another length is not read, because it may be as large as the disk.
        Some(stat) if change.op == ChangeOp::Write && tree::length(&stat) != change.bytes => return Ok(false),
        Some(stat) if change.op == ChangeOp::Write && stat.st_mode & SPECIAL != 0 => return Ok(false),
        Some(stat) => exposure.add(&stat),
    }
    Ok(PathContent::in_tree(&tree, path)? == PathContent::after(change))
}

/// Returns the first symbolic link among the parent folders of a path, if there is one. An entry below that link is not
/// in `folder`.
///
/// # Errors
/// The system's error.
pub fn link_above(folder: &Path, path: &ScopePath) -> io::Result<Option<ScopePath>> {
    let tree = Tree::open(folder)?;
    let mut above: Vec<&Path> = Path::new(path.as_str()).ancestors().skip(1).collect();
    above.reverse();
    for place in above.into_iter().filter(|place| !place.as_os_str().is_empty()) {
        let Some(stat) = tree.stat_below_folders(place)? else { return Ok(None) };
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            return Ok(place.to_str().and_then(|place| ScopePath::parse(place).ok()));
        }
    }
    Ok(None)
}

/// Opens a file of the user's tree for `diff`, without following links.
///
/// # Errors
/// The system's error. A path that is not a regular file is an error.
pub fn open_before(user_tree: &Path, path: &str) -> io::Result<File> {
    let path = ScopePath::parse(path).map_err(|problem| io::Error::new(io::ErrorKind::InvalidInput, problem))?;
    Tree::open(user_tree)?.file(Path::new(path.as_str()))
}
