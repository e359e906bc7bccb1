//! What happened in a run: facts in the past tense, one enum for journal, progress lines and tests.
//!
//! The journal is a promise: [`glovebox_record`] holds the types that host and sandbox produce, and a golden journal freezes
//! them. A field may be added with a default; none is renamed or removed without a new [`SCHEMA_VERSION`]. Nothing here knows where records are kept.

mod canonical;
mod failure_meta;
mod forked_from;
mod holdouts_sealed;
mod location;
mod parallel;
mod question;
mod record;
mod recovery;
mod route;
mod run_started;
mod stage;
mod steered;
pub mod time_format;
mod views;
mod went_back;

pub use canonical::canonical;
pub use canonical::write_canonical;
pub use failure_meta::{CommandSource, FailedCommand, FailureMeta};
pub use forked_from::ForkedFrom;
pub use glovebox_record::{
    Artifact, Attempt, AttemptId, BranchId, ChangeOp, Digest, DigestError, Ending, FileChange, HostTraffic, LimitUse,
    NodeId, QuestionId, Receipt, Refusal, RefusedChange, RunId, StoredOutput, Subject, Task, Traffic, Work,
};
pub use holdouts_sealed::HoldoutsSealed;
pub use parallel::{
    BranchCanceled, BranchEnd, BranchFinished, BranchStarted, ChildObserved, ConflictSide, FanInFinished,
    MergeConflict, ParallelChild, ParallelExpired, ParallelJoined, ParallelStarted, SupervisionEnd,
};
pub use question::{AnsweredBy, HeldStage, QuestionAnswered, QuestionAsked, RunPaused, SheetLine};
pub use record::{EventText, Record, chain, whole_milliseconds};
pub use recovery::{ProposedWrite, Recoverable, RecoveryAction, RecoveryDecided, RecoveryQuestion, RecoveryReason};
pub use route::{GateUnmet, LoopRestarted, RouteCandidate, RouteTaken};
pub use run_started::{RunStarted, StartedModel, StartedPipeline, StartedPlan, StartedSandbox, StartedWorkspace};
pub use stage::{
    AskedModel, CacheFilled, FollowUp, IgnoredFiles, Isolation, StageCommands, StageFiles, StageFinished, StageModel,
    StageReady, StageRefusals, StageRetrying, StageStarted,
};
pub use steered::StageSteered;
pub use went_back::WentBack;

use glovebox_record::scope::Entry;
use glovebox_record::spend::SpendBounds;
use glovebox_record::{Failure, SandboxRecord, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Version of the event vocabulary, written into `run.started` and into the journal's database. Other versions are refused.
pub const SCHEMA_VERSION: u32 = 1;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Event {
    /// The run was created; always the first record.
    #[serde(rename = "run.started")]
    RunStarted(Box<RunStarted>),
    /// Another process took the run over.
    #[serde(rename = "run.resumed")]
    RunResumed(Box<RunResumed>),
    /// The caches of a node with `cache_from="base"` were filled, before any stage changed a file.
    #[serde(rename = "cache.filled")]
    CacheFilled(Box<CacheFilled>),
    /// An attempt may be claimed; at once a fact and a queue entry.
    #[serde(rename = "stage.ready")]
    StageReady(StageReady),
    /// A worker claimed the attempt; the sequence number of this record is its fencing token.
    #[serde(rename = "stage.started")]
    StageStarted(StageStarted),
    /// A person told the attempt's agent something.
    #[serde(rename = "stage.steered")]
    StageSteered(Box<StageSteered>),
    /// The attempt was committed.
    #[serde(rename = "stage.finished")]
    StageFinished(Box<StageFinished>),
    /// Another attempt of the same visit follows.
    #[serde(rename = "stage.retrying")]
    StageRetrying(StageRetrying),
    /// An engine-native node was passed.
    #[serde(rename = "stage.passed")]
    StagePassed(StagePassed),
    /// The next node was chosen.
    #[serde(rename = "route.taken")]
    RouteTaken(RouteTaken),
    /// An exit was reached while a goal gate was unmet.
    #[serde(rename = "gate.unmet")]
    GateUnmet(GateUnmet),
    /// A new generation of the run began.
    #[serde(rename = "loop.restarted")]
    LoopRestarted(Box<LoopRestarted>),
    /// A branch waits for the branches of a parallel node.
    #[serde(rename = "parallel.started")]
    ParallelStarted(ParallelStarted),
    /// The time of a parallel node is over.
    #[serde(rename = "parallel.expired")]
    ParallelExpired(ParallelExpired),
    /// A supervisor looked at its child pipeline.
    #[serde(rename = "child.observed")]
    ChildObserved(Box<ChildObserved>),
    /// A branch of a parallel node began.
    #[serde(rename = "branch.started")]
    BranchStarted(BranchStarted),
    /// A branch of a parallel node is not needed any more.
    #[serde(rename = "branch.canceled")]
    BranchCanceled(BranchCanceled),
    /// A branch of a parallel node ended.
    #[serde(rename = "branch.finished")]
    BranchFinished(Box<BranchFinished>),
    /// Every branch of a parallel node that began has ended.
    #[serde(rename = "parallel.joined")]
    ParallelJoined(Box<ParallelJoined>),
    /// A fan-in chose a branch and took changes over.
    #[serde(rename = "fan_in.finished")]
    FanInFinished(Box<FanInFinished>),
    /// A person is asked.
    #[serde(rename = "question.asked")]
    QuestionAsked(Box<QuestionAsked>),
    /// The question was answered, or its time has passed.
    #[serde(rename = "question.answered")]
    QuestionAnswered(Box<QuestionAnswered>),
    /// It was decided what happens to disallowed writes.
    #[serde(rename = "recovery.decided")]
    RecoveryDecided(Box<RecoveryDecided>),
    /// The run holds no process until it is resumed.
    #[serde(rename = "run.paused")]
    RunPaused(Box<RunPaused>),
    /// Somebody asked the run to stop.
    #[serde(rename = "run.canceled")]
    RunCanceled(RunCanceled),
    /// The run ended; always the last record.
    #[serde(rename = "run.finished")]
    RunFinished(RunFinished),
}

impl Event {
    /// The dotted name.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::RunStarted(_) => "run.started",
            Event::RunResumed(_) => "run.resumed",
            Event::CacheFilled(_) => "cache.filled",
            Event::StageReady(_) => "stage.ready",
            Event::StageStarted(_) => "stage.started",
            Event::StageSteered(_) => "stage.steered",
            Event::StageFinished(_) => "stage.finished",
            Event::StageRetrying(_) => "stage.retrying",
            Event::StagePassed(_) => "stage.passed",
            Event::RouteTaken(_) => "route.taken",
            Event::GateUnmet(_) => "gate.unmet",
            Event::LoopRestarted(_) => "loop.restarted",
            Event::ParallelStarted(_) => "parallel.started",
            Event::ParallelExpired(_) => "parallel.expired",
            Event::ChildObserved(_) => "child.observed",
            Event::BranchStarted(_) => "branch.started",
            Event::BranchCanceled(_) => "branch.canceled",
            Event::BranchFinished(_) => "branch.finished",
            Event::ParallelJoined(_) => "parallel.joined",
            Event::FanInFinished(_) => "fan_in.finished",
            Event::QuestionAsked(_) => "question.asked",
            Event::QuestionAnswered(_) => "question.answered",
            Event::RecoveryDecided(_) => "recovery.decided",
            Event::RunPaused(_) => "run.paused",
            Event::RunCanceled(_) => "run.canceled",
            Event::RunFinished(_) => "run.finished",
        }
    }

    /// The subject under whose head the event is stored.
    pub fn subject(&self) -> Subject {
        let branch = match self {
            Event::BranchStarted(event) => Some(&event.parent),
            Event::BranchCanceled(event) => Some(&event.parent),
            Event::BranchFinished(event) => Some(&event.parent),
            _ => self.branch(),
        };
        match (self.task(), self.question(), branch) {
            (Some(task), ..) => task.into(),
            (None, Some(question), _) => question.into(),
            (None, None, Some(branch)) => branch.into(),
            (None, None, None) => Subject::Run,
        }
    }

    fn question(&self) -> Option<&QuestionId> {
        match self {
            Event::QuestionAsked(event) => Some(&event.question),
            Event::QuestionAnswered(event) => Some(&event.question),
            _ => None,
        }
    }

    /// The task that an attempt of it is about.
    fn task(&self) -> Option<&Task> {
        match self {
            Event::StageReady(event) => Some(&event.task),
            Event::StageStarted(event) => Some(&event.attempt.task),
            Event::StageFinished(event) => Some(&event.attempt.task),
            Event::StageRetrying(event) => Some(&event.task),
            _ => None,
        }
    }
}

/// Another process took the run over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunResumed {
    /// The name of the worker that drives it now.
    pub worker: String,
    /// The confinement of its commands from here on; absent when no stage runs commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRecord>,
    /// The node that it begins again at; absent when it continues where it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeId>,
    /// The visit of that node which the run went back to: state, context and files are as they were before it. Absent when it begins with
    /// what is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<WentBack>,
    /// The context keys that the user set before it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// The most steps from here on; absent when the limit stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_max: Option<u64>,
    /// The longest driven time from here on, milliseconds; absent when the limit stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_max_ms: Option<u64>,
    /// The budget of its model calls, with what they have cost so far; absent when the bounds stay.
    #[serde(default, skip_serializing_if = "SpendBounds::is_open")]
    pub spend_max: SpendBounds,
    /// Blob with another script for the model; absent when the script stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_digest: Option<Digest>,
    /// The plan from here on; absent when the plan stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replanned: Option<Replanned>,
    /// How the workspace was not what the journal says; absent when it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repaired: Option<Repaired>,
    /// Whether the run's caches were removed, since an attempt was under way when its process was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub caches_removed: bool,
}

/// A workspace was changed while nobody drove its run, and is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repaired {
    /// Paths that were made again.
    pub made: u64,
    /// Paths that were removed: no record has them, or they were something else.
    pub removed: u64,
}

/// A run continues with another plan, as the user asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replanned {
    /// Digest of the new plan.
    pub plan_digest: Digest,
    /// Its components: digest of the bytes by handler.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, Digest>,
    /// The bound write scopes of nodes that the grants narrowed below their `allowed_write_paths`; absent when there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub narrowed_scopes: BTreeMap<NodeId, Vec<Entry>>,
    /// Blob with what the new plan allows.
    pub capabilities_digest: Digest,
    /// Capabilities that only the new plan has.
    #[serde(default)]
    pub more: Vec<String>,
    /// Capabilities that only the plan before had.
    #[serde(default)]
    pub less: Vec<String>,
    /// Who answers its model calls: `scripted`, `live` or `simulated`; absent when that stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Stages that get a simulated answer if they are visited.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub simulated: BTreeSet<NodeId>,
}

/// An engine-native node was passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagePassed {
    /// Counts loop restarts; 0 before the first.
    pub generation: u32,
    /// The branch that passed it.
    pub branch: BranchId,
    /// The node.
    pub node: NodeId,
    /// The visit.
    pub visit: u32,
    /// The status it passes on: a diamond hands the previous one through (decision diamonds-pass-outcomes-through).
    pub status: Status,
}

impl StagePassed {
    /// The visit as a task, which names its folder and owns its status.
    pub fn task(&self) -> Task {
        Task::for_handler(self.generation, &self.branch, &self.node, self.visit)
    }
}

/// Somebody asked the run to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunCanceled {
    /// Who: `signal INT`, `signal TERM`, or the name of a person.
    pub by: String,
}

/// The prefix of a signal's name in [`RunCanceled::by`].
pub const SIGNAL: &str = "signal ";

impl RunCanceled {
    /// A person canceled the run for good, whatever the person is called.
    pub fn by_person(name: &str) -> Self {
        let by = match name.trim() {
            "" => "a person".to_owned(),
            name if name.starts_with(SIGNAL) => format!("a person named {name}"),
            name => name.to_owned(),
        };
        Self { by }
    }

    /// True when a signal stopped the run: it may go on later. A run that was canceled for good may not (decision signals-are-resumable).
    pub fn is_stop(&self) -> bool {
        self.by.starts_with(SIGNAL)
    }
}

/// How a run ended (decision run-status-is-binary).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// An exit was reached with every goal gate satisfied.
    Success,
    /// Anything else.
    Fail,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Verdict::Success => "success",
            Verdict::Fail => "fail",
        })
    }
}

/// The run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunFinished {
    /// How.
    pub status: Verdict,
    /// The exit that was reached, after success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_node: Option<NodeId>,
    /// Why, after a failure: the stage's reason unchanged (decision reasons-stay-unchanged).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The stage that a resume begins again at; absent where it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<NodeId>,
}
