//! The settings of an agent: its conversation, its agent program, its tools of others, and the hooks around its tool calls.

use super::{Schema, SessionSettings, Text};
use glovebox_record::program::{AgentProgram, ProgramOptions};
use std::sync::Arc;

/// The settings of a node's agent.
#[derive(Debug, Clone, Default)]
pub struct AgentSettings {
    /// The earlier context that the agent's model gets.
    pub session: SessionSettings,
    /// The agent program that replaces Glovebox's own agent.
    pub backend: Option<AgentBackend>,
    /// Commands before and after each tool call of the agent's model.
    pub tool_hooks: ToolHooks,
    /// Tool servers that the agent's model may use.
    pub tool_servers: ToolServers,
    /// Plugins whose tools the agent's model may call.
    pub tool_providers: ToolProviders,
    /// The schema of the model's last answer.
    pub output_schema: Option<Arc<Schema>>,
}

/// The agent program of an agent stage (`agent.backend`, decision codex-options).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AgentBackend {
    /// The program.
    pub program: AgentProgram,
    /// Options that the node sets for the program.
    pub options: ProgramOptions,
}

/// Commands before and after each tool call of a node's model (spec §9.7). By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolHooks {
    /// `tool_hooks.pre`: the shell text to run before a call. Unless it exits with 0, the call is refused.
    pub pre: Option<Text>,
    /// `tool_hooks.post`: the shell text to run after a call.
    pub post: Option<Text>,
    /// True if the node sets a hook itself, not only the graph.
    pub is_own: bool,
}

/// The tools of tool servers that a node's model may call, as the pipeline requests them. By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolServers {
    /// `mcp`: names of servers, or `server.tool` for single tools, in file order.
    pub asked: Vec<String>,
    /// True if the node sets the attribute itself, not only the graph.
    pub is_own: bool,
}

impl ToolServers {
    /// Returns each server once, in file order, with the requested tools. `None` means all tools of the server.
    pub fn servers(&self) -> Vec<(&str, Option<Vec<&str>>)> {
        grouped(&self.asked, '.')
    }
}

/// The tools of plugins that a node's model may call, as the pipeline requests them. By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolProviders {
    /// `tools`: names of plugins, or `plugin/tool` for single tools, in file order.
    pub asked: Vec<String>,
    /// True if the node sets the attribute itself, not only the graph.
    pub is_own: bool,
}

impl ToolProviders {
    /// Returns each plugin once, in file order, with the requested tools. `None` means all tools of the plugin.
    pub fn providers(&self) -> Vec<(&str, Option<Vec<&str>>)> {
        grouped(&self.asked, '/')
    }
}

/// Groups a list by the text before the separator. A text without a separator stands for everything of its group.
fn grouped(asked: &[String], separator: char) -> Vec<(&str, Option<Vec<&str>>)> {
    let texts = asked.iter().map(String::as_str);
    let parts = texts.map(|text| text.split_once(separator).map_or((text, None), |(of, tool)| (of, Some(tool))));
    let mut found: Vec<(&str, Option<Vec<&str>>)> = Vec::new();
    for (name, _) in parts.clone() {
        if found.iter().all(|(known, _)| *known != name) {
            found.push((name, parts.clone().filter(|(of, _)| *of == name).map(|(_, tool)| tool).collect()));
        }
    }
    found
}
