//! The custom rules of `glovebox.toml`: reads the rule plugins and applies them to a pipeline.
//!
//! If the project has no rules, the host is not started. A resumed run is not linted again, but its project must still
//! have the same rule plugins.

use super::children::{Children, FaultsOfChildren};
use super::component_host::{ComponentHost, rule_files};
use super::project::{self, Project};
use super::refusal::{Class, Refusal};
use super::source::{self, CheckedPipeline, ParsedFile};
use super::widening;
use crate::config::TransformGrant;
use crate::rules::{RuleFiles, RuleSet, digests, is_accepted, lint_builtin};
use glovebox_pipeline::Inputs;
use glovebox_pipeline::transform::RuleRecord;
use std::path::Path;

/// Reads a pipeline and its project, and applies the project's rules.
///
/// # Errors
///
/// Fails for errors in the pipeline or in its project, and for rule plugins that may not run.
pub fn read_pipeline(
    host: &ComponentHost,
    file: &Path,
    inputs: &Inputs,
    workdir: &Path,
) -> Result<(CheckedPipeline, Project), Refusal> {
    let opened = ParsedFile::parse(file, source::read_text(file)?, inputs);
    // Errors of the file are reported before errors of the project.
    let mut opened = without_errors(opened)?;
    let project = project::read_project(workdir, Some(file))?;
    opened.draft.pipeline.set_verifiers(project.config.verifiers());
    let source = lint(host, opened, &project)?;
    Ok((source, project))
}

/// Checks the text of a pipeline that is not in a file, and applies the project's rules. `file` stands for its file.
///
/// # Errors
///
/// Fails for errors in the text or in its project, and for rule plugins that may not run.
pub fn check_text(
    host: &ComponentHost,
    file: &Path,
    text: String,
    project: &Project,
) -> Result<CheckedPipeline, Refusal> {
    let mut opened = without_errors(ParsedFile::parse(file, text, &Inputs::default()))?;
    opened.draft.pipeline.set_verifiers(project.config.verifiers());
    lint(host, opened, project)
}

/// Returns the file with the stages of its child pipelines, or refuses it if it has errors.
fn without_errors(mut opened: ParsedFile) -> Result<ParsedFile, Refusal> {
    if opened.draft.has_errors() {
        opened.finish(lint_builtin)?;
        return Err(Refusal::new(Class::Invalid, ""));
    }
    opened.put_children_in(&mut Children::new(FaultsOfChildren::ReportedAtNode));
    if opened.draft.has_errors() {
        opened.finish(lint_builtin)?;
        return Err(Refusal::new(Class::Invalid, ""));
    }
    Ok(opened)
}

fn lint(host: &ComponentHost, opened: ParsedFile, project: &Project) -> Result<CheckedPipeline, Refusal> {
    if project.config.rules.is_empty() {
        let source = opened.finish(lint_builtin)?;
        project::refuse_bad_paths(project)?;
        return Ok(source);
    }
    let rules = load(project, host)?;
    let mut source = opened.finish(|draft| rules.lint(draft))?;
    widening::record(host, &mut source, project)?;
    project::refuse_bad_paths(project)?;
    Ok(source)
}

/// Checks that the project has the same rule plugins as the run, byte for byte. If not, the exit code is 11, or 7 for a
/// plugin that may not run.
pub fn check_unchanged(run: &str, project: &Project, recorded: &[RuleRecord]) -> Result<(), Refusal> {
    if project.config.rules.is_empty() && recorded.is_empty() {
        return Ok(());
    }
    let (files, admission) = (rule_files(project), project.admission());
    let rules = RuleFiles { config: &project.config, lock: &project.lock, files: &files, admission: &admission };
    let now = digests(rules).map_err(Refusal::for_plugins)?;
    if now.iter().map(|(name, digest)| (name, digest)).eq(recorded.iter().map(|rule| (&rule.name, &rule.digest))) {
        return refuse_withdrawn(run, project, recorded);
    }
    let message = format!("run `{}` used other rules: a component of `[rules]` or the order has changed", run);
    Err(Refusal::new(Class::Mismatch, message)
        .with_help("restore glovebox.toml and the components, or start a new run"))
}

/// Refuses to resume if a rule plugin no longer has the grant that it used.
fn refuse_withdrawn(run: &str, project: &Project, recorded: &[RuleRecord]) -> Result<(), Refusal> {
    let allowed = |rule: &RuleRecord| {
        let grant = project.config.rules.get(&rule.name).map_or(TransformGrant::None, |entry| entry.transform);
        is_accepted(grant, rule) && (rule.changes_total == 0 || grant != TransformGrant::None)
    };
    let Some(rule) = recorded.iter().find(|rule| !allowed(rule)) else { return Ok(()) };
    let message =
        format!("`{1}` changed the graph of run `{0}` in a way that glovebox.toml no longer allows", run, rule.name);
    Err(Refusal::new(Class::Mismatch, message).with_help("restore `transform`, or start a new run"))
}

/// Loads the rule set of a project.
pub(super) fn load(project: &Project, host: &ComponentHost) -> Result<RuleSet, Refusal> {
    let (files, admission) = (rule_files(project), project.admission());
    let rules = RuleFiles { config: &project.config, lock: &project.lock, files: &files, admission: &admission };
    RuleSet::load(rules, host.get()?).map_err(Refusal::for_plugins)
}
