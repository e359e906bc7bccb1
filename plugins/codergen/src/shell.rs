//! Commands of an agent. They run without a shell unless the node grants one (decision granted-agent-commands).
//!
//! The model gets an error for anything but a plain command line, before the host is asked. The host decides what may run.

use glovebox_plugin_sdk::CommandScope;
use glovebox_plugin_sdk::exec::{self, Command, Exit};

/// Default timeout of a command, in milliseconds.
const TIMEOUT_MS_DEFAULT: u64 = 120_000;
/// Maximum timeout that the model can choose, in milliseconds.
const TIMEOUT_MS_MAX: u64 = 600_000;

/// How the commands of a stage are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShellGrant {
    /// Named commands, which are started directly.
    Argv,
    /// Any shell text.
    Text,
}

impl ShellGrant {
    /// Returns the grant of a stage with these commands. Returns `None` if nothing may run.
    pub(crate) fn for_scope(commands: &CommandScope) -> Option<Self> {
        match commands.any {
            true => Some(Self::Text),
            false => (!commands.prefixes.is_empty()).then_some(Self::Argv),
        }
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
        let scope = |any, prefixes: &[&str]| CommandScope {
            any,
            prefixes: prefixes.iter().map(|prefix| vec![(*prefix).to_owned()]).collect(),
        };
        assert_eq!(ShellGrant::for_scope(&scope(false, &[])), None);
        assert_eq!(ShellGrant::for_scope(&scope(false, &["cargo", "git"])), Some(ShellGrant::Argv));
        assert_eq!(ShellGrant::for_scope(&scope(true, &["cargo"])), Some(ShellGrant::Text));
    }
}
