//! The `verify` handler (decision verify-node): runs the node's `command` and converts its exit to a verdict.
//!
//! This component cannot ask a model, because it does not import the interface. Its messages name a check, not work that was done. The
//! whole output is stored as the artifact `<node>.output`. If the component verifies another node (`verify_command`), the engine
//! passes that node's handler in `verifies`, and the artifact is `<node>.verify_output`.
#![forbid(unsafe_code)]

use glovebox_plugin_sdk::exec::{self, Exit};
use glovebox_plugin_sdk::{Handler, Outcome, Stage, artifact, export, log};

/// Maximum length of output that a reason quotes, in bytes.
const QUOTE_BYTES_MAX: usize = 2 * 1024;

struct Verify;

impl Handler for Verify {
    fn execute(stage: Stage) -> Outcome {
        let node = stage.node_id();
        let Some(command) = stage.attribute("command").filter(|text| !text.trim().is_empty()) else {
            let reason = format!("no command attribute specified for verify node: {node}");
            return Outcome::fail("verify/no-command", reason);
        };
        let ran = match exec::shell(command).set_up_by(&stage) {
            Ok(described) => described.run(),
            Err(reason) => return Outcome::fail("verify/timeout-syntax", reason),
        };
        match ran {
            Ok(exit) => {
                let check = Check { node, command, exit, verifies: stage.attribute("verifies") };
                check.keep();
                check.outcome()
            }
            Err(error) => Outcome::from(error),
        }
    }
}

export!(
    Verify,
    manifest = concat!(
        r#"{"name":"verify","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","description":"Runs a check and gives its verdict.","#,
        r#""wants":{"filesystem":"none","commands":["*"]}}"#
    )
);

/// A check that has exited.
struct Check<'a> {
    node: &'a str,
    command: &'a str,
    exit: Exit,
    /// Handler of the verified node; `None` for a verify stage.
    verifies: Option<&'a str>,
}

impl Check<'_> {
    /// Returns the verdict. Everything except exit code 0 is a failure.
    fn outcome(&self) -> Outcome {
        let Self { command, exit, .. } = self;
        let (quote, what) = (quoted(exit), self.title());
        match (exit.how.as_str(), exit.code) {
            ("exited", Some(0)) => {
                Outcome::success().notes(format!("{what} passed: {command}")).claim_command(&exit.receipt)
            }
            ("exited", Some(code)) => {
                Outcome::fail("verify/exit-code", format!("{what} failed (exit {code}): {quote}"))
            }
            ("timed-out", _) => {
                let reason = format!("{what} timed out after {}: {quote}", spelled(exit.duration_ms));
                Outcome::fail("verify/timeout", reason).class("transient")
            }
            ("canceled", _) => Outcome::fail("verify/canceled", "the run was canceled").class("canceled"),
            (how, _) => Outcome::fail("verify/signal", format!("{what} failed ({how}): {quote}")),
        }
    }

    /// Returns the name of the command in messages.
    fn title(&self) -> &'static str {
        match self.verifies {
            None => "verify command",
            Some("exit" | "stack.child_exit") => "exit verify_command",
            Some("parallel.fan_in") => "fan-in verify_command",
            Some(_) => "verify_command",
        }
    }

    /// Stores the output of the command. If it is refused, the stage does not fail.
    fn keep(&self) {
        let Self { node, exit, verifies, .. } = self;
        let code = exit.code.map_or_else(|| format!("exit_code={}", exit.how), |code| format!("exit_code={code}"));
        let text = format!("{code}\nstdout:\n{}\nstderr:\n{}\n", exit.stdout.text(), exit.stderr.text());
        let name = format!("{node}.{}", if verifies.is_some() { "verify_output" } else { "output" });
        if let Err(reason) = artifact::put_text(&name, &text) {
            log::warn("artifact not kept", &[("name", &name), ("reason", &reason)]);
        }
    }
}

/// Quotes the end of the output, where checks report problems: of stderr, or of stdout if stderr is empty.
fn quoted(exit: &Exit) -> String {
    let stderr = exit.stderr.text();
    let text = if stderr.trim().is_empty() { exit.stdout.text() } else { stderr };
    let text = text.trim();
    text[text.ceil_char_boundary(text.len().saturating_sub(QUOTE_BYTES_MAX))..].to_owned()
}

/// Returns a duration in seconds, with a fraction only if there is one.
fn spelled(duration_ms: u64) -> String {
    match (duration_ms / 1000, duration_ms % 1000) {
        (0, millis) => format!("{millis}ms"),
        (seconds, 0) => format!("{seconds}s"),
        (seconds, millis) => format!("{seconds}.{millis:03}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exec::Captured;
    use glovebox_plugin_sdk::Status;

    fn stream(text: &str) -> Captured {
        let head = text.as_bytes().to_vec();
        Captured { total_bytes: head.len() as u64, head, tail: Vec::new(), truncated: false }
    }

    fn exit(how: &str, code: Option<i32>, stdout: &str, stderr: &str) -> Exit {
        let (stdout, stderr) = (stream(stdout), stream(stderr));
        let (changed, extra) = (Vec::new(), Vec::new());
        Exit { how: how.to_owned(), code, duration_ms: 2000, stdout, stderr, changed, receipt: "r1".to_owned(), extra }
    }

    #[test]
    fn words_a_verdict() {
        let check = |exit: Exit, expected: &str| {
            let outcome = Check { node: "n", command: "make check", exit, verifies: None }.outcome();
            assert_eq!(outcome.failure().map_or("", |failure| failure.reason.as_str()), expected);
            assert_eq!(outcome.status() == Status::Success, expected.is_empty());
        };
        check(exit("exited", Some(0), "ok", ""), "");
        check(exit("exited", Some(2), "out", "bad\n"), "verify command failed (exit 2): bad");
        check(exit("exited", Some(2), "out\n", " \n"), "verify command failed (exit 2): out");
        check(exit("timed-out", None, "so far", ""), "verify command timed out after 2s: so far");
        check(exit("signaled", Some(0), "", ""), "verify command failed (signaled): ");
        check(exit("canceled", None, "", ""), "the run was canceled");
    }

    #[test]
    fn names_what_it_verifies() {
        for (handler, title) in [
            ("codergen", "verify_command"),
            ("parallel.fan_in", "fan-in verify_command"),
            ("exit", "exit verify_command"),
        ] {
            let exit = exit("exited", Some(7), "", "bad");
            let outcome = Check { node: "n", command: "make check", exit, verifies: Some(handler) }.outcome();
            let reason = outcome.failure().map(|failure| failure.reason.clone());
            assert_eq!(reason, Some(format!("{title} failed (exit 7): bad")));
        }
    }

    #[test]
    fn quotes_the_end_at_a_characters_border() {
        let long = format!("start {}", "ä".repeat(QUOTE_BYTES_MAX));
        let quote = quoted(&exit("exited", Some(1), &long, ""));
        assert!(quote.len() <= QUOTE_BYTES_MAX && quote.chars().all(|character| character == 'ä'), "{}", quote.len());
    }

    #[test]
    fn spells_durations() {
        assert_eq!([spelled(250), spelled(2000), spelled(2050)], ["250ms", "2s", "2.050s"]);
    }
}
