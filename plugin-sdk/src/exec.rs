//! Host programs in a sandbox: `exec::shell("cargo test").timeout_ms(60_000).run()`.
//!
//! A [`Command`] is only a description. The host decides whether it may run, with which variables, and which of its writes are kept.

use crate::bindings::glovebox::plugin::exec;
use crate::extra::{NO_PROOF, START_OVER};
use crate::imports::exec as host;
use crate::{Outcome, Stage};

pub use crate::words::words;
pub use exec::{Captured, Error, Exit};

/// The description of a command. Nothing runs before [`Command::run`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Command {
    raw: exec::Command,
}

/// Describes a command as a text for `sh -c`. It needs a grant of its own.
pub fn shell(text: impl Into<String>) -> Command {
    Command { raw: exec::Command { shell: Some(text.into()), ..empty() } }
}

/// Describes a command as a program and its arguments. The program is started without a shell.
pub fn argv(argv: impl IntoIterator<Item = impl Into<String>>) -> Command {
    Command { raw: exec::Command { argv: argv.into_iter().map(Into::into).collect(), ..empty() } }
}

fn empty() -> exec::Command {
    let (argv, cwd, env, extra) = (Vec::new(), String::new(), Vec::new(), Vec::new());
    exec::Command { argv, shell: None, cwd, env, stdin: None, timeout_ms: None, extra }
}

/// Parses a duration of the pipeline language (spec §2.4) into milliseconds. A number without a unit is in seconds.
pub fn duration_ms(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len();
    let unit_ms = match &text[digits..] {
        "ms" => 1,
        "s" | "" => 1000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(unit_ms)
}

impl Command {
    /// Sets the working directory, relative to the workspace. Empty means the root of the workspace.
    pub fn cwd(mut self, path: impl Into<String>) -> Self {
        self.raw.cwd = path.into();
        self
    }

    /// Adds an environment variable.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.raw.env.push((name.into(), value.into()));
        self
    }

    /// Applies the attributes `working_dir`, `timeout` and `env_NAME` of the node.
    ///
    /// # Errors
    /// If `timeout` is not a duration.
    pub fn set_up_by(mut self, stage: &Stage) -> Result<Self, String> {
        self.raw.cwd = match stage.attribute("working_dir").unwrap_or_default() {
            // The host refuses a path outside of the workspace.
            path if path.starts_with('/') => path.to_owned(),
            path => path.split('/').filter(|name| !matches!(*name, "" | ".")).collect::<Vec<_>>().join("/"),
        };
        for (name, value) in stage.attributes().filter_map(|(name, value)| Some((name.strip_prefix("env_")?, value))) {
            self = self.env(name, value);
        }
        match stage.attribute("timeout").filter(|text| !text.is_empty()) {
            None => Ok(self),
            Some(text) => match duration_ms(text) {
                Some(timeout_ms) => Ok(self.timeout_ms(timeout_ms)),
                None => Err(format!("`timeout` is `{text}`, expected a duration such as `900s` or `15m`")),
            },
        }
    }

    /// Sets the bytes of standard input. Without them it is empty.
    pub fn stdin(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.raw.stdin = Some(bytes.into());
        self
    }

    /// Limits the wall time in milliseconds. The stage's own limit still applies.
    pub fn timeout_ms(mut self, timeout_ms: u64) -> Self {
        self.raw.timeout_ms = Some(timeout_ms);
        self
    }

    /// Marks the command as a substitute for another one, so that its receipt is not a proof.
    pub fn stand_in(mut self) -> Self {
        self.raw.extra.push((NO_PROOF.to_owned(), "replacement".to_owned()));
        self
    }

    /// Resets the files to those at the beginning of the attempt before the command runs. All changes of the stage and its commands
    /// are dropped, and processes that they left running are ended. Caches are kept. At most 32 commands of an attempt can do this.
    pub fn start_over(mut self) -> Self {
        self.raw.extra.push((START_OVER.to_owned(), String::new()));
        self
    }

    /// Runs the command until it ends. An exit code other than 0 is an [`Exit`] and not an error.
    ///
    /// # Errors
    /// If the command did not run. [`Error::code`] says why.
    pub fn run(&self) -> Result<Exit, Error> {
        host::run(&self.raw)
    }
}

/// Creates a failure with a code `exec/…` from a command that did not run.
impl From<Error> for Outcome {
    fn from(error: Error) -> Self {
        let class = match error.code.as_str() {
            "not-granted" => "scope",
            "limit" => "budget",
            "canceled" => "canceled",
            "io" => "transient",
            "sandbox-unavailable" => "internal",
            _ => "deterministic",
        };
        Outcome::fail(format!("exec/{}", error.code), error.message).class(class)
    }
}

impl Exit {
    /// Returns true if the command exited with code 0.
    pub fn passed(&self) -> bool {
        self.how == "exited" && self.code == Some(0)
    }

    /// Returns true if the host found that the command is a test command that passed without running a test.
    pub fn ran_no_test(&self) -> bool {
        self.extra.iter().any(|(key, value)| key == NO_PROOF && value == "no_tests")
    }
}

impl Captured {
    /// Returns the captured stream as text. A marker states the number of bytes that were cut out.
    pub fn text(&self) -> String {
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&self.tail));
        let cut = self.total_bytes.saturating_sub((self.head.len() + self.tail.len()) as u64);
        if self.truncated { format!("{head}\n[{cut} bytes cut]\n{tail}") } else { format!("{head}{tail}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_durations() {
        let check = |text: &str, expected: Option<u64>| assert_eq!(duration_ms(text), expected, "{text}");
        check("250ms", Some(250));
        check("900s", Some(900_000));
        check("15m", Some(900_000));
        check("2h", Some(7_200_000));
        check("1d", Some(86_400_000));
        check("30", Some(30_000));
        check("", None);
        check("s", None);
        check("-1s", None);
        check("5 minutes", None);
        check("99999999999999999999s", None);
        check("18446744073709551615d", None);
    }

    #[test]
    fn folders_are_spelled_as_the_contract_wants() {
        for (written, folder_of) in [
            ("", ""),
            (".", ""),
            ("./sub/", "sub"),
            ("a//b", "a/b"),
            ("../x", "../x"),
            ("/tmp", "/tmp"),
            ("größe", "größe"),
        ] {
            let stage = crate::testing::stage("n").attribute("working_dir", written).build();
            assert_eq!(shell("true").set_up_by(&stage).unwrap().raw.cwd, folder_of);
        }
    }

    #[test]
    fn a_command_that_did_not_run_keeps_the_hosts_words() {
        let outcome = Outcome::from(Error { code: "not-granted".to_owned(), message: "grant `commands`".to_owned() });
        let failure = outcome.failure().map(|f| (f.class.as_str(), f.code.as_str(), f.reason.as_str()));
        assert_eq!(failure, Some(("scope", "exec/not-granted", "grant `commands`")));
    }

    #[test]
    fn a_cut_stream_says_how_much_is_missing() {
        let (head, tail) = (b"ab".to_vec(), b"yz".to_vec());
        let whole = Captured { head: head.clone(), tail: tail.clone(), total_bytes: 4, truncated: false };
        let cut = Captured { head, tail, total_bytes: 30, truncated: true };
        assert_eq!((whole.text().as_str(), cut.text().as_str()), ("abyz", "ab\n[26 bytes cut]\nyz"));
    }
}
