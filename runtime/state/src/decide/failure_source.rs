//! The end of a run whose next stage could not fix what failed (`unfixable_failure_source`, decision unfixable-failures-end-the-run).
//!
//! Checked on arrival at a stage, before it is made ready. A tool counts by its resolved handler, and no longer once it has
//! passed. Right after the failure it concerns every builder; later only one from which a way leads back to the tool, since
//! others do not have to fix it.

use crate::run_state::{Branch, RunState};
use glovebox_pipeline::fixability::{leads_to, out_of_scope, reason};
use glovebox_pipeline::ir::{Node, Pipeline};
use glovebox_record::{Failure, FailureClass};

/// The code of such an end.
pub const UNFIXABLE: &str = "unfixable_failure_source";

/// Why the run ends instead of coming to a node, if it does. A node without `allowed_write_paths` ends no run.
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

/// The stage that failed last and has not passed since.
fn last_failed<'a>(pipeline: &'a Pipeline, branch: &Branch) -> Option<&'a Node> {
    let works = |node: &&Node| node.handler.component().is_some();
    branch.failing().filter_map(|id| pipeline.node(id)).find(works)
}
