//! The events of a run: facts in the past tense, in one enum for the journal, progress lines and tests.
//!
//! The journal format is stable. [`glovebox_record`] has the types that host and sandbox produce, and a golden journal
//! in the tests freezes the format. A field may be added with a default. No field is renamed or removed without a new
//! [`SCHEMA_VERSION`]. This module does not know where records are stored.

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
mod stalled;
mod status;
mod steered;
mod taken_over;
pub mod time_format;
mod views;
mod went_back;

pub use canonical::canonical;
pub use canonical::write_canonical;
pub use failure_meta::{CommandSource, FailedCommand, FailureMeta};
pub use forked_from::ForkedFrom;
pub use glovebox_record::{
    Artifact, Attempt, AttemptId, BranchId, ChangeOp, Digest, DigestError, DriverId, Ending, FileChange, HostTraffic,
    LimitUse, MachineId, NodeId, QuestionId, Receipt, Refusal, RefusedChange, RunId, StoredOutput, StreamKey, Task,
    Traffic, Work,
};
pub use holdouts_sealed::HoldoutsSealed;
pub use parallel::{
    BranchCanceled, BranchEnd, BranchExited, BranchFinished, BranchStarted, ChildObserved, ConflictSide, ExitPoint,
    FanInFinished, MergeConflict, ParallelChild, ParallelExpired, ParallelJoined, ParallelStarted, SupervisionEnd,
};
pub use question::{AnsweredBy, HeldStage, QuestionAnswered, QuestionAsked, RunPaused, SheetLine};
pub use record::{EventText, Record, chain, whole_milliseconds};
pub use recovery::{ProposedWrite, Recoverable, RecoveryAction, RecoveryDecided, RecoveryQuestion, RecoveryReason};
pub use route::{CycleBroken, GateUnmet, LoopRestarted, RouteCandidate, RouteTaken};
pub use run_started::{
    RunStarted, StartedModel, StartedPipeline, StartedPlan, StartedPlugin, StartedSandbox, StartedSettings,
    StartedWorkspace,
};
pub use stage::{
    AskedModel, CacheFilled, FollowUp, IgnoredFiles, Isolation, Moved, StageCommands, StageFiles, StageFinished,
    StageHeld, StageModel, StageReady, StageRefusals, StageRetrying, StageStarted,
};
pub use stalled::{RunStalled, SilentBranch};
pub use status::{SearchedStatus, StatusCopy, StatusEffect, StatusFound, StatusIngested, StatusOwnership, StatusPlace};
pub use steered::StageSteered;
pub use taken_over::RunTakenOver;
pub use went_back::WentBack;

use glovebox_record::liveness::StallSettings;
use glovebox_record::scope::Entry;
use glovebox_record::spend::SpendBounds;
use glovebox_record::{Failure, SandboxRecord, Status};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Version of the event vocabulary, written into `run.started` and into the journal's database. Other versions are refused.
pub const SCHEMA_VERSION: u32 = 1;

/// One fact about a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Event {
    /// The run was created; always the first record.
    #[serde(rename = "run.started")]
    RunStarted(Box<RunStarted>),
    /// Another process continued the run.
    #[serde(rename = "run.resumed")]
    RunResumed(Box<RunResumed>),
    /// Another driver drives the run from here on. The attempts in progress continue.
    #[serde(rename = "run.taken_over")]
    RunTakenOver(Box<RunTakenOver>),
    /// The caches of a node with `cache_from="base"` were filled, before any stage changed a file.
    #[serde(rename = "cache.filled")]
    CacheFilled(Box<CacheFilled>),
    /// An attempt may be claimed. The event is also the entry in the claim queue.
    #[serde(rename = "stage.ready")]
    StageReady(StageReady),
    /// A worker claimed the attempt; the sequence number of this record is its fencing token.
    #[serde(rename = "stage.started")]
    StageStarted(StageStarted),
    /// A person sent a message to the agent of an attempt.
    #[serde(rename = "stage.steered")]
    StageSteered(Box<StageSteered>),
    /// The places of status files were searched, because the stage answers by a file. `stage.finished` of the attempt follows in
    /// the same append.
    #[serde(rename = "status.ingested")]
    StatusIngested(Box<StatusIngested>),
    /// The attempt was committed.
    #[serde(rename = "stage.finished")]
    StageFinished(Box<StageFinished>),
    /// The attempt waits for a quota at the provider of its model, and is executed again at the time that the provider named.
    #[serde(rename = "stage.held")]
    StageHeld(Box<StageHeld>),
    /// Another attempt of the same visit follows.
    #[serde(rename = "stage.retrying")]
    StageRetrying(StageRetrying),
    /// The engine executed a control node.
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
    /// The timeout of a parallel node has expired.
    #[serde(rename = "parallel.expired")]
    ParallelExpired(ParallelExpired),
    /// A supervisor observed its child pipeline.
    #[serde(rename = "child.observed")]
    ChildObserved(Box<ChildObserved>),
    /// A branch of a parallel node was started.
    #[serde(rename = "branch.started")]
    BranchStarted(BranchStarted),
    /// A branch of a parallel node was canceled because its result is not needed any more.
    #[serde(rename = "branch.canceled")]
    BranchCanceled(BranchCanceled),
    /// A branch of a parallel node ended.
    #[serde(rename = "branch.finished")]
    BranchFinished(Box<BranchFinished>),
    /// All branches of a parallel node that were started have ended.
    #[serde(rename = "parallel.joined")]
    ParallelJoined(Box<ParallelJoined>),
    /// A fan-in chose a branch and merged changes.
    #[serde(rename = "fan_in.finished")]
    FanInFinished(Box<FanInFinished>),
    /// A person was asked a question.
    #[serde(rename = "question.asked")]
    QuestionAsked(Box<QuestionAsked>),
    /// A question was answered, or its deadline has passed.
    #[serde(rename = "question.answered")]
    QuestionAnswered(Box<QuestionAnswered>),
    /// A decision was made about an attempt's writes outside of its scope.
    #[serde(rename = "recovery.decided")]
    RecoveryDecided(Box<RecoveryDecided>),
    /// The run was paused: no process drives it until it is resumed.
    #[serde(rename = "run.paused")]
    RunPaused(Box<RunPaused>),
    /// A person or a signal asked the run to stop.
    #[serde(rename = "run.canceled")]
    RunCanceled(RunCanceled),
    /// The run ended. No record follows, unless the run is resumed.
    #[serde(rename = "run.finished")]
    RunFinished(RunFinished),
    /// No branch of the run made progress for too long.
    #[serde(rename = "run.stalled")]
    RunStalled(Box<RunStalled>),
    /// A loop was ended because a node failed in the same way too often.
    #[serde(rename = "cycle.broken")]
    CycleBroken(CycleBroken),
    /// A branch will take no further step, because the run was canceled, is stalled, or used up a limit.
    #[serde(rename = "branch.exited")]
    BranchExited(Box<BranchExited>),
}

impl Event {
    /// Returns the dotted name of the event.
    pub fn kind(&self) -> &'static str {
        match self {
            Event::RunStarted(_) => "run.started",
            Event::RunResumed(_) => "run.resumed",
            Event::RunTakenOver(_) => "run.taken_over",
            Event::CacheFilled(_) => "cache.filled",
            Event::StageReady(_) => "stage.ready",
            Event::StageStarted(_) => "stage.started",
            Event::StageSteered(_) => "stage.steered",
            Event::StatusIngested(_) => "status.ingested",
            Event::StageFinished(_) => "stage.finished",
            Event::StageHeld(_) => "stage.held",
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
            Event::RunStalled(_) => "run.stalled",
            Event::CycleBroken(_) => "cycle.broken",
            Event::BranchExited(_) => "branch.exited",
        }
    }

    /// Returns the stream that the event belongs to.
    pub fn stream(&self) -> StreamKey {
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
            (None, None, None) => StreamKey::Run,
        }
    }

    fn question(&self) -> Option<&QuestionId> {
        match self {
            Event::QuestionAsked(event) => Some(&event.question),
            Event::QuestionAnswered(event) => Some(&event.question),
            _ => None,
        }
    }

    /// Returns the task if the event is about an attempt.
    fn task(&self) -> Option<&Task> {
        match self {
            Event::StageReady(event) => Some(&event.task),
            Event::StageStarted(event) => Some(&event.attempt.task),
            Event::StatusIngested(event) => Some(&event.attempt.task),
            Event::StageFinished(event) => Some(&event.attempt.task),
            Event::StageHeld(event) => Some(&event.attempt.task),
            Event::StageRetrying(event) => Some(&event.task),
            _ => None,
        }
    }
}

/// Another process continued the run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunResumed {
    /// The name of the worker that drives the run from here on.
    pub worker: String,
    /// The confinement of the run's commands from here on; absent if no stage runs commands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxRecord>,
    /// The node at which the run was restarted; absent if it continued where it stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<NodeId>,
    /// The visit of `from` to which the run was rewound: state, context and files are as they were before the visit.
    /// Absent if the run continues with the current state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<WentBack>,
    /// The context keys that the user set with the resume.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub context: BTreeMap<String, String>,
    /// Maximum number of steps from here on; absent if the limit did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps_max: Option<u64>,
    /// Maximum time in milliseconds that the run may be driven, from here on; absent if the limit did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_max_ms: Option<u64>,
    /// The budget of the run's model calls, which includes the spend so far; absent if the bounds did not change.
    #[serde(default, skip_serializing_if = "SpendBounds::is_unlimited")]
    pub spend_max: SpendBounds,
    /// Settings of the stall watchdog that changed; absent if none did.
    #[serde(default, skip_serializing_if = "StallSettings::is_default")]
    pub stall: StallSettings,
    /// Blob with another script for the model; absent if the script did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script_digest: Option<Digest>,
    /// The plan from here on; absent if the plan did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replanned: Option<Replanned>,
    /// The repair of a workspace that differed from the journal; absent if it did not differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repaired: Option<Repaired>,
    /// True if the run's caches and its files at ignored paths were removed: an attempt was running when its process was
    /// killed, the run goes back, or the clock went back.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub caches_removed: bool,
    /// True if the clock of the machine was behind the last record.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub clock_went_back: bool,
}

/// Counts of a repair: the workspace was changed while no process drove the run, and was restored from the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Repaired {
    /// Number of paths that were restored.
    pub made: u64,
    /// Number of paths that were removed, because no record has them or because they had another type.
    pub removed: u64,
}

/// A run continues with another plan, as the user asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Replanned {
    /// Digest of the new plan.
    pub plan_digest: Digest,
    /// The components of the new plan: the digest of the bytes, by handler.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub components: BTreeMap<String, Digest>,
    /// Write scopes of the nodes whose `allowed_write_paths` the grants narrowed; absent if there are none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub narrowed_scopes: BTreeMap<NodeId, Vec<Entry>>,
    /// Blob with the capabilities of the new plan.
    pub capabilities_digest: Digest,
    /// Capabilities that only the new plan has.
    #[serde(default)]
    pub more: Vec<String>,
    /// Capabilities that only the previous plan had.
    #[serde(default)]
    pub less: Vec<String>,
    /// Who answers the model calls of the new plan: `scripted`, `live` or `simulated`; absent if that did not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Stages that get a simulated answer if they are visited.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub simulated: BTreeSet<NodeId>,
}

/// The engine executed a control node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StagePassed {
    /// Number of the generation, counted from 0.
    pub generation: u32,
    /// The branch that visited the node.
    pub branch: BranchId,
    /// The node.
    pub node: NodeId,
    /// The visit.
    pub visit: u32,
    /// The status of the node. A diamond passes on the previous status (decision diamonds-pass-outcomes-through).
    pub status: Status,
}

impl StagePassed {
    /// Returns the visit as a task, which names the folder and the status of the visit.
    pub fn task(&self) -> Task {
        Task::for_handler(self.generation, &self.branch, &self.node, self.visit)
    }
}

/// A person or a signal asked the run to stop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunCanceled {
    /// The requester: `signal INT`, `signal TERM`, `signal HUP`, `signal QUIT`, or the name of a person.
    pub by: String,
}

/// The prefix of a signal's name in [`RunCanceled::by`].
pub const SIGNAL: &str = "signal ";

impl RunCanceled {
    /// Creates the event for a person who canceled the run permanently. A name that looks like a signal is changed.
    pub fn by_person(name: &str) -> Self {
        let by = match name.trim() {
            "" => "a person".to_owned(),
            name if name.starts_with(SIGNAL) => format!("a person named {name}"),
            name => name.to_owned(),
        };
        Self { by }
    }

    /// Returns true if a signal stopped the run. Such a run can be resumed; a run that a person canceled cannot
    /// (decision signals-are-resumable).
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
    /// The run ended in any other way.
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
    /// The verdict.
    pub status: Verdict,
    /// The exit that was reached; absent after a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_node: Option<NodeId>,
    /// Why the run failed: the stage's reason unchanged (decision reasons-stay-unchanged). Absent after a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
    /// The stage at which a resume restarts; absent if a resume continues where the run stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes_at: Option<NodeId>,
    /// The file in the run directory that tells the end; absent in records of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
}
