//! The branches of a run at one time: what each of them executes, since when, and what it waits for.
//!
//! This fold of the journal knows no more than its records. Between two records, only the liveness stream shows whether an attempt
//! moves; [`BranchNow::note`] adds it.

use glovebox_journal::event::{AttemptId, BranchId, Event, NodeId, Record, time_format};
use glovebox_journal::liveness::{LivenessEvent, LivenessLine};
use glovebox_record::WaitKind;
use jiff::{SignedDuration, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a branch is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BranchPhase {
    /// An attempt is in progress.
    Running,
    /// No attempt is in progress.
    Waiting,
    /// The branch was canceled, and its attempt is asked to stop.
    Canceled,
}

/// What a branch waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BranchWait {
    /// A free place for its next attempt.
    Place,
    /// The time of its next attempt.
    Retry,
    /// A quota at the provider of its model.
    Quota,
    /// The answer of a person.
    Answer,
    /// The branches of a parallel node, or a child pipeline.
    Branches,
    /// The next try of a request that a provider refused.
    ModelRetry,
    /// The answer of a model.
    Model,
    /// The host, which makes or ends the sandbox of the attempt.
    Sandbox,
}

impl BranchWait {
    /// Returns the wait as the end of the sentence "it waits for".
    pub const fn described(self) -> &'static str {
        match self {
            Self::Place => "a free place",
            Self::Retry => "its next attempt",
            Self::Quota => "the quota of its provider",
            Self::Answer => "an answer",
            Self::Branches => "its branches",
            Self::ModelRetry => WaitKind::ModelRetry.described(),
            Self::Model => WaitKind::Model.described(),
            Self::Sandbox => WaitKind::Sandbox.described(),
        }
    }
}

impl From<WaitKind> for BranchWait {
    fn from(kind: WaitKind) -> Self {
        match kind {
            WaitKind::ModelRetry => Self::ModelRetry,
            WaitKind::Model => Self::Model,
            WaitKind::Sandbox => Self::Sandbox,
        }
    }
}

/// Maximum time between two heartbeats of an attempt that waits, with some time for a loaded machine.
const WAIT_MAX: SignedDuration = SignedDuration::from_secs(25);

/// A branch of a run that has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BranchNow {
    /// The branch.
    pub branch: BranchId,
    /// The branch that was split; absent for the main branch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<BranchId>,
    /// The node that the branch executes; absent before the first node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<NodeId>,
    /// The visit of the node.
    pub visit: u32,
    /// Number of the attempt within the visit; 0 without an attempt.
    pub attempt: u32,
    /// The attempt in progress; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// What the branch is doing.
    pub phase: BranchPhase,
    /// Since when.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub since: Timestamp,
    /// What the branch waits for; absent if it waits for nothing that the host knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<BranchWait>,
    /// The time of the next attempt; absent if it may start at once.
    #[serde(default, with = "time_format::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub due_at: Option<Timestamp>,
    /// The provider whose quota the branch waits for; absent for another wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The last sign of life: a heartbeat of the attempt, or else the last record of the branch.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub last_sign: Timestamp,
}

impl BranchNow {
    fn new(branch: BranchId, at: Timestamp) -> Self {
        Self {
            branch,
            parent: None,
            node: None,
            visit: 0,
            attempt: 0,
            attempt_id: None,
            phase: BranchPhase::Waiting,
            since: at,
            waits_for: None,
            due_at: None,
            provider: None,
            last_sign: at,
        }
    }

    /// Adds a line of the liveness stream, if it is about the attempt in progress.
    pub fn note(&mut self, line: &LivenessLine) {
        if self.attempt_id.is_none() || line.attempt_id() != self.attempt_id.as_ref() {
            return;
        }
        self.last_sign = self.last_sign.max(line.at);
        if line.event == LivenessEvent::StageHeartbeat {
            self.waits_for = line.waits_for.map(BranchWait::from);
        }
    }

    /// Forgets what a running attempt waits for if it gave no sign of life for so long. A wait that goes on has a heartbeat for each
    /// interval, and a silent attempt has none.
    pub fn forget_old_wait(&mut self, now: Timestamp) {
        if self.phase == BranchPhase::Running && now.duration_since(self.last_sign) >= WAIT_MAX {
            self.waits_for = None;
        }
    }

    fn waits(&mut self, at: Timestamp, waits_for: Option<BranchWait>) {
        (self.phase, self.since, self.attempt_id) = (BranchPhase::Waiting, at, None);
        (self.waits_for, self.due_at, self.provider) = (waits_for, None, None);
    }
}

/// The branches of a run after some of its records.
#[derive(Debug, Clone, Default)]
pub struct BranchesNow {
    branches: BTreeMap<BranchId, BranchNow>,
    has_ended: bool,
}

impl BranchesNow {
    /// Returns the branches that have not ended. A run that has ended has none.
    pub fn branches(&self) -> impl Iterator<Item = &BranchNow> {
        self.branches.values().filter(|_| !self.has_ended)
    }

    /// Adds a record.
    pub fn apply(&mut self, record: &Record) {
        let at = record.at;
        match &record.event {
            // A resume may continue the branches of a run that was stopped.
            Event::RunFinished(_) => self.has_ended = true,
            Event::RunResumed(resumed) => return self.resume(at, resumed.from.is_some()),
            Event::LoopRestarted(_) => self.branches.retain(|id, _| *id == BranchId::main()),
            Event::BranchFinished(finished) => drop(self.branches.remove(&finished.branch)),
            _ => {}
        }
        let Some(id) = record.event.branch().filter(|_| !matches!(record.event, Event::BranchFinished(_))) else {
            return;
        };
        let branch = self.branches.entry(id.clone()).or_insert_with(|| BranchNow::new(id.clone(), at));
        branch.last_sign = at;
        match &record.event {
            Event::BranchStarted(started) => branch.parent = Some(started.parent.clone()),
            Event::StageReady(ready) => {
                // An event `stage.held` is followed by this event.
                let provider = branch.provider.take().filter(|_| ready.due_at.is_some());
                let wait = match (ready.due_at, &provider) {
                    (None, _) => BranchWait::Place,
                    (Some(_), Some(_)) => BranchWait::Quota,
                    (Some(_), None) => BranchWait::Retry,
                };
                branch.waits(at, Some(wait));
                branch.provider = provider;
                (branch.node, branch.visit) = (Some(ready.task.node.clone()), ready.task.visit);
                (branch.attempt, branch.due_at) = (ready.ordinal, ready.due_at);
            }
            Event::StageStarted(started) => {
                branch.waits(at, None);
                let task = &started.attempt.task;
                (branch.node, branch.visit, branch.attempt) =
                    (Some(task.node.clone()), task.visit, started.attempt.ordinal);
                (branch.phase, branch.attempt_id) = (BranchPhase::Running, Some(started.attempt.id.clone()));
            }
            Event::StageHeld(held) => {
                branch.waits(at, Some(BranchWait::Quota));
                branch.provider = Some(held.provider.clone());
            }
            Event::BranchCanceled(_) => (branch.phase, branch.since) = (BranchPhase::Canceled, at),
            Event::QuestionAsked(asked) => {
                branch.waits(at, Some(BranchWait::Answer));
                branch.node = Some(asked.node.clone());
            }
            Event::ParallelStarted(started) => {
                branch.waits(at, Some(BranchWait::Branches));
                (branch.node, branch.visit, branch.attempt) = (Some(started.node.clone()), started.visit, 0);
            }
            Event::StageSteered(_) | Event::ChildObserved(_) => {}
            _ => branch.waits(at, None),
        }
    }

    /// Attempts in progress are executed again after a resume, and branches begin again if the run restarts at a node.
    fn resume(&mut self, at: Timestamp, restarts: bool) {
        self.has_ended = false;
        self.branches.retain(|id, _| !restarts || *id == BranchId::main());
        for branch in self.branches.values_mut().filter(|branch| branch.phase == BranchPhase::Running) {
            branch.waits(at, Some(BranchWait::Place));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Simulation, finished, pipeline, started};
    use glovebox_journal::event::StageStarted;
    use glovebox_record::{Outcome, Status};

    fn shown(run: &Simulation<'_>, lines: &[LivenessLine]) -> Vec<String> {
        let mut now = BranchesNow::default();
        run.records.iter().for_each(|record| now.apply(record));
        let text = |branch: &BranchNow| {
            let mut branch = branch.clone();
            lines.iter().for_each(|line| branch.note(line));
            let node = branch.node.map(|node| node.to_string()).unwrap_or_default();
            let waits = branch.waits_for.map(|wait| format!(" for {}", wait.described())).unwrap_or_default();
            format!("{} {node} {}x{} {:?}{waits}", branch.branch, branch.visit, branch.attempt, branch.phase)
        };
        now.branches().map(text).collect()
    }

    #[test]
    fn a_wait_without_a_sign_of_life_is_over() {
        let begin = Timestamp::UNIX_EPOCH;
        let mut branch = BranchNow::new(BranchId::main(), begin);
        for (phase, waits_for, after) in [
            (BranchPhase::Running, BranchWait::Model, None),
            (BranchPhase::Waiting, BranchWait::Answer, Some(BranchWait::Answer)),
        ] {
            (branch.phase, branch.waits_for) = (phase, Some(waits_for));
            branch.forget_old_wait(begin + SignedDuration::from_secs(24));
            assert_eq!(branch.waits_for, Some(waits_for));
            branch.forget_old_wait(begin + SignedDuration::from_secs(25));
            assert_eq!(branch.waits_for, after);
        }
    }

    #[test]
    fn each_branch_says_what_it_executes_and_what_it_waits_for() {
        let pipeline = pipeline(
            "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; f [shape=component]; j [shape=tripleoctagon];
             a [max_retries=1]; b; q [shape=hexagon]; start -> f; f -> a -> j; f -> b -> j; f -> q -> j; j -> exit }",
        );
        let mut run = Simulation::new(&pipeline);
        run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 50, None)))]);
        let waiting = ["f-a a 1x1 Waiting for a free place", "f-b b 1x1 Waiting for a free place"];
        let (gate, main) = ("f-q q 0x0 Waiting for an answer", "main f 1x0 Waiting for its branches");
        assert_eq!(shown(&run, &[]), [waiting[0], waiting[1], gate, main]);
        let open = run.state.branches.values().filter_map(|branch| branch.open()).cloned().collect::<Vec<_>>();
        for open in &open {
            let attempt = finished(open, Outcome::new(Status::Success)).attempt;
            run.append(vec![Event::StageStarted(StageStarted {
                attempt,
                worker: "w".into(),
                machine: None,
                moved: None,
            })]);
        }
        assert_eq!(shown(&run, &[])[..2], ["f-a a 1x1 Running", "f-b b 1x1 Running"]);
        let attempt = finished(&open[1], Outcome::new(Status::Success)).attempt;
        let heartbeat = LivenessLine::of_attempt(LivenessEvent::StageHeartbeat, Timestamp::now(), &attempt);
        let line = LivenessLine { waits_for: Some(WaitKind::Model), ..heartbeat };
        assert_eq!(shown(&run, &[line])[..2], ["f-a a 1x1 Running", "f-b b 1x1 Running for the model"]);
        let mut retry = finished(&open[0], Outcome::new(Status::Retry));
        crate::decide::finalize_attempt(&pipeline, None, &run.state, false, &mut retry);
        run.append(vec![Event::StageFinished(Box::new(retry))]);
        assert_eq!(shown(&run, &[])[0], "f-a a 1x2 Waiting for its next attempt");
        run.append(vec![Event::StageHeld(Box::new(crate::simulation::held(&open[1], Timestamp::UNIX_EPOCH)))]);
        let quota = "f-b b 1x1 Waiting for the quota of its provider";
        assert_eq!(shown(&run, &[])[1], quota);
        run.append(vec![Event::RunResumed(Box::default())]);
        assert_eq!(shown(&run, &[])[1], quota, "a resume waits for the same time");
        let attempt = finished(&open[1], Outcome::new(Status::Success)).attempt;
        run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
        assert_eq!(shown(&run, &[])[1], "f-b b 1x1 Running");
        run.append(vec![Event::RunResumed(Box::default())]);
        assert_eq!(shown(&run, &[])[1], "f-b b 1x1 Waiting for a free place");
    }

    #[test]
    fn a_run_that_ended_has_no_branches() {
        let pipeline = pipeline("digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a; start -> a -> exit }");
        let run = Simulation::run(&pipeline, 20, &mut |open| finished(open, Outcome::new(Status::Success)));
        assert_eq!(shown(&run, &[]), [] as [&str; 0]);
    }
}
