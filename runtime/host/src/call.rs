//! One call of a component: its input and its report.
//!
//! A [`Call`] contains everything that the guest can reach. A [`Report`] contains everything that the host observed.

pub use crate::attempt::exec::{CommandSetting, LiveOutput, LivePiece, OutputStream};
pub use crate::attempt::files::{FileSetting, FileSource};
use crate::attempt::llm::{ConversationSetting, Model};
pub use crate::attempt::llm::{HookSetting, PolicySetting};
use crate::attempt::tools::ToolSetting;
pub use crate::command_grant::CommandGrant;
pub use crate::grants::FileTier;
pub use crate::host_calls::{HostCall, HostCallLog, HostCalls, ReturnedFailure};
use crate::input::StageInput;
pub use crate::progress::{Artifact, AttemptProgress, CallObserver, Claim, LogLine, Progress};
use crate::revocation::RevocationCheck;
use glovebox_record::spend::Money;
use glovebox_record::{Ending, LimitUse, Limits, Outcome, Receipt, Refusal, SteeringDelivery, Tokens, ToolCall};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Everything that one call needs.
pub struct Call {
    /// The handler's input.
    pub input: StageInput,
    /// The component's access to files.
    pub tier: FileTier,
    /// The files the component works on and their scope; `None` for no files, even if the tier would allow them.
    pub files: Option<FileSetting>,
    /// Commands that may run; `None` if every `exec.run` fails with `not-granted`.
    pub commands: Option<CommandSetting>,
    /// The agent program; `None` if the node names none, and `agents` then returns an error that says so.
    pub program: Option<crate::attempt::agents::ProgramSetting>,
    /// The model that is bound to the node; `None` if every `llm` request fails with `not-granted`.
    pub model: Option<Model>,
    /// How the conversation with the model is stored.
    pub conversation: ConversationSetting,
    /// The hooks around the model's tool calls; `None` if the node has none.
    pub hooks: Option<HookSetting>,
    /// The operator's policies over the model's tool calls; `None` if there are none.
    pub policy: Option<PolicySetting>,
    /// The tools of tool servers and plugins that may be called.
    pub tools: ToolSetting,
    /// Bounds of this call.
    pub limits: Limits,
    /// Set to `true` to cancel the call.
    pub canceled: Arc<AtomicBool>,
    /// Says whether the component was revoked; `None` if nothing can revoke it.
    pub revocation: Option<RevocationCheck>,
    /// Gets what the host observes during the call.
    pub observer: CallObserver,
}

/// Everything that the host observed during a call.
#[derive(Debug)]
pub struct Report {
    /// The handler's outcome, or the outcome with which the host replaces it after a trap, a reached limit or a failed instantiation.
    /// If the turns were used up without an earlier declared success, the status is `fail` (decision turn-limit-is-a-failure).
    pub outcome: Outcome,
    /// Claims of the handler, not yet checked.
    pub claims: Vec<Claim>,
    /// How the call itself ended.
    pub ending: Ending,
    /// Usage and bound of every limit.
    pub usage: Vec<LimitUse>,
    /// Refused requests with operation and path. Their number is limited; `refusals_total` counts all.
    pub refusals: Vec<Refusal>,
    /// Number of all refusals, including those that `refusals` does not contain.
    pub refusals_total: u64,
    /// One receipt for each command.
    pub receipts: Vec<Receipt>,
    /// One record for each request to a tool server.
    pub tool_calls: Vec<ToolCall>,
    /// Artifacts that the guest or the host stored.
    pub artifacts: Vec<Artifact>,
    /// Log lines of the guest. Lines beyond `log_lines` or `output_bytes` are only counted in `usage`.
    pub log: Vec<LogLine>,
    /// Standard output of the guest, cut with a marker at its limit.
    pub stdout: Vec<u8>,
    /// Standard error of the guest, cut with a marker at its limit.
    pub stderr: Vec<u8>,
    /// Number of turns that the model answered. A later visit of a scripted node skips that many turns of the script.
    pub turns_used: u32,
    /// Tokens of these turns.
    pub tokens: Tokens,
    /// Cost of these turns.
    pub cost: Money,
    /// The last request to the model and its answer, if they are [kept](ConversationSetting::keeps_messages). If a component sends
    /// the whole conversation with each request, this is the whole conversation. Empty if a hold-out was found in it.
    pub conversation: Vec<glovebox_record::session::Message>,
    /// The transcript of the conversation, one line of JSON for each turn; empty without a model.
    pub transcript: Vec<u8>,
    /// True if some tokens and their cost are estimated.
    pub is_estimated: bool,
    /// The delivery of each steering message.
    pub steered: Vec<SteeringDelivery>,
    /// The model that answered last, as its provider names it; `None` without a provider.
    pub answered_by: Option<glovebox_models::chat::ModelId>,
    /// The time at which the provider's quota resumes, if the last request failed because of it and the provider named a time.
    pub resume_at: Option<jiff::Timestamp>,
    /// Wall time of the call.
    pub duration_ms: u64,
    /// True if the call may have changed files.
    pub touched_files: bool,
}
