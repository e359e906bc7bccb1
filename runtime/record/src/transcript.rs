//! The conversation of one attempt, turn by turn: the lines of `transcript.ndjson`.
//!
//! A line has only the new messages: those of earlier questions are counted, not repeated. The bytes of the exchange with a
//! provider are in the same line, as `sent` and `received`; nothing here reads them.

use crate::session::{Message, MessagePart};
use crate::spend::Money;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One question to a model, and its result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "transcript.json")]
pub struct Turn {
    /// Source of the answer: the wire format of a provider, `scripted`, `test` or `simulated`.
    pub provider: String,
    /// The exact name that was asked; absent where no provider was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The name that the provider answered; absent where there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Number of requests to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// The kind of the error, where there is no answer.
    #[serde(default)]
    pub error: Option<String>,
    /// The words of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The subagent that asked; absent for the stage's own conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Number of messages at the beginning of the question that earlier questions had too.
    #[serde(default)]
    pub repeated: u64,
    /// Those behind them; absent in files of versions that did not keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Vec<Message>>,
    /// The answer; empty where there is none.
    #[serde(default)]
    pub answer: Vec<MessagePart>,
    /// Tokens of the question and its answer.
    #[serde(default)]
    pub usage: TurnTokens,
    /// Cost of both, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// True if some of the tokens and their cost are estimated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
}

/// Tokens of one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnTokens {
    /// Sent, those from the provider's cache included.
    pub input: u64,
    /// Received, those of thinking included.
    pub output: u64,
    /// Those of `input` that came from the provider's cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Those of `input` that the provider put into its cache.
    #[serde(default)]
    pub cache_write: u64,
    /// Those of `output` that are thinking.
    #[serde(default)]
    pub reasoning: u64,
}
