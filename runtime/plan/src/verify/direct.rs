//! A command that starts without a shell.

/// The source file is shared with the plugin, so that host and component split a command line in the same way.
#[path = "../../../../plugin-sdk/src/words.rs"]
#[expect(unreachable_pub, reason = "the plugin crate publishes it")]
mod words;

use glovebox_host::operator_in;

/// A command line and its words.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DirectCommand {
    /// The command line as it is written.
    pub line: String,
    /// The program and its arguments.
    pub words: Vec<String>,
}

impl DirectCommand {
    /// Parses a command line.
    ///
    /// # Errors
    ///
    /// Fails with `verification_command_unsupported_format` for syntax that needs a shell, and for an empty line or an
    /// assignment before the program.
    pub fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim();
        let words = words::words(line)?;
        match operator_in(&words) {
            Some(operator) => Err(format!("verification_command_unsupported_format: `{operator}` in an argument")),
            None => Ok(Self { line: line.to_owned(), words }),
        }
    }
}
