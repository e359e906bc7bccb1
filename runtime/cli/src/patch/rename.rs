//! Finds the deleted file that a new file was moved from: the same bytes, or at least half of a text's bytes in equal
//! lines.

use super::{Delta, Version};
use std::collections::{BTreeSet, HashMap};

/// Minimum similarity of a moved file in percent, as in git.
const SIMILARITY_MIN: u8 = 50;
/// Maximum number of deleted files, and of new files. With more of them, no files are compared line by line.
const COMPARED_MAX: usize = 50;
/// Maximum size in bytes of a file that is compared line by line.
const COMPARED_BYTES_MAX: u64 = 1 << 20;

/// Combines a deleted file and a similar new file into one entry. `read` returns the bytes of a version, or `None` if
/// they cannot be read.
pub fn pair(deltas: Vec<Delta>, read: &dyn Fn(&Delta) -> Option<Vec<u8>>) -> Vec<Delta> {
    let mut seen = BTreeSet::new();
    let twice: BTreeSet<_> = deltas.iter().filter(|delta| !seen.insert(&delta.path)).map(|delta| &delta.path).collect();
    let is_one_sided = |delta: &Delta| !twice.contains(&delta.path) && delta.old.is_some() != delta.new.is_some();
    let candidates: Vec<usize> = (0..deltas.len()).filter(|at| is_one_sided(&deltas[*at])).collect();
    let (gone, new): (Vec<usize>, Vec<usize>) = candidates.into_iter().partition(|at| deltas[*at].old.is_some());
    let mut likely = likeness(&deltas, &gone, &new, read);
    // The most similar pairs come first, then pairs with the same file name, then the order of paths.
    likely.sort_by_key(|(percent, gone, new)| {
        (100 - percent, deltas[*gone].path.name() != deltas[*new].path.name(), *gone, *new)
    });
    let mut sources: HashMap<usize, (usize, u8)> = HashMap::new();
    let mut used = BTreeSet::new();
    for (percent, gone, new) in likely {
        if !used.contains(&gone) && !sources.contains_key(&new) {
            used.insert(gone);
            sources.insert(new, (gone, percent));
        }
    }
    let moved = |at: usize| {
        let delta = deltas[at].clone();
        match sources.get(&at) {
            None => delta,
            Some((source, percent)) => {
                let Delta { path, old, .. } = deltas[*source].clone();
                Delta { renamed: Some((path, *percent)), old, ..delta }
            }
        }
    };
    (0..deltas.len()).filter(|at| !used.contains(at)).map(moved).collect()
}

fn likeness(
    deltas: &[Delta],
    gone: &[usize],
    new: &[usize],
    read: &dyn Fn(&Delta) -> Option<Vec<u8>>,
) -> Vec<(u8, usize, usize)> {
    let mut found = Vec::new();
    for from in gone {
        for to in new {
            if let (Some(Version::File { digest: old, bytes, .. }), Some(Version::File { digest: new, .. })) =
                (&deltas[*from].old, &deltas[*to].new)
                && old == new
                && *bytes > 0
            {
                found.push((100, *from, *to));
            }
        }
    }
    if gone.len() > COMPARED_MAX || new.len() > COMPARED_MAX {
        return found;
    }
    let texts = |at: &usize| Some((*at, text(&deltas[*at], read)?));
    let olds: Vec<(usize, Vec<u8>)> = gone.iter().filter_map(texts).collect();
    let news: Vec<(usize, Vec<u8>)> = new.iter().filter_map(texts).collect();
    for (from, old) in &olds {
        for (to, new) in &news {
            let percent = similarity(old, new);
            if (SIMILARITY_MIN..100).contains(&percent) {
                found.push((percent, *from, *to));
            }
        }
    }
    found
}

fn text(delta: &Delta, read: &dyn Fn(&Delta) -> Option<Vec<u8>>) -> Option<Vec<u8>> {
    let version = delta.old.as_ref().or(delta.new.as_ref())?;
    let is_small = matches!(version, Version::File { bytes: 1..=COMPARED_BYTES_MAX, .. });
    is_small.then(|| read(delta)).flatten().filter(|bytes| super::hunks::is_text(bytes))
}

/// Returns the percentage of the longer text's bytes that are in lines of both texts. It is 100 only for equal texts.
fn similarity(old: &[u8], new: &[u8]) -> u8 {
    let mut lines: HashMap<&[u8], usize> = HashMap::new();
    old.split_inclusive(|byte| *byte == b'\n').for_each(|line| *lines.entry(line).or_default() += 1);
    let mut common = 0;
    for line in new.split_inclusive(|byte| *byte == b'\n') {
        if let Some(left) = lines.get_mut(line).filter(|left| **left > 0) {
            *left -= 1;
            common += line.len();
        }
    }
    let percent = common * 100 / old.len().max(new.len()).max(1);
    u8::try_from(percent).unwrap_or(100).min(if old == new { 100 } else { 99 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::Digest;
    use glovebox_record::path::ScopePath;

    fn delta(path: &str, old: Option<&str>, new: Option<&str>) -> Delta {
        let version = |text: &str| Version::File {
            digest: Digest::hash(text.as_bytes()),
            bytes: text.len() as u64,
            executable: false,
        };
        Delta { path: ScopePath::parse(path).unwrap(), renamed: None, old: old.map(version), new: new.map(version) }
    }

    #[test]
    fn a_moved_file_is_one_entry() {
        let texts: HashMap<&str, &str> = [("old", "a\nb\nc\nd\n"), ("new", "a\nb\nc\ne\n"), ("other", "x\ny\n")].into();
        let text = |name: &str| Some(texts[name]);
        let read = |delta: &Delta| Some(texts[delta.path.as_str()].as_bytes().to_vec());
        let exact = pair(vec![delta("a/x", Some("1\n"), None), delta("b/x", None, Some("1\n"))], &|_| None);
        assert_eq!(exact.len(), 1);
        assert_eq!((exact[0].path.as_str(), exact[0].old_path().as_str()), ("b/x", "a/x"));
        let near = pair(vec![delta("new", None, text("new")), delta("old", text("old"), None)], &read);
        assert_eq!((near.len(), near[0].renamed.as_ref().map(|(_, percent)| *percent)), (1, Some(75)));
        let far = pair(vec![delta("other", None, text("other")), delta("old", text("old"), None)], &read);
        assert_eq!(far.len(), 2);
        let empty = pair(vec![delta("p", None, Some("")), delta("q", Some(""), None)], &|_| None);
        assert_eq!(empty.len(), 2, "empty files are not evidence of a move");
    }
}
