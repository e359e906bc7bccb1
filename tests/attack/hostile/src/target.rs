//! The sandbox in which an attack runs: how the battery starts a command in it, and the result of the command.
//!
//! The program `glovebox-attack` and the sandbox's own tests implement it.

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
    /// Wall time limit of the command.
    pub timeout: Duration,
}

/// The tier of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tier {
    /// No confinement at all.
    Unconfined,
    /// Landlock and seccomp.
    Landlock,
    /// Landlock and seccomp in namespaces that `bwrap` creates.
    Bwrap,
    /// Namespaces, a separate root file system, an overlay, Landlock and seccomp.
    Full,
}

/// How a command or a component ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Ending {
    /// The command was not started.
    #[default]
    NotStarted,
    /// The command exited.
    Exited,
    /// The command was ended by a signal.
    Signaled,
    /// The command reached its wall time limit.
    TimedOut,
    /// The command was canceled.
    Canceled,
    /// The host ended the component for this reason.
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
    /// How the command ended.
    pub how: Ending,
    /// Exit code or signal.
    pub code: Option<i32>,
    /// Captured part of standard output.
    pub stdout: Vec<u8>,
    /// Captured part of standard error.
    pub stderr: Vec<u8>,
    /// Limit that the command exceeded, for which it was killed. `None` if it exceeded none.
    pub over: Option<String>,
}

impl CommandResult {
    /// Returns the captured output as text.
    pub fn text(&self) -> String {
        format!("{}\n{}", String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr))
    }
}

/// Why a command did not run, or did not run to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRun {
    /// The reason as text for people.
    pub reason: String,
    /// True if the attack itself may be the cause: one of its processes could not be killed, or it broke the sandbox.
    /// That is a finding, and the battery does not repeat the row.
    pub by_attack: bool,
}

impl From<String> for NotRun {
    /// Creates the reason of an attempt that the machine prevented.
    fn from(reason: String) -> Self {
        Self { reason, by_attack: false }
    }
}

/// One change that a stage made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path in the workspace.
    pub path: String,
    /// The kind of the change, such as `write` or `special`.
    pub op: String,
    /// True if the change would be committed.
    pub allowed: bool,
}

/// Maximum number of bytes that are captured of each output stream of a command.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 10;

/// Maximum number of bytes, of entries and of folder levels that a stage may change.
pub const CHANGES_MAX: (u64, u64, u32) = (64 << 20, 1_000, 64);

/// The write scope in the workspace. It contains protected paths on purpose, so that the scope does not stop those
/// attacks.
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

/// The confinement of one tier.
pub trait Confinement: Sync {
    /// The sandbox that the confinement opens.
    type Target: Target;

    /// Returns the tier.
    fn tier(&self) -> Tier;

    /// Opens a sandbox over [`HostFixture::project`], in which [`HostFixture::attacker`] is readable.
    /// [`HostFixture::stage`] is a folder for the sandbox's own files.
    ///
    /// # Errors
    /// Returns why the sandbox could not be opened.
    fn open(&self, fixture: &HostFixture, limits: &Limits) -> Result<Self::Target, String>;
}

/// An open sandbox.
pub trait Target {
    /// Returns the path of the workspace inside the sandbox.
    fn project(&self) -> PathBuf;

    /// Runs a command to its end.
    ///
    /// # Errors
    /// Returns why the command could not be started or killed.
    fn run(&mut self, command: &AttackCommand) -> Result<CommandResult, NotRun>;

    /// Ends every process and returns the changes, each with whether it would be committed.
    ///
    /// # Errors
    /// Returns why the stage fails as a whole.
    fn end(self) -> Result<Vec<Change>, String>;
}
