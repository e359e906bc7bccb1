//! The end of the output of a failed command, and the tests that failed, as rows of a summary.

use super::paint::Paint;
use super::{colours, failed_tests, visible};

/// Maximum number of lines of output.
const LINES_MAX: usize = 10;
/// Maximum number of characters of a line.
const LINE_CHARACTERS_MAX: usize = 160;
/// Maximum number of failed tests that are named.
const TESTS_MAX: usize = 10;
/// Maximum number of characters of a test's name.
const NAME_CHARACTERS_MAX: usize = 120;

/// The end of the output of a failed command.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FailedOutput {
    /// The last lines, not escaped.
    lines: Vec<String>,
    /// The names of the failed tests, not escaped.
    tests: Vec<String>,
}

impl FailedOutput {
    /// Reads the outputs of a command: standard output and standard error, or both as one text.
    pub fn new(outputs: &[String]) -> Self {
        let mut tests: Vec<String> = Vec::new();
        for name in outputs.iter().flat_map(|output| failed_tests::names(output)) {
            if !tests.contains(&name) {
                tests.push(name);
            }
        }
        Self { lines: last_lines(outputs), tests }
    }

    /// Returns true if the command printed nothing.
    pub fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// Returns the last lines, not escaped.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns the rows of the summary. Colours of the command are kept only if the paint is on.
    pub fn rows(&self, paint: Paint) -> Vec<(&'static str, String)> {
        let shown: Vec<String> =
            self.lines.iter().map(|line| format!("| {}", colours::cut(line, LINE_CHARACTERS_MAX, paint).0)).collect();
        let mut rows = Vec::new();
        if !shown.is_empty() {
            rows.push(("output", shown.join("\n             ")));
        }
        let mut names: Vec<String> =
            self.tests.iter().take(TESTS_MAX).map(|name| visible::summary(name, NAME_CHARACTERS_MAX)).collect();
        let more = self.tests.len().saturating_sub(TESTS_MAX);
        names.extend((more > 0).then(|| format!("and {more} more")));
        if !names.is_empty() {
            rows.push(("failed tests", names.join("\n             ")));
        }
        rows
    }
}

/// Returns the last lines of the outputs that are not empty. If there are two outputs, each gets half of the lines, and
/// the lines that the other one does not need.
fn last_lines(outputs: &[String]) -> Vec<String> {
    let is_text = |line: &&str| !colours::dropped(line).trim().is_empty();
    let lines = outputs.iter().map(|output| output.lines().filter(is_text).collect());
    let lines: Vec<Vec<&str>> = lines.filter(|lines: &Vec<_>| !lines.is_empty()).collect();
    let share = LINES_MAX / lines.len().max(1);
    let left: usize = lines.iter().map(|lines| share.saturating_sub(lines.len())).sum();
    let last = |lines: &Vec<&str>| {
        let most = (share + left).min(lines.len());
        lines[lines.len() - most..].iter().map(|line| line.trim_end().to_owned()).collect::<Vec<String>>()
    };
    lines.iter().flat_map(last).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(name: &str, count: usize) -> String {
        (1..=count).map(|number| format!("{name}{number}\n\n")).collect()
    }

    #[test]
    fn the_last_lines_of_both_streams_are_shown() {
        let check = |outputs: &[String], expected: &str| assert_eq!(last_lines(outputs).join(" "), expected);
        check(&[numbered("o", 12)], "o3 o4 o5 o6 o7 o8 o9 o10 o11 o12");
        check(&[numbered("o", 12), numbered("e", 2)], "o5 o6 o7 o8 o9 o10 o11 o12 e1 e2");
        check(&[numbered("o", 12), numbered("e", 12)], "o8 o9 o10 o11 o12 e8 e9 e10 e11 e12");
        check(&[String::new(), "\x1b[0m\n bad  \n".to_owned()], " bad");
        check(&[], "");
    }

    #[test]
    fn a_row_obeys_nothing_and_is_short() {
        let output = FailedOutput::new(&[format!("\x1b[31mbad\x1b[0m\x1b[2J\n{}\n", "x".repeat(400))]);
        let [(title, body)] = &output.rows(Paint::default())[..] else { panic!("one row") };
        assert_eq!(*title, "output");
        assert!(body.starts_with("| bad\\x1b[2J\n             | xxx") && body.ends_with("x…"), "{body}");
        assert!(body.lines().all(|line| line.chars().count() <= LINE_CHARACTERS_MAX + 20));
        assert!(output.rows(Paint::always())[0].1.starts_with("| \x1b[31mbad"));
    }

    #[test]
    fn failed_tests_are_named_once_and_not_without_end() {
        let many: String = (0..30).map(|number| format!("test t{number} ... FAILED\n")).collect();
        let output = FailedOutput::new(&[many.clone(), many]);
        let (title, names) = output.rows(Paint::default()).remove(1);
        assert_eq!((title, names.lines().count()), ("failed tests", TESTS_MAX + 1));
        assert!(names.starts_with("t0\n") && names.ends_with("and 20 more"), "{names}");
    }
}
