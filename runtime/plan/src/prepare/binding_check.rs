//! Checks, for `glovebox check`, what a run of a pipeline would refuse: types, grants, plugins and hold-outs, as on a
//! machine with the highest sandbox tier.
//!
//! Nothing is run. The binder decides, and the host is started only for a pipeline with plugins.

use super::component_host::ComponentHost;
use super::project::{self, Project};
use super::refusal::Refusal;
use super::scenarios;
use crate::bind;
use crate::components::PluginProblem;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{Handler, HandlerKind, Node, Pipeline, Status};
use glovebox_pipeline::key;
use glovebox_record::scope::Entry;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The rule name of a plugin that may not run. `check` ends with exit 7 for it, as `run` does.
pub const PLUGIN_REFUSED: &str = "plugin_refused";

/// Returns everything that a run would refuse or warn of. `included` contains the configurations whose `[workspace] include`
/// was already checked, so that each is checked once.
pub fn refusals(
    file: &Path,
    pipeline: &Pipeline,
    project: &Project,
    host: &ComponentHost,
    included: &mut BTreeSet<PathBuf>,
) -> Result<Vec<Diagnostic>, Refusal> {
    if included.insert(project.config_dir.clone()) {
        project::refuse_bad_include(project)?;
    }
    let (sealed, mut found) = sealed(file, pipeline);
    let is_plugin = |node: &Node| {
        let has_tools = !node.agent.tool_providers.asked.is_empty();
        has_tools || project.config.plugins.contains_key(node.handler.name())
    };
    let has_plugins = pipeline.nodes.iter().any(is_plugin) || !project.config.policies.is_empty();
    let running = if has_plugins { Some(&**host.get()?) } else { None };
    let errors = bind::check(pipeline, &host.catalog(project), project.operator_files(), running, sealed);
    found.extend(errors.diagnostics);
    found.extend(errors.plugins.iter().map(|problem| plugin_refused(pipeline, problem)));
    if project.config.verify.is_some() {
        found.extend(without_partial_route(pipeline));
    }
    Ok(found)
}

/// Returns the hold-out folders that a run would seal, and an error for each folder that the file names and that does not exist.
fn sealed(file: &Path, pipeline: &Pipeline) -> (Vec<Entry>, Vec<Diagnostic>) {
    let is_there = |folder: &Entry| scenarios::find_folder(file, Path::new(folder.path().as_str())).is_some();
    let (sealed, missing): (Vec<Entry>, Vec<Entry>) = pipeline.scenario_entries().into_iter().partition(is_there);
    let Some(attribute) = pipeline.attributes.get(key::SCENARIOS) else { return (sealed, Vec::new()) };
    let found = |folder: &Entry| {
        let message = format!("hold-out folder `{}` does not exist", folder.path());
        Diagnostic::error("holdout_access", message, attribute.span)
            .with_help("name folders of the project: `graph [scenarios=\"scripts/scenarios/\"]`")
    };
    (sealed, missing.iter().map(found).collect())
}

/// Warns of verification stages without a route for `partial_success`. With `[verify]`, commands may be skipped, and the
/// stage then ends with `partial_success`.
fn without_partial_route(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let is_meant = |node: &&Node| node.handler.kind() == HandlerKind::Verification;
    let is_lost = |node: &&Node| !pipeline.may_route(&node.id, Status::PartialSuccess);
    let warning = |node: &Node| {
        let message = format!(
            "with `[verify]`, `{}` may end with `partial_success`, and none of its edges matches that: the run would fail",
            node.id
        );
        Diagnostic::warning("verification_partial_route", message, node.span)
            .with_help("add an edge with `condition=\"outcome=partial_success\"`, or write `outcome!=fail`")
            .with_node(node.id.as_str())
    };
    pipeline.nodes.iter().filter(is_meant).filter(is_lost).map(warning).collect()
}

/// Returns the error for a plugin that may not run, at the first node that uses it.
fn plugin_refused(pipeline: &Pipeline, problem: &PluginProblem) -> Diagnostic {
    let runs = |node: &Node| matches!(&node.handler, Handler::Component(name) if name.as_str() == problem.name);
    let calls = |node: &Node| node.agent.tool_providers.providers().iter().any(|(name, _)| *name == problem.name);
    let node = pipeline.nodes.iter().find(|node| runs(node) || calls(node));
    let key = |node: &Node| if runs(node) { key::TYPE } else { key::TOOLS };
    let span =
        node.map_or(pipeline.span, |node| node.attributes.get(key(node)).map_or(node.span, |written| written.span));
    let error = Diagnostic::error(PLUGIN_REFUSED, problem.message.as_str(), span);
    let error = match &problem.help {
        Some(help) => error.with_help(help.as_str()),
        None => error,
    };
    match node {
        Some(node) => error.with_node(node.id.as_str()),
        None => error,
    }
}
