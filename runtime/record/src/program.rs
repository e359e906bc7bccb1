//! Agent programs: their names, and the options that a node can set.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// An agent program that this version can start in place of the built-in agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentProgram {
    /// OpenAI's Codex CLI.
    Codex,
    /// Anthropic's Claude Code.
    Claude,
    /// Google's Gemini CLI.
    Gemini,
    /// OpenCode.
    OpenCode,
    /// Another program of the operator, started with the command line of the node.
    Exec,
}

/// The error for a text that does not name a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `codex`, `claude`, `gemini`, `opencode` or `exec`")]
pub struct ProgramError;

/// Paths in a project that contain settings of agent programs: permissions, hooks, servers, endpoints, and programs that supply
/// such settings. Instructions for agents, such as `AGENTS.md`, are not in this list.
pub const PROJECT_SETTINGS: [&str; 8] =
    [".claude/", ".mcp.json", ".claude.json", ".codex/", ".gemini/", ".opencode/", "opencode.json", "opencode.jsonc"];

impl AgentProgram {
    /// All programs.
    pub const ALL: [Self; 5] = [Self::Codex, Self::Claude, Self::Gemini, Self::OpenCode, Self::Exec];

    /// Returns the name in pipelines and in `glovebox.toml`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Codex => "codex",
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::Exec => "exec",
        }
    }
}

impl fmt::Display for AgentProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for AgentProgram {
    type Err = ProgramError;

    fn from_str(text: &str) -> Result<Self, ProgramError> {
        Self::ALL.into_iter().find(|program| program.as_str() == text).ok_or(ProgramError)
    }
}

/// The options that a node sets for its agent program. An option that is not set has the default of the program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ProgramOptions {
    /// Path of the program's file, or its name among the granted commands. `None` for the usual name of the program.
    pub path: Option<String>,
    /// Command line of an [`AgentProgram::Exec`] program, with the placeholders `{prompt}`, `{model}`, `{gateway}` and `{home}`.
    pub command: Vec<String>,
    /// Settings of Codex, each as `key=value`.
    pub config_overrides: Vec<String>,
    /// True if Codex may be started outside of a git repository.
    pub skip_git_repo_check: bool,
    /// True if the program must not write.
    pub is_read_only: bool,
    /// Maximum time of one execution of the program. The limits of the stage apply as well.
    pub timeout: Option<Duration>,
    /// Interval of the reports that a silent program is still running. `None` for no reports.
    pub heartbeat: Option<Duration>,
}
