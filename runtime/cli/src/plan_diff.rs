//! Reads the other plan of `glovebox plan --against`: the plan of a pipeline file, or of a run.
//!
//! A run is bound with its own pipeline and with the current configuration, because a run does not keep its
//! configuration. `glovebox_plan` compares the plans; this file reads the other plan and prints the difference.

use crate::arguments::PlanArguments;
use crate::exit::{Exit, Stop};
use crate::prepare;
use crate::runs;
use crate::runs::RunSelector;
use crate::runs::journal;
use crate::runs::recorded;
use crate::terminal::visible;
use glovebox_journal::sqlite::VerifiedJournal;
use glovebox_pipeline::{Inputs, Source};
use glovebox_plan::plan::Plan;
use glovebox_plan::plan::compare::{Change, OtherPlan, PlanDiff};
use glovebox_plan::prepare::binding::{self, Request};
use glovebox_plan::prepare::component_host::ComponentHost;
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::references;
use glovebox_plan::prepare::source::{self, CheckedPipeline};
use glovebox_plan::rules::Extent;
use glovebox_record::RunBounds;
use glovebox_workspace::holdout;
use std::path::Path;

/// The capabilities and bounds of another plan, and its name.
pub struct Other {
    /// The file or run as the user named it.
    pub plan: OtherPlan,
    /// The capabilities and bounds.
    pub extent: Extent,
}

/// Binds the pipeline or the run of `--against`, if the flag is set. If a file and a run have the same name, the file
/// is used.
pub fn read(host: &ComponentHost, arguments: &PlanArguments, project: &Project) -> Result<Option<Other>, Stop> {
    let Some(target) = &arguments.against else { return Ok(None) };
    let is_path = Path::new(target).exists() || target.contains('/') || target.ends_with(".dot");
    let extent = match is_path {
        true => of_file(host, Path::new(target), arguments)?,
        false => of_run(host, &RunSelector::from(target.clone()), arguments, project)?,
    };
    let named = if is_path { OtherPlan::File } else { OtherPlan::Run };
    Ok(Some(Other { plan: named(target.clone()), extent }))
}

fn of_file(host: &ComponentHost, file: &Path, arguments: &PlanArguments) -> Result<Extent, Stop> {
    let text = source::read_text(file)?;
    let inputs = declared(file, Source::new(&text), &arguments.project.inputs);
    let (source, project) = prepare::read_pipeline(host, file, &inputs, &arguments.project.workdir)?;
    let sealed = binding::holdouts(&source, &project)?;
    let bound = prepare::bind(host, &source, &project, Request::to_show(sealed))?;
    Ok(extent(&bound.plan, &source, arguments))
}

/// Returns the capabilities of a plan, with the bounds that a run with these flags would have.
pub fn extent(plan: &Plan, source: &CheckedPipeline, arguments: &PlanArguments) -> Extent {
    let wall_max = source.pipeline.wall_max(arguments.execution.max_wall_time);
    let wall_max_ms = wall_max.map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
    let steps_max = source.pipeline.steps_max(arguments.execution.max_steps);
    let spend_max = plan.spend_max(arguments.execution.spend.into());
    let stall = source.pipeline.stall(arguments.execution.stall.into());
    Extent::new(plan, RunBounds { steps_max, wall_max_ms, spend_max, stall })
}

/// Returns the inputs that the other pipeline uses. An input that only the new pipeline uses is not an error of the
/// other one.
fn declared(file: &Path, text: Source<'_>, set: &[(String, String)]) -> Inputs {
    let mut inputs = source::inputs(set);
    let mut alone = Inputs { files: references::read(file, text, &inputs).files, ..Inputs::default() };
    for input in std::mem::take(&mut inputs.set) {
        alone.set = [input].into();
        let checked = glovebox_pipeline::check(text, &alone);
        if checked.diagnostics.iter().all(|diagnostic| diagnostic.rule != "input_declared") {
            inputs.set.append(&mut alone.set);
        }
    }
    inputs
}

fn of_run(
    host: &ComponentHost,
    selector: &RunSelector,
    arguments: &PlanArguments,
    project: &Project,
) -> Result<Extent, Stop> {
    let run = runs::select(&arguments.runs.runs_dir, selector)?;
    let VerifiedJournal { records, provenance, .. } = journal::read_start_and_resumes(&run)?;
    if arguments.deny.is_empty() {
        journal::warn_if_foreign(&run, provenance);
    } else {
        // The rule `widened` depends on the run's record, so the record must be trusted.
        journal::refuse_foreign(&run, provenance, "compare with a pipeline file: `--against FILE`")?;
    }
    let started = journal::beginning(&run, &records)?;
    let source = recorded::read(&run, started)?;
    let folders = started.workspace.holdouts.as_ref().map_or(&[][..], |sealed| &sealed.folders);
    let holdouts = holdout::entries(folders).map_err(|error| Stop::new(Exit::Mismatch, error.to_string()))?;
    let bound = prepare::bind(host, &source, project, Request::to_show(holdouts))?;
    let bounds = RunBounds {
        steps_max: started.bounds.steps_max,
        wall_max_ms: started.bounds.wall_max_ms,
        spend_max: started.bounds.spend_max,
        stall: started.bounds.stall,
    };
    Ok(Extent::new(&bound.plan, bounds))
}

/// Renders the comparison as text: `+` for a new capability, `-` for a missing one.
pub fn render(diff: &PlanDiff) -> String {
    let target = visible::line(&diff.target);
    let whose = match diff.is_run {
        true => format!("run {target} (its pipeline with the current configuration)"),
        false => target.into_owned(),
    };
    if diff.could.is_empty() && diff.nodes.is_empty() && diff.loosened.is_empty() {
        return format!("against {whose}: no difference\n");
    }
    let mut text = format!("against {whose}\nall nodes{}", changes(&diff.could));
    for node in &diff.nodes {
        let presence = if node.presence == "kept" { String::new() } else { format!(" ({})", node.presence) };
        text.push_str(&format!("{}{presence}{}", visible::line(&node.id), changes(&node.change)));
    }
    if !diff.loosened.is_empty() {
        text.push_str("looser limits and checks\n");
        diff.loosened.iter().for_each(|line| text.push_str(&format!("  + {}\n", visible::line(line))));
    }
    text
}

/// Renders the part after the title of a comparison: the new and the missing capabilities.
fn changes(change: &Change) -> String {
    let lines = |sign: char, grants: &[String]| -> String {
        grants.iter().map(|grant| format!("  {sign} {}\n", visible::line(grant))).collect()
    };
    let nothing = if change.is_empty() { ": no difference" } else { "" };
    format!("{nothing}\n{}{}", lines('+', &change.more), lines('-', &change.less))
}
