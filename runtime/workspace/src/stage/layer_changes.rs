//! Lists the changes of a stage from its layer, which contains exactly the changed entries. No folder is searched.

use super::compare::{Comparison, CurrentEntry};
use super::findings::FoundEntry;
use super::lower_entry::Lookup;
use super::{ChangeRules, StageChanges, StageError, upper_changes};
use crate::ignored::IgnoredChanges;
use crate::layer::Layer;
use crate::layer::nodes::Node;
use std::io;
use std::path::Path;

/// Lists the stage's changes, sorted by path. At equal paths, removals are first.
pub(super) fn changes(layer: &Layer, rules: ChangeRules<'_>) -> Result<StageChanges, StageError> {
    if let Some(overlay) = layer.overlay() {
        return upper_changes::changes(overlay, rules);
    }
    if layer.is_untouched() {
        return Ok(StageChanges { found: Vec::new(), ignored: IgnoredChanges::default() });
    }
    let lookup = Lookup::new(&layer.lower);
    let mut comparison = Comparison::new(&lookup, rules);
    layer.each(&mut |path, depth, node| compare(&mut comparison, path, depth, node))?;
    comparison.finish()
}

fn compare(comparison: &mut Comparison<'_>, path: &Path, depth: u32, node: &Node) -> Result<(), StageError> {
    let other = FoundEntry::other(path, depth);
    let (met, now) = match node {
        Node::Removed => {
            comparison.findings.check_size(other)?;
            comparison.removed(path);
            return Ok(());
        }
        Node::Folder(folder) => (other, CurrentEntry::Directory { shows_lower: folder.shows_lower }),
        Node::Link(target) => (other, CurrentEntry::Link(target.clone())),
        Node::File(content) => {
            let stat = content.stat().map_err(|errno| StageError::io(path, io::Error::from(errno)))?;
            let met = FoundEntry::file(path, depth, &stat, content.executable);
            comparison.findings.check_size(met)?;
            return comparison.compare(met, CurrentEntry::File(&|| content.reader()));
        }
    };
    comparison.findings.check_size(met)?;
    comparison.compare(met, now)
}
