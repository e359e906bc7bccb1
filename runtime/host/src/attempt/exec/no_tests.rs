//! Detects test commands that passed without running a test, by the report of the test runner.
//!
//! The programs that print the report may come from a stage. So a report can only make a command lose its proof: a false report that
//! tests ran has the same effect as no report. A report in an unknown format is ignored.

use glovebox_jail::exec::{CapturedOutput, Exit, Program};

/// Programs that run tests although their names do not contain one of [`WORDS`].
const RUNNERS: [&str; 12] =
    ["ava", "bats", "ctest", "jest", "mocha", "nextest", "nox", "phpunit", "prove", "tap", "tox", "vitest"];
/// Words that mark a command as a test command: `npm test`, `node --test`, `make unit-tests`, `python -m pytest`.
const WORDS: [&str; 8] = ["test", "tests", "spec", "specs", "pytest", "unittest", "rspec", "verify"];
/// Options of test runners that only list or build tests, by runner.
const LISTS: [(&str, &[&str]); 4] = [
    ("cargo", &["--no-run", "--list", "--help", "-h", "--version", "-V"]),
    ("go", &["-c", "-list", "-n"]),
    ("jest", &["--listTests", "--showConfig", "--help", "-h", "--version", "-v"]),
    ("vitest", &["list", "--help", "-h", "--version", "-v"]),
];
/// Beginnings of lines which say that there was no test to run.
const NOTHING: [&str; 10] = [
    "NO TESTS RAN",
    "No test files found",
    "No test is available",
    "No test matches the given testcase filter",
    "No tests executed!",
    "No tests found",
    "No tests to run",
    "No tests were found",
    "Result: NOTESTS",
    "There are no tests to run",
];

/// Returns true if a command that exited with 0 is a test command and ran no test.
pub(super) fn ran_no_test(program: &Program, exit: &Exit) -> bool {
    let commands = simple_commands(program);
    commands.iter().any(|words| runs_tests(words))
        && (commands.iter().any(|words| only_lists(words)) || TestReport::from_exit(exit).tests_run() == Some(0))
}

/// Returns the arguments of each command. Shell text is split only approximately. An unknown construct is not taken for a test command.
fn simple_commands(program: &Program) -> Vec<Vec<&str>> {
    match program {
        Program::Argv(argv) => vec![argv.iter().map(String::as_str).collect()],
        Program::Shell(text) => {
            let simple = text.split(['\n', ';', '|', '&', '(', ')']);
            simple.map(|one| one.split_whitespace().map(|word| word.trim_matches(['"', '\''])).collect()).collect()
        }
    }
}

fn runs_tests(words: &[&str]) -> bool {
    let is_word = |part: &str| WORDS.contains(&part);
    words
        .iter()
        .map(|word| ReportLine(word).name())
        .any(|name| RUNNERS.contains(&name) || name.split(|character: char| !character.is_alphanumeric()).any(is_word))
}

fn only_lists(words: &[&str]) -> bool {
    let is_of = |program: &str| words.iter().any(|word| ReportLine(word).name() == program);
    LISTS
        .iter()
        .filter(|(program, _)| is_of(program))
        .any(|(_, options)| words.iter().any(|word| options.contains(&word.split('=').next().unwrap_or_default())))
}

/// The output of a command, without terminal colours.
struct TestReport {
    text: String,
    /// True if the middle of the output is missing.
    has_gap: bool,
}

impl TestReport {
    fn from_exit(exit: &Exit) -> Self {
        let text_of = |stream: &CapturedOutput| {
            let (head, tail) = (String::from_utf8_lossy(&stream.head), String::from_utf8_lossy(&stream.tail));
            let between = if stream.truncated { "\n" } else { "" };
            format!("{head}{between}{tail}")
        };
        let text = without_colours(&format!("{}\n{}", text_of(&exit.stdout), text_of(&exit.stderr)));
        Self { text, has_gap: exit.stdout.truncated || exit.stderr.truncated }
    }

    fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.lines().map(|line| line.trim_start_matches("[INFO] ").trim())
    }

    /// Returns the sum of the tests that ran according to all reports, or `None` if there is no report.
    fn tests_run(&self) -> Option<u64> {
        let of_lines = self.lines().filter_map(|line| {
            let line = ReportLine(line);
            let by_words = line.nothing().or_else(|| line.summary_of_words()).or_else(|| line.counted_first());
            by_words.or_else(|| line.pytest()).or_else(|| line.labelled())
        });
        let whole = [self.tap(), self.unittest(), self.libtest(), self.go(), self.gradle()];
        of_lines.map(Some).chain(whole).flatten().reduce(u64::saturating_add)
    }

    /// Returns the sum of the numbers that follow one of the labels at the beginning of a line.
    fn sum_after(&self, labels: &[&str]) -> Option<u64> {
        let after = |line: &str| labels.iter().find_map(|label| ReportLine(line.strip_prefix(label)?).number());
        self.lines().filter_map(after).reduce(u64::saturating_add)
    }

    /// Reads a report of `node --test` or TAP: the totals, or otherwise the lines of the tests.
    fn tap(&self) -> Option<u64> {
        if let Some(tests) = self.sum_after(&["# tests ", "ℹ tests "]) {
            let skipped = self.sum_after(&["# skipped ", "ℹ skipped ", "# skip "]).unwrap_or_default();
            return Some(tests.saturating_sub(skipped));
        }
        self.lines().find(|line| line.strip_prefix("1..").map(ReportLine).and_then(ReportLine::number).is_some())?;
        let is_test = |line: &&str| line.starts_with("ok ") || line.starts_with("not ok ");
        let is_skipped = |line: &str| line.to_ascii_lowercase().contains("# skip");
        Some(self.lines().filter(|line| is_test(line) && !is_skipped(line)).count() as u64)
    }

    /// Reads `Ran 3 tests in 0.1s` with `OK (skipped=3)`, and bun's `Ran 3 tests across 1 files.`
    fn unittest(&self) -> Option<u64> {
        let ran = self
            .lines()
            .filter(|line| line.contains(" test"))
            .filter_map(|line| ReportLine(line.strip_prefix("Ran ")?).number());
        let skipped = self.lines().filter(|line| line.starts_with("OK (")).filter_map(|line| {
            let (_, after) = line.split_once("skipped=")?;
            ReportLine(after).number()
        });
        Some(ran.reduce(u64::saturating_add)?.saturating_sub(skipped.sum()))
    }

    /// Reads a report of libtest. Each test binary prints one result. A binary that prints none has its own harness and may have run tests.
    fn libtest(&self) -> Option<u64> {
        let results = || self.lines().filter(|line| line.starts_with("test result: "));
        let begun = self.lines().filter(|line| line.starts_with("Running ") || line.starts_with("Doc-tests ")).count();
        let ran = results().map(|line| {
            ReportLine(line).before(" passed")
                + ReportLine(line).before(" failed")
                + ReportLine(line).before(" measured")
        });
        let ran = ran.reduce(u64::saturating_add)?;
        let is_open = self.has_gap || results().count() < begun;
        (ran > 0 || !is_open).then_some(ran)
    }

    /// Reads a report of `go test`, which prints one line for each package, including packages without tests.
    fn go(&self) -> Option<u64> {
        let is_package = |line: &&str| {
            let first = line.split('\t').next().unwrap_or_default().trim();
            line.contains('\t') && matches!(first, "ok" | "?")
        };
        let mut packages = self.lines().filter(is_package).peekable();
        packages.peek()?;
        let ran = packages.filter(|line| !line.contains("[no test files]") && !line.contains("[no tests to run]"));
        let ran = ran.count() as u64;
        (ran > 0 || !self.has_gap).then_some(ran)
    }

    /// Reads a report of Gradle. A test task without tests ends with `NO-SOURCE`; any other test task may have run tests.
    fn gradle(&self) -> Option<u64> {
        let tasks = self.lines().filter_map(|line| line.strip_prefix("> Task :"));
        let mut tests =
            tasks.filter(|task| task.split(' ').next().is_some_and(|name| name.ends_with("est"))).peekable();
        tests.peek()?;
        let ran = tests.filter(|task| !task.ends_with("NO-SOURCE")).count() as u64;
        (ran > 0 || !self.has_gap).then_some(ran)
    }
}

/// A line of a report, or a part of a line.
#[derive(Clone, Copy)]
struct ReportLine<'t>(&'t str);

impl<'t> ReportLine<'t> {
    /// Returns the last component of a path.
    fn name(self) -> &'t str {
        self.0.rsplit('/').next().unwrap_or(self.0)
    }

    /// Returns 0 if the line says that there was no test to run.
    fn nothing(self) -> Option<u64> {
        let Self(line) = self;
        NOTHING.iter().any(|start| line.starts_with(start)).then_some(0)
    }

    /// Reads `Tests: 1 failed, 2 passed, 3 total` of jest and `Tests  2 passed | 1 skipped (3)` of vitest.
    fn summary_of_words(self) -> Option<u64> {
        let Self(line) = self;
        let rest = line.strip_prefix("Tests")?;
        let rest = rest.strip_prefix(':').or_else(|| rest.strip_prefix("  "))?;
        if rest.trim() == "no tests" {
            return Some(0);
        }
        let parts: Vec<(u64, &str)> = rest.split([',', '|']).map(ReportLine).filter_map(ReportLine::counted).collect();
        let is_known = |word: &str| ["passed", "failed", "skipped", "todo", "total", "pending"].contains(&word);
        let is_report = !parts.is_empty() && parts.iter().all(|(_, word)| is_known(word));
        let ran = parts.iter().filter(|(_, word)| matches!(*word, "passed" | "failed")).map(|(count, _)| count);
        is_report.then(|| ran.sum())
    }

    /// Reads lines that begin with a count: `0 passing (1ms)`, `0 runs, 0 assertions, …`, `2 examples, 0 failures, 2 pending`, `0
    /// tests, 0 failures`, `OK (3 tests, 4 assertions)`, `ok | 0 passed | 0 failed`.
    fn counted_first(self) -> Option<u64> {
        let Self(line) = self;
        let line = line.strip_prefix("OK (").or_else(|| line.strip_prefix("ok | ")).unwrap_or(line);
        let mut parts = line.split([',', '|']).map(|part| part.trim().trim_end_matches(')'));
        let (count, word) = ReportLine(parts.next()?).counted()?;
        if word == "passing" {
            return Some(count);
        }
        let rest: Vec<(u64, &str)> = parts.map(ReportLine).filter_map(ReportLine::counted).collect();
        let has = |names: &[&str]| rest.iter().any(|(_, word)| names.contains(word));
        let skipped = |names: &[&str]| -> u64 {
            rest.iter().filter(|(_, word)| names.contains(word)).map(|(count, _)| count).sum()
        };
        match word {
            "runs" | "run" | "tests" | "test" if has(&["assertions", "assertion", "failures", "failure"]) => {
                Some(count.saturating_sub(skipped(&["skips", "skipped"])))
            }
            "examples" | "example" if has(&["failures", "failure"]) => {
                Some(count.saturating_sub(skipped(&["pending"])))
            }
            "passed" if has(&["failed"]) => Some(count.saturating_add(skipped(&["failed"]))),
            _ => None,
        }
    }

    /// Reads `=== 2 passed, 1 skipped in 0.01s ===`, `no tests ran in 0.01s` and `3 tests collected in 0.01s`.
    fn pytest(self) -> Option<u64> {
        let Self(line) = self;
        const RAN: [&str; 7] = ["passed", "failed", "error", "errors", "xfailed", "xpassed", "subtests"];
        const OTHER: [&str; 8] = ["skipped", "deselected", "warning", "warnings", "rerun", "tests", "test", "selected"];
        let (counts, time) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
        let time = time.split(' ').next()?.strip_suffix('s')?;
        if time.is_empty() || !time.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return None;
        }
        let parts = counts.split(", ").filter(|part| *part != "no tests ran" && *part != "no tests collected");
        let parts: Vec<(u64, &str)> = parts.map(|part| ReportLine(part).counted()).collect::<Option<_>>()?;
        let is_report = parts.iter().all(|(_, word)| RAN.contains(word) || OTHER.contains(word));
        let ran = parts.iter().filter(|(_, word)| RAN.contains(word)).map(|(count, _)| count);
        is_report.then(|| ran.sum())
    }

    /// Reads lines with labels: `Tests run: 3, Failures: 0, Errors: 0, Skipped: 3`, `Failed: 0, Passed: 0, Skipped: 1`, `Files=1,
    /// Tests=0, …`, and nextest's `Summary [0.1s] 0 tests run: 0 passed`.
    fn labelled(self) -> Option<u64> {
        let Self(line) = self;
        let after = |label: &str| ReportLine(line.split_once(label)?.1.trim_start()).number();
        if let Some(tests) = line.strip_prefix("Tests run:") {
            return Some(
                ReportLine(tests.trim_start()).number()?.saturating_sub(after("Skipped:").unwrap_or_default()),
            );
        }
        if line.starts_with("Files=") {
            return after("Tests=");
        }
        if line.starts_with("Summary [") {
            return Some(self.before(" tests run:").max(self.before(" test run:")));
        }
        match (after("Failed:"), after("Passed:")) {
            (Some(failed), Some(passed)) if line.contains("Skipped:") => Some(failed.saturating_add(passed)),
            _ => None,
        }
    }

    /// Reads `3 passed` or `3 passed (4)`: a number and the word after it.
    fn counted(self) -> Option<(u64, &'t str)> {
        let Self(part) = self;
        let (count, rest) = part.trim().split_once(' ')?;
        Some((count.parse().ok()?, rest.split(' ').next()?))
    }

    /// Returns the number that a text begins with.
    fn number(self) -> Option<u64> {
        let Self(text) = self;
        let digits = text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len();
        text[..digits].parse().ok()
    }

    /// Returns the number right before a word, or 0 if there is none.
    fn before(self, word: &str) -> u64 {
        let Self(line) = self;
        let count = line.split_once(word).and_then(|(before, _)| before.rsplit(' ').next()?.parse().ok());
        count.unwrap_or_default()
    }
}

/// Returns the text without terminal escape sequences.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| {
        let end = part.find(|character: char| character.is_ascii_alphabetic()).map_or(0, |end| end + 1);
        plain + &part[end..]
    })
}

#[cfg(test)]
mod tests;
