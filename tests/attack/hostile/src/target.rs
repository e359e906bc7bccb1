//! The sandbox in which an attack runs: how the battery starts a command there, and what it gets back.
//!
//! Two callers implement it: the program `glovebox-attack`, and the sandbox's own tests.

use crate::host_fixture::HostFixture;
use crate::row::Limits;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The program of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its arguments.
    Argv(Vec<String>),
    /// A shell text.
    Shell(String),
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttackCommand {
    /// The program.
    pub program: Program,
    /// Its wall time limit.
    pub timeout: Duration,
}

/// The tier of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// No confinement at all.
    Unconfined,
    /// Landlock and seccomp.
    Landlock,
    /// Landlock and seccomp in namespaces that `bwrap` makes.
    Bwrap,
    /// Namespaces, a root of its own, overlay, Landlock and seccomp.
    Full,
}

/// The end of a command or a component.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ending {
    /// It was not started.
    #[default]
    NotStarted,
    /// By itself.
    Exited,
    /// By a signal.
    Signaled,
    /// At its wall time limit.
    TimedOut,
    /// By a cancellation.
    Canceled,
    /// The host ended the component, for this reason.
    Stopped(String),
}

impl fmt::Display for Ending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotStarted => "not started",
            Self::Exited => "exited",
            Self::Signaled => "signaled",
            Self::TimedOut => "timed-out",
            Self::Canceled => "canceled",
            Self::Stopped(reason) => reason,
        })
    }
}

/// The host's observation of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandResult {
    /// Its end.
    pub how: Ending,
    /// Exit code or signal.
    pub code: Option<i32>,
    /// The captured part of its standard output.
    pub stdout: Vec<u8>,
    /// The captured part of its standard error.
    pub stderr: Vec<u8>,
    /// The limit that it passed, for which it was killed.
    pub over: Option<String>,
}

impl CommandResult {
    /// Returns the captured output as text.
    pub fn text(&self) -> String {
        format!("{}\n{}", String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr))
    }
}

/// The reason why a command did not run, or did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRun {
    /// The reason, for people.
    pub reason: String,
    /// True if the attack itself may be the cause: a process of it could not be killed, or it took the sandbox down. That is a
    /// finding, and the battery does not repeat such a row.
    pub by_attack: bool,
}

impl From<String> for NotRun {
    /// The machine prevented the attempt.
    fn from(reason: String) -> Self {
        Self { reason, by_attack: false }
    }
}

/// One change that a stage left.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path in the workspace.
    pub path: String,
    /// The kind of the change, such as `write` or `special`.
    pub op: String,
    /// True if it would be committed.
    pub allowed: bool,
}

/// Most bytes that are captured of each stream of a command.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 10;

/// Most bytes, entries and levels a stage may change.
pub const CHANGES_MAX: (u64, u64, u32) = (64 << 20, 1_000, 64);

/// The write scope in the workspace. It contains protected paths on purpose: the scope must not be what stops those attacks.
pub const WRITE: &[&str] = &[
    "out/",
    "tool",
    ".git/",
    ".GIT/",
    ".g\u{200c}it/",
    ".gitattributes",
    ".github/",
    ".cargo/",
    ".vscode/",
    ".envrc",
    ".claude/",
    "glovebox.toml",
];

/// The hidden parts of the workspace.
pub const HIDDEN: &[&str] = &["scenarios/"];

/// Confinement of one tier.
pub trait Confinement: Sync {
    /// The sandbox that it opens.
    type Target: Target;

    /// Returns the tier.
    fn tier(&self) -> Tier;

    /// Opens a sandbox over [`HostFixture::project`], with [`HostFixture::attacker`] readable inside. [`HostFixture::stage`] is a
    /// folder for its own files.
    ///
    /// # Errors
    /// The reason why it could not be opened.
    fn open(&self, fixture: &HostFixture, limits: &Limits) -> Result<Self::Target, String>;
}

/// An open sandbox.
pub trait Target {
    /// Returns the path of the workspace inside.
    fn project(&self) -> PathBuf;

    /// Runs a command to its end.
    ///
    /// # Errors
    /// The reason why it could not be started or killed.
    fn run(&mut self, command: &AttackCommand) -> Result<CommandResult, NotRun>;

    /// Ends every process and returns the changes, each with whether it would be committed.
    ///
    /// # Errors
    /// The reason why the stage fails as a whole.
    fn end(self) -> Result<Vec<Change>, String>;
}
