//! `cargo xtask test` and `cargo xtask ci`: run all tests and checks, and print a summary as the last line.
//!
//! A step that could not run counts as failed, and nothing is skipped because something is missing. The only exception is a test whose
//! own tool (a language of `tests/projects`, `strace`) is not installed. The summary lists such tests. It also has the time of each
//! step and the slowest tests, so that it is seen when they take longer.

use crate::timing::{TestTimes, slowest};
use crate::{
    Step, attacks, bubblewrap, components, moto, nats, ordinary, page, plugin_tools, process, pytest, registry,
    repository, twice,
    wasm_std::{StdSource, rustflags},
};
use std::io::{BufRead, BufReader, Read};
use std::ops::AddAssign;
use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// Environment variable with the number of tests that run at the same time.
const THREADS: &str = "RUST_TEST_THREADS";
/// Prefix of the line of a test that could not run.
const NOT_RUN: &str = "not run: ";
/// Prefix and suffix of the line of a failed test.
const FAILED: (&str, &str) = ("test ", " ... FAILED");
/// Number of tests in the list of the slowest.
const SLOWEST: usize = 10;

/// Sums of the reports of test binaries, and the times of steps and tests.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    passed: usize,
    failed: usize,
    /// Tests that could not run, and names of failed tests. A test whose tool is not installed also counts as passed.
    lines: Vec<String>,
    steps: Vec<(String, Duration)>,
    tests: Vec<(String, Duration)>,
}

impl Tally {
    /// Runs a step and records its time.
    fn time<T>(&mut self, name: &str, step: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = step();
        self.steps.push((name.to_owned(), begin.elapsed()));
        result
    }

    /// Adds a step that failed.
    fn with_failure(mut self, reason: &str) -> Self {
        self.failed += 1;
        self.lines.push(format!("failed: {reason}"));
        self
    }
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.lines.extend(other.lines);
        self.steps.extend(other.steps);
        self.tests.extend(other.tests);
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
        match tally.time(name, check) {
            Ok(()) => tally.passed += 1,
            Err(reason) => {
                eprintln!("error: {name}: {reason}");
                tally = tally.with_failure(&format!("{name}: {reason}"));
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
    ("components built twice", twice::compare),
    ("std from source", std_from_source),
];

/// Builds a component with the standard library from source, unless the components were built twice with exactly that library.
fn std_from_source() -> Step<()> {
    if rustflags(StdSource::from_environment()?)? == rustflags(Some(StdSource::Source))? {
        eprintln!("the components were built with the std from source");
        return Ok(());
    }
    components::check(Some(StdSource::Source))
}

fn cargo() -> Command {
    process::cargo(&repository())
}

/// Settings with which cargo-deny is compiled if the machine has none. It runs once, and its own settings (one unit with
/// whole-program optimisation) would take minutes. Only the comparison of licence texts needs an optimised build.
const QUICK_BUILD: [&str; 4] = [
    "profile.release.lto=false",
    "profile.release.codegen-units=16",
    "profile.release.opt-level=0",
    "profile.release.package.spdx.opt-level=2",
];

fn dependency_policy() -> Step<()> {
    let present = cargo().args(["deny", "--version"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let mut deny = if present.is_ok_and(|status| status.success()) { cargo() } else { Command::new(built_deny()?) };
    process::demand(deny.current_dir(repository()).args(["deny", "check", "bans", "licenses", "sources"]))
}

/// Returns a cargo-deny below `target`, which is built first if it is not there.
fn built_deny() -> Step<PathBuf> {
    let folder = repository().join("target/cargo-deny");
    let program = folder.join("bin/cargo-deny");
    if !program.is_file() {
        let settings = QUICK_BUILD.iter().flat_map(|setting| ["--config", setting]);
        let mut install = cargo();
        install.args(["install", "--locked", "--root"]).arg(&folder).args(settings).arg("cargo-deny");
        process::demand(&mut install)?;
    }
    Ok(program)
}

/// Returns how many tests of a binary run at the same time: one more than there are processors, because many tests wait.
fn threads() -> usize {
    let chosen = std::env::var(THREADS).ok().and_then(|count| count.parse().ok());
    chosen.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from) + 1)
}

fn run_tests(arguments: &[String]) -> Step<Tally> {
    let mut tally = Tally::default();
    tally.time("components", || components::build(StdSource::from_environment()?, &components::EXAMPLES))?;
    tally.time("pytest", pytest::prepare)?;
    tally.time("nats-server", nats::prepare)?;
    tally.time("moto", moto::prepare)?;
    if let Err(reason) = tally.time("registry", registry::prepare) {
        eprintln!("the tests of plugins in registries run without the registry of Debian: {reason}");
    }
    tally.time("tools of other languages", plugin_tools::prepare)?;
    if arguments.is_empty() {
        tally = example_plugin(tally);
    }
    if let Err(reason) = tally.time("browser", page::prepare) {
        eprintln!("the tests of the page run with an installed browser only: {reason}");
    }
    // With ARGs, cargo builds only what they select, when it runs it.
    if arguments.is_empty() {
        let mut build = cargo();
        build.args(["test", "--workspace", "--no-run"]);
        if let Err(reason) = tally.time("build of the tests", || process::demand(&mut build)) {
            return Ok(tally.with_failure(&reason));
        }
    }
    let mut command = cargo();
    let threads = threads();
    command.args(["test", "--workspace", "--no-fail-fast"]).args(arguments).env(THREADS, threads.to_string());
    let mut command = bubblewrap::beside(command);
    let begin = Instant::now();
    let mut child = command
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| format!("cannot start {}: {error}", process::shown(&command)))?;
    if let Some(printed) = child.stdout.take() {
        tally += read_tests(printed, TestTimes::new(threads), begin)?;
    }
    let status = child.wait().map_err(|error| format!("cannot wait for {}: {error}", process::shown(&command)))?;
    tally.steps.push(("run of the tests".to_owned(), begin.elapsed()));
    if !status.success() && tally.failed == 0 {
        return Ok(tally.with_failure(&format!("{} ended with {status}", process::shown(&command))));
    }
    Ok(tally)
}

/// Runs the tests of the example plugin. This also compiles the packages with which the tests build other plugins in Rust, with all
/// processors. Otherwise the first of these tests does it alone, and the others wait for it.
fn example_plugin(mut tally: Tally) -> Tally {
    let name = "tests of the example plugin";
    match tally.time(name, components::test_review_plugin) {
        Ok(()) => {
            tally.passed += 1;
            tally
        }
        Err(reason) => {
            eprintln!("error: {name}: {reason}");
            tally.with_failure(&format!("{name}: {reason}"))
        }
    }
}

/// Prints what the test binaries print, and sums up their results.
fn read_tests(printed: impl Read, mut times: TestTimes, begin: Instant) -> Step<Tally> {
    let mut tally = Tally::default();
    for line in BufReader::new(printed).split(b'\n') {
        let line = line.map_err(|error| format!("cannot read what the tests print: {error}"))?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        tally += result_line(&line).unwrap_or_default();
        tally.tests.extend(times.read(&line, begin.elapsed()));
        let name = line.strip_prefix(FAILED.0).and_then(|rest| rest.strip_suffix(FAILED.1));
        tally.lines.extend(name.map(|name| format!("failed: {name}")));
        tally.lines.extend(line.starts_with(NOT_RUN).then(|| line.to_string()));
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
    Some(Tally { passed: count(" passed")?, failed: count(" failed")?, ..Tally::default() })
}

fn close(tally: Tally) -> ExitCode {
    let seconds = |(name, took): &(String, Duration)| println!("{:>7.1} s  {name}", took.as_secs_f64());
    println!("time of each step:");
    tally.steps.iter().for_each(seconds);
    println!("the slowest tests:");
    slowest(tally.tests, SLOWEST).iter().for_each(seconds);
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
    use super::{Tally, TestTimes, read_tests, result_line};
    use std::time::Instant;

    #[test]
    fn reads_the_closing_line_of_a_test_binary() {
        let line = "test result: FAILED. 12 passed; 3 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s";
        assert_eq!(result_line(line), Some(Tally { passed: 12, failed: 3, ..Tally::default() }));
        assert_eq!(result_line("test outcome ... ok"), None);
        assert_eq!(result_line("test result: who knows"), None);
    }

    #[test]
    fn what_test_binaries_print_is_summed_up() {
        let printed = "running 2 tests\ntest a ... ok\n\nnot run: b: no perl\ntest b ... FAILED\n\n\
            test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\
            running 1 test\ntest c ... ok\n\
            test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        let tally = read_tests(printed.as_bytes(), TestTimes::new(1), Instant::now()).unwrap();
        let names: Vec<&str> = tally.tests.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((tally.passed, tally.failed, names), (2, 1, vec!["a", "b", "c"]));
        assert_eq!(tally.lines, ["not run: b: no perl", "failed: b"]);
    }
}
