//! Calls of tools that other programs and plugins provide: the server or plugin, the tool, the duration, and the digests of request and answer.
//!
//! The texts of requests and answers are in the conversation. A record proves that a server or a plugin answered, and nothing about
//! what it did.

use crate::digest::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One request to a tool server or to a plugin that provides tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCall {
    /// Name of the server or the plugin in `glovebox.toml`. Only the name of a plugin has a dot.
    pub server: String,
    /// Name of the tool; absent for the launch of the server, and for the request to list the tools of a plugin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Wall time, milliseconds.
    pub duration_ms: u64,
    /// True if the tool failed, or if the server or the plugin did not answer correctly.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// True if the answer was replayed from the log because the attempt was executed again. The tool was not called.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_replayed: bool,
    /// Digest of the arguments.
    pub arguments: Digest,
    /// Digest of the answer that the stage got, or of the reason why there is none.
    pub result: Digest,
}
