//! Exit codes, and the error type with which commands stop.
//!
//! The table is a stable interface (see `docs/exit-codes.md`): scripts and CI use the number, people read the name. A
//! code is the reason why `glovebox` ended. The rest of this crate uses [`Exit`] and not the numbers.

use glovebox_state::evidence::ExitClass;
use std::fmt;
use std::io::ErrorKind;
use std::process::ExitCode;

/// The help for a file system without space.
pub const NO_SPACE: &str = "free space there: `glovebox gc --keep 5` removes all but the newest 5 runs. Or keep runs elsewhere: `--runs-dir D`";

/// Why the process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The run succeeded, or the command found no problem.
    Ok,
    /// The pipeline ended with `fail`.
    RunFailed,
    /// Bad flags or arguments, or a run that does not exist.
    Usage,
    /// An invalid pipeline or configuration.
    Invalid,
    /// An exit was reached, but a goal gate is not satisfied.
    Unverified,
    /// The run exceeded a limit: steps, turns, wall time, memory, output.
    Budget,
    /// The command or a stage did what is not allowed, the sandbox is too weak, or a conflict would overwrite work.
    Policy,
    /// A plugin is missing, not locked, trapped or broke its contract.
    Plugin,
    /// A model provider refused, or a script has no turn left.
    Provider,
    /// A temporary failure with no retries left. A resume may succeed.
    Transient,
    /// The run waits for a person. It can be resumed.
    Paused,
    /// A journal or a commitment could not be verified.
    Mismatch,
    /// A bug in Glovebox.
    Internal,
    /// Ctrl-C.
    Interrupted,
    /// SIGTERM.
    Terminated,
}

/// Returns the row of an exit that a run can have. [`ExitClass`] defines its number and name.
const fn of_run(exit: Exit, class: ExitClass) -> (Exit, u8, &'static str) {
    (exit, class.code(), class.name())
}

/// Every exit with its number and name, in the order of the documentation.
pub const EXITS: [(Exit, u8, &str); 15] = [
    of_run(Exit::Ok, ExitClass::Ok),
    of_run(Exit::RunFailed, ExitClass::RunFailed),
    (Exit::Usage, 2, "usage"),
    (Exit::Invalid, 3, "invalid"),
    of_run(Exit::Unverified, ExitClass::Unverified),
    of_run(Exit::Budget, ExitClass::Budget),
    of_run(Exit::Policy, ExitClass::Policy),
    of_run(Exit::Plugin, ExitClass::Plugin),
    of_run(Exit::Provider, ExitClass::Provider),
    of_run(Exit::Transient, ExitClass::Transient),
    of_run(Exit::Paused, ExitClass::Paused),
    (Exit::Mismatch, 11, "mismatch"),
    of_run(Exit::Internal, ExitClass::Internal),
    of_run(Exit::Interrupted, ExitClass::Interrupted),
    of_run(Exit::Terminated, ExitClass::Terminated),
];

impl Exit {
    fn row(self) -> (u8, &'static str) {
        EXITS.iter().find(|(exit, ..)| *exit == self).map_or((70, "internal"), |(_, code, name)| (*code, name))
    }

    /// Returns the exit code of the process.
    pub fn code(self) -> u8 {
        self.row().0
    }

    /// Returns the stable name, for people and for JSON.
    pub fn name(self) -> &'static str {
        self.row().1
    }
}

impl From<ExitClass> for Exit {
    fn from(class: ExitClass) -> Self {
        match class {
            ExitClass::Ok => Exit::Ok,
            ExitClass::RunFailed => Exit::RunFailed,
            ExitClass::Unverified => Exit::Unverified,
            ExitClass::Budget => Exit::Budget,
            ExitClass::Policy => Exit::Policy,
            ExitClass::Plugin => Exit::Plugin,
            ExitClass::Provider => Exit::Provider,
            ExitClass::Transient => Exit::Transient,
            ExitClass::Paused => Exit::Paused,
            ExitClass::Internal => Exit::Internal,
            ExitClass::Interrupted => Exit::Interrupted,
            ExitClass::Terminated => Exit::Terminated,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// The reason why a command failed.
#[derive(Debug)]
pub struct Stop {
    /// The exit of the process.
    pub exit: Exit,
    /// One line: what is wrong, where, and what was expected. Empty if the problems are printed already.
    pub message: String,
    /// What the user can do: often a command or a value to paste.
    pub help: Option<String>,
    /// The rendered findings that led to the stop. They are printed before the message.
    pub details: String,
}

impl Stop {
    /// Creates a stop with a message.
    pub fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), help: None, details: String::new() }
    }

    /// Creates a stop without a message, because the problems are printed already.
    pub fn silent(exit: Exit) -> Self {
        Self::new(exit, "")
    }

    /// Adds a help text.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Creates a stop for a failed operation on a file or another resource of the system.
    pub fn io(what: impl fmt::Display, source: &std::io::Error) -> Self {
        let stop = Self::new(Exit::Usage, format!("{what}: {source}"));
        match source.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => stop.with_help(NO_SPACE),
            _ => stop,
        }
    }
}

/// The result of a command: the exit code, or why it stopped.
pub type CommandResult = Result<Exit, Stop>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_exit_has_one_number_and_one_name() {
        for (index, (exit, code, name)) in EXITS.iter().enumerate() {
            assert_eq!((exit.code(), exit.name()), (*code, *name));
            assert!(EXITS[index + 1..].iter().all(|other| other.1 != *code && other.2 != *name));
        }
    }

    #[test]
    fn the_documentation_lists_exactly_these_codes() {
        let page = crate::commands::help::EXIT_CODES;
        let rows: Vec<(u8, &str)> = page
            .lines()
            .filter_map(|line| {
                let mut cells = line.split('|').map(str::trim).skip(1);
                Some((cells.next()?.parse().ok()?, cells.next()?.trim_matches('`')))
            })
            .collect();
        let table: Vec<(u8, &str)> = EXITS.iter().map(|(_, code, name)| (*code, *name)).collect();
        assert_eq!(rows, table);
        let codes: Vec<String> = EXITS.iter().map(|(_, code, name)| format!("{code} {name}")).collect();
        let listed =
            crate::arguments::AFTER_HELP.split_once("Exit codes: ").and_then(|(_, list)| list.split_once("\nMore: "));
        let listed = listed.map(|(list, _)| list.replace('\n', " "));
        let listed = listed.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(listed, codes.join(", "));
    }
}
