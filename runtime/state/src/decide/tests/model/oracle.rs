//! A second implementation of the rules, which reads only the records of a run: what may begin, how often, and how a
//! parallel node ends.

use glovebox_journal::event::{BranchEnd, BranchId, Event, Record, StageReady, Task, Verdict};
use glovebox_pipeline::ir::{ErrorPolicy, JoinPolicy, NodeId, Pipeline};
use glovebox_record::Status;
use std::collections::BTreeMap;

/// A parallel node whose branches are running.
#[derive(Default)]
struct Split {
    node: Option<NodeId>,
    began: usize,
    ends: Vec<BranchEnd>,
}

#[derive(Default)]
struct Account {
    open: BTreeMap<BranchId, Split>,
    parents: BTreeMap<BranchId, BranchId>,
    ready: BTreeMap<Task, u32>,
    begun: BTreeMap<Task, u32>,
    last: BTreeMap<NodeId, Status>,
}

/// Panics if the records break a rule.
pub(super) fn check(pipeline: &Pipeline, records: &[Record]) {
    let mut account = Account::default();
    for (number, record) in records.iter().enumerate() {
        account.follow(pipeline, &record.event);
        let is_last = number + 1 == records.len();
        assert_eq!(matches!(record.event, Event::RunFinished(_)), is_last, "a run has one end, and nothing follows it");
    }
}

impl Account {
    fn note_ready(&mut self, pipeline: &Pipeline, ready: &StageReady) {
        let node = pipeline.node(&ready.task.node).unwrap();
        let attempts_max = node.routing.max_retries.unwrap_or(0) + 1;
        assert!(ready.ordinal <= attempts_max, "{ready:?} has more attempts than retries allow");
        let visits_max = node.bounds.visits_max;
        assert!(visits_max.is_none_or(|most| ready.task.visit <= most), "{ready:?} is above `max_visits`");
        self.ready.insert(ready.task.clone(), ready.ordinal);
    }

    fn follow(&mut self, pipeline: &Pipeline, event: &Event) {
        match event {
            Event::StageReady(ready) => self.note_ready(pipeline, ready),
            Event::StageStarted(started) => {
                assert_eq!(
                    self.ready.get(&started.attempt.task),
                    Some(&started.attempt.ordinal),
                    "began without being ready"
                );
                let twice = self.begun.insert(started.attempt.task.clone(), started.attempt.ordinal);
                assert_eq!(twice, None, "began twice");
            }
            Event::RunResumed(_) => self.begun.clear(),
            Event::StageFinished(finished) => {
                let attempt = &finished.attempt;
                assert_eq!(self.begun.remove(&attempt.task), Some(attempt.ordinal), "ended without a beginning");
                let is_settled = !finished.follow_up.retrying && finished.files.recoverable.is_none();
                if is_settled && finished.outcome.status != Status::Skipped {
                    self.last.insert(attempt.task.node.clone(), finished.outcome.status);
                }
            }
            Event::RecoveryDecided(decided) if decided.outcome.status != Status::Skipped => {
                self.last.insert(decided.node().clone(), decided.outcome.status);
            }
            Event::ParallelStarted(started) => {
                let split = Split { node: Some(started.node.clone()), ..Split::default() };
                assert!(self.open.insert(started.branch.clone(), split).is_none(), "a branch is at two parallel nodes");
            }
            Event::BranchStarted(started) => {
                let parallel = self.open.get_mut(&started.parent).expect("a branch begins at a parallel node");
                parallel.began += 1;
                let most = pipeline.node(parallel.node.as_ref().unwrap()).unwrap().parallel.parallel_max as usize;
                assert!(parallel.began - parallel.ends.len() <= most, "more branches at a time than `max_parallel`");
                assert!(self.parents.insert(started.branch.clone(), started.parent.clone()).is_none(), "began twice");
            }
            Event::BranchFinished(ended) => {
                // Only a canceled branch may end at a parallel node of its own, after all branches of that node have
                // ended.
                let own = self.open.remove(&ended.branch);
                let is_over =
                    |parallel: &Split| ended.outcome == BranchEnd::Canceled && parallel.began == parallel.ends.len();
                assert!(own.as_ref().is_none_or(is_over), "a branch ended before its own parallel node");
                assert_eq!(self.parents.get(&ended.branch), Some(&ended.parent));
                self.open.get_mut(&ended.parent).expect("the parallel node waits").ends.push(ended.outcome);
            }
            Event::ParallelJoined(joined) => {
                let parallel = self.open.remove(&joined.branch).expect("the parallel node began");
                assert_eq!(parallel.began, parallel.ends.len(), "joined before every branch had ended");
                assert_eq!(joined.status, parallel.status(pipeline), "{joined:?}: {:?}", parallel.ends);
            }
            Event::RunFinished(finished) if finished.status == Verdict::Success => {
                for gate in pipeline.nodes.iter().filter(|node| node.checks.goal_gate) {
                    let last = self.last.get(&gate.id);
                    assert!(
                        last.is_some_and(|status| status.satisfies_gate()),
                        "gate `{}` is unmet: {last:?}",
                        gate.id
                    );
                }
                assert!(self.open.is_empty() && self.begun.is_empty(), "something goes on behind the end");
            }
            _ => {}
        }
    }
}

impl Split {
    /// Returns how the parallel node ends, from its policies and from the ends of its branches in this order.
    fn status(&self, pipeline: &Pipeline) -> Status {
        let id = self.node.as_ref().unwrap();
        let setting = pipeline.node(id).unwrap().parallel;
        let all = pipeline.outgoing(id).count();
        let (mut good, mut bad) = (0, 0);
        let needed = match setting.join {
            JoinPolicy::WaitAll => usize::MAX,
            JoinPolicy::FirstSuccess => 1,
            JoinPolicy::KOfN(k) => k as usize,
            JoinPolicy::Quorum(share) => ((all as f64) * share).ceil().max(1.0) as usize,
        };
        for end in &self.ends {
            match end {
                BranchEnd::Success | BranchEnd::PartialSuccess => good += 1,
                BranchEnd::Fail => bad += 1,
                BranchEnd::Canceled => {}
            }
            // The first end that decides the parallel node determines the status. The branches that end later were
            // canceled.
            match (setting.error, end) {
                (ErrorPolicy::FailFast, BranchEnd::Fail) => return Status::Fail,
                _ if good >= needed => return Status::Success,
                _ => {}
            }
        }
        match (setting.join, setting.error) {
            _ if good == 0 => Status::Fail,
            (JoinPolicy::WaitAll, ErrorPolicy::Continue) if bad > 0 => Status::PartialSuccess,
            (JoinPolicy::WaitAll, _) => Status::Success,
            _ => Status::Fail,
        }
    }
}
