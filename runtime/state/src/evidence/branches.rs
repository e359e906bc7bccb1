//! What the commands of branches prove after their parallel node has ended. A command proves a part of the result only
//! if it ran on the files of the result: if the changes of its branch were merged, or if neither the branch nor the
//! fan-in changed anything.

use super::{FailedBranch, RunSummary};
use glovebox_journal::event::{
    BranchEnd, BranchFinished, BranchId, BranchStarted, FanInFinished, ParallelJoined, ParallelStarted,
};
use glovebox_record::{NodeId, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;

/// The parallel node at which a branch began.
#[derive(Debug, Clone)]
pub(super) struct ParallelOrigin {
    /// The branch that contains the parallel node.
    parent: BranchId,
    /// The parallel node.
    parallel: NodeId,
}

/// The branches of parallel nodes, with the facts that decide what their commands prove.
#[derive(Debug, Clone, Default)]
pub(super) struct BranchFold {
    /// The parallel node of each branch.
    began_at: BTreeMap<BranchId, ParallelOrigin>,
    /// Branches that have not been joined, by the branch that contains their parallel node.
    split: BTreeMap<BranchId, BTreeSet<BranchId>>,
    /// Branches that changed files.
    pub(super) with_changes: BTreeSet<BranchId>,
    /// The fan-in at which branches of the main branch have joined, until it has chosen one.
    joined_at: Option<NodeId>,
}

impl RunSummary {
    /// Removes failures of an earlier visit of the parallel node, including those of parallel nodes within its
    /// branches.
    pub(super) fn begin_parallel(&mut self, parallel: &ParallelStarted) {
        let began_at = |branch: &BranchId| self.branches.began_at.get(branch);
        let is_earlier = |failed: &FailedBranch| {
            let around = successors(began_at(&failed.branch), |origin| began_at(&origin.parent));
            around.into_iter().any(|origin| origin.parent == parallel.branch && origin.parallel == parallel.node)
        };
        self.proof.failed_branches.retain(|failed| !is_earlier(failed));
        let origin = || ParallelOrigin { parent: parallel.branch.clone(), parallel: parallel.node.clone() };
        self.branches.began_at.extend(parallel.children.iter().map(|child| (child.id.clone(), origin())));
    }

    pub(super) fn end_branch(&mut self, ended: &BranchFinished) {
        // A run that a signal stopped asks its open questions again when it is resumed.
        let is_stopped = self.is_stopped();
        self.open_questions.retain(|open| is_stopped || open.branch != ended.branch);
        let origin = self.branches.began_at.get(&ended.branch).filter(|_| ended.outcome == BranchEnd::Fail);
        let Some(ParallelOrigin { parallel, .. }) = origin.cloned() else { return };
        let (branch, node, failure) = (ended.branch.clone(), ended.node.clone(), ended.failure.clone());
        self.proof.failed_branches.push(FailedBranch { branch, parallel, node, failure });
    }

    pub(super) fn begin_branch(&mut self, started: &BranchStarted) {
        self.proof.startup.begin_branch(&started.parent, &started.branch);
        self.branches.split.entry(started.parent.clone()).or_default().insert(started.branch.clone());
    }

    /// Notes that the branches of a parallel node have joined. If the parallel node failed, their changes are not
    /// merged.
    pub(super) fn join(&mut self, joined: &ParallelJoined) {
        if joined.branch == BranchId::main() {
            self.branches.joined_at = Some(joined.join.clone());
        }
        if joined.status == Status::Fail {
            self.settle(&joined.branch, &[], false);
        }
    }

    pub(super) fn take(&mut self, finished: &FanInFinished) {
        let has_changes = !finished.changes.is_empty();
        self.settle(&finished.branch, &finished.merged, has_changes);
        if has_changes {
            self.branches.with_changes.insert(finished.branch.clone());
        }
    }

    /// Removes the branches of a run that is resumed at `from`, unless `from` is a fan-in that still has to choose from
    /// them.
    pub(super) fn forget_branches(&mut self, from: &NodeId) {
        if self.branches.joined_at.as_ref() != Some(from) {
            self.proof.receipts.retain(|evidence| evidence.branch.is_none());
            self.proof.dropped_checks.retain(|dropped| dropped.branch.is_none());
            // Failures of a parallel node that was joined stay, until the parallel node is visited again.
            let open: BTreeSet<BranchId> = std::mem::take(&mut self.branches.split).into_values().flatten().collect();
            self.proof.failed_branches.retain(|failed| !open.contains(&failed.branch));
            self.branches.with_changes.clear();
        }
    }

    /// Removes all proofs: checks before a restart prove nothing about the files of the new generation.
    pub(super) fn forget_proofs(&mut self) {
        self.proof.receipts.clear();
        self.proof.dropped_checks.clear();
        self.proof.failed_branches.clear();
    }

    /// Moves the commands of joined branches to the parent branch. Commands of an earlier visit of the same nodes are
    /// removed.
    fn settle(&mut self, parent: &BranchId, merged: &[BranchId], has_changes: bool) {
        let children = self.branches.split.remove(parent).unwrap_or_default();
        self.proof.startup.end(&children);
        let merged: BTreeSet<&BranchId> = merged.iter().collect();
        let changed = &self.branches.with_changes;
        let is_here = |branch: &BranchId| merged.contains(branch) || !has_changes && !changed.contains(branch);
        let parent = Some(parent).filter(|parent| **parent != BranchId::main());
        let is_of_parallel =
            |branch: &Option<BranchId>| branch.as_ref().is_some_and(|branch| children.contains(branch));
        let mut visited: BTreeMap<NodeId, bool> = BTreeMap::new();
        for evidence in self.proof.receipts.iter().filter(|evidence| is_of_parallel(&evidence.branch)) {
            let is_taken = evidence.branch.as_ref().is_some_and(is_here);
            *visited.entry(evidence.node.clone()).or_default() |= is_taken;
        }
        self.proof.receipts.retain(|evidence| {
            let is_older = evidence.branch.as_ref() == parent && !is_of_parallel(&evidence.branch);
            match visited.get(&evidence.node) {
                Some(is_taken) => !is_older || !(evidence.not_taken || *is_taken),
                None => true,
            }
        });
        self.proof
            .dropped_checks
            .retain(|dropped| !is_of_parallel(&dropped.branch) || dropped.branch.as_ref().is_some_and(is_here));
        for dropped in self.proof.dropped_checks.iter_mut().filter(|dropped| is_of_parallel(&dropped.branch)) {
            dropped.branch = parent.cloned();
        }
        for evidence in self.proof.receipts.iter_mut().filter(|evidence| is_of_parallel(&evidence.branch)) {
            let is_taken = evidence.branch.as_ref().is_some_and(is_here);
            evidence.branch = parent.cloned();
            evidence.not_taken |= !is_taken;
            evidence.verified &= is_taken;
        }
    }
}
