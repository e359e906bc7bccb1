//! Agent programs: their names, and the options that a node sets for one.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// A program that this version can start in place of the built-in agent.
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
    /// A program of the operator's own, started as the node says.
    Exec,
}

/// A text that names no program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected `codex`, `claude`, `gemini`, `opencode` or `exec`")]
pub struct ProgramError;

/// Paths of a project with settings of agent programs: permissions, hooks, servers, endpoints, and helpers that set such. Instructions for
/// every reader, such as `AGENTS.md`, are not among them.
pub const PROJECT_SETTINGS: [&str; 8] =
    [".claude/", ".mcp.json", ".claude.json", ".codex/", ".gemini/", ".opencode/", "opencode.json", "opencode.jsonc"];

impl AgentProgram {
    /// Every program.
    pub const ALL: [Self; 5] = [Self::Codex, Self::Claude, Self::Gemini, Self::OpenCode, Self::Exec];

    /// The word in pipelines and in glovebox.toml.
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

/// A node's options for its agent program. The default is the default of the program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct ProgramOptions {
    /// The program's file, or its name among the programs of commands; the program's own name where absent.
    pub path: Option<String>,
    /// The words of a program of the operator's own, with `{prompt}`, `{model}`, `{gateway}` and `{home}`.
    pub command: Vec<String>,
    /// Settings of Codex, `key=value`.
    pub config_overrides: Vec<String>,
    /// True if Codex works outside of a git repository.
    pub skip_git_repo_check: bool,
    /// True if the program may write nothing.
    pub is_read_only: bool,
    /// The longest time of one start; the bounds of the stage hold anyway.
    pub timeout: Option<Duration>,
    /// The longest silence without a line that says that it is at work.
    pub heartbeat: Option<Duration>,
}
