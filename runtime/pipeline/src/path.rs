//! The workspace paths that an attribute may name. The syntax is that of scopes, and the wording of faults is fixed
//! (decision workspace-relative-paths).

use glovebox_record::path::ScopePathProblem;
use glovebox_record::scope::Entry;

/// Parses one path. The error says what is wrong with it.
pub(crate) fn entry_of(path: &str) -> Result<Entry, &'static str> {
    Entry::parse(path).map_err(|error| error.problem.fault())
}

/// Refuses the whole workspace, for attributes where only parts of it make sense.
pub(crate) fn part_of_workspace(entry: Entry) -> Result<Entry, &'static str> {
    if entry.path().is_root() { Err(ScopePathProblem::DotSegment.fault()) } else { Ok(entry) }
}
