//! The `tool` handler (spec §4.10): runs the node's `tool_command` and says how it exited.
//!
//! It knows no sandbox and keeps no scope: the host runs the command, under guard, and hands back a receipt. The claim that
//! the command passed cites that receipt, so the verdict does not rest on this component's word.
#![forbid(unsafe_code)]

use glovebox_plugin_sdk::exec::{self, Exit};
use glovebox_plugin_sdk::{Handler, Outcome, Stage, artifact, export, log};

/// How much of the output goes into the pipeline's context, in bytes.
const CONTEXT_BYTES_MAX: usize = 10 * 1024;

struct Tool;

impl Handler for Tool {
    fn execute(stage: Stage) -> Outcome {
        let Some(command) = stage.attribute("tool_command").filter(|text| !text.trim().is_empty()) else {
            return Outcome::fail("tool/no-command", "No tool_command specified");
        };
        let ran = match exec::shell_of(&stage, command) {
            Ok(described) => described.run(),
            Err(reason) => return Outcome::fail("tool/timeout-syntax", reason),
        };
        match ran {
            Ok(exit) => {
                keep(&exit);
                judge(command, &exit).set("tool.output", head(&exit.stdout.text(), CONTEXT_BYTES_MAX))
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

/// Turns the end of the command into an outcome; everything but exit code 0 is a failure.
fn judge(command: &str, exit: &Exit) -> Outcome {
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

/// Keeps what the command printed; a stage is not failed because its record was cut short.
fn keep(exit: &Exit) {
    let code = exit.code.map_or_else(|| exit.how.clone(), |code| code.to_string());
    for (name, text) in [
        ("tool.stdout.txt", exit.stdout.text()),
        ("tool.stderr.txt", exit.stderr.text()),
        ("tool.exitcode.txt", format!("{code}\n")),
    ] {
        if let Err(reason) = artifact::put_text(name, &text) {
            log::warn("artifact not kept", &[("name", name), ("reason", &reason)]);
        }
    }
}

/// Cuts a text to at most `bytes_max` bytes at a character's border.
fn head(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
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
            let outcome = judge("true", &exit(how, code));
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
        assert_eq!(head("aäb", 2), "a");
        assert_eq!(head("ab", 10), "ab");
    }
}
