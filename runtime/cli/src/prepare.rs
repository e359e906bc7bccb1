//! From what the user points at to a plan: the host, the components' bytes, the script, and the binding of all of it.
//!
//! It reads files and starts the host. The engine decides what may run with which grants. Before this stops, it prints every problem
//! of a plan.

use crate::builtins::BUILTINS;
use crate::dependencies;
use crate::exit::{Exit, Stop};
use crate::project::{Project, cache_dir};
use crate::source::{self, CheckedPipeline};
use crate::terminal::diagnostics::Findings;
use crate::terminal::{self, compiling, visible};
use crate::{agent_programs, capability, compiler, models, toolchain, trust, user_key};
use glovebox_engine::attempt::{SandboxEnv, ServerEnv, Targets};
use glovebox_engine::run::{Executor, Worker};
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::model::Script;
use glovebox_jail::jail::{Bind, ProbeReport};
use glovebox_pipeline::diagnostic::{Diagnostic, Severity};
use glovebox_pipeline::ir::Pipeline;
use glovebox_plan::bind::{BindClass, BindErrors, BindOptions, bind};
use glovebox_plan::components::{Catalog, PluginFile};
use glovebox_plan::plan::{Plan, Unpriced};
use glovebox_record::Tier;
use glovebox_record::scope::Entry;
use glovebox_record::spend::SpendBounds;
use glovebox_workspace::holdout;
use glovebox_workspace::protect::Protected;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// Calls at the same time; this version executes one stage after the other.
const POOL_SLOTS: u32 = 4;

/// A model script as it was read.
pub struct ScriptFile {
    /// Its bytes, for the journal.
    pub text: String,
    /// What it says.
    pub script: Arc<Script>,
}

/// What a plan is bound with, beside the pipeline and its project.
pub struct Request<'a> {
    /// The script that answers model calls, if one does.
    pub script: Option<&'a ScriptFile>,
    /// What the plan is for.
    pub purpose: Purpose,
    /// The hold-outs.
    pub sealed: Vec<Entry>,
    /// `--max-parallel`.
    pub parallel_max: Option<u64>,
    /// `--simulate`.
    pub simulate: bool,
    /// Whether a person at the terminal may be asked.
    pub asks: bool,
}

impl Request<'_> {
    /// A plan to show, without a script.
    pub fn to_show(sealed: Vec<Entry>) -> Self {
        Self { script: None, purpose: Purpose::Show, sealed, parallel_max: None, simulate: false, asks: false }
    }
}

/// What a plan is bound for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To be shown; nothing runs.
    Show,
    /// To be shown as it would run without a sandbox; nothing runs.
    ShowUnconfined,
    /// To run in the sandbox of this machine.
    Run,
    /// To run commands without a sandbox, as the user asked.
    RunUnconfined,
}

/// Binds a pipeline, or prints every problem and stops.
pub fn bind_plan(
    host: &SharedHost,
    source: &CheckedPipeline,
    project: &Project,
    request: Request<'_>,
) -> Result<Executor, Stop> {
    let host = Arc::clone(host.get()?);
    let Request { script, purpose, sealed, parallel_max, simulate, asks } = request;
    let found = capability::find();
    let dependencies = dependencies::find(project, &sealed);
    let options = BindOptions {
        stores: dependencies.machine_folders(),
        dependencies: dependencies.folders,
        no_sandbox: matches!(purpose, Purpose::RunUnconfined | Purpose::ShowUnconfined),
        plan_only: matches!(purpose, Purpose::Show | Purpose::ShowUnconfined),
        available: capability::to_bind(&found),
        sealed,
        script: script.map(|file| Arc::clone(&file.script)),
        simulate,
    };
    match bind(Arc::clone(&source.pipeline), &catalog(project), (&project.config, &project.lock), &host, options) {
        Ok(plan) => {
            let plan = plan.with_rule_report(source.rule_report.clone()).with_parallel_max(parallel_max);
            source::report(&findings(source, &plan.warnings), Severity::Warning);
            let protected = protected(source, project, &plan);
            let mut sandbox_env = sandbox_env(&plan, project, &found, dependencies.stores)?;
            let sandbox = plan.sandbox.record(found.landlock_abi);
            let runs = matches!(purpose, Purpose::Run | Purpose::RunUnconfined);
            let mut targets = Targets::default();
            if runs {
                agent_programs::require(&plan, &sandbox_env.policy)?;
                // Before any key or variable is read, and any host is looked up.
                trust::require(project, &plan, &source.file, asks)?;
                targets = models::targets(project, &plan)?;
                sandbox_env.server_env = models::server_env(&plan)?;
            }
            let worker = Worker { sandbox, ..worker() };
            Ok(Executor { plan: Arc::new(plan), host, sandbox_env, protected, targets, worker })
        }
        Err(errors) => Err(refuse(source, errors)),
    }
}

/// This process in the record, where it runs no commands.
pub fn worker() -> Worker {
    Worker { name: format!("pid-{}", std::process::id()), sandbox: None }
}

/// Binds other versions of a pipeline, to compare plans. Prints nothing. A missing pipeline, or one that cannot be bound, has no plan.
pub fn bind_versions(
    host: &SharedHost,
    pipelines: Vec<Option<Pipeline>>,
    project: &Project,
    sealed: &[Entry],
) -> Result<Vec<Option<Plan>>, Stop> {
    let host = host.get()?;
    let dependencies = dependencies::find(project, sealed);
    let options = BindOptions {
        stores: dependencies.machine_folders(),
        dependencies: dependencies.folders,
        no_sandbox: false,
        plan_only: true,
        available: capability::to_bind(&capability::find()),
        sealed: sealed.to_vec(),
        script: None,
        simulate: false,
    };
    let catalog = catalog(project);
    let bound = |pipeline: Option<Pipeline>| {
        bind(Arc::new(pipeline?), &catalog, (&project.config, &project.lock), host, options.clone()).ok()
    };
    Ok(pipelines.into_iter().map(bound).collect())
}

/// The sandbox environment of a plan on this machine.
fn sandbox_env(
    plan: &Plan,
    project: &Project,
    capability: &ProbeReport,
    stores: Vec<Bind>,
) -> Result<SandboxEnv, Stop> {
    let tier = plan.sandbox.tier();
    let mut policy = toolchain::exec_policy(&plan.exec, tier, &plan.sandbox.setting.read)?;
    if tier.is_some_and(Tier::has_own_root) {
        let is_new = |store: &Bind| !policy.binds.iter().any(|known| known.at == store.at);
        let stores: Vec<Bind> = stores.into_iter().filter(is_new).collect();
        policy.binds.extend(stores);
    }
    Ok(SandboxEnv {
        environment: dependencies::environment(&project.workdir, &plan.dependencies),
        tier,
        can_mount: capability.tier == Some(Tier::Full),
        policy,
        project: project.workdir.clone(),
        server_env: ServerEnv::default(),
        private: [user_key::folder(), cache_dir()].into_iter().flatten().collect(),
    })
}

/// Tells what of the dependencies is missing, and what the sandbox cannot show, before the first stage.
pub fn warn_of_dependencies(plan: &Plan, project: &Project) {
    let runs_commands = plan.bindings.values().any(|binding| binding.runs_commands());
    if !runs_commands {
        return;
    }
    for (problem, help) in dependencies::find(project, &plan.sealed).warnings {
        terminal::say(format_args!("warning: {}\nhelp: {}\n", visible::line(&problem), visible::line(&help)));
    }
    let tier = plan.sandbox.tier().filter(|tier| !tier.has_own_root());
    for folder in tier.iter().flat_map(|_| &plan.dependencies) {
        let tier = plan.sandbox.tier_word();
        terminal::say(format_args!(
            "warning: `{}` is not in this run: the sandbox `{tier}` cannot show it\nhelp: copy it with `include = [\"{}\"]` under \
             `[workspace]` in glovebox.toml\n",
            visible::line(&folder.to_string()),
            visible::line(&folder.to_string())
        ));
    }
}

/// Warns of processes without a sandbox, and of commands, agent programs and tool servers with access to the whole network.
pub fn warn_of_open_access(executor: &Executor) {
    let plan = &executor.plan;
    if plan.sandbox.is_unconfined() {
        let started = plan.bindings.iter().filter(|(_, binding)| binding.starts_processes());
        let nodes: Vec<String> = started.map(|(id, _)| format!("`{id}`")).collect();
        terminal::say(format_args!(
            "warning: --dangerously-no-sandbox: commands of {} can read, change and send everything that you can\n",
            nodes.join(", ")
        ));
        return;
    }
    let open = plan.with_full_network();
    if !open.is_empty() {
        terminal::say(format_args!(
            "warning: network `full`: {} can reach every host that this machine can reach, and its own services\n",
            open.join(", ")
        ));
    }
}

/// The hold-outs to seal: the folders that the pipeline names, which must exist, or the default folder if it exists.
pub fn holdouts(source: &CheckedPipeline, project: &Project) -> Result<Vec<Entry>, Stop> {
    let named = source.pipeline.scenarios.as_deref();
    holdout::folders(&project.workdir, named).map_err(|error| {
        let stop = Stop::new(Exit::Invalid, error.to_string());
        stop.with_help("name folders of the project: `graph [scenarios=\"scripts/scenarios/\"]`")
    })
}

/// The pipeline's file, where it lies in the project, and the hold-outs.
fn protected(source: &CheckedPipeline, project: &Project, plan: &Plan) -> Protected {
    let canonical = std::fs::canonicalize(&source.file);
    let file = canonical.as_ref().unwrap_or(&source.file);
    let inside = file.strip_prefix(&project.workdir).ok().and_then(Path::to_str);
    let sealed = plan.sealed.iter().map(ToString::to_string);
    Protected::new(&inside.map(str::to_owned).into_iter().chain(sealed).collect::<Vec<_>>())
}

/// The findings of the file and of its binding.
fn findings(source: &CheckedPipeline, of_binding: &[Diagnostic]) -> Findings {
    let diagnostics = source::merged(source.diagnostics.clone(), of_binding.to_vec());
    Findings { file: source.file.display().to_string(), source: source.text.clone(), diagnostics }
}

/// Prints every problem of a plan; the class decides the exit code.
fn refuse(source: &CheckedPipeline, errors: BindErrors) -> Stop {
    let class = errors.class();
    let findings = findings(source, &errors.diagnostics);
    source::report(&findings, Severity::Warning);
    for problem in &errors.plugins {
        terminal::say(format_args!("error: {}\n", visible::block(&problem.message)));
        problem.help.iter().for_each(|help| terminal::say(format_args!("help: {}\n", visible::block(help))));
    }
    match (class, &errors.policy) {
        (BindClass::Invalid, _) => source::invalid(&findings),
        (BindClass::Plugin, _) => Stop::silent(Exit::Plugin),
        (BindClass::Policy, Some(policy)) => Stop::new(Exit::Policy, policy.to_string()).with_help(policy.help()),
        (BindClass::Policy, None) => Stop::silent(Exit::Policy),
    }
}

/// The host of this process: started when something first needs it, and only once.
#[derive(Default)]
pub struct SharedHost(OnceCell<Arc<Host>>);

impl SharedHost {
    /// Returns the host, and starts it if it does not run yet.
    pub fn get(&self) -> Result<&Arc<Host>, Stop> {
        match self.0.get() {
            Some(host) => Ok(host),
            None => {
                let host = start_host()?;
                Ok(self.0.get_or_init(|| host))
            }
        }
    }
}

/// Starts a host.
pub fn start_host() -> Result<Arc<Host>, Stop> {
    let config = HostConfig {
        cache_dir: cache_dir(),
        cache_bytes_max: compiler::cache_bytes_max()?,
        compiler: compiler::compiler()?,
        pool_slots: POOL_SLOTS,
        while_compiling: compiling::show,
    };
    tracing::debug!("starting the component host");
    Host::new(config).map(Arc::new).map_err(|error| Stop::new(Exit::Internal, error.to_string()))
}

/// The built-in components, and the bytes of the project's plugins.
pub fn catalog(project: &Project) -> Catalog {
    let builtins = BUILTINS.iter().map(|builtin| (builtin.name.to_owned(), Cow::Borrowed(builtin.bytes))).collect();
    let plugins = project.config.plugins.iter().map(|(name, entry)| (name, &*entry.path));
    Catalog { builtins, plugins: plugin_files(project, plugins) }
}

/// The bytes of components that the configuration names.
pub fn plugin_files<'a>(
    project: &Project,
    named: impl Iterator<Item = (&'a String, &'a str)>,
) -> BTreeMap<String, PluginFile> {
    let read = |(name, path): (&String, &str)| {
        let bytes = source::read_component(&project.config_dir.join(path), project.config.component_bytes(name));
        (name.clone(), PluginFile { path: path.to_owned(), bytes: bytes.map(Arc::from) })
    };
    named.map(read).collect()
}

/// Refuses a bound on money where nobody says what the model costs: it could not be held.
pub fn refuse_unpriced(plan: &Plan, flags: SpendBounds) -> Result<(), Stop> {
    let Some((unpriced, model)) = plan.unpriced(flags) else { return Ok(()) };
    let of = match unpriced {
        Unpriced::Run => "of the run".to_owned(),
        Unpriced::Node(node) => format!("of node `{node}`"),
    };
    let message = format!("`max_budget_usd` {of} cannot be held: nothing says what the model `{model}` costs");
    Err(Stop::new(Exit::Invalid, message).with_help(format!(
        "add to glovebox.toml: `[models.{model}]` and below it `price = {{ input = 3, output = 15 }}` (US dollars for a million tokens)"
    )))
}

/// Reads a model script; one that does not parse is exit 3 with its line.
pub fn read_script(file: &Path) -> Result<ScriptFile, Stop> {
    let text = source::read_text(file)?;
    parse_script(text, file.display())
}

/// Parses a model script that was read from `name`.
pub fn parse_script(text: String, name: impl fmt::Display) -> Result<ScriptFile, Stop> {
    let script = Script::parse(&text)
        .map_err(|error| Stop::new(Exit::Invalid, format!("script `{name}` line {}: {}", error.line, error.problem)))?;
    Ok(ScriptFile { text, script: Arc::new(script) })
}
