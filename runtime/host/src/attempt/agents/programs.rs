//! The agent programs that this version supports: their command lines and their output formats.
//!
//! Pure. A program gets its task, the gateway's address, its secret and a private home. Its own sandbox, approvals, updates and telemetry are
//! off, because the jail confines it. Its output is shown, and nothing depends on it.

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

/// Maximum number of bytes of a task that a program gets on its standard input or command line.
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

/// The version of a program that `cargo xtask agents` tested in the jail, from start to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TestedVersion {
    /// Its npm package.
    pub package: &'static str,
    /// The version.
    pub version: &'static str,
}

/// Returns the tested version of a program; none for a program of the operator.
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

/// The task, the model and the addresses for the start of a program.
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
    /// Most tokens of one answer.
    pub output_tokens_max: u64,
    /// Most answers.
    pub turns_max: u64,
    /// The gateway's address, without a path.
    pub url: &'a str,
    /// The secret that the gateway expects.
    pub secret: &'a str,
    /// The private home, as the program sees it.
    pub home: &'a str,
}

/// The command line, environment and files of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// Variables beside those that every command has.
    pub env: Vec<(String, String)>,
    /// Its standard input.
    pub stdin: Vec<u8>,
    /// Files in its private home: name and text.
    pub files: Vec<(&'static str, String)>,
    /// The task, for the record.
    pub prompt: String,
    /// The secret, which no record has.
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
    /// Creates a start with these words, whose task is on its standard input.
    fn new(words: &[&str], asked: &LaunchRequest<'_>) -> Self {
        Self {
            argv: words.iter().map(|word| (*word).to_owned()).collect(),
            stdin: asked.prompt.as_bytes().to_vec(),
            ..Self::default()
        }
    }

    /// Sets a variable.
    #[must_use]
    fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.env.push((name.to_owned(), value.into()));
        self
    }

    /// Returns the words for the record, without the secret and with a long task cut.
    pub(super) fn shown_argv(&self) -> Vec<String> {
        let shown = |word: &String| {
            let mut word = word.replace(&self.secret, "[token]");
            word.truncate(word.floor_char_boundary(1 << 10));
            word
        };
        self.argv.iter().map(shown).collect()
    }

    /// The same with a program of the workspace, whose path is relative to its root. It is code of builders, so a shell inside the jail
    /// starts it: the host itself starts no program that a stage could have written.
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

/// Progress of a program, as it reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProgramStep {
    /// It says something.
    Text(String),
    /// It calls a tool.
    ToolCall {
        /// The tool.
        name: String,
        /// The beginning of its arguments.
        detail: String,
    },
}

/// The output of a program so far, as read from its lines.
#[derive(Debug)]
pub struct ProgramOutput {
    program: AgentProgram,
    /// Its last words.
    message: String,
    /// The reason of its failure, as it reports it.
    problem: Option<String>,
    /// Lines that could not be read.
    unknown: u64,
    /// Calls of tools that did something, or that failed by themselves.
    calls_made: u64,
    /// Why a call was refused, by the program or its own sandbox.
    blocked: Option<String>,
}

/// Words in the answer to a call that a program, its settings or its own sandbox refused.
const BLOCKED: [&str; 7] =
    ["sandbox", "permission", "not enabled", "denied by", "blocked by", "hook", "requires approval"];

impl ProgramOutput {
    /// Creates the output of a program that has printed nothing yet.
    pub fn new(program: AgentProgram) -> Self {
        Self { program, message: String::new(), problem: None, unknown: 0, calls_made: 0, blocked: None }
    }

    /// Reads a line of its standard output.
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

    /// Returns the reason of the refusals, if every call of a tool was refused. Then the program did nothing, and its own claim of success is false.
    pub fn blocked(&self) -> Option<&str> {
        self.blocked.as_deref().filter(|_| self.calls_made == 0)
    }

    /// Returns the program.
    pub fn program(&self) -> AgentProgram {
        self.program
    }

    /// Its last words.
    pub fn final_message(&self) -> &str {
        &self.message
    }

    /// Its last words, and why it failed by its own account.
    pub fn end(self) -> (String, Option<String>) {
        (self.message, self.problem)
    }

    /// Lines that could not be read.
    pub fn unknown(&self) -> u64 {
        self.unknown
    }

    /// A line of a program without events: all of its lines are its last words.
    fn plain(&mut self, line: &[u8]) -> Option<ProgramStep> {
        let line = String::from_utf8_lossy(line).into_owned();
        if self.message.len() + line.len() < TEXT_BYTES_MAX {
            self.message.push_str(&line);
            self.message.push('\n');
        }
        Some(ProgramStep::Text(line))
    }

    /// It says something new.
    fn says(&mut self, text: &Value) -> Option<ProgramStep> {
        let text = text.as_str().filter(|text| !text.trim().is_empty())?;
        self.message = text[..text.floor_char_boundary(TEXT_BYTES_MAX)].to_owned();
        Some(ProgramStep::Text(self.message.clone()))
    }

    /// A further piece of the current message.
    fn goes_on(&mut self, text: &Value) -> Option<ProgramStep> {
        let text = text.as_str()?;
        if self.message.len() + text.len() < TEXT_BYTES_MAX {
            self.message.push_str(text);
        }
        Some(ProgramStep::Text(text.to_owned()))
    }

    /// A call of a tool was answered.
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

/// Returns a call of a tool.
fn call(name: &Value, detail: &Value) -> Option<ProgramStep> {
    let detail = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
    let short = |text: &str| text.chars().take(200).collect::<String>();
    Some(ProgramStep::ToolCall { name: short(name.as_str().unwrap_or_default()), detail: short(&detail) })
}

#[cfg(test)]
mod tests;
