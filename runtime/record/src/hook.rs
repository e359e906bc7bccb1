//! Hooks around the tool calls of an agent (spec §9.7): the record of a hook's run, and the input of a hook.
//!
//! A receipt with a [`Hook`] is evidence of a hook and proves nothing about the work of a stage.

use crate::identity::{AttemptId, NodeId, RunId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;

/// When a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HookKind {
    /// Before the call; it may refuse the call.
    Pre,
    /// After the call; it changes nothing.
    Post,
}

impl HookKind {
    /// The word in records and in the names of attributes.
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

/// The tool call that a hook ran for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Hook {
    /// Before or after the call.
    pub kind: HookKind,
    /// The tool, cut to 64 characters.
    pub tool: String,
    /// The call's id, unique within the attempt.
    pub call: String,
}

/// Standard input of a hook, as one JSON object.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(title = "standard input of tool_hooks.pre and tool_hooks.post")]
pub struct HookInput<'a> {
    /// Always 1.
    pub schema_version: u32,
    /// Before or after the call.
    pub hook: HookKind,
    /// The run.
    pub run_id: &'a RunId,
    /// The stage's node.
    pub node_id: &'a NodeId,
    /// The visit to the node, from 1.
    pub visit: u32,
    /// The attempt.
    pub attempt_id: &'a AttemptId,
    /// The call's id, unique within the attempt.
    pub call: &'a str,
    /// The tool that the model calls.
    pub tool: &'a str,
    /// The arguments as the model wrote them; a text if they are not JSON.
    pub arguments: Value,
    /// The component's answer; absent before the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<HookResult<'a>>,
}

/// The answer to a tool call, as the component hands it to the model.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct HookResult<'a> {
    /// The text.
    pub text: &'a str,
    /// True if the tool failed.
    pub is_error: bool,
}
