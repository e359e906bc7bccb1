//! Ends a run whose next stage cannot fix the last failure (`unfixable_failure_source`,
//! decision unfixable-failures-end-the-run).
//!
//! This is checked on arrival at a stage, before the stage is made ready. Only a failed stage that a component executes
//! is considered, and only until it passes. Directly after the failure, the check applies to every builder. Later it
//! applies only to builders from which a path leads back to the failed stage, because the others do not have to fix it.

use crate::run_state::{Branch, RunState};
use glovebox_pipeline::fixability::{leads_to, out_of_scope, reason};
use glovebox_pipeline::ir::{Node, Pipeline};
use glovebox_record::{Failure, FailureClass};

/// The failure code of a run that ends for this reason.
pub const UNFIXABLE: &str = "unfixable_failure_source";

/// Returns the reason why the run ends instead of reaching `next`, or `None` if it continues. A node without
/// `allowed_write_paths` never ends the run.
pub(super) fn unfixable(pipeline: &Pipeline, state: &RunState, branch: &Branch, next: &Node) -> Option<Failure> {
    let asked = next.access.allowed_write_paths.as_deref()?;
    let narrowed = state.run.as_ref().and_then(|run| run.plan.narrowed_scopes.get(&next.id));
    let failed = last_failed(pipeline, branch)?;
    let scripts = out_of_scope(pipeline, failed, next, narrowed.map_or(asked, Vec::as_slice));
    if scripts.is_empty() {
        return None;
    }
    let is_fresh = branch.last_failed.as_ref().is_some_and(|last| last.node == failed.id);
    let concerned = is_fresh || leads_to(pipeline, &next.id, &failed.id);
    concerned.then(|| {
        let reason = reason(&failed.id, &scripts, &next.id);
        Failure::new(FailureClass::Deterministic, UNFIXABLE, reason)
    })
}

/// Returns the stage that failed last and has not passed since.
fn last_failed<'a>(pipeline: &'a Pipeline, branch: &Branch) -> Option<&'a Node> {
    let works = |node: &&Node| node.handler.component().is_some();
    branch.failing().filter_map(|id| pipeline.node(id)).find(works)
}
