//! Commands of an agent. They run without a shell unless the node grants one (decision granted-agent-commands).
//!
//! The model gets an error for anything but a plain command line, before the host is asked. The host decides what may run.

use glovebox_plugin_sdk::exec::{self, Command, Exit};

/// Default timeout of a command, in milliseconds.
const TIMEOUT_MS_DEFAULT: u64 = 120_000;
/// Maximum timeout that the model can choose, in milliseconds.
const TIMEOUT_MS_MAX: u64 = 600_000;

/// The grant of the node's `allowed_commands`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShellGrant {
    /// Named commands, which are started directly.
    Argv,
    /// Any shell text.
    Text,
}

impl ShellGrant {
    /// Parses `allowed_commands`. Returns `None` if nothing may run.
    pub(crate) fn parse(allowed_commands: &str) -> Option<Self> {
        let mut entries = allowed_commands.split(',').map(str::trim).filter(|entry| !entry.is_empty()).peekable();
        entries.peek()?;
        Some(if entries.any(|entry| entry == "*") { Self::Text } else { Self::Argv })
    }

    /// Runs a command line and waits until it ends.
    pub(crate) fn run(self, line: CommandLine<'_>, timeout_ms: Option<u64>) -> Result<Exit, String> {
        let command = self.describe(line)?.timeout_ms(timeout_ms.unwrap_or(TIMEOUT_MS_DEFAULT).min(TIMEOUT_MS_MAX));
        command.run().map_err(|error| format!("the command did not run ({}): {}", error.code, error.message))
    }

    fn describe(self, line: CommandLine<'_>) -> Result<Command, String> {
        match self {
            Self::Text => Ok(exec::shell(line.0)),
            Self::Argv => exec::words(line.0).map(exec::argv),
        }
    }
}

/// Describes the end of a command for the model.
pub(crate) fn report(exit: &Exit) -> String {
    let mut text = match exit.code {
        Some(code) if exit.how == "exited" => format!("exit code {code} after {} ms\n", exit.duration_ms),
        _ => format!("{} after {} ms\n", exit.how, exit.duration_ms),
    };
    for (name, stream) in [("stdout", &exit.stdout), ("stderr", &exit.stderr)] {
        let stream = stream.text();
        if !stream.trim().is_empty() {
            text.push_str(&format!("{name}:\n{}\n", stream.trim_end()));
        }
    }
    text
}

/// A command as the model wrote it, on one line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CommandLine<'a>(pub(crate) &'a str);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_grant() {
        assert_eq!(ShellGrant::parse(" , "), None);
        assert_eq!(ShellGrant::parse("cargo test,git status"), Some(ShellGrant::Argv));
        assert_eq!(ShellGrant::parse("cargo test, *"), Some(ShellGrant::Text));
        assert_eq!(ShellGrant::parse("ls *"), Some(ShellGrant::Argv));
    }
}
