//! Checks that each path that a run changed has the same version in a commit as in the run's copy of the project.
//!
//! The bytes are compared as stored, and then as git would write them to the work tree: with the line endings and the
//! encoding that the path's attributes select. A path with a filter is a conflict, because a filter is a program of the
//! user and Glovebox starts no program that settings name.

use super::git::Git;
use crate::exit::Stop;
use crate::patch::Version;
use crate::terminal::visible;
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

/// The result of a comparison.
#[derive(Default)]
pub struct Comparison {
    /// The paths whose version in the commit differs from the run's copy of the project, and the paths that may never be
    /// applied.
    pub conflicts: Vec<Conflict>,
    /// The paths in the repository whose bytes git converts when it stores them: those with [`Relation::Converted`].
    pub converted: BTreeSet<String>,
}

/// The relation of the committed bytes of a path to those in the project.
enum Relation {
    /// The bytes are equal.
    Equal,
    /// The bytes are equal after git has converted them, or git may convert those of a new file.
    Converted,
    /// They differ, for this reason.
    Differs(String),
}

/// Compares the changed paths with the commit.
pub fn with_commit(
    git: &Git<'_>,
    commit: &CommitFiles<'_>,
    base: &Base,
    changes: &[FileChange],
) -> Result<Comparison, Stop> {
    let folded = fold(changes);
    let touched: BTreeSet<String> = folded.iter().map(|change| commit.whole(&change.path)).collect();
    let filters = git.filters(&touched)?;
    let mut compared = Comparison::default();
    for change in &folded {
        let whole = commit.whole(&change.path);
        let is_file = matches!(Version::after(change), Some(Version::File { .. }));
        let filter = filters.get(&whole).filter(|_| is_file).map(|name| {
            format!(
                "the filter `{}` of git would change it, and `apply --branch` starts no filter",
                visible::line(name)
            )
        });
        let relation = match apply::fault(change).or_else(|| in_the_way(commit, &touched, change)).or(filter) {
            Some(reason) => Relation::Differs(reason),
            None => relation(git, commit, base, &change.path)?,
        };
        match relation {
            Relation::Equal => {}
            Relation::Converted => {
                compared.converted.insert(whole);
            }
            Relation::Differs(reason) => {
                compared.conflicts.push(Conflict { path: change.path.to_string(), reason });
            }
        }
    }
    Ok(compared)
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

fn relation(git: &Git<'_>, commit: &CommitFiles<'_>, base: &Base, path: &ScopePath) -> Result<Relation, Stop> {
    let whole = commit.whole(path);
    let differs = |reason: &str| Ok(Relation::Differs(reason.to_owned()));
    let (before, (mode, object)) = match (Version::before(base, path), commit.by_path.get(&whole)) {
        (None, None) => return Ok(Relation::Converted),
        (None, Some(_)) => return differs("it is in HEAD, but it was not in the run's copy of the project"),
        (Some(_), None) => return differs("it was in the project, but it is not in HEAD: commit it first"),
        (Some(before), Some(found)) => (before, found),
    };
    let bytes = git.run(&["cat-file", "blob", object], b"")?;
    let has_mode = *mode == before.mode().digits();
    match &before {
        Version::Link(target) if has_mode && bytes == target.as_bytes() => Ok(Relation::Equal),
        Version::File { digest, .. } if has_mode && Digest::hash(&bytes) == *digest => Ok(Relation::Equal),
        Version::File { digest, .. } if has_mode => {
            let written = git.run(&["cat-file", "--filters", &format!("--path={whole}"), object], b"")?;
            match Digest::hash(&written) == *digest {
                true => Ok(Relation::Converted),
                false => differs("HEAD has another version than the run's copy of the project"),
            }
        }
        _ => differs("HEAD has another version than the run's copy of the project"),
    }
}
