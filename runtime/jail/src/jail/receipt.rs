//! The receipt of a command: evidence that the host creates after the command has ended.
//!
//! A receipt contains only the digests and lengths of the command's output.

use super::{Jail, JailStatus, program};
use crate::exec::{Command, Exit};
use glovebox_record::{CommandEnding, DigestedFile, Receipt};
use std::time::Duration;

/// The part of a receipt that is known before the command starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    /// The program and its arguments, or `["sh", "-c", text]`.
    pub argv: Vec<String>,
    /// The program's file on this machine; `None` if it is not found, or if the stage can write it.
    pub program: Option<DigestedFile>,
    /// Working directory, relative to the workspace.
    pub cwd: String,
    /// Names of the environment variables, without their values.
    pub env_names: Vec<String>,
}

impl Jail {
    /// Returns the command line for a receipt, before the command starts.
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
    /// Creates the receipt of a command whose sandbox ended before it. Nothing is known of its result.
    pub fn lost_receipt(self, id: String, duration: Duration, status: &JailStatus) -> Receipt {
        self.receipt(id, &Exit::unmeasured(CommandEnding::Lost, duration), status)
    }

    /// Creates the receipt of a command that has ended. `id` must be unique within the run.
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
            printed_class: None,
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
