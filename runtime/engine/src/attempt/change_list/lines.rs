//! Counts in how many lines two versions of a file differ: the smallest number of lines to remove and add.
//!
//! Bytes that a stage wrote must not make the count slow or too small. A long line counts as several lines. Each of
//! `\n`, `\r\n` and `\r` ends a line and is part of it. If the exact count is too expensive, every line between the
//! first and the last difference counts as changed.

use std::collections::HashSet;

/// Maximum number of bytes that count as one line, so that a file without line endings does not count as one line.
const LINE_BYTES_MAX: usize = 400;
/// Maximum number of lines of one version that are counted.
const LINES_MAX: usize = 1_000_000;

/// Number of lines that were added and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Lines {
    /// Lines that are only in the new version.
    pub(super) added: u64,
    /// Lines that are only in the old version.
    pub(super) removed: u64,
}

/// Remaining number of comparisons for exact counts, over all files of a list.
#[derive(Debug)]
pub(super) struct Effort(pub(super) u64);

impl Effort {
    fn spend(&mut self, steps: u64) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }
}

/// Returns true for bytes that are not text, because they contain a NUL byte. This is the test of git, but over the whole file.
pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.contains(&0)
}

/// Counts the lines. `None` if a version has too many lines.
pub(super) fn count(old: &[u8], new: &[u8], effort: &mut Effort) -> Option<Lines> {
    let (old, new) = (lines(old)?, lines(new)?);
    let same = |pair: &(&&[u8], &&[u8])| pair.0 == pair.1;
    let before = old.iter().zip(&new).take_while(same).count();
    let (old, new) = (&old[before..], &new[before..]);
    let after = old.iter().rev().zip(new.iter().rev()).take_while(same).count();
    let (old, new) = (&old[..old.len() - after], &new[..new.len() - after]);
    let whole = Lines { added: new.len() as u64, removed: old.len() as u64 };
    let (in_old, in_new): (HashSet<&[u8]>, HashSet<&[u8]>) =
        (old.iter().copied().collect(), new.iter().copied().collect());
    // A line that the other version does not contain was certainly removed or added.
    let (left, right): (Vec<&[u8]>, Vec<&[u8]>) = (
        old.iter().copied().filter(|line| in_new.contains(line)).collect(),
        new.iter().copied().filter(|line| in_old.contains(line)).collect(),
    );
    let Some(distance) = distance(&left, &right, effort) else { return Some(whole) };
    // In both versions, `common` lines are unchanged.
    let common = (left.len() + right.len() - distance) as u64 / 2;
    Some(Lines { added: whole.added - common, removed: whole.removed - common })
}

/// Splits bytes into lines, including their endings: `\n`, `\r\n` or `\r`.
fn lines(bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let (mut lines, mut rest) = (Vec::new(), bytes);
    while !rest.is_empty() {
        if lines.len() == LINES_MAX {
            return None;
        }
        let window = &rest[..rest.len().min(LINE_BYTES_MAX)];
        let end = window.iter().position(|byte| matches!(byte, b'\n' | b'\r')).map_or(window.len(), |at| at + 1);
        let is_pair = rest[..end].ends_with(b"\r") && rest[end..].starts_with(b"\n");
        let (line, after) = rest.split_at(end + usize::from(is_pair));
        lines.push(line);
        rest = after;
    }
    Some(lines)
}

/// Returns the smallest number of lines to remove from `old` and add from `new` (Myers' greedy algorithm). `None` if
/// the computation is too expensive.
fn distance(old: &[&[u8]], new: &[&[u8]], effort: &mut Effort) -> Option<usize> {
    let most = old.len() + new.len();
    // The furthest position in `old` on each diagonal. Diagonal 0 is in the middle.
    let mut reached = vec![0; 2 * most + 2];
    for edits in 0..=most {
        for diagonal in (most - edits..=most + edits).step_by(2) {
            let down =
                diagonal == most - edits || diagonal != most + edits && reached[diagonal - 1] < reached[diagonal + 1];
            let mut x: usize = if down { reached[diagonal + 1] } else { reached[diagonal - 1] + 1 };
            let begun = x;
            let mut y = (x + most).wrapping_sub(diagonal);
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            effort.spend(1 + (x - begun) as u64)?;
            if x >= old.len() && y >= new.len() {
                return Some(edits);
            }
            reached[diagonal] = x;
        }
    }
    Some(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(old: &str, new: &str, expected: (u64, u64)) {
        let found = count(old.as_bytes(), new.as_bytes(), &mut Effort(1_000_000)).unwrap();
        assert_eq!((found.added, found.removed), expected, "{old:?} -> {new:?}");
    }

    #[test]
    fn the_least_difference_counts() {
        check("", "", (0, 0));
        check("a\nb\nc\n", "a\nb\nc\n", (0, 0));
        check("", "a\nb", (2, 0));
        check("a\nb", "", (0, 2));
        check("a\nb\nc\n", "a\nx\nc\n", (1, 1));
        check("a\nb\nc\nd\n", "b\nc\nd\na\n", (1, 1));
        check("a\nb\na\nb\n", "b\na\nb\na\n", (1, 1));
        check("a\na\na\n", "a\n", (0, 2));
        check("a", "a\n", (1, 1));
    }

    #[test]
    fn line_ends_and_long_lines_count() {
        check("a\nb\n", "a\r\nb\r\n", (2, 2));
        check("", "a\rb\rc", (3, 0));
        check("", &"x".repeat(4_000), (10, 0));
        check(&"x".repeat(4_000), &format!("y{}", "x".repeat(3_999)), (1, 1));
    }

    #[test]
    fn what_costs_too_much_counts_whole() {
        let lines = |step: usize| (0..200).map(|n| format!("{}\n", n * step % 211)).collect::<String>();
        let (old, new) = (lines(3), lines(7));
        let with = |effort| count(old.as_bytes(), new.as_bytes(), &mut Effort(effort)).unwrap();
        // Only the first line is equal in both versions.
        assert_eq!(with(10), Lines { added: 199, removed: 199 });
        assert!(with(10_000_000).added < 199);
        assert_eq!(count(b"", &b"\n".repeat(LINES_MAX + 1), &mut Effort(1)), None);
    }

    #[test]
    fn the_count_is_that_of_a_table() {
        // A linear congruential generator with a fixed seed, so that the texts are the same in every run.
        let mut seed = 7_u32;
        let mut text = || -> String {
            let mut one = |_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ["a\n", "b\n", "c\n", "d"][(seed >> 28) as usize % 4]
            };
            (0..12).map(&mut one).collect()
        };
        for _ in 0..300 {
            let (old, new) = (text(), text());
            let found = count(old.as_bytes(), new.as_bytes(), &mut Effort(1_000_000)).unwrap();
            assert_eq!(found, by_table(old.as_bytes(), new.as_bytes()), "{old:?} -> {new:?}");
        }
    }

    fn by_table(old: &[u8], new: &[u8]) -> Lines {
        let (old, new) = (lines(old).unwrap(), lines(new).unwrap());
        let mut common = vec![vec![0; new.len() + 1]; old.len() + 1];
        for (x, left) in old.iter().enumerate() {
            for (y, right) in new.iter().enumerate() {
                let longest = common[x][y + 1].max(common[x + 1][y]);
                common[x + 1][y + 1] = if left == right { common[x][y] + 1 } else { longest };
            }
        }
        let same = common[old.len()][new.len()];
        Lines { added: (new.len() - same) as u64, removed: (old.len() - same) as u64 }
    }
}
