//! Calls of tools that other programs provide: the server, the tool, the duration, and digests of request and answer.
//!
//! The texts themselves are in the conversation. A record proves that a server answered, and nothing about its actions.

use crate::digest::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One request to a tool server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// The server, as glovebox.toml names it.
    pub server: String,
    /// The tool; absent for the start of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Wall time, milliseconds.
    pub duration_ms: u64,
    /// True if the tool failed, or the server did not do its part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// True if the attempt was made again and the answer is the one that was kept: the server was not asked.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replayed: bool,
    /// Digest of the arguments.
    pub arguments: Digest,
    /// Digest of the stage's result: the answer, or the reason why there is none.
    pub result: Digest,
}
