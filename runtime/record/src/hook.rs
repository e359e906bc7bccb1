//! Hooks around the tool calls of an agent (spec §9.7): the record of an executed hook, and the input of a hook.
//!
//! A receipt with a [`Hook`] is evidence of the hook. It proves nothing about the work of the stage.

use crate::identity::{AttemptId, NodeId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Before the call. The hook may refuse the call.
    Pre,
    /// After the call. The hook cannot change its result.
    Post,
}

impl HookKind {
    /// Returns the name used in records and attributes.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Post => "post",
        }
    }
}

impl fmt::Display for HookKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The tool call for which a hook ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hook {
    /// Whether the hook ran before or after the call.
    pub kind: HookKind,
    /// Name of the tool, cut to 64 characters.
    pub tool: String,
    /// Id of the call, unique within the attempt.
    pub call: String,
}

/// Standard input of a hook, as one JSON object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "standard input of tool_hooks.pre and tool_hooks.post")]
pub struct HookInput<'a> {
    /// Always 1.
    pub schema_version: u32,
    /// Whether the hook runs before or after the call.
    pub hook: HookKind,
    /// Id of the run.
    pub run_id: &'a RunId,
    /// Id of the stage's node.
    pub node_id: &'a NodeId,
    /// Number of the visit to the node, from 1.
    pub visit: u32,
    /// Id of the attempt.
    pub attempt_id: &'a AttemptId,
    /// Id of the call, unique within the attempt.
    pub call: &'a str,
    /// The tool that the model calls.
    pub tool: &'a str,
    /// The arguments as the model wrote them; a string if they are not JSON.
    pub arguments: Value,
    /// The result of the call; absent before the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<HookResult<'a>>,
}

/// The result of a tool call, as the component passes it to the model.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HookResult<'a> {
    /// The text of the result.
    pub text: &'a str,
    /// True if the tool failed.
    pub is_error: bool,
}
