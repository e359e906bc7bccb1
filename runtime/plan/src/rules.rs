//! Custom rules: plugins that may change a graph and then lint it in addition to the built-in rules.
//!
//! Only components in the lock file are loaded, and they are called in the order of `glovebox.toml`. No result of a
//! component is trusted: Glovebox parses and lints a changed graph like any file, reports and records every change, and
//! checks and limits names, texts and counts. A component that traps, exceeds a limit or returns an invalid result is
//! an error of the check.

mod chain;
mod finding_text;
mod widening;

pub use widening::{Extent, TransformStep, Wider, attributed, is_accepted};

use crate::components::admission::Admission;
use crate::components::{PluginFile, PluginProblem, ReadProblem};
use crate::config::{Config, RuleEntry, TransformGrant};
use crate::lock::{Lock, LockedPlugin};
use chain::{ChainResult, TransformChain};
use glovebox_host::host::Host;
use glovebox_host::inspect::inspect;
use glovebox_host::rules::RuleComponent;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::transform::{GraphChange, SettledGraph};
use glovebox_pipeline::transform::{RuleRecord, RuleReport};
use glovebox_pipeline::{CheckResult, LoweredFile, validate};
use glovebox_record::Digest;
use glovebox_record::LimitSettings;
use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of findings of one plugin about one graph.
pub const FINDINGS_MAX: usize = 50;

/// The loaded plugins of a project's `[rules]`, in the order of the file.
pub struct RuleSet {
    plugins: Vec<RulePlugin>,
    limits: LimitSettings,
}

struct RulePlugin {
    name: String,
    /// The position in the rule set.
    position: usize,
    grant: TransformGrant,
    line: usize,
    digest: Digest,
    component: RuleComponent,
}

/// The result of linting a file with its project's rules.
pub struct Linted {
    /// The pipeline, changed or not, and all findings of plugins and built-in rules. It may run only if none of them is an error.
    pub checked: CheckResult,
    /// The report for the record of the run.
    pub report: RuleReport,
    /// The user's file and the result of each plugin, so that their plans can be compared. Empty if no plugin changed it.
    pub trail: Vec<TransformStep>,
}

/// The files of a project's rule plugins, and the operator's settings for them.
#[derive(Clone, Copy)]
pub struct RuleFiles<'a> {
    /// The operator's configuration.
    pub config: &'a Config,
    /// The lock file with the plugins to which the operator agreed.
    pub lock: &'a Lock,
    /// The files, by the name of the plugin.
    pub files: &'a BTreeMap<String, PluginFile>,
    /// Which of them may run.
    pub admission: &'a Admission,
}

/// A component to which the operator agreed.
struct AcceptedRule<'a> {
    name: &'a str,
    entry: &'a RuleEntry,
    bytes: &'a [u8],
    digest: Digest,
}

impl RuleSet {
    /// Loads every plugin of `[rules]`, or returns why a plugin may not run (exit 7). Bytes that are not in the lock
    /// file are never compiled.
    pub fn load(project: RuleFiles<'_>, host: &Host) -> Result<RuleSet, Vec<PluginProblem>> {
        let load = |(position, agreed): (usize, Result<AcceptedRule<'_>, PluginProblem>)| {
            let AcceptedRule { name, entry, bytes, digest } = agreed?;
            let component = host.load_rules(bytes, project.config.component_bytes(name)).map_err(|error| {
                let message = format!("rule plugin `{name}` cannot be loaded: {error}");
                PluginProblem { name: name.to_owned(), message, help: error.help() }
            })?;
            let (grant, line) = (entry.transform, entry.line);
            Ok(RulePlugin { name: name.to_owned(), position, grant, line, digest, component })
        };
        let plugins = all_or_problems(project.agreed().enumerate().map(load))?;
        Ok(RuleSet { plugins, limits: project.config.limits.clone() })
    }

    /// Changes and lints a lowered file: the transforms in their order, then the built-in lint, then the lints of the
    /// plugins. No plugin sees a file with errors.
    pub fn lint(&self, draft: LoweredFile) -> Linted {
        let chain = if draft.has_errors() { TransformChain::closed(draft) } else { self.transform(draft) };
        let ChainResult { mut checked, text: transformed, changes, trail } = chain.finish();
        let changes = changes.into_iter().map(Some).chain(std::iter::repeat_with(|| None));
        let records = self.plugins.iter().zip(changes);
        let rules = records.map(|(plugin, changes)| plugin.record(changes.unwrap_or_default())).collect();
        if let Some(pipeline) = &checked.pipeline {
            checked.diagnostics.retain(|found| !self.reads(found, pipeline));
            let found = self.findings(pipeline);
            checked.diagnostics.extend(found);
        }
        checked.diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
        Linted { checked, report: RuleReport { rules, transformed }, trail }
    }

    /// Returns true for the remark that no handler reads an attribute, if the prefix of the attribute is that of a plugin:
    /// `acme.` for `acme.house`.
    fn reads(&self, found: &Diagnostic, pipeline: &Pipeline) -> bool {
        if found.rule != "attribute_unread" {
            return false;
        }
        let nodes = pipeline.nodes.iter().map(|node| &node.attributes);
        let edges = pipeline.edges.iter().map(|edge| &edge.attributes);
        let mut all = nodes.chain(edges).chain([&pipeline.attributes]).flatten();
        let key = all.find(|(_, attribute)| attribute.key_span == found.span).map(|(key, _)| key.as_str());
        let Some((space, _)) = key.and_then(|key| key.split_once('.')) else { return false };
        self.plugins.iter().any(|plugin| plugin.name.split('.').next() == Some(space))
    }

    fn transform(&self, draft: LoweredFile) -> TransformChain<'_> {
        let mut chain = TransformChain::open(draft);
        self.plugins.iter().for_each(|plugin| chain.apply(plugin, &self.limits));
        chain
    }

    fn findings(&self, pipeline: &Pipeline) -> Vec<Diagnostic> {
        let graph = SettledGraph::with_subgraphs(pipeline);
        let json = serde_json::to_string(&graph).expect("a graph holds text, numbers and lists only");
        let lint = |plugin: &RulePlugin| {
            let name = &plugin.name;
            let broken = |message: String| Diagnostic::error(plugin.own_rule(), message, pipeline.span);
            let found = match plugin.component.lint(&json, &self.limits) {
                Ok(found) => found,
                Err(fault) => {
                    let found = broken(format!("the rules of `{name}` could not check the graph: {fault}"));
                    return vec![found.with_help(plugin.remedy())];
                }
            };
            let more = (found.len() > FINDINGS_MAX).then(|| {
                let count = found.len();
                broken(format!("`{name}` has {count} findings, and only the first {FINDINGS_MAX} are shown"))
            });
            let shown = found.into_iter().take(FINDINGS_MAX).map(|finding| plugin.diagnostic(finding, pipeline));
            shown.chain(more).collect()
        };
        self.plugins.iter().flat_map(lint).collect()
    }
}

impl RulePlugin {
    fn record(&self, changes: Vec<GraphChange>) -> RuleRecord {
        RuleRecord::new(self.name.clone(), self.digest, changes)
    }
}

/// Returns the digests of the plugins in order, or why a plugin may not run (exit 7). Compiles nothing.
pub fn digests(project: RuleFiles<'_>) -> Result<Vec<(String, Digest)>, Vec<PluginProblem>> {
    all_or_problems(project.agreed().map(|agreed| agreed.map(|agreed| (agreed.name.to_owned(), agreed.digest))))
}

/// Returns all items if there is no problem, else all problems.
fn all_or_problems<T>(results: impl Iterator<Item = Result<T, PluginProblem>>) -> Result<Vec<T>, Vec<PluginProblem>> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for result in results {
        match result {
            Ok(one) => found.push(one),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems) }
}

impl<'a> RuleFiles<'a> {
    /// Returns each plugin of `[rules]`, in the order of the file, or why it may not run.
    fn agreed(self) -> impl Iterator<Item = Result<AcceptedRule<'a>, PluginProblem>> {
        let entries = self.config.rules_in_order().into_iter();
        entries.filter_map(move |name| Some(self.agree(name, self.config.rules.get(name)?)))
    }

    fn agree(self, name: &'a str, entry: &'a RuleEntry) -> Result<AcceptedRule<'a>, PluginProblem> {
        let problem = |message: String, help: Option<String>| PluginProblem { name: name.to_owned(), message, help };
        let unread = |reason: &dyn fmt::Display| format!("rule plugin `{name}` cannot be read: {reason}");
        let unopened = |reason: &str| {
            let help = format!("build it, or set `path` under `[rules.\"{name}\"]` (glovebox.toml:{})", entry.line);
            problem(unread(&reason), Some(help))
        };
        let file = self.files.get(name).ok_or_else(|| unopened("its file was not opened"))?;
        let bytes = file.content().map_err(|ReadProblem { reason, .. }| unopened(&reason))?;
        let inspection = inspect(bytes).map_err(|error| problem(unread(&error), None))?;
        if let Some(manifest) = inspection.manifest.as_ref().filter(|manifest| manifest.name != name) {
            let message = format!("the manifest of rule plugin `{name}` names it `{}`", manifest.name);
            let help = format!("rename the table in glovebox.toml to `[rules.\"{}\"]`", manifest.name);
            return Err(problem(message, Some(help)));
        }
        self.admission.refuse_revoked(name, &inspection.digest)?;
        let accepted = self.admission.signer(name, &inspection, file, self.lock.plugins.get(name))?;
        let signer = accepted.map(|accepted| accepted.signer);
        let now = LockedPlugin { signer, ..LockedPlugin::for_rules(name, entry, &inspection) };
        self.lock.verify(&now).map_err(|mismatch| problem(mismatch.to_string(), Some(mismatch.help().to_owned())))?;
        Ok(AcceptedRule { name, entry, bytes, digest: inspection.digest })
    }
}

/// Lints a lowered file with only the built-in rules.
pub fn lint_builtin(draft: LoweredFile) -> Linted {
    Linted { checked: validate(draft), report: RuleReport::default(), trail: Vec::new() }
}
