//! Records the files that belong to a project and that a run did not get, with the stages that name them.

use glovebox_pipeline::ir::{Node, NodeId};
use glovebox_plan::plan::Plan;
use glovebox_record::MissingFiles;
use glovebox_workspace::project::MissingPaths;
use std::collections::BTreeSet;

/// Maximum number of recorded paths of each kind.
const PATHS_MAX: usize = 5;

/// Describes the missing files of a run. The paths that a stage names come first.
pub(super) fn describe(plan: &Plan, missing: Vec<MissingPaths>) -> Vec<MissingFiles> {
    let stages: Vec<(&NodeId, BTreeSet<String>)> = match missing.is_empty() {
        true => Vec::new(),
        false => plan.pipeline.stages().map(|node| (&node.id, named_paths(node))).collect(),
    };
    let describe = |MissingPaths { kind, paths }: MissingPaths| {
        let (mut named, mut named_by) = (BTreeSet::new(), BTreeSet::new());
        for (node, words) in &stages {
            for path in paths.iter().filter(|path| words.iter().any(|word| meets(path, word))) {
                named.insert(path.clone());
                named_by.insert((*node).clone());
            }
        }
        let others = paths.iter().filter(|path| !named.contains(*path));
        let first = named.iter().chain(others).take(PATHS_MAX).cloned().collect();
        MissingFiles { kind, count: paths.len() as u64, paths: first, named_by }
    };
    missing.into_iter().map(describe).collect()
}

/// Returns the paths that a stage names: words of its command that can be paths, and `read_paths`.
fn named_paths(node: &Node) -> BTreeSet<String> {
    let command = node.handler.kind().command().and_then(|key| node.attributes.get(key));
    let is_in_path = |c: char| c.is_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '@');
    let words = command.map(|attribute| attribute.value.to_string()).unwrap_or_default();
    let words = words.split(|c: char| !is_in_path(c)).map(|word| word.trim_start_matches("./").trim_end_matches('/'));
    let words = words.filter(|word| !matches!(*word, "" | ".")).map(str::to_owned);
    let read = node.access.read_paths.iter().flatten().filter(|entry| !entry.path().is_root());
    words.chain(read.map(|entry| entry.path().to_string())).collect()
}

/// Returns true if one of the paths is the other one or a folder above it.
fn meets(missing: &str, word: &str) -> bool {
    let missing = missing.trim_end_matches('/');
    let is_above = |above: &str, path: &str| path.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
    missing == word || is_above(missing, word) || is_above(word, missing)
}

#[cfg(test)]
mod tests {
    use super::meets;

    #[test]
    fn a_path_meets_itself_and_the_folders_above_and_below_it() {
        for (missing, word, expected) in [
            ("lib/", "lib", true),
            ("lib/", "lib/run.sh", true),
            ("docs/a.md", "docs", true),
            ("docs/a.md", "docs/b.md", false),
            ("lib/", "library", false),
            ("library/", "lib", false),
        ] {
            assert_eq!(meets(missing, word), expected, "{missing} {word}");
        }
    }
}
