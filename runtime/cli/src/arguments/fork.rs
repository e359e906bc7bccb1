//! The arguments of `glovebox fork`: a new run from a visit of another one.

use super::{
    LabelArguments, OutputArguments, ParallelArguments, PeopleArguments, ReportArguments, RunsArguments,
    SpendArguments, StallArguments, key_value, wall_time,
};
use crate::runs::RunSelector;
use clap::Args;
use glovebox_record::NodeId;
use std::path::PathBuf;
use std::time::Duration;

/// `glovebox fork`.
#[derive(Debug, Args)]
pub struct ForkArguments {
    /// The run to begin with; it is not changed
    pub run: RunSelector,
    /// Begin at this node, with everything as it was before its last visit, or before visit V
    #[arg(value_name = "NODE[@V]", value_parser = visit_name)]
    pub at: (NodeId, Option<u32>),
    /// Set a key of the context before the visit, as KEY=VALUE
    #[arg(long = "set", value_name = "K=V", value_parser = key_value)]
    pub context: Vec<(String, String)>,
    /// Id of the new run: letters, digits, `-` and `_`; default: a new id
    #[arg(long, value_name = "ID")]
    pub run_id: Option<String>,
    /// Continue with the current glovebox.toml and plugins, and show what that changes
    #[arg(long)]
    pub replan: bool,
    /// Leave the session of the parent process, which may end before the run
    #[arg(long, hide = true)]
    pub own_session: bool,
    /// With `--replan`: accept a plan that allows more, without a question
    #[arg(long, requires = "replan")]
    pub yes: bool,
    /// Continue with this model script; its turns count from the start of the other run
    #[arg(long, value_name = "F")]
    pub script: Option<PathBuf>,
    /// Maximum number of steps of the new run, including those before the visit
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub max_steps: Option<u64>,
    /// Maximum wall time of the new run, such as `30m`, including the time before the visit
    #[arg(long, value_name = "T", value_parser = wall_time)]
    pub max_wall_time: Option<Duration>,
    #[command(flatten)]
    pub stall: StallArguments,
    #[command(flatten)]
    pub spend: SpendArguments,
    #[command(flatten)]
    pub parallel: ParallelArguments,
    #[command(flatten)]
    pub labels: LabelArguments,
    /// Run the commands of stages without a sandbox; required again if the other run was started with it
    #[arg(long)]
    pub dangerously_no_sandbox: bool,
    #[command(flatten)]
    pub runs: RunsArguments,
    #[command(flatten)]
    pub people: PeopleArguments,
    #[command(flatten)]
    pub output: OutputArguments,
    #[command(flatten)]
    pub reports: ReportArguments,
}

/// Parses a node, and after `@` the number of a visit.
pub(super) fn visit_name(text: &str) -> Result<(NodeId, Option<u32>), String> {
    let (node, visit) = match text.split_once('@') {
        None => (text, None),
        Some((node, visit)) => {
            let visit = visit.parse().ok().filter(|visit| *visit > 0);
            (node, Some(visit.ok_or_else(|| "expected the number of a visit after `@`, from 1".to_owned())?))
        }
    };
    if node.is_empty() { Err("expected NODE or NODE@VISIT".to_owned()) } else { Ok((node.into(), visit)) }
}
