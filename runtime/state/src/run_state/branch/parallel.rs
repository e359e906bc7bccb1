//! A parallel node as its branch knows it: which branches began, and how those that ended did.
//!
//! Lists share structure with their earlier versions, so a parallel node of ten thousand branches costs the same to copy as one of two.

use super::Branch;
use super::authors::{Author, Authors};
use super::failure_chain::FailureChain;
use super::history::NodeHistory;
use super::pending_outcome::FailedStage;
use super::results::{RESULTS, Results, WHOLE_ANSWERS};
use crate::context::Context;
use glovebox_journal::event::{
    BranchEnd, BranchFinished, BranchId, ChildObserved, FanInFinished, FileChange, NodeId, ParallelChild,
    ParallelJoined, ParallelStarted, SupervisionEnd,
};
use glovebox_record::path::ScopePath;
use glovebox_record::{Outcome, Status};
use jiff::Timestamp;
use rpds::{RedBlackTreeMapSync, RedBlackTreeSetSync, VectorSync};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A parallel node that was begun.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenParallel {
    /// The parallel node.
    pub node: NodeId,
    /// The visit of the node.
    pub visit: u32,
    /// The fan-in.
    pub join: NodeId,
    /// Its branches in the order of their edges.
    pub children: Arc<[ParallelChild]>,
    /// When its time is over.
    pub due_at: Option<Timestamp>,
    /// True when it is.
    pub has_expired: bool,
    /// How often a supervisor looked at its child.
    pub cycle: u32,
    /// When it looks again.
    pub observe_at: Option<Timestamp>,
    /// Why it ended its child.
    pub supervision_end: Option<SupervisionEnd>,
    /// How many began, the first ones.
    pub started: usize,
    /// Those that ended, in this order.
    pub ended: VectorSync<Arc<EndedBranch>>,
    /// How many succeeded.
    pub succeeded: usize,
    /// How many failed.
    pub failed: usize,
    /// How many were canceled.
    pub canceled: usize,
    /// How it ended by its policies; none before every branch that began has ended.
    pub status: Option<Status>,
}

/// A branch that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedBranch {
    /// How.
    pub end: BranchFinished,
    /// Its first node.
    pub first: NodeId,
    /// The branch as it was.
    pub branch: Arc<Branch>,
}

/// The parallel node that a branch comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// The branch that split.
    pub parent: BranchId,
    /// That branch as it was: it changes no file while branches of it run.
    pub branch: Arc<Branch>,
    /// The fan-in where this one ends.
    pub join: NodeId,
    /// Its first node.
    pub first: NodeId,
}

impl OpenParallel {
    pub(crate) fn new(started: &ParallelStarted) -> Self {
        let ParallelStarted { node, visit, join, children, .. } = started.clone();
        Self {
            node,
            visit,
            join,
            children: children.into(),
            due_at: started.due_at,
            has_expired: false,
            cycle: 0,
            observe_at: started.observe_at,
            supervision_end: None,
            started: 0,
            ended: VectorSync::new_sync(),
            succeeded: 0,
            failed: 0,
            canceled: 0,
            status: None,
        }
    }

    /// Branches that began and have not ended.
    pub fn running(&self) -> usize {
        self.started.saturating_sub(self.ended.len())
    }

    /// The candidates of a fan-in: branches that succeeded, and a child that its supervisor ended because it is done.
    pub fn candidates(&self) -> impl Iterator<Item = &EndedBranch> {
        let is_done = self.supervision_end == Some(SupervisionEnd::StopCondition);
        let may_be_chosen = move |end: BranchEnd| end.has_succeeded() || is_done && end == BranchEnd::Canceled;
        self.in_order().into_iter().filter(move |one| may_be_chosen(one.end.outcome))
    }

    /// Branches that ended, in the order of their edges: the same whoever was faster.
    pub fn in_order(&self) -> Vec<&EndedBranch> {
        let by_id: HashMap<&BranchId, &EndedBranch> = self.ended.iter().map(|one| (&one.end.branch, &**one)).collect();
        self.children.iter().filter_map(|child| by_id.get(&child.id).copied()).collect()
    }

    fn end(&mut self, ended: EndedBranch) {
        match ended.end.outcome {
            BranchEnd::Success | BranchEnd::PartialSuccess => self.succeeded += 1,
            BranchEnd::Fail => self.failed += 1,
            BranchEnd::Canceled => self.canceled += 1,
        }
        self.ended.push_back_mut(Arc::new(ended));
    }
}

impl Branch {
    /// The parallel node whose branches it waits for.
    pub fn parallel(&self) -> Option<&Arc<OpenParallel>> {
        match &self.at {
            super::Position::Forked(parallel) => Some(parallel),
            _ => None,
        }
    }

    /// True when files differ from those that the run began with: here, or where the branch split.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty() || self.origin.as_ref().is_some_and(|origin| origin.branch.has_changes())
    }

    /// The last change of a path since the run began, also one from before it split.
    pub fn last_change(&self, path: &ScopePath) -> Option<&FileChange> {
        let before = || self.origin.as_ref()?.branch.last_change(path);
        self.changes.get(path).or_else(before)
    }

    /// The first of these stages that changed a path, also before the branch split.
    pub fn first_author(&self, path: &ScopePath, is_named: &dyn Fn(&NodeId) -> bool) -> Option<&Author> {
        let before = self.origin.as_ref().and_then(|origin| origin.branch.first_author(path, is_named));
        before.or_else(|| self.authors.of(path).iter().find(|author| is_named(&author.node)))
    }

    /// The paths that it has changed since the run began, also those that are again what they were.
    pub fn changed_paths(&self) -> BTreeSet<&str> {
        let before = self.origin.as_ref().map(|origin| origin.branch.changed_paths()).unwrap_or_default();
        self.changes.keys().map(|path| path.as_str()).chain(before).collect()
    }

    /// A branch that begins at a parallel node of this one: a copy of what is known, nothing of its own.
    pub(crate) fn child(self: &Arc<Self>, parent: BranchId, join: NodeId, first: NodeId) -> Self {
        let origin = Origin { parent, branch: Arc::clone(self), join, first };
        let mut child = Self {
            head: 0,
            at: super::Position::default(),
            changes: RedBlackTreeMapSync::new_sync(),
            authors: Authors::default(),
            visited: RedBlackTreeSetSync::new_sync(),
            origin: Some(Arc::new(origin)),
            canceled: None,
            joined: None,
            answers: Context::default(),
            // What led to the parallel node is no outcome of the branch; its stages may still have to fix it.
            previous: Arc::new(Outcome::new(Status::Success)),
            ..Self::clone(self)
        };
        // Only what the branch itself says counts for it.
        child.context.remove("score");
        child
    }

    /// A branch that is a child pipeline knows what it was given, and nothing that came of an earlier run of it.
    pub(crate) fn begin_child_pipeline(&mut self, context: BTreeMap<String, Value>) {
        self.context = Context::default();
        context.into_iter().for_each(|(key, value)| self.context.set(key, value));
        (self.last_failure, self.last_failed) = (None, None);
        self.failure_chain = FailureChain::default();
        self.failing = RedBlackTreeMapSync::new_sync();
        let visits = self.nodes.iter().map(|(node, history)| (node.clone(), history.of_next_generation_with_visits()));
        self.nodes = visits.collect();
    }

    pub(crate) fn begin_parallel(&mut self, started: &ParallelStarted) {
        self.arrive(&started.node, started.visit);
        self.at = super::Position::Forked(Arc::new(OpenParallel::new(started)));
    }

    pub(crate) fn expire_parallel(&mut self) {
        if let super::Position::Forked(parallel) = &mut self.at {
            Arc::make_mut(parallel).has_expired = true;
        }
    }

    pub(crate) fn observe_child(&mut self, observed: &ChildObserved) {
        self.context.set_all(&observed.context);
        if let super::Position::Forked(parallel) = &mut self.at {
            let parallel = Arc::make_mut(parallel);
            (parallel.cycle, parallel.observe_at, parallel.supervision_end) =
                (observed.cycle, observed.observe_at, observed.ends);
        }
    }

    pub(crate) fn begin_child(&mut self) {
        if let super::Position::Forked(parallel) = &mut self.at {
            Arc::make_mut(parallel).started += 1;
        }
    }

    pub(crate) fn end_child(&mut self, end: &BranchFinished, branch: Arc<Branch>) {
        let super::Position::Forked(parallel) = &mut self.at else { return };
        let first = branch.origin.as_ref().map(|origin| origin.first.clone());
        let Some(first) = first else { return };
        Arc::make_mut(parallel).end(EndedBranch { end: end.clone(), first, branch });
    }

    /// Every branch has ended: the parallel node is a finished visit, and its results are in the context.
    pub(crate) fn join_parallel(&mut self, joined: &ParallelJoined) {
        let super::Position::Forked(parallel) = std::mem::take(&mut self.at) else { return };
        let mut parallel = Arc::unwrap_or_clone(parallel);
        parallel.status = Some(joined.status);
        self.tell_results(parallel.results());
        for (key, count) in [
            ("parallel.branch_count", parallel.ended.len()),
            ("parallel.success_count", parallel.succeeded),
            ("parallel.failure_count", parallel.failed),
            ("parallel.canceled_count", parallel.canceled),
        ] {
            self.context.set(key, Value::from(count));
        }
        let outcome = Outcome::ended(joined.status, joined.failure.as_ref());
        self.record_outcome(&joined.node, &outcome);
        self.note_failed(&joined.node);
        self.complete(&joined.node);
        self.joined = Some(Arc::new(parallel));
    }

    /// What an earlier parallel node left is no result of this one.
    fn tell_results(&mut self, Results { list, whole }: Results) {
        let earlier: Vec<String> = self.context.keys_within(WHOLE_ANSWERS).map(str::to_owned).collect();
        earlier.iter().for_each(|key| self.context.remove(key));
        self.context.set(RESULTS, list);
        for (key, reference) in whole {
            self.context.set(key.as_str(), reference.clone());
            self.context.note_reference(&key, &reference);
        }
    }

    /// The fan-in has chosen: what it took is this branch's, and so is what came of the nodes of its branches.
    /// True when the visit begins with it: no judge was asked.
    pub(crate) fn finish_fan_in(&mut self, finished: &FanInFinished) -> bool {
        let parallel = self.joined.take();
        let is_new = self.next_visit(&finished.node) <= finished.visit;
        self.at = super::Position::Deciding;
        for change in &finished.changes {
            let of_branches = parallel
                .iter()
                .flat_map(|parallel| parallel.in_order())
                .flat_map(|one| one.branch.authors.of(&change.path));
            let before = self.last_change(&change.path).cloned();
            of_branches.for_each(|author| self.authors.note(&author.node, &change.path, before.clone()));
            self.note_change(&finished.node, change);
        }
        if let Some(parallel) = &parallel {
            self.adopt(parallel, finished);
        }
        let chosen = parallel
            .iter()
            .flat_map(|parallel| &parallel.ended)
            .find(|one| finished.best.as_ref() == Some(&one.end.branch));
        if let Some(chosen) = chosen.filter(|_| is_new) {
            self.answers = chosen.branch.answers.clone();
        }
        self.context.set_all(&finished.context);
        self.arrive(&finished.node, finished.visit);
        self.tell_choice(finished);
        let outcome = Outcome::ended(finished.status, finished.failure.as_ref());
        self.record_outcome(&finished.node, &outcome);
        self.update(&finished.node, |history| history.count_signature(finished.signature));
        // A run that ends here begins again with its branches.
        self.note_failed(parallel.as_ref().map_or(&finished.node, |parallel| &parallel.node));
        match finished.verifying {
            true => self.hold_fan_in(outcome),
            false => self.complete(&finished.node),
        }
        is_new
    }

    fn tell_choice(&mut self, finished: &FanInFinished) {
        let conflicts: Vec<&str> = finished.conflicts.iter().map(|conflict| conflict.path.as_str()).collect();
        let told = [
            ("parallel.fan_in.best_id", finished.best.as_ref().map(|best| json!(best))),
            ("parallel.fan_in.best_outcome", finished.best_outcome.map(|end| json!(end))),
            ("parallel.fan_in.merged", Some(json!(finished.merged))),
            ("parallel.fan_in.conflicts", Some(json!(conflicts))),
        ];
        for (key, value) in told {
            match value {
                Some(value) => self.context.set(key, value),
                None => self.context.remove(key),
            }
        }
    }

    /// Takes over what came of the nodes that branches visited. Where several visited one, the best branch speaks. An outcome counts only
    /// from a branch whose changes were taken, or where nobody changed anything: what another one proved, it proved of files that are not
    /// here.
    fn adopt(&mut self, parallel: &OpenParallel, finished: &FanInFinished) {
        let ended = parallel.in_order();
        let is_untouched = |one: &EndedBranch| finished.changes.is_empty() && one.branch.changes.is_empty();
        let is_here = |one: &EndedBranch| finished.merged.contains(&one.end.branch) || is_untouched(one);
        let is_best = |one: &&&EndedBranch| Some(&one.end.branch) == finished.best.as_ref();
        if let Some(best) = ended.iter().find(is_best) {
            self.conversations = best.branch.conversations.clone();
        }
        for one in ended.iter().filter(|one| !is_best(one)).chain(ended.iter().filter(is_best)) {
            for node in one.branch.visited.iter() {
                self.adopt_history(node, &one.branch, is_here(one));
            }
        }
        for one in ended {
            let before = one.branch.origin.as_ref().map_or(0, |origin| origin.branch.completed.total());
            let own = one.branch.completed.since(before);
            for node in one.branch.visited.iter().filter(|node| !own.contains(node)) {
                self.complete(node);
            }
            own.into_iter().for_each(|node| self.complete(node));
        }
    }

    fn adopt_history(&mut self, node: &NodeId, from: &Branch, is_merged: bool) {
        let Some(history) = from.nodes.get(node).cloned() else { return };
        self.update(node, |own| {
            let (failing_at, visits) = (own.failing_at, own.visits.max(history.visits));
            let counted = own.counted.max(history.counted);
            let skipped = if is_merged { history.skipped } else { own.skipped };
            let outcome = if is_merged { history.outcome } else { own.outcome.take() };
            let (proven, dropped) = match is_merged {
                true => (history.proven, history.dropped),
                false => (own.proven, Arc::clone(&own.dropped)),
            };
            *own = NodeHistory { failing_at, visits, counted, outcome, skipped, proven, dropped, ..history };
        });
    }

    fn note_failed(&mut self, node: &NodeId) {
        self.last_failed = self.last_failure.as_ref().map(|_| Arc::new(FailedStage::silent(node)));
        self.note_end_in_chain(node, false);
    }
}
