//! Merges the changes of branches at a fan-in: the changes of the best branch, or the changes on which all branches
//! that succeeded agree.
//!
//! Two branches agree on a path if they made the same change to it. A path on which they differ is not merged. A path
//! is also not merged if one branch needs a folder that another branch removed or replaced. No branch wins because it
//! ended last.

use crate::run_state::{EndedBranch, OpenParallel};
use glovebox_journal::event::{BranchId, ChangeOp, ConflictSide, FileChange, MergeConflict};
use glovebox_pipeline::ir::Merge;
use glovebox_record::path::ScopePath;
use std::collections::{BTreeMap, BTreeSet};

/// The result of a merge.
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

/// The change of each branch to each path.
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

/// Returns the paths on which branches differ, and pairs of a path and a path below it that cannot both exist.
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
    /// Returns true if the change of one branch to a folder makes another branch's change below it impossible.
    fn excludes(&self, below: &BranchVersion<'_>) -> bool {
        let above = self.change.op;
        let agree = above == ChangeOp::Mkdir || above.removes() && below.change.op.removes();
        self.branch != below.branch && !agree
    }
}
