//! Runs the command in the attribute `program`, and fails if it ends with another code than 0.

use glovebox_plugin_sdk::{Handler, Outcome, Stage, exec, export};

struct Plugin;

impl Handler for Plugin {
    fn execute(stage: Stage) -> Outcome {
        let words = match exec::words(stage.attribute("program").unwrap_or_default()) {
            Ok(words) if !words.is_empty() => words,
            _ => return Outcome::fail("run/program", "`program` is not a command without a shell"),
        };
        match exec::argv(words).run() {
            Err(error) => Outcome::from(error),
            Ok(exit) if exit.passed() => Outcome::success().notes("the program passed"),
            Ok(exit) => Outcome::fail("run/exit", format!("the program ended with {:?}", exit.code)),
        }
    }
}

export!(Plugin);

#[cfg(test)]
mod tests {
    use super::Plugin;
    use glovebox_plugin_sdk::testing::{Host, exited, stage};

    #[test]
    fn the_exit_code_decides() {
        for (code, expected) in [(0, None), (3, Some("run/exit"))] {
            let host = Host::new();
            host.answer_command("sh test.sh", Ok(exited(code, "")));
            let outcome = host.execute::<Plugin>(stage("check").attribute("program", "sh test.sh"));
            assert_eq!(outcome.failure().map(|failure| failure.code.as_str()), expected);
        }
    }
}
