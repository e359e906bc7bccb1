//! Rules of the house: components that judge a graph beside the built-in lint.
//!
//! Admits only what is locked, and takes nothing a component says at its word: names, texts and counts are checked, escaped and
//! bounded, and a component that traps, hits a bound or breaks its contract is an error of the pipeline's check, never a pass. A graph
//! that a component wants changed is refused: transforms are not applied in this version, and ignoring one would be worse.

use crate::bind::{PluginFile, PluginProblem};
use crate::config::Config;
use crate::lock::Lock;
use glovebox_host::host::Host;
use glovebox_host::inspect::inspect;
use glovebox_host::limits::LimitSettings;
use glovebox_host::rules::{Finding, RuleComponent};
use glovebox_pipeline::diagnostic::{Diagnostic, Severity};
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_sandbox::refusal::escaped;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The most findings of one component over one graph.
pub const FINDINGS_MAX: usize = 50;
/// The longest text of a finding, bytes.
const TEXT_BYTES_MAX: usize = 1 << 10;
/// The longest name of a rule, bytes.
const NAME_BYTES_MAX: usize = 64;
/// The most different names of rules in one process; beyond them a finding is told under the component's name.
const NAMES_MAX: usize = 1_000;

/// The components of a project's `[rules]`, loaded.
pub struct House {
    components: BTreeMap<String, RuleComponent>,
    limits: LimitSettings,
}

impl House {
    /// Loads every component of `[rules]`, or says why one may not judge (exit 7). Bytes nobody agreed to are never compiled.
    pub fn admit(
        config: &Config,
        lock: &Lock,
        files: &BTreeMap<String, PluginFile>,
        host: &Host,
    ) -> Result<House, Vec<PluginProblem>> {
        let (mut components, mut problems) = (BTreeMap::new(), Vec::new());
        for name in config.rules.keys() {
            match admitted(name, config, lock, files.get(name), host) {
                Ok(component) => drop(components.insert(name.clone(), component)),
                Err(problem) => problems.push(problem),
            }
        }
        if problems.is_empty() { Ok(House { components, limits: config.limits.clone() }) } else { Err(problems) }
    }

    /// What the components say to a pipeline; `graph` is its JSON. Each is asked for findings, then whether it wants the graph changed.
    pub fn judge(&self, pipeline: &Pipeline, graph: &str) -> Vec<Diagnostic> {
        self.components.iter().flat_map(|(name, component)| self.ask(name, component, pipeline, graph)).collect()
    }

    fn ask(&self, name: &str, component: &RuleComponent, pipeline: &Pipeline, graph: &str) -> Vec<Diagnostic> {
        let broken = |message: String| Diagnostic::error(rule_name(name, None), message, pipeline.span);
        let found = match component.lint(graph, &self.limits) {
            Ok(found) => found,
            Err(fault) => return vec![broken(format!("the rules of `{name}` could not judge the graph: {fault}"))],
        };
        let (count, mut told) = (found.len(), Vec::new());
        told.extend(found.into_iter().take(FINDINGS_MAX).map(|finding| diagnostic(name, finding, pipeline)));
        if count > FINDINGS_MAX {
            let message =
                format!("`{name}` has {count} findings, at most {FINDINGS_MAX} are expected; the rest is not shown");
            told.push(broken(message));
        }
        match component.transform(graph, &self.limits) {
            Ok(Ok(None)) => {}
            Ok(Ok(Some(_))) => told.push(
                broken(format!("`{name}` wants the graph changed, which this version does not do"))
                    .with_help("change the pipeline by hand, or have the component answer none"),
            ),
            Ok(Err(refusal)) => told.push(broken(format!("`{name}` refuses the graph: {}", bounded(&refusal)))),
            Err(fault) => told.push(broken(format!("the rules of `{name}` could not look at the graph: {fault}"))),
        }
        told
    }
}

fn admitted(
    name: &str,
    config: &Config,
    lock: &Lock,
    file: Option<&PluginFile>,
    host: &Host,
) -> Result<RuleComponent, PluginProblem> {
    let problem = |message: String, help: Option<String>| PluginProblem { name: name.to_owned(), message, help };
    let line = config.rules.get(name).map_or(0, |entry| entry.line);
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
    lock.verify(name, &inspection.digest.to_string(), &[])
        .map_err(|mismatch| problem(mismatch.to_string(), Some(mismatch.help().to_owned())))?;
    let loaded = host.load_rules(bytes, config.component_bytes(name));
    loaded.map_err(|error| problem(format!("rules `{name}` cannot be loaded: {error}"), None))
}

/// A finding as a diagnostic: its place is the node, the edge or the graph, its words are escaped and cut.
fn diagnostic(name: &str, finding: Finding, pipeline: &Pipeline) -> Diagnostic {
    let Finding { rule, severity, message, node, edge, help } = finding;
    let mut notes = Vec::new();
    let severity = match severity.as_str() {
        "error" => Severity::Error,
        "warning" => Severity::Warning,
        "info" => Severity::Info,
        other => {
            notes.push(format!("the severity `{}` is not known", bounded(other)));
            Severity::Error
        }
    };
    let named = is_rule_name(&rule).then_some(rule.as_str());
    if named.is_none() {
        notes.push(format!("`{}` is no name for a rule", bounded(&rule)));
    }
    let known = node.as_ref().and_then(|id| pipeline.node(&NodeId::new(id.as_str())));
    let between = edge
        .as_ref()
        .and_then(|(from, to)| pipeline.edges.iter().find(|edge| edge.from.as_str() == from && edge.to.as_str() == to));
    if node.is_some() && known.is_none() {
        notes.push(format!("there is no node `{}`", bounded(node.as_deref().unwrap_or_default())));
    }
    if let (Some((from, to)), None) = (&edge, between) {
        notes.push(format!("there is no edge `{} -> {}`", bounded(from), bounded(to)));
    }
    let place = between.map(|edge| edge.span).or(known.map(|node| node.span)).unwrap_or(pipeline.span);
    let mut told = Diagnostic::new(rule_name(name, named), severity, bounded(&message), place);
    told.note = notes.join("; ");
    told.help = help.map(|help| bounded(&help));
    told.node = known.map(|node| node.id.to_string());
    told.edge = between.map(|edge| (edge.from.to_string(), edge.to.to_string()));
    told
}

/// A component's text without anything that moves a cursor, and no longer than is read.
fn bounded(text: &str) -> String {
    let cut = text.floor_char_boundary(TEXT_BYTES_MAX);
    let mark = if cut < text.len() { "…" } else { "" };
    escaped(&text[..cut]) + mark
}

fn is_rule_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.chars().all(allowed)
}

/// `acme.house/its-rule`, kept for as long as the process lives since diagnostics name their rule so; a bounded number of them.
fn rule_name(component: &str, rule: Option<&str>) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let text = rule.map_or_else(|| component.to_owned(), |rule| format!("{component}/{rule}"));
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(text.as_str()) {
        return known;
    }
    if names.len() >= NAMES_MAX {
        return "custom_rule";
    }
    let kept: &'static str = Box::leak(text.into_boxed_str());
    names.insert(kept);
    kept
}
