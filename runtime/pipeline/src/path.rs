//! The workspace paths that an attribute may name: the path grammar of scopes, with faults in fixed words (decision workspace-relative-paths).

use glovebox_record::path::ScopePathProblem;
use glovebox_record::scope::Entry;

/// Reads one path, or names its fault.
pub(crate) fn entry_of(path: &str) -> Result<Entry, &'static str> {
    Entry::parse(path).map_err(|error| error.problem.fault())
}

/// Refuses the whole workspace where only parts of it make sense.
pub(crate) fn part_of_workspace(entry: Entry) -> Result<Entry, &'static str> {
    if entry.path().is_root() { Err(ScopePathProblem::DotSegment.fault()) } else { Ok(entry) }
}
