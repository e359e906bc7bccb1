//! The place behind the walls: how an attack is run there and what comes back.
//!
//! Two sides implement it: the command line over the whole runtime, and the sandbox's own tests over a jail.

use crate::host_fixture::HostFixture;
use crate::row::Limits;
use std::time::Duration;

/// What is run behind the walls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// A program and its words.
    Argv(Vec<String>),
    /// A text for the shell.
    Shell(String),
}

/// One command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttackCommand {
    /// What is run.
    pub program: Program,
    /// Its wall time.
    pub timeout: Duration,
}

/// What was seen of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandResult {
    /// How it ended: `exited`, `signaled`, `timed-out` or `canceled`.
    pub how: String,
    /// Exit code or signal.
    pub code: Option<i32>,
    /// What was kept of its standard output.
    pub stdout: Vec<u8>,
    /// What was kept of its standard error.
    pub stderr: Vec<u8>,
    /// The bound for which it was killed.
    pub over: Option<String>,
}

impl CommandResult {
    /// Everything that was kept, as text.
    pub fn text(&self) -> String {
        format!("{}\n{}", String::from_utf8_lossy(&self.stdout), String::from_utf8_lossy(&self.stderr))
    }
}

/// Why a command was not run, or not to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRun {
    /// In words.
    pub reason: String,
    /// Whether the attack itself may be why: something of it could not be ended, or the place behind the walls went with it. That is
    /// a finding, and such a row is not tried once more.
    pub by_attack: bool,
}

impl From<String> for NotRun {
    /// The machine did not let it be tried.
    fn from(reason: String) -> Self {
        Self { reason, by_attack: false }
    }
}

/// One change that a stage left, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// Path in the workspace.
    pub path: String,
    /// What happened to it, such as `write` or `special`.
    pub op: String,
    /// Whether it would be committed.
    pub allowed: bool,
}

/// Bytes that may be kept of each stream of a command.
pub const OUTPUT_BYTES_MAX: u64 = 64 << 10;

/// Most bytes, entries and levels a stage may change.
pub const CHANGES_MAX: (u64, u64, u32) = (64 << 20, 1_000, 64);

/// What may be written in the workspace. Protected paths are among it on purpose: the grant is not what stops them.
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

/// What does not exist in the workspace.
pub const HIDDEN: &[&str] = &["scenarios/"];

/// Confinement of one tier.
pub trait Confinement: Sync {
    /// The place behind them.
    type Target: Target;

    /// The tier's name: `full`, `bwrap`, `landlock` or `unconfined`.
    fn tier(&self) -> &'static str;

    /// Puts up the walls round [`HostFixture::project`], with [`HostFixture::attacker`] readable inside and [`HostFixture::stage`] for
    /// whatever it needs of its own.
    ///
    /// # Errors
    /// In words why the walls do not stand.
    fn open(&self, outside: &HostFixture, limits: &Limits) -> Result<Self::Target, String>;
}

/// A place behind walls.
pub trait Target {
    /// Where the workspace is inside.
    fn project(&self) -> String;

    /// Runs a command to its end.
    ///
    /// # Errors
    /// Why it could not be run or ended.
    fn run(&mut self, order: &AttackCommand) -> Result<CommandResult, NotRun>;

    /// Ends everything and says what of the changes would be committed.
    ///
    /// # Errors
    /// In words why the stage fails as a whole.
    fn end(self) -> Result<Vec<Change>, String>;
}
