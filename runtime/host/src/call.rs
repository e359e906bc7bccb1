//! One call of a component: what goes in, what comes out.
//!
//! A [`Call`] holds everything the guest can reach, nothing else exists for it. A [`Report`] holds everything the host saw.

pub use crate::attempt::exec::{CommandGrant, CommandSetting};
pub use crate::attempt::files::{FileSetting, FileSource};
pub use crate::attempt::llm::HookSetting;
use crate::attempt::llm::{ConversationSetting, Model};
use crate::attempt::tools::ToolSetting;
pub use crate::grants::FileTier;
use crate::input::StageInput;
pub use crate::progress::{Artifact, Claim, LogLine, Progress};
use glovebox_record::spend::Money;
use glovebox_record::{Ending, LimitUse, Limits, Outcome, Receipt, Refusal, SteeringDelivery, Tokens, ToolCall};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Everything one call needs.
pub struct Call {
    /// The handler's input.
    pub input: StageInput,
    /// The component's access to files.
    pub tier: FileTier,
    /// The directory it works on and the scope over it; none means no files even if the tier allows them.
    pub files: Option<FileSetting>,
    /// Its commands; none means every `exec.run` answers `not-granted`.
    pub commands: Option<CommandSetting>,
    /// Its agent program; none means every `agents` call answers that there is none.
    pub program: Option<crate::attempt::agents::ProgramSetting>,
    /// The model bound to this node; none means every `llm` call answers `not-granted`.
    pub model: Option<Model>,
    /// Storage of its conversation with the model.
    pub conversation: ConversationSetting,
    /// The hooks around its tool calls; none where the node has none.
    pub hooks: Option<HookSetting>,
    /// The tools of other programs that it may call.
    pub tools: ToolSetting,
    /// Bounds of this call.
    pub limits: Limits,
    /// Set to ask the call to stop.
    pub canceled: Arc<AtomicBool>,
    /// Receives progress; a message is dropped when the channel is full.
    pub progress: tokio::sync::mpsc::Sender<Progress>,
}

/// Everything the host saw.
#[derive(Debug)]
pub struct Report {
    /// The handler's outcome, or the one the host puts in its place for a trap, a limit, a refusal to link.
    /// Turn exhaustion without an earlier explicit success is already a `fail` here (decision turn-limit-is-a-failure).
    pub outcome: Outcome,
    /// Claims of the handler, unchecked.
    pub claims: Vec<Claim>,
    /// The ending of the call itself.
    pub ending: Ending,
    /// Every limit, used and bound.
    pub usage: Vec<LimitUse>,
    /// Everything refused, with operation and path; capped, see `refusals_total`.
    pub refusals: Vec<Refusal>,
    /// All refusals, also those beyond the cap.
    pub refusals_total: u64,
    /// One per command run.
    pub receipts: Vec<Receipt>,
    /// One per request to a tool server.
    pub tool_calls: Vec<ToolCall>,
    /// Kept bytes.
    pub artifacts: Vec<Artifact>,
    /// Lines the guest logged; those beyond `log_lines` or `output_bytes` are only counted in `usage`.
    pub log: Vec<LogLine>,
    /// The guest's stdout, capped with a marker.
    pub stdout: Vec<u8>,
    /// The guest's stderr, capped with a marker.
    pub stderr: Vec<u8>,
    /// Answered model turns. A later visit of a scripted node skips as many.
    pub turns_used: u32,
    /// Tokens of these turns.
    pub tokens: Tokens,
    /// Their cost.
    pub cost: Money,
    /// The last question to the model and its answer, if they are [kept](ConversationSetting::keeps_messages). It is the whole
    /// conversation of a component that repeats it with each request. Empty when a hold-out was found in it.
    pub conversation: Vec<glovebox_record::session::Message>,
    /// The transcript of the conversation, one line of JSON for each turn; empty without a model.
    pub transcript: Vec<u8>,
    /// True if some tokens and their cost are estimated.
    pub is_estimated: bool,
    /// The delivery of each steering message.
    pub steered: Vec<SteeringDelivery>,
    /// The model, as its provider named it last; none without a provider.
    pub answered_by: Option<glovebox_models::chat::ModelId>,
    /// Wall time of the call.
    pub duration_ms: u64,
    /// True when files may have changed in the view.
    pub touched_files: bool,
}
