//! The lines that differ between two texts, in unified format. Lines are compared as bytes and end only at `\n`.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};
use std::time::{Duration, Instant};

/// Maximum size in bytes of a text that is compared line by line. A larger one is treated as binary.
pub const TEXT_BYTES_MAX: usize = 8 << 20;
/// Number of unchanged lines around a difference.
const CONTEXT: usize = 3;
/// Maximum time of the search for a short patch. After this time the patch is still correct, but may be longer than
/// necessary.
const SEARCH_MAX: Duration = Duration::from_secs(2);

/// Returns true for bytes that are compared line by line. As in git, a zero byte makes a file binary.
pub fn is_text(bytes: &[u8]) -> bool {
    bytes.len() <= TEXT_BYTES_MAX && !bytes.contains(&0)
}

/// The differences between two texts.
pub struct Comparison<'a> {
    old: Vec<&'a [u8]>,
    new: Vec<&'a [u8]>,
    ops: Vec<DiffOp>,
}

impl<'a> Comparison<'a> {
    /// Compares two texts.
    pub fn between(old: &'a [u8], new: &'a [u8]) -> Self {
        let lines = |text: &'a [u8]| -> Vec<&'a [u8]> { text.split_inclusive(|byte| *byte == b'\n').collect() };
        let (old, new) = (lines(old), lines(new));
        let deadline = Instant::now() + SEARCH_MAX;
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
        Self { old, new, ops }
    }

    /// Returns the number of lines that were added, and the number of lines that were removed.
    pub fn counts(&self) -> (usize, usize) {
        let changed = self.ops.iter().filter(|op| op.tag() != DiffTag::Equal);
        changed.fold((0, 0), |(added, removed), op| (added + op.new_range().len(), removed + op.old_range().len()))
    }

    /// Passes every line of the patch to `push`: its mark and its bytes, without the line break.
    pub fn lines(&self, push: &mut dyn FnMut(&str, &[u8])) {
        for group in group_diff_ops(self.ops.clone(), CONTEXT) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let old = range(first.old_range().start, last.old_range().end);
            let new = range(first.new_range().start, last.new_range().end);
            push("@@", format!(" -{old} +{new} @@").as_bytes());
            for op in &group {
                if op.tag() == DiffTag::Equal {
                    each(" ", &self.old[op.old_range()], push);
                } else {
                    each("-", &self.old[op.old_range()], push);
                    each("+", &self.new[op.new_range()], push);
                }
            }
        }
    }
}

fn each(mark: &str, lines: &[&[u8]], push: &mut dyn FnMut(&str, &[u8])) {
    for line in lines {
        match line.strip_suffix(b"\n") {
            Some(line) => push(mark, line),
            None => {
                push(mark, line);
                push("\\", b" No newline at end of file");
            }
        }
    }
}

/// Returns a range of lines in unified format. Line numbers begin at 1, a single line has no length, and an empty range
/// names the line before it.
fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => (start + 1).to_string(),
        length => format!("{},{length}", start + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unified(old: &str, new: &str) -> String {
        let mut text = String::new();
        Comparison::between(old.as_bytes(), new.as_bytes()).lines(&mut |mark, line| {
            text.push_str(&format!("{mark}{}\n", String::from_utf8_lossy(line)));
        });
        text
    }

    #[test]
    fn lines_are_compared_to_the_byte() {
        assert_eq!(unified("a\nb\n", "a\nc\n"), "@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
        assert_eq!(unified("", "a\n"), "@@ -0,0 +1 @@\n+a\n");
        assert_eq!(unified("a\n", ""), "@@ -1 +0,0 @@\n-a\n");
        assert_eq!(unified("a\r\n", "a\n"), "@@ -1 +1 @@\n-a\r\n+a\n");
        assert_eq!(unified("a", "a\n"), "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n");
        assert_eq!(unified("a\n", "a\n"), "");
        assert_eq!(Comparison::between(b"a\nb\n", b"c\nb\nd\n").counts(), (2, 1));
    }

    #[test]
    fn a_zero_byte_makes_it_binary() {
        assert!(is_text("größe\r\u{1b}".as_bytes()) && is_text(b"\xff\xfe") && !is_text(b"a\0b"));
    }
}
