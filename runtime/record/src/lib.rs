//! The vocabulary of a run's record: the types that the journal stores and that pipeline, sandbox, host and engine share.
//!
//! Each concept has one type, from its creation to the line of the journal. The serialised form is stable: schema snapshots and a
//! reference journal test it, and a change increments the schema version. This crate does no IO.
//!
//! - [`identity`]: identities of run, branch, node, visit and attempt;
//! - [`digest`]: the identifier of bytes;
//! - [`change`]: changes of a stage, and stored files;
//! - [`outcome`]: status and failure of a stage;
//! - [`failure_category`]: the classification of failures, and the number of repetitions for each;
//! - [`evidence`]: evidence that the host collects about a call;
//! - [`hook`]: commands that run before and after the tool calls of an agent;
//! - [`limit`]: the table of limits, with amounts and units;
//! - [`liveness`]: what the host observed of an attempt while it ran;
//! - [`missing`]: files of a project that a run did not get;
//! - [`network`]: hosts that commands can reach over the network;
//! - [`session`]: the part of earlier conversations that the model of a stage gets;
//! - [`question`]: questions to a person, and their valid answers;
//! - [`program`]: agent programs that replace the built-in agent;
//! - [`no_change`]: the operator's rule for agents that change nothing;
//! - [`placement`]: what the machine of a stage must have, and what a machine has;
//! - [`path`] and [`scope`]: paths that a stage may read and write;
//! - [`steering`]: messages of a person to a working agent;
//! - [`stored_value`]: the reference to a context value that is stored separately;
//! - [`transcript`]: the conversation of one attempt, turn by turn;
//! - [`verify_limits`]: the number of repetitions after a failed verification;
//! - [`status_place`]: the paths at which a stage can leave its status file;
//! - [`tier`]: the tiers of confinement of commands;
//! - [`tool_call`]: calls of tool servers.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod change;
pub mod digest;
pub mod evidence;
pub mod failure_category;
pub mod git_head;
pub mod hook;
pub mod identity;
pub mod limit;
pub mod liveness;
pub mod missing;
pub mod network;
pub mod no_change;
pub mod outcome;
pub mod path;
pub mod placement;
pub mod program;
pub mod question;
pub mod scope;
pub mod session;
pub mod spend;
pub mod status_place;
pub mod steering;
pub mod stored_value;
#[cfg(test)]
mod tests;
pub mod tier;
pub mod tool_call;
pub mod transcript;
pub mod verify_limits;

pub use change::{Artifact, ChangeOp, FileChange, RefusedChange, StoredOutput};
pub use digest::{Digest, DigestError, DigestedFile};
pub use evidence::{
    CommandEnding, Ending, HostTraffic, LimitUse, NoProof, PrintedClass, Receipt, Refusal, Tokens, Traffic,
};
pub use failure_category::{ClassifiedFailure, FailureCategory, FailureSource};
pub use git_head::GitHead;
pub use hook::{Hook, HookKind};
pub use identity::{
    Attempt, AttemptId, BranchId, DriverId, MachineId, MessageId, NodeId, QuestionId, RunId, StreamKey, Task, Work,
};
pub use limit::{LimitName, LimitSettings, LimitUnit, Limits};
pub use liveness::{LivenessTotals, WaitKind};
pub use missing::{MissingFiles, MissingKind, Unmatched};
pub use network::Network;
pub use outcome::{Failure, FailureClass, FailureCode, FailureFamily, Outcome, Status};
pub use placement::{Arch, Label, MachineFacts, Need};
pub use question::{Choice, QuestionType};
pub use session::{Fidelity, Session, ThreadId};
pub use spend::RunBounds;
pub use steering::{SteeringDelivery, SteeringMessage};
pub use stored_value::StoredValue;
pub use tier::{SandboxRecord, Tier};
pub use tool_call::ToolCall;
pub use verify_limits::VerifyLimits;
