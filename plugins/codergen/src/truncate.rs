//! Limits on the output of tools for the model: first on characters, then on lines. Each cut is marked with what is missing.

/// Limit on the output of one tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) chars_max: usize,
    pub(crate) lines_max: usize,
}

/// Limit of the coding-agent-loop specification for reading a file, which has no limit on lines.
pub(crate) const READ: Bound = Bound { chars_max: 50_000, lines_max: usize::MAX };
/// Limit for commands, whose end matters as much as their beginning.
pub(crate) const SHELL: Bound = Bound { chars_max: 30_000, lines_max: 256 };
/// Limit for matching lines.
pub(crate) const GREP: Bound = Bound { chars_max: 20_000, lines_max: 200 };
/// Limit for answers of subagents.
pub(crate) const AGENT: Bound = Bound { chars_max: 20_000, lines_max: usize::MAX };
/// Limit for lists of files.
pub(crate) const GLOB: Bound = Bound { chars_max: 20_000, lines_max: 500 };

impl Bound {
    /// Keeps the beginning and the end of a text.
    pub(crate) fn keep_ends(self, text: &str) -> String {
        let chars = text.chars().count();
        let text = if chars > self.chars_max {
            let (head, tail) = (self.chars_max / 2, self.chars_max - self.chars_max / 2);
            let start: String = text.chars().take(head).collect();
            let end: String = text.chars().skip(chars - tail).collect();
            format!("{start}\n[{} characters left out]\n{end}", chars - self.chars_max)
        } else {
            text.to_owned()
        };
        let lines: Vec<&str> = text.lines().collect();
        if lines.len() <= self.lines_max {
            return text;
        }
        let (head, tail) = (self.lines_max / 2, self.lines_max - self.lines_max / 2);
        let marker = format!("[{} lines left out]", lines.len() - self.lines_max);
        let kept =
            lines[..head].iter().copied().chain([marker.as_str()]).chain(lines[lines.len() - tail..].iter().copied());
        kept.collect::<Vec<_>>().join("\n")
    }

    /// Keeps the first lines, as many as fit.
    pub(crate) fn keep_head(self, lines: &[String]) -> String {
        let (mut chars, mut kept) = (0, 0);
        for line in lines.iter().take(self.lines_max) {
            chars += line.chars().count() + 1;
            if chars > self.chars_max && kept > 0 {
                break;
            }
            kept += 1;
        }
        let mut text: String = lines[..kept].join("\n").chars().take(self.chars_max).collect();
        if kept < lines.len() {
            text.push_str(&format!("\n[{} more left out]", lines.len() - kept));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_both_ends() {
        let bound = Bound { chars_max: 4, lines_max: 10 };
        assert_eq!(bound.keep_ends("äöüß"), "äöüß");
        assert_eq!(bound.keep_ends("äöüßab"), "äö\n[2 characters left out]\nab");
        let lines = Bound { chars_max: 100, lines_max: 3 };
        assert_eq!(lines.keep_ends("1\n2\n3\n4\n5"), "1\n[2 lines left out]\n4\n5");
        assert_eq!(READ.keep_ends(&"x\n".repeat(600)).lines().count(), 600);
    }

    #[test]
    fn keeps_the_head_in_whole_lines() {
        let lines: Vec<String> = ["aa", "bb", "cc"].map(str::to_owned).into();
        assert_eq!(Bound { chars_max: 100, lines_max: 2 }.keep_head(&lines), "aa\nbb\n[1 more left out]");
        assert_eq!(Bound { chars_max: 5, lines_max: 9 }.keep_head(&lines), "aa\n[2 more left out]");
        assert_eq!(Bound { chars_max: 1, lines_max: 9 }.keep_head(&lines), "a\n[2 more left out]");
        assert_eq!(Bound { chars_max: 9, lines_max: 9 }.keep_head(&lines), "aa\nbb\ncc");
        assert_eq!(GREP.keep_head(&[]), "");
    }
}
