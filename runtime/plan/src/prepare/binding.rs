//! Binds a pipeline of a project on this machine: the plan, the sandbox of its commands, and the paths that no stage may change.

use super::agent_programs;
use super::capability;
use super::component_host::ComponentHost;
use super::dependencies::{self, Dependencies};
use super::executor::{Executor, SandboxEnv, ServerEnv, Targets, Worker};
use super::findings::{Findings, merged};
use super::folders::private_dirs;
use super::keys;
use super::project::Project;
use super::refusal::{Class, Refusal, Warning};
use super::script::ScriptFile;
use super::source::CheckedPipeline;
use super::toolchain;
use super::trust::{self, Wanted};
use crate::bind::{BindClass, BindErrors, BindOptions, bind, placement};
use crate::config::{Config, HistorySetting};
use crate::plan::{BoundPolicy, Plan, PolicyBinding, ProgramFolders, Unpriced};
use glovebox_host::host::Host;
use glovebox_host::judgement::{PolicySet, RunPolicy};
use glovebox_host::revocation::RevocationCheck;
use glovebox_jail::jail::{Bind, ProbeReport};
use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::placement::ProgramName;
use glovebox_record::scope::Entry;
use glovebox_record::spend::SpendBounds;
use glovebox_record::{Label, MachineFacts, Tier};
use glovebox_workspace::holdout;
use glovebox_workspace::protect::Protected;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// The inputs of a binding, in addition to the pipeline and its project.
pub struct Request<'a> {
    /// The script that answers model calls. `None` if models are asked or simulated.
    pub script: Option<&'a ScriptFile>,
    /// What the plan is for.
    pub purpose: Purpose,
    /// The hold-out folders.
    pub sealed: Vec<Entry>,
    /// The value of `--max-parallel`.
    pub parallel_max: Option<u64>,
    /// True with `--simulate`.
    pub simulate: bool,
    /// The value of `--tier`: a tier that is lower than the best one of this machine.
    pub tier: Option<Tier>,
    /// The labels of this machine.
    pub labels: BTreeSet<Label>,
}

impl Request<'_> {
    /// Creates a request for a plan that is only shown, without a script.
    pub fn to_show(sealed: Vec<Entry>) -> Self {
        let labels = BTreeSet::new();
        Self { script: None, purpose: Purpose::Show, sealed, parallel_max: None, simulate: false, tier: None, labels }
    }
}

/// The purpose of a binding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// The plan is shown; nothing runs.
    Show,
    /// The plan is shown as it would run without a sandbox; nothing runs.
    ShowUnconfined,
    /// The plan runs in the sandbox of this machine.
    Run,
    /// The plan runs commands without a sandbox, as the user asked.
    RunUnconfined,
}

impl Purpose {
    fn runs(self) -> bool {
        matches!(self, Self::Run | Self::RunUnconfined)
    }

    fn is_unconfined(self) -> bool {
        matches!(self, Self::ShowUnconfined | Self::RunUnconfined)
    }
}

/// A bound plan. Keys and variables of the user were not read for it, and the user was not asked anything.
pub struct Bound {
    /// The plan.
    pub plan: Plan,
    /// The findings of the pipeline and of its binding. None of them is an error.
    pub findings: Findings,
    /// Further warnings that the user should see before a run.
    pub warnings: Vec<Warning>,
    host: Arc<Host>,
    sandbox_env: SandboxEnv,
    protected: Protected,
    landlock_abi: u32,
}

/// Binds a pipeline.
///
/// # Errors
///
/// Returns all problems of the plan.
pub fn bind_plan(
    host: &ComponentHost,
    source: &CheckedPipeline,
    project: &Project,
    request: Request<'_>,
) -> Result<Bound, Refusal> {
    let Request { script, purpose, sealed, parallel_max, simulate, tier, labels } = request;
    let found = capability::find();
    let found = match tier {
        Some(tier) => capability::limited(found, tier, project.config.sandbox.require)?,
        None => found,
    };
    // A folder that only this machine has would give another plan on other machines.
    let dependencies = if project.is_portable { Dependencies::default() } else { dependencies::find(project, &sealed) };
    let options = BindOptions {
        stores: dependencies.machine_folders(),
        dependencies: dependencies.folders,
        no_sandbox: purpose.is_unconfined(),
        has_repository: project.has_history(),
        is_one_of_many: project.is_portable,
        plan_only: !purpose.runs(),
        available: capability::to_bind(&found),
        machine: MachineFacts {
            programs: programs_here(source, project),
            ..capability::facts(labels, found.tier.filter(|_| !purpose.is_unconfined()))
        },
        sealed,
        script: script.map(|file| Arc::clone(&file.script)),
        simulate,
    };
    let pipeline = Arc::clone(&source.pipeline);
    let plan = bind(pipeline, &host.catalog(project), project.operator_files(), host.get()?, options)
        .map_err(|errors| refusal(source, errors))?
        .with_rule_report(source.rule_report.clone())
        .with_parallel_max(parallel_max);
    let sandbox_env = sandbox_env(&plan, project, &found, dependencies.stores)?;
    let mut warnings = if purpose.runs() { agent_programs::require(&plan, &sandbox_env.policy)? } else { Vec::new() };
    let is_asked_for = plan.folders.history == HistorySetting::Whole;
    if is_asked_for && plan.bindings.values().any(|binding| plan.shows_history(binding)) {
        warnings.push(Warning {
            problem: "commands can read every commit and branch of the project's repository".to_owned(),
            help: "remove `git = \"history\"` under `[workspace]` in glovebox.toml to show one commit only".to_owned(),
        });
    }
    Ok(Bound {
        findings: findings(source, &plan.findings.warnings),
        warnings,
        host: Arc::clone(host.get()?),
        sandbox_env,
        protected: protected(source, project, &plan),
        landlock_abi: found.landlock_abi,
        plan,
    })
}

/// Looks for the programs that stages need of their machine.
fn programs_here(source: &CheckedPipeline, project: &Project) -> BTreeMap<ProgramName, bool> {
    let Config { fleet, exec, .. } = &project.config;
    let needs = source.pipeline.nodes.iter().filter_map(|node| node.need.as_deref()).chain([&fleet.runs_on]);
    capability::look_for(needs.flat_map(|need| &need.programs), &ProgramFolders::from(exec))
}

/// Refuses a pipeline with a stage that this machine cannot run. [`bind_plan`] does so too; a command that must not create
/// anything first asks this, which loads no component.
///
/// # Errors
///
/// Returns what this machine lacks.
pub fn require_machine(
    source: &CheckedPipeline,
    project: &Project,
    labels: BTreeSet<Label>,
    purpose: Purpose,
) -> Result<(), Refusal> {
    let fleet = &project.config.fleet;
    if fleet.runs_on.is_empty() && source.pipeline.nodes.iter().all(|node| node.need.is_none()) {
        return Ok(());
    }
    let tier = capability::find().tier.filter(|_| !purpose.is_unconfined());
    let machine = MachineFacts { programs: programs_here(source, project), ..capability::facts(labels, tier) };
    let options = BindOptions { machine, ..BindOptions::default() };
    let mut errors = BindErrors::default();
    placement::plan(&source.pipeline, &project.config, &options, &mut errors);
    if errors.is_empty() { Ok(()) } else { Err(refusal(source, errors)) }
}

impl Bound {
    /// Makes the plan ready to run: reads keys and variables, after everything that leaves the machine with them is
    /// confirmed. `confirm` is called with the transfers that are not confirmed yet, and returns true if they are allowed.
    ///
    /// # Errors
    ///
    /// Fails if a transfer is not allowed, or if a key or a variable cannot be read.
    pub fn ready(
        self,
        project: &Project,
        pipeline: &Path,
        confirm: &dyn Fn(&[Wanted]) -> Result<bool, Refusal>,
    ) -> Result<Executor, Refusal> {
        let secrets = self.secrets(project, pipeline, confirm)?;
        self.executor(project, secrets)
    }

    /// As [`Bound::ready`], on a machine of a fleet. If a transfer is not allowed here or a key cannot be read, the executor has
    /// no key and no variable: it may drive the run, and must not make its stages, for the reason that is returned with it.
    ///
    /// # Errors
    ///
    /// A policy cannot be loaded.
    pub fn ready_in_fleet(
        self,
        project: &Project,
        pipeline: &Path,
        confirm: &dyn Fn(&[Wanted]) -> Result<bool, Refusal>,
    ) -> Result<(Executor, Option<Refusal>), Refusal> {
        match self.secrets(project, pipeline, confirm) {
            Ok(secrets) => Ok((self.executor(project, secrets)?, None)),
            Err(refusal) => Ok((self.executor(project, Secrets::default())?, Some(refusal))),
        }
    }

    /// Reads keys and variables, after every transfer was confirmed.
    fn secrets(
        &self,
        project: &Project,
        pipeline: &Path,
        confirm: &dyn Fn(&[Wanted]) -> Result<bool, Refusal>,
    ) -> Result<Secrets, Refusal> {
        // This must come before any key or variable is read and any host is looked up.
        trust::require(project, &self.plan, pipeline, confirm)?;
        Ok(Secrets { targets: keys::targets(project, &self.plan)?, server_env: keys::server_env(&self.plan)? })
    }

    fn executor(mut self, project: &Project, secrets: Secrets) -> Result<Executor, Refusal> {
        self.sandbox_env.server_env = secrets.server_env;
        let sandbox = self.plan.commands.sandbox.record(self.landlock_abi);
        let policies = Arc::new(run_policies(project, &self.plan)?);
        let worker = Worker { sandbox, policies, ..Worker::this_process() };
        Ok(Executor {
            plan: Arc::new(self.plan),
            host: self.host,
            sandbox_env: self.sandbox_env,
            protected: self.protected,
            targets: secrets.targets,
            revocations: Arc::clone(&project.revocations),
            worker,
        })
    }
}

/// The keys of models and the variables of tool servers.
#[derive(Default)]
struct Secrets {
    targets: Targets,
    server_env: ServerEnv,
}

impl Bound {
    /// Returns the plan, and the worker that starts its run, for a run whose stages other machines execute. Their keys and
    /// variables are theirs, so none is read here. `confirm` is as in [`Bound::ready`].
    ///
    /// # Errors
    ///
    /// A transfer is not allowed, or a policy cannot be loaded.
    pub fn for_other_machines(
        self,
        project: &Project,
        pipeline: &Path,
        confirm: &dyn Fn(&[Wanted]) -> Result<bool, Refusal>,
    ) -> Result<(Arc<Plan>, Worker), Refusal> {
        trust::require(project, &self.plan, pipeline, confirm)?;
        let sandbox = self.plan.commands.sandbox.record(self.landlock_abi);
        let policies = Arc::new(run_policies(project, &self.plan)?);
        Ok((Arc::new(self.plan), Worker { sandbox, policies, ..Worker::this_process() }))
    }
}

/// Returns the policies of a run, each with the check of its revocation.
fn run_policies(project: &Project, plan: &Plan) -> Result<PolicySet, Refusal> {
    let policy = |bound: &BoundPolicy| {
        let PolicyBinding::Loaded(component) = &bound.component else {
            return Err(Refusal::new(Class::Plugin, format!("policy `{}` is not loaded", bound.name)));
        };
        let (watch, name, digest) = (Arc::clone(&project.revocations), bound.name.clone(), bound.digest());
        let revocation = RevocationCheck::new(move || watch.find(&name, &digest).map(|refused| refused.to_string()));
        Ok(RunPolicy { name: bound.name.clone(), ask: component.to_ask(), revocation })
    };
    let policies: Result<Vec<_>, _> = plan.checks.policies.iter().map(policy).collect();
    Ok(PolicySet::new(policies?, project.config.limits.clone()))
}

/// Binds several versions of a pipeline, to compare their plans. The plan is `None` for a missing pipeline and for a pipeline
/// that cannot be bound.
pub fn bind_versions(
    host: &ComponentHost,
    pipelines: Vec<Option<Pipeline>>,
    project: &Project,
    sealed: &[Entry],
) -> Result<Vec<Option<Plan>>, Refusal> {
    let running = host.get()?;
    let dependencies = dependencies::find(project, sealed);
    let options = BindOptions {
        has_repository: project.has_history(),
        is_one_of_many: project.is_portable,
        stores: dependencies.machine_folders(),
        dependencies: dependencies.folders,
        plan_only: true,
        available: capability::to_bind(&capability::find()),
        sealed: sealed.to_vec(),
        ..BindOptions::default()
    };
    let catalog = host.catalog(project);
    let bound = |pipeline: Option<Pipeline>| {
        bind(Arc::new(pipeline?), &catalog, project.operator_files(), running, options.clone()).ok()
    };
    Ok(pipelines.into_iter().map(bound).collect())
}

/// Creates the sandbox environment of a plan on this machine.
fn sandbox_env(
    plan: &Plan,
    project: &Project,
    capability: &ProbeReport,
    stores: Vec<Bind>,
) -> Result<SandboxEnv, Refusal> {
    let tier = plan.commands.sandbox.tier();
    let mut policy = toolchain::exec_policy(&plan.commands.exec, tier, &plan.commands.sandbox.setting)?;
    if tier.is_some_and(Tier::has_own_root) {
        let is_new = |store: &Bind| !policy.binds.iter().any(|known| known.at == store.at);
        let stores: Vec<Bind> = stores.into_iter().filter(is_new).collect();
        policy.binds.extend(stores);
    }
    if plan.folders.shows_history && !plan.folders.sealed.is_empty() {
        let message =
            "`git = \"history\"` under `[workspace]` shows every version of every file, and this project has hold-outs";
        let help = "write `git = \"commit\"`: a stage must not find earlier versions of hold-outs";
        return Err(Refusal::new(Class::Invalid, message).with_help(help));
    }
    let own = || dependencies::environment(&project.workdir, &plan.folders.dependencies);
    Ok(SandboxEnv {
        copies_files: project.config.workspace.copies_files,
        // The operator names `venv` explicitly, so it takes precedence over an environment of the project.
        environment: if plan.commands.exec.venv.is_some() { None } else { own() },
        tier,
        can_mount: capability.tier == Some(Tier::Full),
        policy,
        project: project.workdir.clone(),
        server_env: ServerEnv::default(),
        private: private_dirs().collect(),
    })
}

/// Returns warnings about missing dependencies, and about links that the sandbox cannot show.
pub fn dependency_warnings(plan: &Plan, project: &Project) -> Vec<Warning> {
    if !plan.bindings.values().any(|binding| binding.runs_commands()) {
        return Vec::new();
    }
    let mut warnings = dependencies::find(project, &plan.folders.sealed).warnings;
    let tier = plan.commands.sandbox.tier().filter(|tier| !tier.has_own_root());
    warnings.extend(tier.iter().flat_map(|_| &plan.folders.dependencies).map(|folder| Warning {
        problem: format!(
            "`{folder}` is not in this run: the sandbox `{}` cannot show it",
            plan.commands.sandbox.tier_word()
        ),
        help: format!("copy it with `include = [\"{folder}\"]` under `[workspace]` in glovebox.toml"),
    }));
    warnings
}

/// Returns the hold-out folders to seal: the folders that the pipeline names, which must exist, or the default folder if it exists.
pub fn holdouts(source: &CheckedPipeline, project: &Project) -> Result<Vec<Entry>, Refusal> {
    let named = source.pipeline.scenarios.as_deref();
    holdout::folders(&project.workdir, named).map_err(|error| {
        let stop = Refusal::new(Class::Invalid, error.to_string());
        stop.with_help("name folders of the project: `graph [scenarios=\"scripts/scenarios/\"]`")
    })
}

/// Returns the protected paths: the pipeline file, if it is in the project, and the hold-outs.
fn protected(source: &CheckedPipeline, project: &Project, plan: &Plan) -> Protected {
    let canonical = std::fs::canonicalize(&source.file);
    let file = canonical.as_ref().unwrap_or(&source.file);
    let inside = file.strip_prefix(&project.workdir).ok().and_then(Path::to_str);
    let sealed = plan.folders.sealed.iter().map(ToString::to_string);
    Protected::new(&inside.map(str::to_owned).into_iter().chain(sealed).collect::<Vec<_>>())
}

/// Returns the findings of the file and of its binding.
fn findings(source: &CheckedPipeline, of_binding: &[Diagnostic]) -> Findings {
    let diagnostics = merged(source.diagnostics.clone(), of_binding.to_vec());
    Findings { file: source.file.display().to_string(), source: source.text.clone(), diagnostics }
}

/// Converts all problems of a plan to a refusal. The class of the problems decides the kind of refusal.
fn refusal(source: &CheckedPipeline, errors: BindErrors) -> Refusal {
    let class = errors.class();
    let invalid = Refusal::for_findings(findings(source, &errors.diagnostics));
    let refusal = match class {
        BindClass::Invalid => invalid,
        BindClass::Plugin => Refusal { class: Class::Plugin, message: String::new(), ..invalid },
        BindClass::Policy => {
            let message = errors.policy_message().unwrap_or_default();
            Refusal { class: Class::Policy, message, ..invalid }.with_help(errors.policy_help())
        }
    };
    Refusal { plugins: errors.plugins, ..refusal }
}

/// Refuses a cost limit on a model without a price, because it could not be enforced.
pub fn refuse_unpriced(plan: &Plan, flags: SpendBounds) -> Result<(), Refusal> {
    let Some((unpriced, model)) = plan.unpriced(flags) else { return Ok(()) };
    let of = match unpriced {
        Unpriced::Run => "of the run".to_owned(),
        Unpriced::Node(node) => format!("of node `{node}`"),
    };
    let message = format!("`max_budget_usd` {of} cannot be enforced: the price of the model `{model}` is not known");
    Err(Refusal::new(Class::Invalid, message).with_help(format!(
        "add to glovebox.toml: `[models.{model}]` and below it `price = {{ input = 3, output = 15 }}` (US dollars for a million tokens)"
    )))
}
