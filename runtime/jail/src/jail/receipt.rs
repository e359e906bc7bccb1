//! The receipt of a command: evidence that the host makes when it sees the end.
//!
//! Of the command's output, a receipt has only digests and lengths.

use super::{Jail, JailStatus, program};
use crate::exec::{Command, Exit};
use glovebox_record::{DigestedFile, Receipt};

/// A started command, as a receipt shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// argv, or `["sh", "-c", text]`.
    pub argv: Vec<String>,
    /// The program's file on this machine.
    pub program: Option<DigestedFile>,
    /// Relative to the workspace.
    pub cwd: String,
    /// Names of the environment, not values.
    pub env_names: Vec<String>,
}

impl Jail {
    /// The command line for a receipt, before the command starts.
    pub fn line(&self, command: &Command) -> CommandLine {
        CommandLine {
            argv: command.program.words(),
            program: program::file(&self.policy, &command.program, &|path| self.writable.holds(path)),
            cwd: command.cwd.as_str().to_owned(),
            env_names: command.env.iter().map(|(name, _)| name.clone()).collect(),
        }
    }
}

impl CommandLine {
    /// Makes the receipt of a command that has ended; `id` is unique within the run.
    pub fn receipt(self, id: String, exit: &Exit, status: &JailStatus) -> Receipt {
        Receipt {
            id,
            argv: self.argv,
            program: self.program,
            cwd: self.cwd,
            env_names: self.env_names,
            tier: status.tier,
            degradations: status.degradations.clone(),
            subject: false,
            hook: None,
            over: exit.over,
            no_proof: None,
            how: exit.how,
            code: exit.code,
            duration_ms: u64::try_from(exit.duration.as_millis()).unwrap_or(u64::MAX),
            stdout_digest: exit.stdout.digest,
            stdout_bytes: exit.stdout.total_bytes,
            stderr_digest: exit.stderr.digest,
            stderr_bytes: exit.stderr.total_bytes,
        }
    }
}
