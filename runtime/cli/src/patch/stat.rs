//! The number of changed lines of each path of a patch, as `git diff --stat --compact-summary` shows it.

use super::hunks::Comparison;
use super::{Bytes, Delta, Mode, name};
use crate::terminal::counted;
use std::fmt::Write;

/// Maximum number of `+` and `-` marks in a line.
const MARKS_MAX: usize = 40;

/// The size of the change of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Numbers of lines added and removed.
    Lines {
        /// Number of lines added.
        added: usize,
        /// Number of lines removed.
        removed: usize,
    },
    /// Sizes in bytes before and after. The lines are not compared.
    Binary {
        /// Size before, in bytes.
        old: usize,
        /// Size after, in bytes.
        new: usize,
    },
}

impl Counts {
    /// Counts the changes between two versions.
    pub fn count(bytes: &Bytes) -> Self {
        let (old, new) = (bytes.old.as_deref().unwrap_or_default(), bytes.new.as_deref().unwrap_or_default());
        if bytes.is_binary() {
            return Self::Binary { old: old.len(), new: new.len() };
        }
        let (added, removed) = Comparison::between(old, new).counts();
        Self::Lines { added, removed }
    }
}

/// Renders the table of all paths and the total.
pub fn render(rows: &[(&Delta, Counts)]) -> String {
    let names: Vec<String> = rows.iter().map(|(delta, _)| title(delta)).collect();
    let width = names.iter().map(|name| name.chars().count()).max().unwrap_or_default();
    let (mut text, mut sum, mut most) = (String::new(), (0, 0), 1);
    for (_, counts) in rows {
        if let Counts::Lines { added, removed } = counts {
            sum = (sum.0 + added, sum.1 + removed);
            most = most.max(added + removed);
        }
    }
    let digits = most.to_string().len().max(3);
    for ((_, counts), name) in rows.iter().zip(&names) {
        let written = match counts {
            Counts::Binary { old, new } => writeln!(text, " {name:<width$} | Bin {old} -> {new} bytes"),
            Counts::Lines { added, removed } => {
                let marks = |count: &usize, mark: &str| match *count {
                    0 => String::new(),
                    count if most <= MARKS_MAX => mark.repeat(count),
                    count => mark.repeat((count * MARKS_MAX / most).max(1)),
                };
                let line = format!("{:>digits$} {}{}", added + removed, marks(added, "+"), marks(removed, "-"));
                writeln!(text, " {name:<width$} | {}", line.trim_end())
            }
        };
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    }
    let (files, added, removed) =
        (counted(rows.len(), "file"), counted(sum.0, "insertion"), counted(sum.1, "deletion"));
    text.push_str(&format!(" {files} changed, {added}(+), {removed}(-)\n"));
    text
}

/// Returns the path, with the old path of a moved file and a note on a change of its mode.
fn title(delta: &Delta) -> String {
    let path = name::quoted("", delta.path.as_str());
    let path = match &delta.renamed {
        Some((from, _)) => format!("{} => {path}", name::quoted("", from.as_str())),
        None => path,
    };
    let mode = match (delta.old.as_ref().map(|old| old.mode()), delta.new.as_ref().map(|new| new.mode())) {
        (None, Some(Mode::Executable)) => " (new +x)",
        (None, Some(Mode::Link)) => " (new +l)",
        (None, Some(Mode::File)) => " (new)",
        (Some(_), None) => " (gone)",
        (Some(Mode::File), Some(Mode::Executable)) => " (mode +x)",
        (Some(Mode::Executable), Some(Mode::File)) => " (mode -x)",
        _ => "",
    };
    format!("{path}{mode}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patch::Version;
    use glovebox_record::Digest;
    use glovebox_record::path::ScopePath;

    #[test]
    fn a_table_names_modes_and_sizes() {
        let version = |executable| Some(Version::File { digest: Digest::ZERO, bytes: 1, executable });
        let row = |path: &str, old, new, counts| {
            (Delta { path: ScopePath::parse(path).unwrap(), renamed: None, old, new }, counts)
        };
        let rows = [
            row("a", None, version(true), Counts::Lines { added: 2, removed: 0 }),
            row("bin", version(false), version(false), Counts::Binary { old: 3, new: 5 }),
            row("x.sh", version(false), version(true), Counts::Lines { added: 0, removed: 0 }),
            row("y", version(false), None, Counts::Lines { added: 0, removed: 1 }),
        ];
        let expected = " a (new +x)       |   2 ++\n bin              | Bin 3 -> 5 bytes\n x.sh (mode +x)   |   0\n \
                        y (gone)         |   1 -\n 4 files changed, 2 insertions(+), 1 deletion(-)\n";
        let shown = render(&rows.each_ref().map(|(delta, counts)| (delta, *counts)));
        let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeezed(&shown), squeezed(expected));
    }
}
