//! The vocabulary of a run's record: the types that the journal stores and that pipeline, sandbox, host and engine share.
//!
//! Every concept has one type here, from the place that makes it to the journal line that keeps it. The serialised form is a promise:
//! schema snapshots and a golden journal freeze it, and a change raises the schema version. This crate has no IO.
//!
//! - [`identity`]: which run, branch, node, visit and attempt an event is about;
//! - [`digest`]: the name of bytes;
//! - [`change`]: what a stage changed and what was kept;
//! - [`outcome`]: how a stage ended and why it failed;
//! - [`failure_category`]: the vocabulary of failures, and how often each is tried again;
//! - [`evidence`]: what the host saw of a call;
//! - [`hook`]: what runs around the tool calls of an agent;
//! - [`limit`]: the one table of limits, amounts and their units;
//! - [`network`]: what commands reach over the network;
//! - [`session`]: what a stage's model gets of what went before;
//! - [`question`]: what a person is asked, and which answers are valid;
//! - [`program`]: the agent programs that take the place of an agent;
//! - [`no_change`]: what the operator asks of agents that change nothing;
//! - [`path`] and [`scope`]: what a stage may read and write;
//! - [`steering`]: what a person told an agent that was at work;
//! - [`stored_value`]: the reference to a context value that is kept apart;
//! - [`transcript`]: what was said in one attempt, turn by turn;
//! - [`verify_limits`]: how often work is repeated after a failed verification;
//! - [`tier`]: how far commands are confined;
//! - [`tool_call`]: what tool servers were asked.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

pub mod change;
pub mod digest;
pub mod evidence;
pub mod failure_category;
pub mod hook;
pub mod identity;
pub mod limit;
pub mod network;
pub mod no_change;
pub mod outcome;
pub mod path;
pub mod program;
pub mod question;
pub mod scope;
pub mod session;
pub mod spend;
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
pub use evidence::{CommandEnding, Ending, HostTraffic, LimitUse, NoProof, Receipt, Refusal, Tokens, Traffic};
pub use failure_category::{ClassifiedFailure, FailureCategory, FailureSource};
pub use hook::{Hook, HookKind};
pub use identity::{Attempt, AttemptId, BranchId, MessageId, NodeId, QuestionId, RunId, Subject, Task, Work};
pub use limit::{LimitName, LimitSettings, LimitUnit, Limits};
pub use network::Network;
pub use outcome::{Failure, FailureClass, FailureCode, FailureFamily, Outcome, Status};
pub use question::{Choice, QuestionType};
pub use session::{Fidelity, Session, ThreadId};
pub use spend::RunBounds;
pub use steering::{SteeringDelivery, SteeringMessage};
pub use stored_value::StoredValue;
pub use tier::{SandboxRecord, Tier};
pub use tool_call::ToolCall;
pub use verify_limits::VerifyLimits;
