//! Host programs, run by the host under guard: `exec::shell("cargo test").timeout_ms(60_000).run()`.
//!
//! A [`Command`] is only a description. Whether it may run, with which variables, and what of its writes is kept, the host decides.

use crate::bindings::glovebox::plugin::exec;

pub use exec::{Captured, Error, Exit};

/// A command to be run; nothing happens before [`Command::run`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Command {
    raw: exec::Command,
}

/// Describes a command as one text for `sh -c`; needs its own grant.
pub fn shell(text: impl Into<String>) -> Command {
    command(Vec::new(), Some(text.into()))
}

/// Describes a command as a program and its arguments, started without a shell.
pub fn argv(argv: impl IntoIterator<Item = impl Into<String>>) -> Command {
    command(argv.into_iter().map(Into::into).collect(), None)
}

fn command(argv: Vec<String>, shell: Option<String>) -> Command {
    let (cwd, env, extra) = (String::new(), Vec::new(), Vec::new());
    Command { raw: exec::Command { argv, shell, cwd, env, stdin: None, timeout_ms: None, extra } }
}

impl Command {
    /// Starts it in this folder of the workspace; empty is the root.
    pub fn cwd(mut self, path: impl Into<String>) -> Self {
        self.raw.cwd = path.into();
        self
    }

    /// Adds a variable to its environment.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.raw.env.push((name.into(), value.into()));
        self
    }

    /// Feeds it bytes; without them it reads nothing.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.raw.stdin = Some(bytes.into());
        self
    }

    /// Bounds its wall time in milliseconds, below what the stage has left.
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.raw.timeout_ms = Some(timeout_ms);
        self
    }

    /// Runs it to its end. An exit code other than zero is an [`Exit`], not an error.
    ///
    /// # Errors
    /// The command did not run at all; [`Error::code`] says why.
    pub fn run(&self) -> Result<Exit, Error> {
        exec::run(&self.raw)
    }
}

impl Exit {
    /// Says whether it exited with code 0.
    pub fn passed(&self) -> bool {
        self.how == "exited" && self.code == Some(0)
    }
}

impl Captured {
    /// Returns the captured stream as text; bytes that were cut out are marked with their number.
    pub fn text(&self) -> String {
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        let cut = self.total_bytes.saturating_sub((self.head.len() + self.tail.len()) as u64);
        if self.truncated { format!("{head}\n[{cut} bytes cut]\n{tail}") } else { format!("{head}{tail}") }
    }
}
