//! Rules over a lowered pipeline (spec §7).

use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::Pipeline;

/// One rule of the table.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable name, as in a diagnostic's `rule`.
    pub id: &'static str,
    /// How bad its findings are.
    pub severity: Severity,
    /// What it demands, one line.
    pub summary: &'static str,
}

/// Every rule there is.
pub const RULES: &[Rule] = &[];

/// Runs every rule.
pub fn run(pipeline: &Pipeline) -> Vec<Diagnostic> {
    not_enforced(pipeline)
}

/// What `glovebox run` refuses in this version because it would not enforce it; warnings here, errors when a plan is bound.
pub fn not_enforced(_pipeline: &Pipeline) -> Vec<Diagnostic> {
    Vec::new()
}
