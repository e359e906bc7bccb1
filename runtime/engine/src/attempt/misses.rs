//! Whether a verifying stage failed because hold-outs do not exist for it: a script of the project can run them unseen by the plan.
//!
//! Only for people, and only a guess: the stage names no hold-outs, and no other stage has them, or it printed the name of their folder.

use super::redact::printed;
use glovebox_host::call::Report;
use glovebox_pipeline::ir::{Node, Role};
use glovebox_plan::plan::{HoldoutAccess, Plan};
use glovebox_record::scope::Entry;

/// True for a verifier without hold-outs whose failure, should it be one, `holdouts=true` might mend.
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
