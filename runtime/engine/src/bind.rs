//! Pipeline to plan: every working node gets its component, its grants and its limits, or the reasons why not.
//!
//! Everything wrong is told at once, in three classes that end differently: the pipeline's file asks for what this version
//! would not enforce or names a handler nobody has (exit 3), a plugin is not what was agreed to (exit 7), a node may run
//! commands that nothing confines as the operator demands (exit 6). Reading files is the caller's business; bytes come in.

mod choose_tier;
pub mod command_access;
pub mod effective;
pub mod holdout_access;
mod problem;
pub mod role;
pub mod subject;

use glovebox_pipeline::key;
pub use problem::{BindClass, BindErrors};

use crate::components::{Catalog, PluginFile, PluginProblem};
use crate::config::{Config, PluginEntry, is_plugin_name};
use crate::event::RuleReport;
use crate::lock::{Lock, Offer};
use crate::plan::{Binding, Confinement, HostCapability, Plan, SandboxPlan};
use effective::{Effective, GrantInputs, effective, grant_lines, granted};
use glovebox_host::component::Component;
use glovebox_host::host::Host;
use glovebox_host::model::{Model, Script};
use glovebox_pipeline::diagnostic::{Diagnostic, Severity};
use glovebox_pipeline::ir::{Handler, Node, NodeId, Pipeline};
use glovebox_pipeline::lower::handler::Role;
use glovebox_record::scope::Entry;
use glovebox_sandbox::refusal::escaped;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What the caller decided and found out. The default refuses all commands, since nothing would confine them, and has no script.
#[derive(Clone, Default)]
pub struct BindOptions {
    /// `--dangerously-no-sandbox`: commands run without walls, whatever the machine has.
    pub no_sandbox: bool,
    /// What the machine can enforce.
    pub available: HostCapability,
    /// Nothing will run: walls that are missing are told in the plan and are no error.
    pub plan_only: bool,
    /// The hold-out folders that are sealed in this run; none when the project has none.
    pub sealed: Vec<Entry>,
    /// `--script`.
    pub script: Option<Arc<Script>>,
}

/// Binds every working node, or says everything that stands against it.
pub fn bind(
    pipeline: Arc<Pipeline>,
    catalog: &Catalog,
    operator: (&Config, &Lock),
    host: &Host,
    options: &BindOptions,
) -> Result<Plan, BindErrors> {
    let (config, lock) = operator;
    let scenarios = pipeline.scenario_entries();
    let sealed = options.sealed.clone();
    let mut binder = Binder {
        catalog,
        config,
        lock,
        host,
        scenarios,
        sealed,
        loaded: BTreeMap::new(),
        errors: BindErrors::default(),
    };
    let mut warnings = Vec::new();
    binder.errors.diagnostics.extend(refused(&pipeline));
    binder.errors.diagnostics.extend(options.script.iter().flat_map(|script| unknown_in_script(&pipeline, script)));
    let mut bindings = BTreeMap::new();
    for node in &pipeline.nodes {
        let Handler::Component(handler) = &node.handler else { continue };
        if let Some(binding) = binder.node(node, handler, &mut warnings) {
            bindings.insert(node.id.clone(), binding);
        }
    }
    let confinement = match choose_tier::choose_tier(&bindings, &config.sandbox, options) {
        Confinement::Unmet(problem) if !options.plan_only => {
            binder.errors.policy = Some(Box::new(problem));
            Confinement::NotNeeded
        }
        confinement => confinement,
    };
    if !binder.errors.is_empty() {
        binder.errors.diagnostics.extend(warnings);
        return Err(binder.errors);
    }
    let model = if options.script.is_some() { "scripted" } else { "simulated" };
    Ok(Plan {
        pipeline,
        bindings,
        exec: config.exec.clone(),
        workspace_include: config.workspace.include.clone(),
        sealed: options.sealed.clone(),
        sandbox: SandboxPlan::new(confinement, &config.sandbox, &options.available),
        rule_report: RuleReport::default(),
        model: model.to_owned(),
        script: options.script.clone(),
        disk_bytes_max: config.run.disk_bytes_max,
        warnings,
    })
}

/// What this version would not enforce, as errors.
fn refused(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let mut found = glovebox_pipeline::lint::not_enforced(pipeline);
    for diagnostic in &mut found {
        diagnostic.severity = Severity::Error;
    }
    // The lint reports each handler once. Should it ever report none, a node without a handler is still refused here.
    for node in pipeline.nodes.iter().filter(|_| found.is_empty()) {
        let Handler::Unavailable(name) = &node.handler else { continue };
        let message = format!("node `{}` needs the handler `{name}`, which this version does not execute", node.id);
        return vec![Diagnostic::error("not_enforced", message, node.span).with_node(node.id.as_str())];
    }
    found
}

/// Turns of a script for nodes that do not exist: a misspelt name would leave the node to be simulated.
fn unknown_in_script(pipeline: &Pipeline, script: &Script) -> Vec<Diagnostic> {
    let unknown = script.node_ids().filter(|id| pipeline.node(&NodeId::new(*id)).is_none());
    let found = |id: &str| {
        let message = format!("the script has turns for node `{}`, which the pipeline does not have", escaped(id));
        let diagnostic = Diagnostic::error("script_node", message, pipeline.span);
        match glovebox_pipeline::nearest::nearest(id, pipeline.nodes.iter().map(|node| node.id.as_str())) {
            Some(nearest) => diagnostic.with_note(format!("did you mean `{nearest}`?")),
            None => diagnostic,
        }
    };
    unknown.map(found).collect()
}

struct Binder<'a> {
    catalog: &'a Catalog,
    config: &'a Config,
    lock: &'a Lock,
    host: &'a Host,
    scenarios: Vec<Entry>,
    sealed: Vec<Entry>,
    loaded: BTreeMap<String, Option<Arc<Component>>>,
    errors: BindErrors,
}

impl Binder<'_> {
    fn node(&mut self, node: &Node, handler: &str, warnings: &mut Vec<Diagnostic>) -> Option<Binding> {
        let plugin = self.config.plugins.get(handler);
        if plugin.is_none() && !self.catalog.builtins.contains_key(handler) {
            self.errors.diagnostics.push(self.unknown_type(node, handler));
            return None;
        }
        let component = self.component(handler, plugin)?;
        let inspection = component.inspection();
        let role = role::role(handler, plugin);
        let inputs = GrantInputs {
            node,
            handler,
            role,
            inspection,
            plugin,
            limits: &self.config.limits,
            sandbox: &self.config.sandbox,
            scenarios: &self.scenarios,
            sealed: &self.sealed,
        };
        let Effective {
            tier,
            scope,
            commands,
            command_access,
            holdouts,
            separation,
            model,
            limits,
            mut grants,
            diagnostics,
        } = effective(inputs);
        let (wrong, odd): (Vec<_>, Vec<_>) = diagnostics.into_iter().partition(Diagnostic::is_error);
        self.errors.diagnostics.extend(wrong);
        warnings.extend(odd);
        if model {
            self.errors.diagnostics.extend(wrong_test_answers(node));
        }
        grants.sort();
        let digest = component.digest();
        let first_party = plugin.is_none();
        let handler = handler.to_owned();
        Some(Binding {
            handler,
            component,
            digest,
            first_party,
            role,
            tier,
            scope,
            commands,
            command_access,
            holdouts,
            separation,
            limits,
            model,
            grants,
        })
    }

    /// The component of a handler type, loaded once however many nodes name it.
    fn component(&mut self, handler: &str, plugin: Option<&PluginEntry>) -> Option<Arc<Component>> {
        if let Some(known) = self.loaded.get(handler) {
            return known.clone();
        }
        let found = match self.admitted(handler, plugin) {
            Ok(component) => Some(component),
            Err(problem) => {
                self.errors.plugins.push(problem);
                None
            }
        };
        self.loaded.insert(handler.to_owned(), found.clone());
        found
    }

    /// Compares with the lock before anything is compiled: bytes nobody agreed to never reach the compiler.
    fn admitted(&self, handler: &str, plugin: Option<&PluginEntry>) -> Result<Arc<Component>, PluginProblem> {
        let problem = |message: String, help: Option<String>| PluginProblem { name: handler.to_owned(), message, help };
        let bytes = match plugin {
            None => {
                self.catalog.builtins.get(handler).cloned().ok_or_else(|| problem("not built in".to_owned(), None))?
            }
            Some(entry) => plugin_bytes(handler, entry, self.catalog.plugins.get(handler))?,
        };
        if let Some(entry) = plugin {
            let inspection = glovebox_host::inspect::inspect(&bytes)
                .map_err(|error| problem(format!("plugin `{handler}` cannot be read: {error}"), None))?;
            let named = inspection.manifest.as_ref().map(|manifest| manifest.name.as_str());
            if let Some(named) = named.filter(|named| *named != handler) {
                let message = format!("plugin `{handler}` calls itself `{named}`, `{handler}` is expected");
                return Err(problem(message, Some(format!("name it `[plugins.\"{named}\"]` in glovebox.toml"))));
            }
            let granted = granted(&inspection, Some(entry));
            let fault = role::verifier_fault(&inspection, &granted).filter(|_| entry.role == Role::Verifier);
            if let Some(fault) = fault {
                let help = format!(
                    "remove `role = \"verifier\"` from `[plugins.\"{handler}\"]` (glovebox.toml:{})",
                    entry.line
                );
                return Err(problem(format!("plugin `{handler}` cannot be a verifier: {fault}"), Some(help)));
            }
            let lines = grant_lines(&granted, entry.role);
            self.lock
                .verify(Offer { name: handler, digest: inspection.digest, grants: &lines })
                .map_err(|mismatch| problem(mismatch.to_string(), Some(mismatch.help().to_owned())))?;
        }
        let loaded = self.host.load_within(&bytes, self.config.component_bytes(handler));
        loaded.map_err(|error| problem(format!("`{handler}` cannot be loaded: {error}"), error.help()))
    }

    fn unknown_type(&self, node: &Node, handler: &str) -> Diagnostic {
        let known = self.catalog.builtins.keys().chain(self.config.plugins.keys()).map(String::as_str);
        let nearest = glovebox_pipeline::nearest::nearest(handler, known);
        let place = node.attributes.get(key::TYPE).map_or(node.span, |attribute| attribute.span);
        let message =
            format!("node `{}` has the type `{handler}`, which no built-in handler and no plugin has", node.id);
        let diagnostic = Diagnostic::error("type_unknown", message, place).with_node(node.id.as_str());
        let diagnostic = match nearest {
            Some(nearest) => diagnostic.with_note(format!("did you mean `{nearest}`?")),
            None => diagnostic,
        };
        match is_plugin_name(handler) {
            true => diagnostic.with_help(format!(
                "name the component in glovebox.toml:\n[plugins.\"{handler}\"]\npath = \"plugin.wasm\"\n\
                 grants = {{ filesystem = \"workspace\", read = [\"src/\"] }}"
            )),
            false => diagnostic.with_help("a plugin's type has a dot, such as `acme.review`"),
        }
    }
}

fn plugin_bytes(handler: &str, entry: &PluginEntry, file: Option<&PluginFile>) -> Result<Arc<[u8]>, PluginProblem> {
    let unreadable = |path: &str, reason: &str| PluginProblem {
        name: handler.to_owned(),
        message: format!("plugin `{handler}` cannot be read from `{path}`: {reason}"),
        help: Some(format!("build it, or set `path` under `[plugins.\"{handler}\"]` (glovebox.toml:{})", entry.line)),
    };
    let file = file.ok_or_else(|| unreadable(&entry.path, "nobody looked for it"))?;
    file.bytes.clone().map_err(|reason| unreadable(&file.path, &reason))
}

fn wrong_test_answers(node: &Node) -> Option<Diagnostic> {
    let attributes: Vec<(String, String)> =
        node.attributes.iter().map(|(key, attribute)| (key.to_string(), attribute.value.to_string())).collect();
    let error = Model::bind(node.id.as_str(), &attributes, None, 0, 0).err()?;
    Some(
        Diagnostic::error("test_attribute", format!("node `{}`: {error}", node.id), node.span)
            .with_node(node.id.as_str()),
    )
}
