//! Line numbers in the output of `read_file` (decision served-line-numbers), and their removal from content that the model writes.
//!
//! A model often copies the numbers when it writes lines that it read, possibly to another path or in a later stage of the
//! conversation. Numbers are removed only if the content is what was served (decision line-numbers-are-stripped). A numbered table or
//! a TSV file that merely looks similar is not changed.

use crate::path::WorkspacePath;
use std::collections::{HashSet, VecDeque};

/// Maximum length of served text that is remembered, in bytes. The oldest reads are forgotten first. A context of a million tokens has
/// about this length.
const SERVED_BYTES_MAX: usize = 4 << 20;

/// The text of a file that the model got: with line numbers, and cut if it was too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShownText<'a>(pub(crate) &'a str);

/// The new content of a file as the model wrote it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content<'a>(pub(crate) &'a str);

/// Adds line numbers, from `first` (counted from 1), in the form `  1 | code`.
pub(crate) fn numbered(first: usize, lines: &[&str]) -> String {
    let width = (first + lines.len()).saturating_sub(1).to_string().len().max(3);
    let numbered = lines.iter().zip(first..).map(|(line, number)| format!("{number:>width$} | {line}"));
    numbered.collect::<Vec<_>>().join("\n")
}

/// The lines of files that the model was shown in this conversation.
///
/// The lines are kept when the conversation is compacted. A later stage begins with the reads that the conversation still
/// contains.
#[derive(Debug, Default)]
pub(crate) struct ServedLines {
    /// Reads, oldest first.
    reads: VecDeque<ReadAnswer>,
}

/// A result of `read_file`.
#[derive(Debug, PartialEq, Eq)]
struct ReadAnswer {
    path: String,
    /// See [`ShownText`].
    shown: String,
}

/// A line with its number, without trailing white space.
#[derive(Debug, PartialEq, Eq, Hash)]
struct NumberedLine<'a> {
    number: &'a str,
    code: &'a str,
}

impl ServedLines {
    /// Records which text of a file the model was shown.
    pub(crate) fn remember(&mut self, path: WorkspacePath<'_>, ShownText(shown): ShownText<'_>) {
        let read = ReadAnswer { path: key(path), shown: shown.to_owned() };
        self.reads.retain(|known| *known != read);
        self.reads.push_back(read);
        while self.reads.iter().map(ReadAnswer::bytes).sum::<usize>() > SERVED_BYTES_MAX {
            self.reads.pop_front();
        }
    }

    /// Removes served line numbers from content that the model wrote. Returns `None` if the content must not be
    /// changed.
    ///
    /// Every non-empty line must have a number. No line may occur, with its number as part of the text, in a file that was served. For
    /// a path that was not read, all lines must have been served with exactly these numbers. For a path that was read, half of the
    /// lines are enough. For an edited file that was numbered anew, half of the texts are enough, if the numbers are consecutive and
    /// begin where a read of the path began. Content that repeats served lines with their numbers on purpose, such as an excerpt in a
    /// report, cannot be distinguished from a mistake.
    pub(crate) fn strip(&self, path: WorkspacePath<'_>, content: Content<'_>) -> Option<String> {
        if !content.looks_numbered() {
            return None;
        }
        let path = key(path);
        let of_any: HashSet<NumberedLine<'_>> = self.reads.iter().flat_map(ReadAnswer::lines).collect();
        let codes: HashSet<&str> = of_any.iter().map(|line| line.code).collect();
        let own = || self.reads.iter().filter(|read| read.path == path);
        let of_path: HashSet<&str> = own().flat_map(ReadAnswer::lines).map(|line| line.code).collect();
        let begins: HashSet<&str> = own().filter_map(|read| read.lines().next()).map(|line| line.number).collect();
        let (mut plain, mut written, mut count_of_path, mut count_of_any) = (Vec::new(), 0, 0, 0);
        let mut sequence = Sequence::default();
        for line in content.0.split('\n') {
            let Some((number, code)) = Content(line).numbered() else {
                sequence.skip_a_line();
                plain.push(line);
                continue;
            };
            if codes.contains(line.trim_end()) {
                return None;
            }
            plain.push(code);
            let code = code.trim_end();
            let is_served = of_any.contains(&NumberedLine { number, code });
            sequence.go_on(number, is_served || begins.contains(number));
            if !code.is_empty() {
                written += 1;
                count_of_path += usize::from(of_path.contains(code));
                count_of_any += usize::from(is_served);
            }
        }
        if written == 0 {
            return None;
        }
        let is_edited = !of_path.is_empty() && 2 * count_of_any >= written;
        let is_numbered_anew = sequence.is_unbroken() && 2 * count_of_path >= written;
        (count_of_any == written || is_edited || is_numbered_anew).then(|| plain.join("\n"))
    }
}

/// Checks whether the numbers of lines are consecutive and begin at a number with which the file was shown.
#[derive(Debug, Default)]
struct Sequence {
    /// The last number; `None` before the first number and after a gap.
    last: Option<u64>,
    /// Lines without a number since the last number. They may have been counted.
    skipped: u64,
    is_broken: bool,
}

impl Sequence {
    fn skip_a_line(&mut self) {
        self.skipped += 1;
    }

    fn go_on(&mut self, number: &str, may_begin: bool) {
        let number = number.parse().ok();
        let runs_on = match (self.last, number) {
            (None, Some(_)) => may_begin && !self.is_broken,
            (Some(last), Some(number)) => number > last && number - last <= self.skipped.saturating_add(1),
            (_, None) => false,
        };
        self.is_broken |= !runs_on;
        self.last = number.filter(|_| runs_on);
        self.skipped = 0;
    }

    fn is_unbroken(&self) -> bool {
        !self.is_broken && self.last.is_some()
    }
}

impl ReadAnswer {
    fn bytes(&self) -> usize {
        self.path.len() + self.shown.len()
    }

    /// Returns the numbered lines. The line after a mark such as `[12 characters left out]` is skipped, because its beginning is missing.
    fn lines(&self) -> impl Iterator<Item = NumberedLine<'_>> {
        let mut is_cut = false;
        let whole = self.shown.split('\n').filter(move |line| {
            let is_rest = is_cut;
            is_cut = !is_rest && line.starts_with('[');
            !is_rest
        });
        let numbered = whole.filter_map(|line| Content(line).numbered());
        numbered.map(|(number, code)| NumberedLine { number, code: code.trim_end() })
    }
}

impl<'a> Content<'a> {
    /// Returns true if every non-empty line has a number.
    pub(crate) fn looks_numbered(self) -> bool {
        let mut lines = self.0.lines().filter(|line| !line.trim().is_empty()).peekable();
        lines.peek().is_some() && lines.all(|line| Content(line).numbered().is_some())
    }

    /// Splits a line into its number and its text: digits, then a bar and one space, or a tab.
    fn numbered(self) -> Option<(&'a str, &'a str)> {
        let line = self.0.trim_start();
        let rest = line.trim_start_matches(|character: char| character.is_ascii_digit());
        let number = line.strip_suffix(rest).filter(|number| !number.is_empty())?;
        if let Some(code) = rest.strip_prefix('\t') {
            return Some((number, code));
        }
        let code = rest.trim_start_matches(' ').strip_prefix('|')?;
        Some((number, code.strip_prefix(' ').unwrap_or(code)))
    }
}

/// Returns a normalized path: `./a/b`, `a//b` and `a/b` are the same file.
fn key(path: WorkspacePath<'_>) -> String {
    path.names().collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_reading(path: &str, text: &str) -> ServedLines {
        let mut served = ServedLines::default();
        serve(&mut served, path, 1, &text.lines().collect::<Vec<_>>());
        served
    }

    fn serve(served: &mut ServedLines, path: &str, first: usize, lines: &[&str]) {
        served.remember(WorkspacePath(path), ShownText(&numbered(first, lines)));
    }

    #[test]
    fn numbers_are_right_aligned_with_a_bar() {
        assert_eq!(numbered(1, &["x", ""]), "  1 | x\n  2 | ");
        assert_eq!(numbered(999, &["x", "y"]), " 999 | x\n1000 | y");
        assert_eq!(numbered(1, &[]), "");
    }

    #[test]
    fn served_numbers_are_taken_off() {
        let served = after_reading("src/a.rs", "fn a() {\n\n    b();\n}");
        let check = |path: &str, content: &str, expected: Option<&str>| {
            assert_eq!(served.strip(WorkspacePath(path), Content(content)).as_deref(), expected, "{content}");
        };
        check("src/a.rs", "  1 | fn a() {\n  2 | \n  3 |     b();\n  4 | }\n", Some("fn a() {\n\n    b();\n}\n"));
        check("./src//a.rs", "  1 | fn a() {\n  2 | }\n", Some("fn a() {\n}\n"));
        check("src/a.rs", "1\tfn a() {\n2\t}", Some("fn a() {\n}"));
        check("src/a.rs", "  1 | fn a() {\n  2 |     c();\n  3 | }", Some("fn a() {\n    c();\n}"));
        check("src/a.rs", "1 |fn a() {\r\n2 |}\r\n", Some("fn a() {\r\n}\r\n"));
    }

    #[test]
    fn everything_else_is_written_as_it_is() {
        let served = after_reading("a.rs", "fn a() {\n}");
        let check = |path: &str, content: &str| {
            assert_eq!(served.strip(WorkspacePath(path), Content(content)), None, "{content}")
        };
        check("a.rs", "fn a() {\n}");
        check("a.rs", "  1 | fn a() {\n}");
        check("a.rs", "1 | x\n2 | y\n3 | z");
        check("a.rs", "x = 123 | mask");
        check("a.rs", "");
        check("a.rs", "  1 | \n  2 | ");
    }

    #[test]
    fn served_numbers_are_taken_off_whatever_path_is_written() {
        let mut served = after_reading("a.rs", "fn a() {\n}");
        serve(&mut served, "b.rs", 7, &["fn b() {", "}"]);
        let check = |path: &str, content: &str, expected: Option<&str>| {
            assert_eq!(served.strip(WorkspacePath(path), Content(content)).as_deref(), expected, "{content}");
        };
        check("c.rs", "  1 | fn a() {\n  2 | }", Some("fn a() {\n}"));
        check("c.rs", "  1 | fn a() {\n  2 | }\n  7 | fn b() {\n  8 | }\n", Some("fn a() {\n}\nfn b() {\n}\n"));
        check(
            "b.rs",
            "  1 | fn a() {\n  2 |     new();\n  3 |     code();\n  2 | }",
            Some("fn a() {\n    new();\n    code();\n}"),
        );
        // Only the numbers and the texts matter, not the characters between them.
        check("c.rs", "1\tfn a() {\n2\t}", Some("fn a() {\n}"));
        check("c.rs", "1 | fn a() {\n2 | }", Some("fn a() {\n}"));
        check("c.rs", "7\tfn b() {\n8\t}\n", Some("fn b() {\n}\n"));
        // Numbers with which these lines were not served belong to a table or a TSV file.
        check("c.rs", "  5 | fn a() {\n  6 | }", None);
        check("c.rs", "5\tfn a() {\n6\t}", None);
        check("c.rs", "001\tfn a() {\n002\t}", None);
        check("c.rs", "1\tfn b() {\n2\tfn c() {\n", None);
    }

    #[test]
    fn a_table_of_served_texts_with_other_numbers_survives() {
        let mut served = after_reading("words", "alpha\nbeta\ngamma\ndelta");
        serve(&mut served, "part", 7, &["alpha", "", "beta"]);
        let check = |path: &str, content: &str, expected: Option<&str>| {
            assert_eq!(served.strip(WorkspacePath(path), Content(content)).as_deref(), expected, "{path}: {content}");
        };
        // The model's own numbers, in a file that was read.
        check("words", "10 | alpha\n20 | beta", None);
        check("words", "5 | alpha\n6 | beta", None);
        check("words", "2\talpha\n3\tbeta", None);
        check("words", "3 | alpha\n1 | beta\n1 | delta", None);
        check("words", "1 | alpha\n1 | beta\n1 | delta", None);
        check("part", "3 | alpha\n4 | beta", None);
        // The model's own table, with one line that equals a served one.
        check("report", "1 | alpha\n2 | omega", None);
        check("report", "1\talpha\n2\tbeta\n3\tomega\n", None);
        // An edited file, with old numbers or with new ones.
        check("words", "1 | alpha\n3 | gamma\n4 | omega", Some("alpha\ngamma\nomega"));
        check("words", "1 | omega\n2 | alpha\n3 | delta", Some("omega\nalpha\ndelta"));
        check("words", "1 | omega\n\n3 | alpha\n4 | delta\n", Some("omega\n\nalpha\ndelta\n"));
        check("part", "7 | omega\n8 | alpha\n", Some("omega\nalpha\n"));
    }

    #[test]
    fn a_table_of_another_file_survives() {
        let mut served = after_reading("words", "one\ntwo");
        serve(&mut served, "table", 1, &["  1 | one", "  2 | two"]);
        assert_eq!(served.strip(WorkspacePath("copy"), Content("  1 | one\n  2 | two")), None);
        assert_eq!(
            served.strip(WorkspacePath("copy"), Content("  1 |   1 | one\n  2 |   2 | two")).as_deref(),
            Some("  1 | one\n  2 | two")
        );
    }

    #[test]
    fn a_table_that_was_read_survives() {
        for table in ["1\tone\n2\ttwo", "1 | one\n2 | two", "  1 | fn a() {"] {
            let served = after_reading("t", table);
            assert_eq!(served.strip(WorkspacePath("t"), Content(&format!("{table}\n3\tthree"))), None, "{table}");
            let numbered =
                table.lines().zip(1..).map(|(line, n)| format!("{n:>3} | {line}")).collect::<Vec<_>>().join("\n");
            assert_eq!(served.strip(WorkspacePath("t"), Content(&numbered)).as_deref(), Some(table));
        }
    }

    #[test]
    fn a_line_that_lost_its_beginning_was_not_served() {
        let mut served = ServedLines::default();
        let shown = " 10 | one\n 11 | tw\n[900 characters left out]\n7 | ee\n 99 | four\n[3 more lines]";
        served.remember(WorkspacePath("a"), ShownText(shown));
        let check = |content: &str, expected: Option<&str>| {
            assert_eq!(served.strip(WorkspacePath("b"), Content(content)).as_deref(), expected, "{content}");
        };
        check("10\tone", Some("one"));
        check("99\tfour", Some("four"));
        check("7\tee", None);
    }

    #[test]
    fn the_oldest_reads_are_forgotten() {
        let mut served = after_reading("a", "first");
        let long = "x".repeat(SERVED_BYTES_MAX / 2);
        let mut check = |path: &str, is_known: bool| {
            served.remember(WorkspacePath(path), ShownText(&format!("  1 | {path}{long}")));
            assert_eq!(served.strip(WorkspacePath("z"), Content("1\tfirst")).is_some(), is_known, "{path}");
            assert!(served.reads.iter().map(ReadAnswer::bytes).sum::<usize>() <= SERVED_BYTES_MAX);
        };
        check("b", true);
        check("b", true);
        check("c", false);
    }

    #[test]
    fn tells_numbered_text() {
        assert!(Content("  1 | a\n\n  2 | b").looks_numbered());
        assert!(
            !Content("  1 | a\nb").looks_numbered()
                && !Content("\n").looks_numbered()
                && !Content("| a").looks_numbered()
        );
    }
}
