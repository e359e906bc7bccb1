//! The settings of an agent: its conversation, its program, the tools of other programs, and the commands around its tool calls.

use super::{Schema, SessionSettings, Text};
use glovebox_record::program::{AgentProgram, ProgramOptions};
use std::sync::Arc;

/// The settings of a node's agent.
#[derive(Debug, Clone, Default)]
pub struct AgentSettings {
    /// The earlier context that its model gets.
    pub session: SessionSettings,
    /// The agent program that works in the place of Glovebox's own agent.
    pub backend: Option<AgentBackend>,
    /// Commands around the tool calls of its model.
    pub tool_hooks: ToolHooks,
    /// Tools of other programs.
    pub tool_servers: ToolServers,
    /// The schema of its model's last answer.
    pub output_schema: Option<Arc<Schema>>,
}

/// The agent program of an agent stage (`agent.backend`, decision codex-options).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AgentBackend {
    /// The program.
    pub program: AgentProgram,
    /// Its options from the node.
    pub options: ProgramOptions,
}

/// Commands around each tool call of a node's model (spec §9.7). By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolHooks {
    /// `tool_hooks.pre`: the shell text before the call, which refuses the call unless it exits with 0.
    pub pre: Option<Text>,
    /// `tool_hooks.post`: the shell text after the call.
    pub post: Option<Text>,
    /// True if a hook is set on the node, not only on the graph.
    pub is_own: bool,
}

/// The tools of other programs that a node's model may call, as the pipeline asks for them. By default there are none.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ToolServers {
    /// `mcp`: the name of a server, or `server.tool` for one of its tools, in file order.
    pub asked: Vec<String>,
    /// True if the attribute is set on the node, not only on the graph.
    pub is_own: bool,
}

impl ToolServers {
    /// Each server once, in file order, with the named tools; none stands for all of its tools.
    pub fn servers(&self) -> Vec<(&str, Option<Vec<&str>>)> {
        let mut found: Vec<(&str, Option<Vec<&str>>)> = Vec::new();
        for (server, _) in self.parts() {
            if found.iter().all(|(known, _)| *known != server) {
                found.push((server, self.parts().filter(|(of, _)| *of == server).map(|(_, tool)| tool).collect()));
            }
        }
        found
    }

    fn parts(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.asked.iter().map(|text| text.split_once('.').map_or((text.as_str(), None), |(of, tool)| (of, Some(tool))))
    }
}
