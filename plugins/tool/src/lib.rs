//! The `tool` handler (spec §4.10): runs the node's `tool_command` and reports how it exited.
//!
//! It knows no sandbox and no scope: the host runs the command in a jail and returns a receipt. The claim that the command passed
//! refers to that receipt, so the verdict does not depend on this component.
#![forbid(unsafe_code)]

use glovebox_plugin_sdk::exec::{self, Exit};
use glovebox_plugin_sdk::{Handler, Outcome, Stage, artifact, export, log};

/// Maximum length of the output in the pipeline's context, in bytes.
const CONTEXT_BYTES_MAX: usize = 10 * 1024;

struct Tool;

impl Handler for Tool {
    fn execute(stage: Stage) -> Outcome {
        let Some(command) = stage.attribute("tool_command").filter(|text| !text.trim().is_empty()) else {
            return Outcome::fail("tool/no-command", "No tool_command specified");
        };
        let ran = match exec::shell(command).set_up_by(&stage) {
            Ok(described) => described.run(),
            Err(reason) => return Outcome::fail("tool/timeout-syntax", reason),
        };
        match ran {
            Ok(exit) => {
                let ended = CommandEnd { command, exit };
                ended.keep();
                ended.outcome().set("tool.output", ended.output_head())
            }
            Err(error) => Outcome::from(error),
        }
    }
}

export!(
    Tool,
    manifest = concat!(
        r#"{"name":"tool","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","description":"Runs the command a node names.","#,
        r#""wants":{"filesystem":"none","commands":["*"]}}"#
    )
);

/// A command that has ended.
struct CommandEnd<'a> {
    command: &'a str,
    exit: Exit,
}

impl CommandEnd<'_> {
    /// Returns the outcome of the stage. Everything except exit code 0 is a failure.
    fn outcome(&self) -> Outcome {
        let Self { command, exit } = self;
        match (exit.how.as_str(), exit.code) {
            ("exited", Some(0)) => {
                Outcome::success().notes(format!("Tool completed: {command}")).claim_command(&exit.receipt)
            }
            ("exited", Some(code)) => Outcome::fail("tool/exit-code", format!("tool_exit_code_{code}")),
            ("timed-out", _) => {
                Outcome::fail("tool/timeout", format!("tool_command timed out after {} ms", exit.duration_ms))
                    .class("transient")
            }
            ("canceled", _) => Outcome::fail("tool/canceled", "the run was canceled").class("canceled"),
            (how, code) => Outcome::fail("tool/signal", format!("tool_command ended by {how} (code {code:?})")),
        }
    }

    /// Stores the output of the command. If it is refused, the stage does not fail.
    fn keep(&self) {
        let exit = &self.exit;
        let code = exit.code.map_or_else(|| format!("{}\n", exit.how), |code| format!("{code}\n"));
        for (name, text) in [
            ("tool.stdout.txt", exit.stdout.text()),
            ("tool.stderr.txt", exit.stderr.text()),
            ("tool.exitcode.txt", code),
        ] {
            if let Err(reason) = artifact::put_text(name, &text) {
                log::warn("artifact not kept", &[("name", name), ("reason", &reason)]);
            }
        }
    }

    /// Returns the beginning of the output, cut between two characters.
    fn output_head(&self) -> String {
        let mut text = self.exit.stdout.text();
        text.truncate(text.floor_char_boundary(CONTEXT_BYTES_MAX));
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exec::Captured;
    use glovebox_plugin_sdk::Status;

    fn exit(how: &str, code: Option<i32>) -> Exit {
        let nothing = || Captured { head: Vec::new(), tail: Vec::new(), total_bytes: 0, truncated: false };
        Exit {
            how: how.to_owned(),
            code,
            duration_ms: 1500,
            stdout: nothing(),
            stderr: nothing(),
            changed: Vec::new(),
            receipt: "r1".to_owned(),
            extra: Vec::new(),
        }
    }

    #[test]
    fn only_exit_code_zero_passes() {
        let check = |how: &str, code: Option<i32>, expected: Option<(&str, &str, &str)>| {
            let outcome = CommandEnd { command: "true", exit: exit(how, code) }.outcome();
            let failure = outcome.failure().map(|f| (f.class.as_str(), f.code.as_str(), f.reason.as_str()));
            assert_eq!(failure, expected);
            assert_eq!(outcome.status() == Status::Success, expected.is_none());
        };
        check("exited", Some(0), None);
        check("exited", Some(3), Some(("deterministic", "tool/exit-code", "tool_exit_code_3")));
        check("exited", None, Some(("deterministic", "tool/signal", "tool_command ended by exited (code None)")));
        check(
            "signaled",
            Some(0),
            Some(("deterministic", "tool/signal", "tool_command ended by signaled (code Some(0))")),
        );
        check("timed-out", None, Some(("transient", "tool/timeout", "tool_command timed out after 1500 ms")));
        check("canceled", None, Some(("canceled", "tool/canceled", "the run was canceled")));
    }

    #[test]
    fn cuts_at_a_characters_border() {
        let check = |printed: String, expected: &str| {
            let mut exit = exit("exited", Some(0));
            exit.stdout.total_bytes = printed.len() as u64;
            exit.stdout.head = printed.into_bytes();
            assert_eq!(CommandEnd { command: "true", exit }.output_head(), expected);
        };
        let most = "x".repeat(CONTEXT_BYTES_MAX - 1);
        check(format!("{most}äb"), &most);
        check("ab".to_owned(), "ab");
    }
}
