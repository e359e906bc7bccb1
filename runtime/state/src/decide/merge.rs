//! What a fan-in takes over from branches: the changes of the best one, or of all that succeeded where they agree.
//!
//! Two branches agree on a path when they made the same of it. Nothing is taken of a path on which they do not, and nothing where one of
//! them needs a folder and another removed or replaced it. No branch wins by being last.

use crate::run_state::{EndedBranch, OpenParallel};
use glovebox_journal::event::{BranchId, ChangeOp, ConflictSide, FileChange, MergeConflict};
use glovebox_pipeline::ir::Merge;
use glovebox_record::path::ScopePath;
use std::collections::{BTreeMap, BTreeSet};

/// What a fan-in takes over, and the paths on which branches conflict.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Taken {
    pub(super) merged: Vec<BranchId>,
    pub(super) changes: Vec<FileChange>,
    pub(super) conflicts: Vec<MergeConflict>,
}

/// The change that one branch made to a path.
#[derive(Clone, Copy)]
struct BranchVersion<'a> {
    branch: &'a BranchId,
    change: &'a FileChange,
}

/// Each branch's version of each path.
type BranchVersions<'a> = BTreeMap<&'a ScopePath, Vec<BranchVersion<'a>>>;

pub(super) fn merge(parallel: &OpenParallel, best: &EndedBranch, what: Merge) -> Taken {
    if what == Merge::Best {
        let changes = best.branch.changes.values().cloned().collect();
        return Taken { merged: vec![best.end.branch.clone()], changes, conflicts: Vec::new() };
    }
    let mut sides = BranchVersions::new();
    for one in parallel.candidates() {
        for (path, change) in one.branch.changes.iter() {
            sides.entry(path).or_default().push(BranchVersion { branch: &one.end.branch, change });
        }
    }
    let disputed = disputed(&sides);
    let mut taken =
        Taken { merged: parallel.candidates().map(|one| one.end.branch.clone()).collect(), ..Taken::default() };
    for (path, of_path) in &sides {
        match disputed.contains(path) {
            true => taken.conflicts.push(conflict(path, of_path)),
            false => taken.changes.extend(of_path.first().map(|version| version.change.clone())),
        }
    }
    taken
}

fn conflict(path: &ScopePath, sides: &[BranchVersion<'_>]) -> MergeConflict {
    let side =
        |version: &BranchVersion<'_>| ConflictSide { branch: version.branch.clone(), change: version.change.clone() };
    MergeConflict { path: path.clone(), sides: sides.iter().map(side).collect() }
}

/// Paths on which branches do not agree, and paths above and below each other that cannot both be.
fn disputed<'a>(sides: &BranchVersions<'a>) -> BTreeSet<&'a ScopePath> {
    let mut disputed = BTreeSet::new();
    for (path, of_path) in sides {
        if of_path.windows(2).any(|pair| pair[0].change != pair[1].change) {
            disputed.insert(*path);
        }
        let mut above = path.parent();
        while let Some(folder) = above.filter(|folder| !folder.is_root()) {
            if let Some((known, of_folder)) = sides.get_key_value(&folder)
                && of_folder.iter().any(|one| of_path.iter().any(|other| one.excludes(other)))
            {
                disputed.extend([*known, *path]);
            }
            above = folder.parent();
        }
    }
    disputed
}

impl BranchVersion<'_> {
    /// Returns true if what this branch made of a folder leaves no place for what another branch made below that folder.
    fn excludes(&self, below: &BranchVersion<'_>) -> bool {
        let above = self.change.op;
        let agree = above == ChangeOp::Mkdir || above.removes() && below.change.op.removes();
        self.branch != below.branch && !agree
    }
}
