//! The supported agent programs: their command lines and their output formats.
//!
//! Pure. A program gets its task, the gateway's address, the secret of the gateway and a private home. Its own sandbox, approvals,
//! updates and telemetry are switched off, because the jail confines it. Its output is shown, but no decision depends on it.

mod claude;
mod codex;
mod exec;
mod gemini;
mod opencode;

use glovebox_models::family::Family;
use glovebox_record::program::{AgentProgram, ProgramOptions};
use glovebox_schema::document;
use serde_json::Value;
use std::io::{self, Write};
use std::path::Path;

/// Maximum number of bytes kept of a program's message.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// Returns the wire formats that a program speaks.
pub fn families(program: AgentProgram) -> &'static [Family] {
    match program {
        AgentProgram::Codex => &[Family::Openai],
        AgentProgram::Claude => &[Family::Anthropic],
        AgentProgram::Gemini => &[Family::Gemini],
        AgentProgram::OpenCode => &[Family::OpenaiCompatible, Family::Openai, Family::Anthropic, Family::Gemini],
        AgentProgram::Exec => &[Family::Openai, Family::Anthropic, Family::Gemini, Family::OpenaiCompatible],
    }
}

/// The version of a program with which `cargo xtask agents` ran a whole stage in the jail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestedVersion {
    /// npm package of the program.
    pub package: &'static str,
    /// Version of the package.
    pub version: &'static str,
}

/// Returns the tested version of a program, or `None` for a program of the operator.
pub fn tested_version(program: AgentProgram) -> Option<TestedVersion> {
    let (package, version) = match program {
        AgentProgram::Codex => ("@openai/codex", "0.169.0"),
        AgentProgram::Claude => ("@anthropic-ai/claude-code", "2.1.197"),
        AgentProgram::Gemini => ("@google/gemini-cli", "0.61.0"),
        AgentProgram::OpenCode => ("opencode-ai", "1.18.33"),
        AgentProgram::Exec => return None,
    };
    Some(TestedVersion { package, version })
}

/// Everything that the command line of a program depends on: task, model and addresses.
#[derive(Debug, Clone, Copy)]
pub struct LaunchRequest<'a> {
    /// The program.
    pub program: AgentProgram,
    /// The task.
    pub prompt: &'a str,
    /// The exact model.
    pub model: &'a str,
    /// The model's wire format.
    pub family: Family,
    /// Maximum number of tokens of one answer.
    pub output_tokens_max: u64,
    /// Maximum number of turns.
    pub turns_max: u64,
    /// The gateway's address, without a path.
    pub url: &'a str,
    /// The secret that the gateway expects.
    pub secret: &'a str,
    /// Path of the private home, as the program sees it.
    pub home: &'a str,
}

/// The command line, environment and files of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Environment variables in addition to those that every command has.
    pub env: Vec<(String, String)>,
    /// Bytes for the standard input.
    pub stdin: Vec<u8>,
    /// Files in the private home, as name and content.
    pub files: Vec<(&'static str, String)>,
    /// The task, for the record.
    pub prompt: String,
    /// The secret, which must not appear in a record.
    secret: String,
}

/// Returns the command line of a program for a task.
pub fn launch(options: &ProgramOptions, asked: &LaunchRequest<'_>) -> Launch {
    let mut launch = match asked.program {
        AgentProgram::Codex => codex::launch(options, asked),
        AgentProgram::Claude => claude::launch(asked),
        AgentProgram::Gemini => gemini::launch(asked),
        AgentProgram::OpenCode => opencode::launch(asked),
        AgentProgram::Exec => exec::launch(options, asked),
    };
    if let (Some(path), Some(first)) = (&options.path, launch.argv.first_mut()) {
        first.clone_from(path);
    }
    launch.prompt = asked.prompt.to_owned();
    launch.secret = asked.secret.to_owned();
    launch
}

impl Launch {
    /// Creates a launch with these arguments and the task on standard input.
    fn new(words: &[&str], asked: &LaunchRequest<'_>) -> Self {
        Self {
            argv: words.iter().map(|word| (*word).to_owned()).collect(),
            stdin: asked.prompt.as_bytes().to_vec(),
            ..Self::default()
        }
    }

    /// Sets an environment variable.
    #[must_use]
    fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Returns the arguments for the record, without the secret and with long arguments cut.
    pub(super) fn shown_argv(&self) -> Vec<String> {
        let shown = |word: &String| {
            let mut word = word.replace(&self.secret, "[token]");
            word.truncate(word.floor_char_boundary(1 << 10));
            word
        };
        self.argv.iter().map(shown).collect()
    }

    /// Changes the command line of a program with a relative path, which is in the workspace, so that a shell in the
    /// jail starts it. A builder may have written that program, so the host itself must not start it. Any other command
    /// line stays unchanged.
    pub(super) fn for_workspace(mut self, workspace: &Path) -> Self {
        let Some(program) = self.argv.first().filter(|program| program.contains('/') && !program.starts_with('/'))
        else {
            return self;
        };
        let program = workspace.join(program).to_string_lossy().into_owned();
        let words = ["sh", "-c", "exec \"$0\" \"$@\"", &program].map(str::to_owned);
        self.argv.splice(..1, words);
        self
    }

    /// Writes the files of the private home.
    pub(super) fn write_files(&self, home: &cap_std::fs::Dir) -> io::Result<()> {
        for (name, text) in &self.files {
            if let Some((folder, _)) = name.rsplit_once('/') {
                home.create_dir_all(folder)?;
            }
            home.create(name)?.write_all(text.as_bytes())?;
        }
        Ok(())
    }
}

/// One step of a program, as the program reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramStep {
    /// The program printed a message.
    Text(String),
    /// The program called a tool.
    ToolCall {
        /// Name of the tool.
        name: String,
        /// Beginning of the arguments.
        detail: String,
    },
}

/// What was read from the output of a program so far.
#[derive(Debug)]
pub struct ProgramOutput {
    program: AgentProgram,
    /// The last message of the program.
    message: String,
    /// Why the program failed, according to its own output.
    problem: Option<String>,
    /// Number of lines that could not be read.
    unknown: u64,
    /// Number of tool calls that were executed, including those that failed.
    calls_made: u64,
    /// Why the program or its own sandbox refused a tool call.
    blocked: Option<String>,
}

/// Words in a result by which a refused tool call is recognized.
const BLOCKED: [&str; 7] =
    ["sandbox", "permission", "not enabled", "denied by", "blocked by", "hook", "requires approval"];

impl ProgramOutput {
    /// Creates the output of a program that has printed nothing yet.
    pub fn new(program: AgentProgram) -> Self {
        Self { program, message: String::new(), problem: None, unknown: 0, calls_made: 0, blocked: None }
    }

    /// Reads a line of the program's standard output.
    pub fn read_line(&mut self, line: &[u8]) -> Option<ProgramStep> {
        if self.program == AgentProgram::Exec {
            return self.plain(line);
        }
        let Ok(event) = document::read(line) else {
            self.unknown += u64::from(!line.is_empty());
            return None;
        };
        match self.program {
            AgentProgram::Codex => codex::read(self, &event),
            AgentProgram::Claude => claude::read(self, &event),
            AgentProgram::Gemini => gemini::read(self, &event),
            AgentProgram::OpenCode => opencode::read(self, &event),
            AgentProgram::Exec => None,
        }
    }

    /// Returns why tool calls were refused, if every one was. The program then did nothing, and its report of success is false.
    pub fn blocked(&self) -> Option<&str> {
        self.blocked.as_deref().filter(|_| self.calls_made == 0)
    }

    /// Returns the program.
    pub fn program(&self) -> AgentProgram {
        self.program
    }

    /// Returns the last message of the program.
    pub fn final_message(&self) -> &str {
        &self.message
    }

    /// Returns the last message, and why the program failed according to its own output.
    pub fn end(self) -> (String, Option<String>) {
        (self.message, self.problem)
    }

    /// Returns the number of lines that could not be read.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Reads a line of a program without events. All of its lines together are its final message.
    fn plain(&mut self, line: &[u8]) -> Option<ProgramStep> {
        let line = String::from_utf8_lossy(line).into_owned();
        if self.message.len() + line.len() < TEXT_BYTES_MAX {
            self.message.push_str(&line);
            self.message.push('\n');
        }
        Some(ProgramStep::Text(line))
    }

    /// Starts a new message of the program.
    fn says(&mut self, text: &Value) -> Option<ProgramStep> {
        let text = text.as_str().filter(|text| !text.trim().is_empty())?;
        self.message = text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
        Some(ProgramStep::Text(self.message.clone()))
    }

    /// Appends text to the current message.
    fn goes_on(&mut self, text: &Value) -> Option<ProgramStep> {
        let text = text.as_str()?;
        if self.message.len() + text.len() < TEXT_BYTES_MAX {
            self.message.push_str(text);
        }
        Some(ProgramStep::Text(text.to_owned()))
    }

    /// Counts the result of a tool call as executed or refused.
    fn answered(&mut self, has_failed: bool, answer: &Value) {
        let text = answer.as_str().map_or_else(|| answer.to_string(), str::to_owned);
        let lower = text.to_ascii_lowercase();
        if has_failed && BLOCKED.iter().any(|word| lower.contains(word)) {
            self.blocked.get_or_insert_with(|| text.chars().take(1_000).collect());
        } else {
            self.calls_made += 1;
        }
    }

    fn fails(&mut self, reason: &Value) {
        let reason = reason.as_str().map_or_else(|| reason.to_string(), str::to_owned);
        self.problem = Some(reason.chars().take(1_000).collect());
    }
}

/// Returns the step of a tool call.
fn call(name: &Value, detail: &Value) -> Option<ProgramStep> {
    let detail = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
    let short = |text: &str| text.chars().take(200).collect::<String>();
    Some(ProgramStep::ToolCall { name: short(name.as_str().unwrap_or_default()), detail: short(&detail) })
}

#[cfg(test)]
mod tests;
