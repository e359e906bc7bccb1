//! Guesses whether a verifying stage failed because hold-outs do not exist for it. The plan cannot show that a script
//! of the project uses hold-outs.
//!
//! The guess is only for people. It is positive if the stage names no hold-outs and there is a folder of hold-outs that
//! no stage can read or whose name the stage printed.

use super::redact::printed;
use glovebox_host::call::Report;
use glovebox_pipeline::ir::{Node, Role};
use glovebox_plan::plan::{HoldoutAccess, Plan};
use glovebox_record::scope::Entry;

/// Returns true for a verifier without hold-outs if `holdouts=true` might fix its failure. The result has a meaning
/// only if the stage failed.
pub(super) fn holdouts(plan: &Plan, node: &Node, report: &Report) -> bool {
    let Some(binding) = plan.binding(&node.id) else { return false };
    let is_unaware = binding.holdouts == HoldoutAccess::Absent && node.access.holdouts.named.is_none();
    if plan.folders.sealed.is_empty() || report.receipts.is_empty() || !is_unaware || binding.role != Role::Verifier {
        return false;
    }
    let is_read = |folder: &Entry| plan.bindings.keys().any(|id| plan.holdouts_of(id).contains(&folder));
    let is_named = |folder: &Entry| {
        let name = folder.path().as_str().rsplit('/').next().unwrap_or_default();
        printed(report).any(|text| String::from_utf8_lossy(text).contains(name))
    };
    plan.folders.sealed.iter().any(|folder| !is_read(folder) || is_named(folder))
}
