//! Rows for files that a run did not have: a check that reads nothing finds nothing wrong, so a summary never hides them.

use super::visible;
use glovebox_record::{MissingFiles, MissingKind, NodeId};
use glovebox_state::evidence::{RunProof, UnmatchedEntry};
use std::collections::BTreeSet;

/// The title of the rows.
pub const TITLE: &str = "missing";
const SUBMODULES: &str = "git submodule update --init --recursive";
const POINTERS: &str = "git lfs pull";
const SPARSE: &str = "git sparse-checkout add FOLDER";
/// Maximum number of rows for entries that match no file.
const UNMATCHED_SHOWN_MAX: usize = 10;
/// Maximum number of stages that a row names.
const NODES_SHOWN_MAX: usize = 5;

/// Returns a row for each kind of missing files, and for each entry that matched no file.
pub fn rows(proof: &RunProof) -> Vec<(&'static str, String)> {
    let mut rows: Vec<String> = proof.missing.iter().map(of_kind).collect();
    rows.extend(proof.unmatched.iter().take(UNMATCHED_SHOWN_MAX).map(unmatched));
    let more = proof.unmatched.len().saturating_sub(UNMATCHED_SHOWN_MAX);
    rows.extend((more > 0).then(|| match more {
        1 => "1 more entry matches no file".to_owned(),
        more => format!("{more} more entries match no file"),
    }));
    rows.into_iter().map(|row| (TITLE, row)).collect()
}

fn of_kind(missing: &MissingFiles) -> String {
    let MissingFiles { kind, count, paths, named_by } = missing;
    let number = usize::try_from(*count).unwrap_or(usize::MAX);
    let shown: Vec<_> = paths.iter().map(|path| visible::line(path)).collect();
    let more = number.saturating_sub(paths.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let paths = format!("{}{more}", shown.join(", "));
    let is_one = number == 1;
    let (what, remedy) = match kind {
        MissingKind::Submodule if is_one => ("1 submodule is not checked out", SUBMODULES),
        MissingKind::Submodule => ("submodules are not checked out", SUBMODULES),
        MissingKind::LfsPointer if is_one => ("1 file has only its Git LFS pointer", POINTERS),
        MissingKind::LfsPointer => ("files have only their Git LFS pointers", POINTERS),
        MissingKind::SparseCheckout if is_one => ("1 path is not in the sparse checkout", SPARSE),
        MissingKind::SparseCheckout => ("paths are not in the sparse checkout", SPARSE),
    };
    let what = if is_one { what.to_owned() } else { format!("{number} {what}") };
    let named = if named_by.is_empty() { String::new() } else { format!("; named by {}", names(named_by)) };
    format!("{what}: {paths}{named}. No stage saw the content: {remedy}")
}

fn names(nodes: &BTreeSet<NodeId>) -> String {
    let name = |node: &NodeId| format!("`{}`", visible::line(node.as_str()));
    let shown: Vec<_> = nodes.iter().take(NODES_SHOWN_MAX).map(name).collect();
    let more = nodes.len().saturating_sub(NODES_SHOWN_MAX);
    let more = if more > 0 { format!(" and {more} more stages") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

fn unmatched(found: &UnmatchedEntry) -> String {
    let UnmatchedEntry { node, unmatched } = found;
    let (node, attribute) = (visible::line(node.as_str()), visible::line(&unmatched.attribute));
    format!("{node}: `{}` of `{attribute}` matches no file", visible::line(&unmatched.entry))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_says_what_is_missing_who_names_it_and_what_helps() {
        let missing = |kind, count, paths: &[&str], named: &[&str]| {
            let paths = paths.iter().map(|path| (*path).to_owned()).collect();
            of_kind(&MissingFiles { kind, count, paths, named_by: named.iter().map(|node| (*node).into()).collect() })
        };
        assert_eq!(
            missing(MissingKind::Submodule, 1, &["lib/"], &["test"]),
            "1 submodule is not checked out: lib/; named by `test`. No stage saw the content: git submodule update --init --recursive"
        );
        assert_eq!(
            missing(MissingKind::LfsPointer, 7, &["a.bin", "b\u{1b}[2J"], &[]),
            "7 files have only their Git LFS pointers: a.bin, b\\x1b[2J and 5 more. No stage saw the content: git lfs pull"
        );
        assert_eq!(
            missing(MissingKind::SparseCheckout, 2, &["docs/", "x"], &["a", "b"]),
            "2 paths are not in the sparse checkout: docs/, x; named by `a`, `b`. No stage saw the content: git sparse-checkout add FOLDER"
        );
    }
}
