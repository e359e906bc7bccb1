//! `cargo xtask test` and `cargo xtask ci`: run all tests and checks, and print a summary as the last line.
//!
//! A step that could not run counts as failed, and nothing is skipped because something is missing. The only exception is a test whose
//! own tool (a language of `tests/projects`, `strace`) is not installed. The summary lists such tests.

use crate::{Step, attacks, bubblewrap, components, ordinary, process, pytest, repository, wasm_std::StdSource};
use std::io::{BufRead, BufReader};
use std::ops::AddAssign;
use std::process::{Command, ExitCode, Stdio};

/// Prefix of the line of a test that could not run.
const NOT_RUN: &str = "not run: ";
/// Prefix and suffix of the line of a failed test.
const FAILED: (&str, &str) = ("test ", " ... FAILED");

/// Sums of the reports of test binaries.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Tests that could not run, and names of failed tests. A test whose tool is not installed also counts as passed.
    lines: Vec<String>,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.lines.extend(other.lines);
    }
}

/// Builds the components, runs all tests and prints the summary.
pub(crate) fn test(arguments: &[String]) -> Step {
    let tally = run_tests(arguments)?;
    Ok(close(tally))
}

/// Runs the tests and then every check. Each check counts as one test in the summary.
pub(crate) fn ci() -> Step {
    let mut tally = run_tests(&[])?;
    for (name, check) in CHECKS {
        eprintln!("check: {name}");
        match check() {
            Ok(()) => tally.passed += 1,
            Err(reason) => {
                eprintln!("error: {name}: {reason}");
                tally += Tally { failed: 1, lines: vec![format!("failed: {name}: {reason}")], ..Tally::default() };
            }
        }
    }
    Ok(close(tally))
}

type Check = fn() -> Step<()>;

const CHECKS: [(&str, Check); 8] = [
    ("attacks as an ordinary user", attacks::as_ordinary_user),
    ("ordinary behaviours as an ordinary user", ordinary::in_every_tier),
    ("format", || process::demand(cargo().args(["fmt", "--all", "--check"]))),
    ("lints", || process::demand(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))),
    ("docs", || process::demand(cargo().env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps"]))),
    ("dependency policy", dependency_policy),
    ("tests of the example plugin", components::test_review_plugin),
    ("std from source", || components::check(Some(StdSource::Source))),
];

fn cargo() -> Command {
    process::cargo(&repository())
}

fn dependency_policy() -> Step<()> {
    let present = cargo().args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !present.is_ok_and(|status| status.success()) {
        process::demand(cargo().args(["install", "--locked", "cargo-deny"]))?;
    }
    process::demand(cargo().args(["deny", "check", "bans", "licenses", "sources"]))
}

fn run_tests(arguments: &[String]) -> Step<Tally> {
    components::build(StdSource::from_environment()?, &components::EXAMPLES)?;
    pytest::prepare()?;
    let mut command = cargo();
    command.args(["test", "--workspace", "--no-fail-fast"]).args(arguments);
    let mut command = bubblewrap::beside(command);
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", process::shown(&command)))?;
    let mut tally = Tally::default();
    if let Some(printed) = child.stdout.take() {
        for line in BufReader::new(printed).split(b'\n') {
            let line = line.map_err(|error| format!("cannot read what the tests print: {error}"))?;
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            tally += result_line(&line).unwrap_or_default();
            let name = line.strip_prefix(FAILED.0).and_then(|rest| rest.strip_suffix(FAILED.1));
            tally.lines.extend(name.map(|name| format!("failed: {name}")));
            tally.lines.extend(line.starts_with(NOT_RUN).then(|| line.to_string()));
        }
    }
    let status = child.wait().map_err(|error| format!("cannot wait for {}: {error}", process::shown(&command)))?;
    if !status.success() && tally.failed == 0 {
        let reason = format!("failed: {} ended with {status}", process::shown(&command));
        tally += Tally { failed: 1, lines: vec![reason], ..Tally::default() };
    }
    Ok(tally)
}

/// Parses the last line of a test binary.
fn result_line(line: &str) -> Option<Tally> {
    let counts = line.strip_prefix("test result: ")?;
    let count = |word: &str| {
        let before = counts.split_once(word)?.0;
        before.rsplit(|character: char| !character.is_ascii_digit()).next()?.parse().ok()
    };
    Some(Tally { passed: count(" passed")?, failed: count(" failed")?, lines: Vec::new() })
}

fn close(tally: Tally) -> ExitCode {
    tally.lines.iter().for_each(|line| println!("{line}"));
    let not_run = tally.lines.iter().filter(|line| line.starts_with(NOT_RUN)).count();
    if not_run > 0 {
        println!("{not_run} not run, because a tool is not on this machine");
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::{Tally, result_line};

    #[test]
    fn reads_the_closing_line_of_a_test_binary() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s";
        assert_eq!(result_line(line), Some(Tally { passed: 12, failed: 3, lines: Vec::new() }));
        assert_eq!(result_line("test outcome ... ok"), None);
        assert_eq!(result_line("test result: who knows"), None);
    }
}
