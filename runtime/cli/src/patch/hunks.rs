//! The lines that differ between two texts, in unified form. Bytes stay as they are: a line ends at `\n` and nowhere else.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};
use std::time::{Duration, Instant};

/// The longest text that is compared by line; a longer one is treated as binary.
pub const TEXT_BYTES_MAX: usize = 8 << 20;
/// Lines around a difference.
const CONTEXT: usize = 3;
/// After this time the comparison takes what it has: the patch is still right, but longer than it could be.
const SEARCH_MAX: Duration = Duration::from_secs(2);

/// True for bytes that are shown by line. Git looks for the zero byte too.
pub fn is_text(bytes: &[u8]) -> bool {
    bytes.len() <= TEXT_BYTES_MAX && !bytes.contains(&0)
}

/// The difference of two texts.
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

    /// How many lines were added and removed.
    pub fn counts(&self) -> (usize, usize) {
        let changed = self.ops.iter().filter(|op| op.tag() != DiffTag::Equal);
        changed.fold((0, 0), |(added, removed), op| (added + op.new_range().len(), removed + op.old_range().len()))
    }

    /// Hands every line of the patch to `push`: its mark and its bytes, without the line's end.
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

/// A range of lines: the first counts 1, a single one has no length, and an empty one names the line before it.
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
