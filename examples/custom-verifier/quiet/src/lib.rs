//! A verifier without a model: runs the command in the node's attribute `program`, and refuses debug output.
//!
//! The exit code is in the host's receipt. The verdict about the output is made in this component, so no builder can write it.

use glovebox_plugin_sdk::{Handler, Outcome, Stage, exec, export};

/// Beginnings of lines that are debug output.
const MARKS: [&str; 3] = ["DEBUG", "TRACE", "[src/"];

struct Quiet;

impl Handler for Quiet {
    fn execute(stage: Stage) -> Outcome {
        let words = match exec::words(stage.attribute("program").unwrap_or_default()) {
            Ok(words) if !words.is_empty() => words,
            _ => return Outcome::fail("quiet/program", "no `program`, expected a command without a shell"),
        };
        let exit = match exec::argv(words).run() {
            Ok(exit) => exit,
            Err(error) => return Outcome::from(error),
        };
        if !exit.passed() {
            return Outcome::fail("quiet/exit", format!("the program ended with {:?}", exit.code));
        }
        // Parts that were cut out of a long output cannot be checked.
        if exit.stdout.truncated || exit.stderr.truncated {
            return Outcome::fail("quiet/long", "the program printed more than can be read");
        }
        let text = exit.stdout.text() + "\n" + &exit.stderr.text();
        match text.lines().find(|line| MARKS.iter().any(|mark| line.trim_start().starts_with(mark))) {
            Some(line) => Outcome::fail("quiet/debug", format!("the program prints debug output: {line}")),
            None => Outcome::success().notes("no debug output"),
        }
    }
}

export!(
    Quiet,
    manifest = r#"{"name":"acme.quiet","version":"0.1.0","description":"Refuses debug output.",
    "wants":{"filesystem":"workspace","read":["./"],"commands":["*"]}}"#
);

#[cfg(test)]
mod tests {
    use super::Quiet;
    use glovebox_plugin_sdk::testing::{Host, exited, stage};

    fn check(code: i32, printed: &str, expected: Option<&str>) {
        let host = Host::new();
        host.answer_command("sh greet.sh", Ok(exited(code, printed)));
        let outcome = host.execute::<Quiet>(stage("n").attribute("program", "sh greet.sh"));
        assert_eq!(outcome.failure().map(|failure| failure.code.as_str()), expected, "{printed}");
    }

    #[test]
    fn the_exit_and_the_output_are_judged() {
        check(0, "Hello, Ada\n", None);
        check(0, "Hello\n  DEBUG name=Ada\n", Some("quiet/debug"));
        check(1, "Hello, Ada\n", Some("quiet/exit"));
    }

    #[test]
    fn a_node_without_a_program_fails() {
        let outcome = Host::new().execute::<Quiet>(stage("n"));
        assert_eq!(outcome.failure().map(|failure| failure.code.as_str()), Some("quiet/program"));
    }
}
