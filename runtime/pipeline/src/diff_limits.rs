//! The constants and the list syntax of `diff-limits` stages, which `check` and the host share.

use crate::ir::Attribute;

/// Maximum number of changed files in the list that a stage gets. If there are more, the stage fails whatever its limits.
pub const FILES_MAX: u64 = 20_000;

/// The value of `since` that means the changes of all stages of the run.
pub const SINCE_RUN: &str = "run";

/// Returns the entries of a comma-separated list, without surrounding white space and without empty entries.
pub fn listed(attribute: &Attribute) -> impl Iterator<Item = &str> {
    attribute.value.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}
