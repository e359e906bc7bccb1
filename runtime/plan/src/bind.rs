//! Binds a pipeline to a plan: each node that a component executes gets its component, grants and limits.
//!
//! All errors are reported at once, in three classes. The pipeline file uses an attribute that this version does not enforce
//! or names an unknown handler (exit 3); a plugin differs from the lock file (exit 7); no available sandbox is as strict as
//! the operator requires (exit 6). This module opens no file: the caller passes bytes.

mod answers;
mod choose_model;
mod choose_tier;
pub mod command_access;
pub mod effective;
pub mod holdout_access;
pub mod inputs;
mod no_change;
pub(crate) mod placement;
pub mod plugin_attributes;
mod policies;
mod problem;
mod program;
mod recovery;
pub mod request;
pub mod role;
pub mod subject;
mod tool_hooks;
pub mod tool_providers;
mod tool_servers;

pub use problem::{BindClass, BindErrors};

use crate::components::{Catalog, PluginFile, PluginProblem, ReadProblem};
use crate::config::{Config, HistorySetting, PluginEntry, is_plugin_name};
use crate::lock::wants::{granted, wanted};
use crate::lock::{Lock, LockedPlugin};
use crate::plan::capability::MachineFolder;
use crate::plan::narrowed::NarrowedGrant;
use crate::plan::{
    Binding, BoundComponent, Confinement, HostCapability, OperatorBounds, Plan, PlanFindings, PlannedChecks,
    PlannedCommands, PlannedFolders, PlannedModels, SandboxPlan, Want,
};
use answers::{unknown_in_script, wrong_test_answers};
use effective::effective;
use foldhash::fast::RandomState;
use glovebox_host::component::{LoadError, check_handler};
use glovebox_host::grants::Grants;
use glovebox_host::host::Host;
use glovebox_host::inspect::{Inspection, inspect, read_validated};
use glovebox_host::llm::{Provider, Script};
use glovebox_pipeline::diagnostic::{Diagnostic, Severity};
use glovebox_pipeline::ir::{Handler, Node, NodeId, Pipeline, Role};
use glovebox_pipeline::key;
use glovebox_pipeline::reach::HoldoutReach;
use glovebox_pipeline::transform::RuleReport;
use glovebox_record::MachineFacts;
use glovebox_record::scope::Entry;
use glovebox_signing::trust::Signer;
use inputs::{Effective, GrantInputs};
use plugin_attributes::{AttributeCheck, declared_by_glovebox};
use request::{Holdouts, Place, Request};
use role::HandlerSource;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Arc, OnceLock};
use tool_providers::LoadedProvider;

/// The options of the caller and the capabilities of the machine. The default refuses all commands, because it has no sandbox.
#[derive(Clone, Default)]
pub struct BindOptions {
    /// `--dangerously-no-sandbox`: commands run without a sandbox, whatever the machine can enforce.
    pub no_sandbox: bool,
    /// What the machine can enforce.
    pub available: HostCapability,
    /// What the machine has that would run the stages.
    pub machine: MachineFacts,
    /// True if the plan is only shown and nothing will run. A tier that is too low, a plugin that is not in the lock file and
    /// what the machine lacks are then listed in the plan instead of being errors.
    pub plan_only: bool,
    /// The hold-out folders that are sealed in this run. Empty if the project has none.
    pub sealed: Vec<Entry>,
    /// Folders of installed dependencies in the project. Commands see them read-only.
    pub dependencies: Vec<Entry>,
    /// Folders of the machine to which the folders of `dependencies` link. Commands see them too.
    pub stores: Vec<MachineFolder>,
    /// True if other machines make some of the stages, so that this one need not have what each of them needs.
    pub is_one_of_many: bool,
    /// True if the project has a `.git`, whose history commands could see.
    pub has_repository: bool,
    /// The script of `--script`. `None` if models are asked or simulated.
    pub script: Option<Arc<Script>>,
    /// True if every node gets a simulated answer when there is no script, whatever models are configured.
    pub simulate: bool,
}

/// The files of the operator for a project: `glovebox.toml` and `glovebox.lock`.
#[derive(Clone, Copy)]
pub struct OperatorFiles<'a> {
    /// The settings of `glovebox.toml`, including grants and limits.
    pub config: &'a Config,
    /// The plugins that the operator agreed to.
    pub lock: &'a Lock,
}

/// Binds each node that a component executes. If that fails, returns all reasons at once.
pub fn bind(
    pipeline: Arc<Pipeline>,
    catalog: &Catalog,
    operator: OperatorFiles<'_>,
    host: &Host,
    options: BindOptions,
) -> Result<Plan, BindErrors> {
    let OperatorFiles { config, .. } = operator;
    let reach = HoldoutReach::new(&pipeline);
    let mut binder = Binder::new(&reach, catalog, Some(host), operator, &options);
    binder.errors.diagnostics.extend(refused(&pipeline));
    let mut bindings = BTreeMap::new();
    let warnings = binder.nodes(&pipeline, |id, binding| {
        bindings.insert(id.clone(), binding);
    });
    let policies = binder.policies();
    let Binder { mut errors, mut unlocked, .. } = binder;
    let asks = |node: &&Node| bindings.get(&node.id).is_some_and(|binding| binding.model);
    let asking = pipeline.nodes.iter().filter(|_| options.script.is_none() && !options.simulate).filter(asks);
    let chosen = choose_model::choose(config, asking);
    errors.diagnostics.extend(chosen.problems);
    let placement = placement::plan(&pipeline, config, &options, &mut errors);
    let confinement = match choose_tier::choose_tier(&bindings, &config.sandbox, &options) {
        Confinement::Unmet(problem) if !options.plan_only => {
            errors.policy = Some(Box::new(problem));
            Confinement::NotNeeded
        }
        confinement => confinement,
    };
    if !errors.is_empty() {
        errors.diagnostics.extend(warnings);
        errors.plugins.append(&mut unlocked);
        return Err(errors);
    }
    let shows_history = shows_history(config, &options, &bindings);
    let held_back: Vec<Entry> = reach.folders().iter().chain(&options.sealed).cloned().collect();
    let recovery = recovery::plan(&pipeline, &bindings, config, &held_back);
    let unconfigured = unconfigured_model(&options);
    let verify = config.verify.clone().filter(|_| pipeline.nodes.iter().any(is_verified));
    let no_change = no_change::rule(config, &pipeline, &bindings);
    Ok(Plan {
        pipeline,
        bindings,
        folders: PlannedFolders {
            include: config.workspace.include.clone(),
            history: config.workspace.history,
            shows_history,
            scenarios: reach.folders().to_vec(),
            sealed: options.sealed,
            dependencies: options.dependencies,
            stores: options.stores,
            reuse: config.sandbox.reused(&config.exec.toolchains),
        },
        commands: PlannedCommands {
            exec: config.exec.clone(),
            sandbox: SandboxPlan::new(confinement, &config.sandbox, options.available),
        },
        models: PlannedModels {
            by_node: chosen.models,
            script: options.script,
            price: config.models.get(unconfigured).and_then(|entry| entry.price),
        },
        placement,
        checks: PlannedChecks { verify, no_change, recovery, policies },
        bounds: OperatorBounds {
            disk_bytes_max: config.run.disk_bytes_max,
            parallel_max: config.run.parallel_max,
            spend_max: config.run.spend_max,
        },
        findings: PlanFindings { rule_report: RuleReport::default(), unlocked, warnings },
        hidden: OnceLock::new(),
    })
}

/// Returns true if the node is a verification or has one.
fn is_verified(node: &Node) -> bool {
    node.checks.verification.is_some() || node.handler.kind().role() == Some(Role::Verifier)
}

/// Decides whether commands that see the whole project see the history of its repository.
fn shows_history(config: &Config, options: &BindOptions, bindings: &BTreeMap<NodeId, Arc<Binding>>) -> bool {
    match config.workspace.history {
        HistorySetting::IfNothingLeaves => {
            options.has_repository
                && options.sealed.is_empty()
                && bindings.values().all(|binding| binding.keeps_what_it_reads())
        }
        HistorySetting::Commit => false,
        HistorySetting::Whole => true,
    }
}

/// Returns every reason why a run of the pipeline would be refused on a machine with the best sandbox, and every warning,
/// except the attributes that this version does not enforce, which the lint has reported. Without a host nothing is
/// compiled, so an error that only the compiler finds in a component is not reported.
pub fn check(
    pipeline: &Pipeline,
    catalog: &Catalog,
    operator: OperatorFiles<'_>,
    host: Option<&Host>,
    sealed: Vec<Entry>,
) -> BindErrors {
    let options = BindOptions { sealed, ..BindOptions::default() };
    let reach = HoldoutReach::new(pipeline);
    let mut binder = Binder::new(&reach, catalog, host, operator, &options);
    if unavailable(pipeline).is_some() {
        binder.errors.diagnostics.extend(refused(pipeline));
    }
    let warnings = binder.nodes(pipeline, |_, _| {});
    binder.policies();
    binder.errors.diagnostics.extend(placement::needs(pipeline, &operator.config.fleet).1);
    binder.errors.diagnostics.extend(warnings);
    binder.errors
}

/// Returns an error for each attribute and handler that this version does not enforce or execute.
fn refused(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let mut found = glovebox_pipeline::lint::not_enforced(pipeline);
    for diagnostic in &mut found {
        diagnostic.severity = Severity::Error;
    }
    if found.is_empty() {
        found.extend(unavailable(pipeline));
    }
    found
}

/// Returns an error for the first node whose handler this version does not execute. The lint reports each such handler
/// once. This check refuses the node even if the lint reports nothing.
fn unavailable(pipeline: &Pipeline) -> Option<Diagnostic> {
    pipeline.nodes.iter().find_map(|node| {
        let Handler::Unavailable(name) = &node.handler else { return None };
        let message = format!("node `{}` needs the handler `{name}`, which this version does not execute", node.id);
        Some(Diagnostic::error("not_enforced", message, node.span).with_node(node.id.as_str()))
    })
}

struct Binder<'a> {
    catalog: &'a Catalog,
    operator: OperatorFiles<'a>,
    /// `None` if nothing is to be compiled.
    host: Option<&'a Host>,
    script: Option<&'a Script>,
    holdouts: Holdouts<'a>,
    /// If true, a plugin that is not in the lock file is not an error.
    plan_only: bool,
    loaded: BTreeMap<&'a str, Option<LoadedHandler>>,
    providers: BTreeMap<&'a str, Option<LoadedProvider<'a>>>,
    unlocked: Vec<PluginProblem>,
    attributes: AttributeCheck,
    errors: BindErrors,
}

/// The component and the grants of a handler type that may run.
#[derive(Clone)]
struct LoadedHandler {
    component: BoundComponent,
    /// The grants on which author and operator agree, before a node narrows them.
    granted: Arc<Grants>,
}

impl<'a> Binder<'a> {
    fn new(
        reach: &'a HoldoutReach,
        catalog: &'a Catalog,
        host: Option<&'a Host>,
        operator: OperatorFiles<'a>,
        options: &'a BindOptions,
    ) -> Self {
        Self {
            catalog,
            operator,
            host,
            script: options.script.as_deref(),
            holdouts: Holdouts { reach, sealed: &options.sealed, verify: operator.config.verify.as_deref() },
            plan_only: options.plan_only,
            loaded: BTreeMap::new(),
            providers: BTreeMap::new(),
            unlocked: Vec::new(),
            attributes: AttributeCheck::default(),
            errors: BindErrors::default(),
        }
    }

    /// Binds every node that a component executes, and passes each binding to `keep`. Returns the warnings.
    fn nodes(&mut self, pipeline: &'a Pipeline, mut keep: impl FnMut(&'a NodeId, Arc<Binding>)) -> Vec<Diagnostic> {
        self.errors.diagnostics.extend(self.script.iter().flat_map(|script| unknown_in_script(pipeline, script)));
        let mut warnings = Vec::new();
        // Contains only bindings without findings, because a finding names its node.
        let mut known: HashMap<Rc<Request<'a>>, Arc<Binding>, RandomState> =
            HashMap::with_capacity_and_hasher(pipeline.nodes.len(), RandomState::default());
        // Nodes often ask for the same as the node before them, and a comparison costs less than a hash.
        let mut last: Option<(Rc<Request<'a>>, Arc<Binding>)> = None;
        for node in pipeline.stages() {
            let Some(handler) = node.handler.component() else { continue };
            let source = HandlerSource { name: handler, plugin: self.operator.config.plugins.get(handler.as_str()) };
            if let Some(verified) = node.id.verified().filter(|_| source.role() != Role::Verifier) {
                self.errors.diagnostics.push(role::no_verifier(node, verified, source));
                continue;
            }
            let request = Request::new(node, source, self.holdouts);
            let same = last.as_ref().filter(|(last, _)| **last == request).map(|(_, binding)| binding);
            let binding = match same.or_else(|| known.get(&request)) {
                Some(binding) => Arc::clone(binding),
                None => {
                    let Some((binding, findings)) = self.node(node, source, &request) else { continue };
                    let binding = Arc::new(binding);
                    if findings.is_empty() {
                        let request = Rc::new(request);
                        known.insert(Rc::clone(&request), Arc::clone(&binding));
                        last = Some((request, Arc::clone(&binding)));
                    }
                    let (wrong, odd): (Vec<_>, Vec<_>) = findings.into_iter().partition(Diagnostic::is_error);
                    self.errors.diagnostics.extend(wrong);
                    warnings.extend(odd);
                    binding
                }
            };
            let manifest = binding.component.inspection().manifest.as_ref();
            let (wrong, odd): (Vec<_>, Vec<_>) =
                self.attributes.findings(node, manifest).into_iter().partition(Diagnostic::is_error);
            self.errors.diagnostics.extend(wrong);
            warnings.extend(odd);
            if binding.model {
                self.errors.diagnostics.extend(wrong_test_answers(node));
            }
            keep(&node.id, binding);
        }
        warnings
    }

    /// Returns the binding of a node and the findings about it. `None` if its component may not run.
    fn node(
        &mut self,
        node: &Node,
        source: HandlerSource<'a>,
        request: &Request<'a>,
    ) -> Option<(Binding, Vec<Diagnostic>)> {
        if source.plugin.is_none() && !self.catalog.builtins.contains_key(source.name) {
            self.errors.diagnostics.push(self.unknown_type(node, source));
            return None;
        }
        let LoadedHandler { component, granted } = self.handler(source)?;
        let providers = self.providers(request);
        let inputs = GrantInputs {
            request,
            place: Place::for_node(node),
            source,
            inspection: component.inspection(),
            granted: &granted,
            limits: &self.operator.config.limits,
            agents: &self.operator.config.agents,
            has_policies: !self.operator.config.policies.is_empty(),
            sandbox: &self.operator.config.sandbox,
            servers: &self.operator.config.mcp,
            providers: &providers,
            plugins: &self.operator.config.plugins,
            verify: self.operator.config.verify.as_deref(),
            holdouts: self.holdouts,
        };
        let Effective {
            tier,
            scope,
            may_write,
            commands,
            command_access,
            holdouts,
            separation,
            model,
            program,
            hooks,
            servers,
            providers,
            limits,
            mut grants,
            diagnostics,
        } = effective(inputs);
        grants.sort();
        let wanted = source.plugin.map(|plugin| wanted(component.inspection(), Some(plugin)));
        let wants = wanted.map(|wanted| Want::of_plugin(&wanted, &granted)).unwrap_or_default();
        let binding = Binding {
            handler: source.name.to_owned(),
            digest: component.inspection().digest,
            component,
            first_party: source.plugin.is_none(),
            role: source.role(),
            tier,
            scope,
            may_write,
            commands,
            command_access,
            holdouts,
            separation,
            limits,
            model,
            program: program.map(Arc::new),
            hooks,
            servers,
            providers,
            grants,
            narrowed: self.narrowed(source),
            wants,
        };
        Some((binding, diagnostics))
    }

    /// Returns what the operator took back since the plugin was locked.
    fn narrowed(&self, source: HandlerSource<'_>) -> Vec<NarrowedGrant> {
        let locked = self.operator.lock.plugins.get(source.name).zip(source.plugin);
        locked.map(|(locked, entry)| NarrowedGrant::for_plugin(locked, entry)).unwrap_or_default()
    }

    /// Returns a handler type with its component. Each component is loaded once.
    fn handler(&mut self, source: HandlerSource<'a>) -> Option<LoadedHandler> {
        if !self.loaded.contains_key(source.name) {
            let loaded = self.load(source).map_err(|problem| self.errors.plugins.push(problem)).ok();
            let loaded = loaded.map(|component| {
                let granted = Arc::new(granted(component.inspection(), source.plugin));
                LoadedHandler { component, granted }
            });
            self.loaded.insert(source.name, loaded);
        }
        self.loaded.get(source.name)?.clone()
    }

    /// Loads the component of a handler. The digest is compared with the lock file first, so that the compiler never gets
    /// bytes to which the operator did not agree.
    fn load(&mut self, source: HandlerSource<'_>) -> Result<BoundComponent, PluginProblem> {
        let handler = source.name;
        let (digest, bytes): (_, &[u8]) = match source.plugin {
            None => {
                let builtin = self.catalog.builtins.get(handler);
                let missing = || source.problem(format!("the handler `{handler}` is not built in"));
                let builtin = builtin.ok_or_else(missing)?;
                self.catalog.admission.refuse_revoked(handler, &builtin.digest)?;
                (builtin.digest, &*builtin.bytes)
            }
            Some(entry) => {
                let bytes = source.plugin_bytes(entry, self.catalog.plugins.get(handler))?;
                let inspection = self.check_plugin(source, entry, bytes)?;
                let signer = self.admit(source, &inspection)?;
                let locked = self.operator.lock.plugins.get(handler);
                let now = LockedPlugin { signer, ..LockedPlugin::for_plugin(handler, entry, locked, &inspection) };
                if let Err(problem) = self.check_agreed(source, &now) {
                    check_handler(&inspection).map_err(|error| source.refused(&error))?;
                    // The nodes of the plugin are still checked, so that all problems are reported at once.
                    if self.plan_only { &mut self.unlocked } else { &mut self.errors.plugins }.push(problem);
                    return Ok(BoundComponent::Unlocked(Arc::new(inspection)));
                }
                (inspection.digest, bytes)
            }
        };
        let Some(host) = self.host else {
            // A plugin was validated above. A built-in component was validated when it was built.
            let inspection = read_validated(digest, bytes).map_err(|error| source.refused(&LoadError::from(error)))?;
            check_handler(&inspection).map_err(|error| source.refused(&error))?;
            return Ok(BoundComponent::Unlocked(Arc::new(inspection)));
        };
        let loaded = host.load_within(bytes, self.operator.config.component_bytes(handler));
        loaded.map(BoundComponent::Loaded).map_err(|error| source.refused(&error))
    }

    /// Reads a plugin, and checks its manifest and role.
    fn check_plugin(
        &self,
        source: HandlerSource<'_>,
        entry: &PluginEntry,
        bytes: &[u8],
    ) -> Result<Inspection, PluginProblem> {
        let handler = source.name;
        let inspection = self.host.map_or_else(|| inspect(bytes), |host| host.inspect(bytes));
        let inspection = inspection.map_err(|error| PluginProblem {
            help: error.help(),
            ..source.problem(format!("plugin `{handler}` cannot be used: {error}"))
        })?;
        let named = inspection.manifest.as_ref().map(|manifest| manifest.name.as_str());
        if let Some(named) = named.filter(|named| *named != handler) {
            let help = format!("rename the table in glovebox.toml to `[plugins.\"{named}\"]`");
            let problem = source.problem(format!("the manifest of plugin `{handler}` names it `{named}`"));
            return Err(PluginProblem { help: Some(help), ..problem });
        }
        if let Some(name) = inspection.manifest.as_ref().and_then(declared_by_glovebox) {
            let message = format!("plugin `{handler}` declares the attribute `{name}`, which Glovebox itself reads");
            let help = "its author must choose another name, such as one with the plugin's own prefix".to_owned();
            return Err(PluginProblem { help: Some(help), ..source.problem(message) });
        }
        if let Some(fault) = tool_providers::tools_fault(entry, &inspection) {
            return Err(source.problem(format!("plugin `{handler}` cannot offer tools: {fault}")));
        }
        let granted = granted(&inspection, Some(entry));
        let fault = role::verifier_fault(&inspection, &granted).filter(|_| entry.role == Role::Verifier);
        if let Some(fault) = fault {
            let line = entry.line;
            let help = format!("remove `role = \"verifier\"` from `[plugins.\"{handler}\"]` (glovebox.toml:{line})");
            let problem = source.problem(format!("plugin `{handler}` cannot be a verifier: {fault}"));
            return Err(PluginProblem { help: Some(help), ..problem });
        }
        Ok(inspection)
    }

    /// Refuses a plugin that was revoked or is not signed as the operator requires. Returns its signer.
    fn admit(&self, source: HandlerSource<'_>, inspection: &Inspection) -> Result<Option<Signer>, PluginProblem> {
        let admission = &self.catalog.admission;
        admission.refuse_revoked(source.name, &inspection.digest)?;
        let file = self.catalog.plugins.get(source.name);
        let locked = self.operator.lock.plugins.get(source.name);
        let accepted = file.map_or(Ok(None), |file| admission.signer(source.name, inspection, file, locked))?;
        Ok(accepted.map(|accepted| accepted.signer))
    }

    /// Compares a plugin with the lock file.
    fn check_agreed(&self, source: HandlerSource<'_>, now: &LockedPlugin) -> Result<(), PluginProblem> {
        self.operator.lock.verify(now).map_err(|mismatch| PluginProblem {
            help: Some(mismatch.help().to_owned()),
            ..source.problem(mismatch.to_string())
        })
    }

    fn unknown_type(&self, node: &Node, source: HandlerSource<'_>) -> Diagnostic {
        let handler = source.name;
        let known = self.catalog.builtins.keys().chain(self.operator.config.plugins.keys()).map(String::as_str);
        let nearest = glovebox_pipeline::nearest::nearest(handler, known);
        let span = Place::for_node(node).span_of(key::TYPE);
        let message = format!("node `{}` has the type `{handler}`, but no built-in handler or plugin has it", node.id);
        let diagnostic = Diagnostic::error("type_unknown", message, span).with_node(node.id.as_str());
        let diagnostic = match nearest {
            Some(nearest) => diagnostic.with_note(format!("did you mean `{nearest}`?")),
            None => diagnostic,
        };
        match is_plugin_name(handler) {
            true => diagnostic.with_help(format!(
                "add the component to glovebox.toml:\n[plugins.\"{handler}\"]\npath = \"plugin.wasm\"\n\
                 grants = {{ filesystem = \"workspace\", read = [\"src/\"] }}"
            )),
            false if handler == "subgraph" => diagnostic.with_help(
                "a stage that runs another pipeline file has `type=subpipeline` and `\"stack.child_dotfile\"=\"children/build.dot\"`",
            ),
            false => diagnostic.with_help("the type of a plugin has a dot, such as `acme.review`"),
        }
    }
}

impl HandlerSource<'_> {
    fn problem(self, message: String) -> PluginProblem {
        PluginProblem { name: self.name.to_owned(), message, help: None }
    }

    fn refused(self, error: &LoadError) -> PluginProblem {
        PluginProblem { help: error.help(), ..self.problem(format!("`{}` cannot be loaded: {error}", self.name)) }
    }

    fn plugin_bytes<'f>(
        self,
        entry: &PluginEntry,
        file: Option<&'f PluginFile>,
    ) -> Result<&'f Arc<[u8]>, PluginProblem> {
        let handler = self.name;
        let not_opened = || Err(ReadProblem::from("its file was not opened".to_owned()));
        let content = file.map_or_else(not_opened, PluginFile::content);
        content.map_err(|ReadProblem { reason, help }| {
            let path = file.map_or_else(|| entry.source.to_string(), |file| file.path.clone());
            let line = entry.line;
            let build = || format!("build it, or set `path` under `[plugins.\"{handler}\"]` (glovebox.toml:{line})");
            let help = help.unwrap_or_else(build);
            let problem = self.problem(format!("plugin `{handler}` cannot be read from `{path}`: {reason}"));
            PluginProblem { help: Some(help), ..problem }
        })
    }
}

/// Returns the name of the `[models]` table with the price of scripted or simulated answers.
fn unconfigured_model(options: &BindOptions) -> &'static str {
    if options.script.is_some() { Provider::Scripted.as_str() } else { Provider::Simulated.as_str() }
}
