//! The stage at which `run --rerun-failed` begins: the one that failed in the latest run of a pipeline.
//!
//! This is the node at which a resume of that run would begin. If that node needs a model and no model was asked, it is
//! instead the stage that the node should have repaired.

use crate::exit::{Exit, Stop};
use crate::runs::{self, RunFolder, journal};
use crate::terminal::visible;
use glovebox_pipeline::ir::NodeId;
use glovebox_state::evidence::{RunStatus, RunSummary};
use std::path::Path;

/// Returns the stage that failed, and the id of its run. `pipeline` is the absolute path of the pipeline's file.
pub fn stage(runs_dir: &Path, pipeline: &str) -> Result<(NodeId, String), Stop> {
    let Some(run) = latest(runs_dir, pipeline)? else {
        let message = format!("no run of `{}` in `{}`", visible::line(pipeline), runs_dir.display());
        return Err(Stop::new(Exit::Usage, message).with_help("run the whole pipeline: `glovebox run`"));
    };
    let summary = journal::open_to_show(&run)
        .and_then(|journal| RunSummary::read(&journal, |_| {}).map_err(|error| journal::unreadable(&run, &error)))?;
    let named = runs::spelled(&run.id, runs_dir);
    let refused = |what: &str, help: String| {
        Err(Stop::new(Exit::Usage, format!("the latest run of the pipeline, `{}`, {what}", run.id)).with_help(help))
    };
    match summary.status {
        RunStatus::Success => refused("has no failed stage", "run the whole pipeline: `glovebox run`".to_owned()),
        RunStatus::Running => refused("has not ended", format!("wait for its end: `glovebox attach {named}`")),
        RunStatus::Unfinished if runs::is_live(&run) => {
            refused("has not ended", format!("wait for its end: `glovebox attach {named}`"))
        }
        RunStatus::Unfinished | RunStatus::Paused => {
            refused("was stopped", format!("continue it: `glovebox resume {named}`"))
        }
        RunStatus::Fail => match failed_stage(&summary) {
            Some(node) => Ok((node.clone(), run.id)),
            None => refused("failed, but not because of a stage", "run the whole pipeline: `glovebox run`".to_owned()),
        },
    }
}

fn failed_stage(summary: &RunSummary) -> Option<&NodeId> {
    let cause = summary.cause().and_then(|cause| cause.node);
    if summary.lacks_model() {
        return cause;
    }
    summary.end.resumes_at.as_ref().or(cause)
}

/// Returns the newest run of a pipeline. A run whose journal cannot be read or verified is skipped.
fn latest(runs_dir: &Path, pipeline: &str) -> Result<Option<RunFolder>, Stop> {
    let is_of_pipeline = |run: &RunFolder| {
        let read = journal::read_start_and_resumes(run);
        let terms = read.and_then(|verified| journal::current_start(run, &verified.records));
        terms.is_ok_and(|terms| terms.pipeline.path == pipeline)
    };
    Ok(runs::list(runs_dir)?.into_iter().find(is_of_pipeline))
}
