//! Checks that each path that a run changed has the same version in a commit as in the run's copy of the project.
//!
//! Bytes are compared. If a filter such as `autocrlf` makes committed bytes differ from the bytes in the project, the
//! path is a conflict.

use super::git::Git;
use crate::exit::Stop;
use crate::patch::Version;
use glovebox_record::path::ScopePath;
use glovebox_record::{Digest, FileChange};
use glovebox_workspace::apply::{self, Conflict};
use glovebox_workspace::commit::fold;
use glovebox_workspace::project::Base;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

pub const SUBMODULE: &str = "160000";

/// The files of a commit, and the place of the project in the repository.
pub struct CommitFiles<'r> {
    /// Mode and object id of each file, by path.
    pub by_path: BTreeMap<String, (String, String)>,
    /// The project's folder in the repository, with a slash at its end; empty if it is the root.
    pub prefix: &'r str,
}

impl<'r> CommitFiles<'r> {
    /// Lists the files of a commit.
    pub fn read(git: &Git<'_>, commit: &str, prefix: &'r str) -> Result<Self, Stop> {
        let listed = git.run(&["ls-tree", "-r", "-z", "--full-tree", commit], b"")?;
        let entries =
            listed.split(|byte| *byte == 0).filter_map(|entry| std::str::from_utf8(entry).ok()?.split_once('\t'));
        let entries = entries.filter_map(|(facts, path)| {
            let mut facts = facts.split(' ');
            let (mode, object) = (facts.next()?, facts.nth(1)?);
            Some((path.to_owned(), (mode.to_owned(), object.to_owned())))
        });
        Ok(Self { by_path: entries.collect(), prefix })
    }

    /// Returns the path in the repository for a path in the project.
    pub fn whole(&self, path: impl fmt::Display) -> String {
        format!("{}{path}", self.prefix)
    }
}

/// Returns the paths whose version in the commit differs from the run's copy of the project, and the paths that may
/// never be applied.
pub fn with_commit(
    git: &Git<'_>,
    commit: &CommitFiles<'_>,
    base: &Base,
    changes: &[FileChange],
) -> Result<Vec<Conflict>, Stop> {
    let folded = fold(changes);
    let touched: BTreeSet<String> = folded.iter().map(|change| commit.whole(&change.path)).collect();
    let mut conflicts = Vec::new();
    for change in &folded {
        let reason = match apply::fault(change).or_else(|| in_the_way(commit, &touched, change)) {
            Some(reason) => Some(reason),
            None => differs(git, commit.by_path.get(&commit.whole(&change.path)), base, &change.path)?,
        };
        conflicts.extend(reason.map(|reason| Conflict { path: change.path.to_string(), reason }));
    }
    Ok(conflicts)
}

/// Returns a reason if the commit has a file above the path, or files below it, that the run did not change. Git would
/// remove them silently.
fn in_the_way(commit: &CommitFiles<'_>, touched: &BTreeSet<String>, change: &FileChange) -> Option<String> {
    let whole = commit.whole(&change.path);
    let above = whole.match_indices('/').map(|(at, _)| &whole[..at]).chain([&*whole]);
    for path in above {
        if let Some((mode, _)) = commit.by_path.get(path) {
            if mode == SUBMODULE {
                return Some(format!("`{path}` is a submodule in HEAD"));
            }
            if path != whole && !touched.contains(path) {
                return Some(format!("`{path}` is a file in HEAD"));
            }
        }
    }
    let below = format!("{whole}/");
    let mut left =
        commit.by_path.range(below.clone()..).map(|(path, _)| path).take_while(|path| path.starts_with(&below));
    let is_file = Version::after(change).is_some();
    left.find(|path| is_file && !touched.contains(*path)).map(|path| format!("HEAD has `{path}` below it"))
}

fn differs(
    git: &Git<'_>,
    found: Option<&(String, String)>,
    base: &Base,
    path: &ScopePath,
) -> Result<Option<String>, Stop> {
    let (before, (mode, object)) = match (Version::before(base, path), found) {
        (None, None) => return Ok(None),
        (None, Some(_)) => {
            return Ok(Some("it is in HEAD, but it was not in the run's copy of the project".to_owned()));
        }
        (Some(_), None) => return Ok(Some("it was in the project, but it is not in HEAD: commit it first".to_owned())),
        (Some(before), Some(found)) => (before, found),
    };
    let bytes = git.run(&["cat-file", "blob", object], b"")?;
    let is_same = *mode == before.mode().digits()
        && match &before {
            Version::File { digest, .. } => Digest::hash(&bytes) == *digest,
            Version::Link(target) => bytes == target.as_bytes(),
        };
    Ok((!is_same).then(|| "HEAD has another version than the run's copy of the project".to_owned()))
}
