//! The constants and the list syntax of `diff-limits` stages, shared by `check` and the host.

use crate::ir::Attribute;

/// The most changed files in the list that a stage gets. More files exceed every bound.
pub const FILES_MAX: u64 = 20_000;

/// The value of `since` that counts the changes of all stages.
pub const SINCE_RUN: &str = "run";

/// The entries of a list: separated by commas, without the white space around them.
pub fn listed(attribute: &Attribute) -> impl Iterator<Item = &str> {
    attribute.value.split(',').map(str::trim).filter(|entry| !entry.is_empty())
}
