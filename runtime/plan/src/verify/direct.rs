//! A command that starts without a shell.

/// The same text as the plugin's own: host and component must read a command line alike.
#[path = "../../../../plugin-sdk/src/words.rs"]
#[expect(unreachable_pub, reason = "the plugin crate publishes it")]
mod words;

use glovebox_host::operator_in;

/// A command line and the words that it starts with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DirectCommand {
    /// As it is written.
    pub line: String,
    /// As it starts.
    pub words: Vec<String>,
}

impl DirectCommand {
    /// Reads a command line.
    ///
    /// # Errors
    /// What only a shell could do, with `verification_command_unsupported_format`; an empty line, an assignment before the program.
    pub fn parse(line: &str) -> Result<Self, String> {
        let line = line.trim();
        let words = words::words(line)?;
        match operator_in(&words) {
            Some(operator) => Err(format!("verification_command_unsupported_format: `{operator}` in an argument")),
            None => Ok(Self { line: line.to_owned(), words }),
        }
    }
}
