//! The capabilities that rule plugins add to a pipeline. The pipeline is bound before and after each rule plugin, and
//! additions that the operator has not accepted are refused.
//!
//! If no plugin changed the pipeline, nothing is bound.

use super::binding;
use super::component_host::ComponentHost;
use super::project::Project;
use super::refusal::{Class, Refusal};
use super::source::CheckedPipeline;
use crate::config::TransformGrant;
use crate::plan::Plan;
use crate::rules::{Extent, attributed, is_accepted};
use glovebox_names::visible;
use glovebox_pipeline::transform::RuleRecord;
use glovebox_record::RunBounds;

/// Maximum number of lines of a refusal; `glovebox plan` shows all of them.
const LINES_MAX: usize = 5;

/// Records the capabilities that each rule plugin adds to the pipeline.
pub fn record(host: &ComponentHost, source: &mut CheckedPipeline, project: &Project) -> Result<(), Refusal> {
    let trail = std::mem::take(&mut source.trail).into_iter();
    let (plugins, pipelines): (Vec<_>, Vec<_>) = trail.map(|step| (step.plugin, step.pipeline)).unzip();
    if pipelines.is_empty() {
        return Ok(());
    }
    let plans = binding::bind_versions(host, pipelines, project, &binding::holdouts(source, project)?)?;
    let extents: Vec<_> = plugins.into_iter().zip(plans.iter().map(extent)).collect();
    let found = attributed(&extents);
    for (position, rule) in source.rule_report.rules.iter_mut().enumerate() {
        rule.widen(found.get(&position).into_iter().flatten().map(ToString::to_string));
    }
    Ok(())
}

fn extent(plan: &Option<Plan>) -> Extent {
    let Some(plan) = plan else { return Extent::default() };
    let pipeline = &plan.pipeline;
    let wall_max = pipeline.wall_max(None).map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX));
    Extent::new(
        plan,
        RunBounds {
            steps_max: pipeline.steps_max(None),
            wall_max_ms: wall_max,
            spend_max: pipeline.bounds.spend_max,
            stall: pipeline.bounds.stall,
        },
    )
}

/// Refuses a pipeline to which a rule plugin added capabilities without `transform = "widen"`.
pub fn refuse(project: &Project, rules: &[RuleRecord]) -> Result<(), Refusal> {
    let grant =
        |rule: &RuleRecord| project.config.rules.get(&rule.name).map_or(TransformGrant::None, |entry| entry.transform);
    let Some(rule) = rules.iter().find(|rule| !is_accepted(grant(rule), rule)) else { return Ok(()) };
    let mut message = format!("`{}` widens what the pipeline may do:", rule.name);
    for line in rule.widened.iter().take(LINES_MAX) {
        message.push_str(&format!("\n  {}", visible::line(line)));
    }
    if rule.widened.len() > LINES_MAX {
        message
            .push_str(&format!("\n  and {} more; to list them: `glovebox plan FILE`", rule.widened.len() - LINES_MAX));
    }
    let line = project.config.rules.get(&rule.name).map_or(0, |entry| entry.line);
    let help = format!(
        "to allow this: `transform = \"widen\"` under `[rules.\"{}\"]` (glovebox.toml:{line}), then `glovebox plugin lock`",
        rule.name
    );
    Err(Refusal::new(Class::Policy, message).with_help(help))
}
