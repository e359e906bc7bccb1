//! Line numbers in what `read_file` serves, and their removal from what comes back (seed 0, fix 1; design §9 #20 and #32).
//!
//! A model that writes back what it read often writes the numbers too, also to another path. They are taken off only when the
//! content is what was served: a numbered table or a TSV that merely looks like it is written as it is.

use crate::files::{Content, WorkspacePath};
use std::collections::{BTreeMap, BTreeSet};

/// What was served in this attempt.
#[derive(Debug, Default)]
pub(crate) struct Served {
    /// Lines of each file without their numbers, by path.
    lines: BTreeMap<String, BTreeSet<String>>,
    /// Lines of all files exactly as they were served, numbers included.
    numbered: BTreeSet<String>,
}

impl Served {
    /// Numbers lines, beginning with `first` (from 1), as `  1 | code`, and remembers them for the path.
    pub(crate) fn serve(&mut self, path: WorkspacePath<'_>, first: usize, lines: &[&str]) -> String {
        let known = self.lines.entry(key(path)).or_default();
        known.extend(lines.iter().map(|line| line.trim_end().to_owned()));
        let width = (first + lines.len()).saturating_sub(1).to_string().len().max(3);
        let numbered = lines.iter().zip(first..).map(|(line, number)| format!("{number:>width$} | {line}"));
        let numbered: Vec<String> = numbered.collect();
        self.numbered.extend(numbered.iter().map(|line| line.trim_end().to_owned()));
        numbered.join("\n")
    }

    /// Takes served numbers off a content; none when it is to be written as it is.
    ///
    /// Every non-empty line must carry a number and at least half of them must have been served: for the path itself with any
    /// number, for another path with this very number. None may be a line of a served file with its number being part of it.
    pub(crate) fn strip(&self, path: WorkspacePath<'_>, Content(content): Content<'_>) -> Option<String> {
        let own = self.lines.get(&key(path));
        let (mut plain, mut written, mut of_path, mut of_any) = (Vec::new(), 0, 0, 0);
        for line in content.split('\n') {
            if line.trim().is_empty() {
                plain.push(line);
                continue;
            }
            let code = Content(line).unnumbered()?;
            if self.lines.values().any(|known| known.contains(line.trim_end())) {
                return None;
            }
            if !code.trim().is_empty() {
                written += 1;
                of_path += usize::from(own.is_some_and(|known| known.contains(code.trim_end())));
                of_any += usize::from(self.numbered.contains(line.trim_end()));
            }
            plain.push(code);
        }
        (written > 0 && 2 * of_path.max(of_any) >= written).then(|| plain.join("\n"))
    }
}

impl<'a> Content<'a> {
    /// True when every non-empty line carries a number.
    pub(crate) fn looks_numbered(self) -> bool {
        let mut lines = self.0.lines().filter(|line| !line.trim().is_empty()).peekable();
        lines.peek().is_some() && lines.all(|line| Content(line).unnumbered().is_some())
    }

    /// Takes the number off one line: digits, then a bar and one space, or a tab.
    fn unnumbered(self) -> Option<&'a str> {
        let digits = self.0.trim_start();
        let rest = digits.trim_start_matches(|character: char| character.is_ascii_digit());
        if rest.len() == digits.len() {
            return None;
        }
        if let Some(code) = rest.strip_prefix('\t') {
            return Some(code);
        }
        let code = rest.trim_start_matches(' ').strip_prefix('|')?;
        Some(code.strip_prefix(' ').unwrap_or(code))
    }
}

/// `./a/b`, `a//b` and `a/b` are the same file.
fn key(path: WorkspacePath<'_>) -> String {
    path.names().collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after_reading(path: &str, text: &str) -> Served {
        let mut served = Served::default();
        served.serve(WorkspacePath(path), 1, &text.lines().collect::<Vec<_>>());
        served
    }

    #[test]
    fn numbers_are_right_aligned_with_a_bar() {
        let mut served = Served::default();
        assert_eq!(served.serve(WorkspacePath("a"), 1, &["x", ""]), "  1 | x\n  2 | ");
        assert_eq!(served.serve(WorkspacePath("a"), 999, &["x", "y"]), " 999 | x\n1000 | y");
        assert_eq!(served.serve(WorkspacePath("a"), 1, &[]), "");
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
        served.serve(WorkspacePath("b.rs"), 7, &["fn b() {", "}"]);
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
        // Numbers that were not served for these lines belong to a table or TSV.
        check("c.rs", "1\tfn a() {\n2\t}", None);
        check("c.rs", "1 | fn a() {\n2 | }", None);
        check("c.rs", "  5 | fn a() {\n  6 | }", None);
    }

    #[test]
    fn a_table_of_another_file_survives() {
        let mut served = after_reading("words", "one\ntwo");
        served.serve(WorkspacePath("table"), 1, &["  1 | one", "  2 | two"]);
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
    fn tells_numbered_text() {
        assert!(Content("  1 | a\n\n  2 | b").looks_numbered());
        assert!(
            !Content("  1 | a\nb").looks_numbered()
                && !Content("\n").looks_numbered()
                && !Content("| a").looks_numbered()
        );
    }
}
