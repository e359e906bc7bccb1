//! The conversation of one attempt, turn by turn: the lines of `transcript.ndjson`.
//!
//! A line contains only the new messages of a request; messages of earlier turns are only counted. The line
//! also contains the raw request to the provider and its answer, as `sent` and `received`; this module does not read them.

use crate::session::{Message, MessagePart};
use crate::spend::Money;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One call of a model, and its result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "transcript.json")]
pub struct Turn {
    /// Source of the answer: the wire format of a provider, `scripted`, `test` or `simulated`.
    pub provider: String,
    /// Exact name of the model that was asked; absent if no provider was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Name of the model in the provider's answer; absent if there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Number of requests to the provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tries: Option<u32>,
    /// Kind of the error; absent if there is an answer.
    #[serde(default)]
    pub error: Option<String>,
    /// Message of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The subagent that asked; absent if the stage itself asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Number of messages at the beginning of the request that earlier turns already contain.
    #[serde(default)]
    pub repeated: u64,
    /// The messages after the repeated ones; absent in files of versions that did not keep them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Vec<Message>>,
    /// The answer; empty if there is none.
    #[serde(default)]
    pub answer: Vec<MessagePart>,
    /// Tokens of the request and its answer.
    #[serde(default)]
    pub usage: TurnTokens,
    /// Cost of the request and its answer, in millionths of a dollar.
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
    /// True if some of the tokens and their cost are estimated.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_estimated: bool,
}

/// Tokens of one turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnTokens {
    /// Tokens sent, including those that the provider read from its cache.
    pub input: u64,
    /// Tokens received, including those of the model's reasoning.
    pub output: u64,
    /// The part of `input` that the provider read from its cache.
    #[serde(default)]
    pub cache_read: u64,
    /// The part of `input` that the provider wrote to its cache.
    #[serde(default)]
    pub cache_write: u64,
    /// The part of `output` that is the model's reasoning.
    #[serde(default)]
    pub reasoning: u64,
}
