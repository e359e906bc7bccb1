//! The state of a parallel node: the branches that began, and the ends of those that have ended.
//!
//! The lists are persistent: a clone shares structure with the original, so it costs the same with two branches and
//! with ten thousand.

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

/// A parallel node that has begun.
#[derive(Debug, Clone, PartialEq)]
pub struct OpenParallel {
    /// The parallel node.
    pub node: NodeId,
    /// Number of the visit of the node.
    pub visit: u32,
    /// The fan-in.
    pub join: NodeId,
    /// The branches in the order of their edges.
    pub children: Arc<[ParallelChild]>,
    /// Deadline of the parallel node; `None` if it has none.
    pub due_at: Option<Timestamp>,
    /// True if the deadline has passed.
    pub has_expired: bool,
    /// Number of times that the supervisor has observed the child.
    pub cycle: u32,
    /// Time at which the supervisor observes the child again; `None` if there is no supervisor.
    pub observe_at: Option<Timestamp>,
    /// The reason why the supervisor ended the child; `None` if it has not.
    pub supervision_end: Option<SupervisionEnd>,
    /// Number of branches that began. Branches begin in order.
    pub started: usize,
    /// The branches that have ended, in the order of their ends.
    pub ended: VectorSync<Arc<EndedBranch>>,
    /// Number of branches that succeeded.
    pub succeeded: usize,
    /// Number of branches that failed.
    pub failed: usize,
    /// Number of branches that were canceled.
    pub canceled: usize,
    /// How the parallel node ended by its policies; `None` until every branch that began has ended.
    pub status: Option<Status>,
}

/// A branch that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedBranch {
    /// The end of the branch.
    pub end: BranchFinished,
    /// The first node of the branch.
    pub first: NodeId,
    /// The state of the branch at its end.
    pub branch: Arc<Branch>,
}

/// The parallel node at which a branch began.
#[derive(Debug, Clone, PartialEq)]
pub struct Origin {
    /// The branch that contains the parallel node.
    pub parent: BranchId,
    /// The state of the parent branch. The parent branch changes no file while its branches run.
    pub branch: Arc<Branch>,
    /// The fan-in at which the branch ends.
    pub join: NodeId,
    /// The first node of the branch.
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

    /// Returns the number of branches that began and have not ended.
    pub fn running(&self) -> usize {
        self.started.saturating_sub(self.ended.len())
    }

    /// Returns the candidates of a fan-in: branches that succeeded, and a child that its supervisor ended because of
    /// the stop condition.
    pub fn candidates(&self) -> impl Iterator<Item = &EndedBranch> {
        let is_done = self.supervision_end == Some(SupervisionEnd::StopCondition);
        let may_be_chosen = move |end: BranchEnd| end.has_succeeded() || is_done && end == BranchEnd::Canceled;
        self.in_order().into_iter().filter(move |one| may_be_chosen(one.end.outcome))
    }

    /// Returns the branches that have ended, in the order of their edges. The order does not depend on the speed of the
    /// branches.
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
    /// Returns the parallel node whose branches the branch waits for.
    pub fn parallel(&self) -> Option<&Arc<OpenParallel>> {
        match &self.at {
            super::Position::Parallel(parallel) => Some(parallel),
            _ => None,
        }
    }

    /// Returns true if files of this branch differ from those at the start of the run, including changes before the
    /// branch began.
    pub fn has_changes(&self) -> bool {
        !self.changes.is_empty() || self.origin.as_ref().is_some_and(|origin| origin.branch.has_changes())
    }

    /// Returns the last change of a path since the start of the run, including changes before the branch began.
    pub fn last_change(&self, path: &ScopePath) -> Option<&FileChange> {
        let before = || self.origin.as_ref()?.branch.last_change(path);
        self.changes.get(path).or_else(before)
    }

    /// Returns the first stage accepted by `is_named` that changed a path, including stages before the branch began.
    pub fn first_author(&self, path: &ScopePath, is_named: &dyn Fn(&NodeId) -> bool) -> Option<&Author> {
        let before = self.origin.as_ref().and_then(|origin| origin.branch.first_author(path, is_named));
        before.or_else(|| self.authors.of(path).iter().find(|author| is_named(&author.node)))
    }

    /// Returns the paths that changed since the start of the run, including those that have their first content again.
    pub fn changed_paths(&self) -> BTreeSet<&str> {
        let before = self.origin.as_ref().map(|origin| origin.branch.changed_paths()).unwrap_or_default();
        self.changes.keys().map(|path| path.as_str()).chain(before).collect()
    }

    /// Creates a branch that begins at a parallel node of this branch. The child inherits the context and history, and
    /// has no changes of its own.
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
            // The outcome before the parallel node is not an outcome of the branch. The last failure is inherited,
            // because a stage of the branch may have to fix it.
            previous: Arc::new(Outcome::new(Status::Success)),
            ..Self::clone(self)
        };
        // The branch does not inherit the score of its parent branch.
        child.context.remove("score");
        child
    }

    /// Turns the branch into that of a child pipeline: it gets only the given context, and nothing from an earlier run
    /// of the child.
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
        self.at = super::Position::Parallel(Arc::new(OpenParallel::new(started)));
    }

    pub(crate) fn expire_parallel(&mut self) {
        if let super::Position::Parallel(parallel) = &mut self.at {
            Arc::make_mut(parallel).has_expired = true;
        }
    }

    pub(crate) fn observe_child(&mut self, observed: &ChildObserved) {
        self.context.set_all(&observed.context);
        if let super::Position::Parallel(parallel) = &mut self.at {
            let parallel = Arc::make_mut(parallel);
            (parallel.cycle, parallel.observe_at, parallel.supervision_end) =
                (observed.cycle, observed.observe_at, observed.ends);
        }
    }

    pub(crate) fn begin_child(&mut self) {
        if let super::Position::Parallel(parallel) = &mut self.at {
            Arc::make_mut(parallel).started += 1;
        }
    }

    pub(crate) fn end_child(&mut self, end: &BranchFinished, branch: Arc<Branch>) {
        let super::Position::Parallel(parallel) = &mut self.at else { return };
        let first = branch.origin.as_ref().map(|origin| origin.first.clone());
        let Some(first) = first else { return };
        Arc::make_mut(parallel).end(EndedBranch { end: end.clone(), first, branch });
    }

    /// Joins the parallel node after every branch has ended: the visit of the parallel node is finished, and the
    /// results are in the context.
    pub(crate) fn join_parallel(&mut self, joined: &ParallelJoined) {
        let super::Position::Parallel(parallel) = std::mem::take(&mut self.at) else { return };
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

    /// Sets the results in the context. The results of an earlier parallel node are removed.
    fn tell_results(&mut self, Results { list, whole }: Results) {
        let earlier: Vec<String> = self.context.keys_within(WHOLE_ANSWERS).map(str::to_owned).collect();
        earlier.iter().for_each(|key| self.context.remove(key));
        self.context.set(RESULTS, list);
        for (key, reference) in whole {
            self.context.set(key.as_str(), reference.clone());
            self.context.note_reference(&key, &reference);
        }
    }

    /// Ends a fan-in: this branch takes over the merged changes, and the history of the nodes that the branches
    /// visited. Returns true if the event also begins the visit, because no component was asked.
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
        // A run that ends here is resumed at the parallel node.
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

    /// Takes over the history of the nodes that branches visited. If several branches visited a node, the best branch
    /// has priority. An outcome is taken over only if the changes of its branch were merged, or if no branch changed
    /// anything. Any other outcome is about files that are not in this branch.
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
