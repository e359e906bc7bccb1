//! What each stage asks of its machine: the need of the pipeline, and that of the operator for the whole project.
//!
//! Both narrow the machines of a stage. The caller says what this machine has.

use super::{BindErrors, BindOptions};
use crate::config::Config;
use crate::config::fleet::FleetSetting;
use crate::plan::{PlannedPlacement, ProgramFolders};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{Node, NodeId, Pipeline};
use glovebox_pipeline::key;
use glovebox_record::Need;
use glovebox_record::placement::ArchConflict;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns what the stages ask of their machines, and what this machine lacks of it. A stage that this machine cannot run is
/// an error, unless the plan is only shown or other machines make some of the stages.
pub(crate) fn plan(
    pipeline: &Pipeline,
    config: &Config,
    options: &BindOptions,
    errors: &mut BindErrors,
) -> PlannedPlacement {
    let (needs, conflicts) = needs(pipeline, &config.fleet);
    errors.diagnostics.extend(conflicts);
    let (wait_warm, program_folders) = (config.fleet.wait_warm, ProgramFolders::from(&config.exec));
    let placement = PlannedPlacement { needs, unmet: Vec::new(), wait_warm, program_folders };
    let unmet = placement.unmet_on(&options.machine);
    if !options.plan_only && !options.is_one_of_many {
        errors.unmet.clone_from(&unmet);
    }
    PlannedPlacement { unmet, ..placement }
}

/// Returns the need of each stage that has one, and an error for each node that needs another architecture than the project.
pub(super) fn needs(pipeline: &Pipeline, fleet: &FleetSetting) -> (BTreeMap<NodeId, Arc<Need>>, Vec<Diagnostic>) {
    let (mut needs, mut conflicts) = (BTreeMap::new(), Vec::new());
    let of_project = (!fleet.runs_on.is_empty()).then(|| Arc::new(fleet.runs_on.clone()));
    for node in &pipeline.nodes {
        let need = match (&node.need, &of_project) {
            (None, None) => continue,
            (need, None) | (None, need) => need.clone(),
            (Some(need), Some(of_project)) => match of_project.and(need) {
                Ok(both) => Some(Arc::new(both)),
                Err(archs) => {
                    conflicts.push(conflict(pipeline, node, archs));
                    continue;
                }
            },
        };
        let stages = node.stages().filter(|stage| stage.handler.component().is_some());
        needs.extend(stages.filter_map(|stage| Some((stage.id.clone(), need.clone()?))));
    }
    (needs, conflicts)
}

fn conflict(pipeline: &Pipeline, node: &Node, archs: ArchConflict) -> Diagnostic {
    let written = node.attributes.get(key::RUNS_ON).or_else(|| pipeline.attributes.get(key::RUNS_ON));
    let span = written.map_or(node.span, |attribute| attribute.span);
    let message =
        format!("`[fleet]` in glovebox.toml and `runs_on` of `{}` need {archs}, and no machine has both", node.id);
    let error = Diagnostic::error("runs_on", message, span).with_node(node.id.as_str());
    error.with_help("remove one of them: a pipeline adds to `runs_on` under `[fleet]` in glovebox.toml")
}
