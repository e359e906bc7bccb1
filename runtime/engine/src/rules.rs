//! Custom rules: components that may change a graph and then lint it beside the built-in rules.
//!
//! Admits only what is locked, asks in the order of `glovebox.toml`, and takes nothing a component says at its word: a changed graph
//! is read again by our parser and linted like any file, every change is told and recorded, names, texts and counts are checked and
//! bounded. A component that traps, hits a bound or breaks its contract is an error of the pipeline's check, never a pass.

mod chain;
mod finding_text;
mod widening;

pub use widening::{Extent, Trail, Wider, attributed, is_accepted};

use crate::components::{PluginFile, PluginProblem};
use crate::config::{Config, TransformGrant};
use crate::event::{Digest, RuleRecord, RuleReport};
use crate::lock::Lock;
use chain::{Asked, TransformChain};
use finding_text::{diagnostic, rule_name};
use glovebox_host::host::Host;
use glovebox_host::inspect::inspect;
use glovebox_host::limits::LimitSettings;
use glovebox_host::rules::RuleComponent;
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Pipeline;
use glovebox_pipeline::transform::SettledGraph;
use glovebox_pipeline::{Checked, Lowered, validate};
use std::collections::BTreeMap;

/// The most findings of one component over one graph.
pub const FINDINGS_MAX: usize = 50;

/// The components of a project's `[rules]`, loaded, in the order of the file.
pub struct RuleSet {
    plugins: Vec<RulePlugin>,
    limits: LimitSettings,
}

struct RulePlugin {
    name: String,
    grant: TransformGrant,
    line: usize,
    digest: Digest,
    component: RuleComponent,
}

/// What a project's rules made of a file.
pub struct Linted {
    /// The pipeline, changed or not, and every finding, theirs and the built-in ones; it may run only without an error among them.
    pub checked: Checked,
    /// For the record.
    pub report: RuleReport,
    /// What each component made of it, so that their plans can be compared.
    pub trail: Trail,
}

impl RuleSet {
    /// Loads every component of `[rules]`, or says why one may not run (exit 7). Bytes nobody agreed to are never compiled.
    pub fn load(
        config: &Config,
        lock: &Lock,
        files: &BTreeMap<String, PluginFile>,
        host: &Host,
    ) -> Result<RuleSet, Vec<PluginProblem>> {
        let load = |name: &str, bytes: &[u8], digest| {
            let loaded = host.load_rules(bytes, config.component_bytes(name));
            let component =
                loaded.map_err(|error| (format!("rules `{name}` cannot be loaded: {error}"), error.help()))?;
            let entry = config.rules.get(name);
            let (grant, line) = entry.map_or((TransformGrant::None, 0), |entry| (entry.transform, entry.line));
            Ok(RulePlugin { name: name.to_owned(), grant, line, digest, component })
        };
        Ok(RuleSet { plugins: each(config, lock, files, load)?, limits: config.limits.clone() })
    }

    /// Changes and lints what was read of a file: transforms in their order, then the built-in lint, then theirs. A file with
    /// errors is shown to nobody.
    pub fn lint(&self, draft: Lowered) -> Linted {
        let chain = if draft.has_errors() { TransformChain::closed(draft) } else { self.transform(draft) };
        let rules = self.plugins.iter().enumerate().map(|(index, plugin)| {
            let changes = chain.changes.get(index).map_or(&[][..], Vec::as_slice);
            RuleRecord::new(&plugin.name, plugin.digest, changes)
        });
        let rules = rules.collect();
        let trail = chain.trail.clone();
        let (mut checked, transformed) = chain.validated();
        if let Some(pipeline) = &checked.pipeline {
            checked.diagnostics.retain(|found| !self.reads(found, pipeline));
            let found = self.findings(pipeline);
            checked.diagnostics.extend(found);
        }
        checked.diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
        Linted { checked, report: RuleReport { rules, transformed }, trail }
    }

    /// True for the remark that nobody reads an attribute, when it is in the name space of one that is asked: `acme.` of `acme.house`.
    fn reads(&self, found: &Diagnostic, pipeline: &Pipeline) -> bool {
        if found.rule != "attribute_unread" {
            return false;
        }
        let nodes = pipeline.nodes.iter().map(|node| &node.attributes);
        let edges = pipeline.edges.iter().map(|edge| &edge.attributes);
        let mut all = nodes.chain(edges).chain([&pipeline.attributes]).flatten();
        let key = all.find(|(_, attribute)| attribute.key_span == found.span).map(|(key, _)| key.as_str());
        let space =
            |name: &str| key.is_some_and(|key| key.split_once('.').map(|(space, _)| space) == name.split('.').next());
        self.plugins.iter().any(|plugin| space(&plugin.name))
    }

    fn transform(&self, draft: Lowered) -> TransformChain {
        let mut chain = TransformChain::open(draft);
        for plugin in &self.plugins {
            let asked = Asked { name: &plugin.name, grant: plugin.grant, line: plugin.line };
            chain.through(asked, &plugin.component, &self.limits);
        }
        chain
    }

    fn findings(&self, pipeline: &Pipeline) -> Vec<Diagnostic> {
        let graph = SettledGraph::with_subgraphs(pipeline);
        let json = serde_json::to_string(&graph).expect("a graph holds text, numbers and lists only");
        self.plugins.iter().flat_map(|plugin| self.ask(plugin, pipeline, &json)).collect()
    }

    fn ask(&self, plugin: &RulePlugin, pipeline: &Pipeline, graph: &str) -> Vec<Diagnostic> {
        let name = &plugin.name;
        let broken = |message: String| Diagnostic::error(rule_name(name, None), message, pipeline.span);
        let found = match plugin.component.lint(graph, &self.limits) {
            Ok(found) => found,
            Err(fault) => {
                let told = broken(format!("the rules of `{name}` could not judge the graph: {fault}"));
                return vec![told.with_help(chain::remedy(name))];
            }
        };
        let (count, mut told) = (found.len(), Vec::new());
        told.extend(found.into_iter().take(FINDINGS_MAX).map(|finding| diagnostic(name, finding, pipeline)));
        if count > FINDINGS_MAX {
            let message =
                format!("`{name}` has {count} findings, at most {FINDINGS_MAX} are expected; the rest is not shown");
            told.push(broken(message));
        }
        told
    }
}

/// The digests of the components that may run, in order, or why one may not (exit 7). Nothing is compiled.
pub fn digests(
    config: &Config,
    lock: &Lock,
    files: &BTreeMap<String, PluginFile>,
) -> Result<Vec<(String, Digest)>, Vec<PluginProblem>> {
    each(config, lock, files, |name, _, digest| Ok((name.to_owned(), digest)))
}

/// Does something with each component's bytes that the operator agreed to, in the order of `glovebox.toml`; all problems are told.
fn each<T>(
    config: &Config,
    lock: &Lock,
    files: &BTreeMap<String, PluginFile>,
    take: impl Fn(&str, &[u8], Digest) -> Result<T, (String, Option<String>)>,
) -> Result<Vec<T>, Vec<PluginProblem>> {
    let (mut taken, mut problems) = (Vec::new(), Vec::new());
    for name in config.rules_in_order() {
        match agreed(name, config, lock, files.get(name)) {
            Ok((bytes, digest)) => match take(name, bytes, digest) {
                Ok(one) => taken.push(one),
                Err((message, help)) => problems.push(PluginProblem { name: name.to_owned(), message, help }),
            },
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(taken) } else { Err(problems) }
}

/// The bytes of a component as they are in the lock.
fn agreed<'a>(
    name: &str,
    config: &Config,
    lock: &Lock,
    file: Option<&'a PluginFile>,
) -> Result<(&'a [u8], Digest), PluginProblem> {
    let problem = |message: String, help: Option<String>| PluginProblem { name: name.to_owned(), message, help };
    let entry = config.rules.get(name);
    let line = entry.map_or(0, |entry| entry.line);
    let grants = entry.map(|entry| entry.transform.lines()).unwrap_or_default();
    let bytes = file.map_or(Err("nobody looked for it"), |file| file.bytes.as_deref().map_err(String::as_str));
    let bytes = bytes.map_err(|reason| {
        let help = format!("build it, or set `path` under `[rules.\"{name}\"]` (glovebox.toml:{line})");
        problem(format!("rules `{name}` cannot be read: {reason}"), Some(help))
    })?;
    let inspection =
        inspect(bytes).map_err(|error| problem(format!("rules `{name}` cannot be read: {error}"), None))?;
    if let Some(manifest) = inspection.manifest.as_ref().filter(|manifest| manifest.name != name) {
        let help = format!("name it `[rules.\"{}\"]` in glovebox.toml", manifest.name);
        return Err(problem(format!("rules `{name}` call themselves `{}`", manifest.name), Some(help)));
    }
    lock.verify(name, &inspection.digest.to_string(), &grants)
        .map_err(|mismatch| problem(mismatch.to_string(), Some(mismatch.help().to_owned())))?;
    Ok((bytes, Digest::of(bytes)))
}

/// Lints what was read with the built-in rules alone.
pub fn lint_builtin(draft: Lowered) -> Linted {
    Linted { checked: validate(draft), report: RuleReport::default(), trail: Trail::default() }
}
