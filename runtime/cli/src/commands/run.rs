//! `glovebox run`: runs a pipeline in a private copy of the project.

use crate::answer_sources::{self, Present};
use crate::arguments::RunArguments;
use crate::command_line;
use crate::commands::plugin::refuse_differences;
use crate::commands::watch;
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::exports::reports;
use crate::pipeline_file;
use crate::prepare;
use crate::runs::last_failure;
use crate::runs::retention::{self, Removal, Retention};
use crate::runs::start_at;
use crate::runs::{self, RunFolder, RunId};
use crate::terminal::progress::{ProgressFormat, Reporter};
use crate::terminal::{self, visible};
use crate::user_key;
use glovebox_engine::run::{NewRun, Run};
use glovebox_jail::jail::Jail;
use glovebox_plan::plan::Plan;
use glovebox_plan::prepare::binding::{self, Bound, Purpose, Request};
use glovebox_plan::prepare::component_host::ComponentHost;
use glovebox_plan::prepare::executor::Executor;
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::script::{self, ScriptFile};
use glovebox_plan::prepare::source::CheckedPipeline;
use glovebox_plan::prepare::{source, widening};
use glovebox_record::scope::Entry;
use glovebox_record::{NodeId, Tier};
use glovebox_workspace::project::Include;
use glovebox_workspace::user_key::UserKey;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Maximum number of paths that a warning lists, one per line.
const LEFT_OUT_SHOWN_MAX: usize = 10;
/// Time that a run may take to start before the copy of the project is announced.
const QUIET_START_MAX: Duration = Duration::from_millis(700);

/// Runs a pipeline once, or with `--watch` after every change of the project.
pub fn run(arguments: &RunArguments) -> CommandResult {
    if arguments.again.watch { watch::watch(arguments) } else { once(arguments) }
}

/// A run that was driven to its end, or that stopped.
pub struct FinishedRun {
    /// Its folder.
    pub folder: RunFolder,
    /// The run.
    pub run: Run,
    /// How its progress was printed.
    pub format: ProgressFormat,
    /// The folder of all runs.
    pub runs_dir: PathBuf,
    /// The removal of old runs, which may still be in progress.
    pub removal: Removal,
}

/// Runs a pipeline.
pub fn once(arguments: &RunArguments) -> CommandResult {
    drive::leave_session(arguments.own_session);
    reports::require_places(&arguments.reports)?;
    let host = &prepare::component_host();
    host.anticipate();
    let (source, project) = read(host, arguments)?;
    if arguments.locked {
        refuse_differences(&project)?;
    }
    #[cfg(feature = "fleet")]
    if !arguments.fleet.nats.is_empty() {
        return super::fleet::start::run(host, arguments, &source, project);
    }
    anticipate_jail(&source, arguments);
    let FinishedRun { folder, run, format, runs_dir, removal } = execute(host, arguments, &source, &project)?;
    let exit = drive::conclude(&folder, &run, format, &runs_dir);
    drop(run);
    removal.finish(matches!(format, ProgressFormat::Live | ProgressFormat::Lines));
    let exit = exit?;
    reports::after(&arguments.reports, &folder, exit)
}

/// If the first stage runs a command, begins to start the program that builds its jail while the run is prepared.
fn anticipate_jail(source: &CheckedPipeline, arguments: &RunArguments) {
    let pipeline = &source.pipeline;
    let first = pipeline.outgoing(&pipeline.start).filter_map(|(_, edge)| pipeline.node(&edge.to)).next();
    let is_full = arguments.tier.is_none_or(|tier| tier == Tier::Full) && !arguments.execution.dangerously_no_sandbox;
    if is_full && first.is_some_and(|node| node.handler.kind().command().is_some()) {
        Jail::anticipate();
    }
}

/// Returns an error if `--plan` names another plan.
fn refuse_other_plan(plan: &Plan, arguments: &RunArguments) -> Result<(), Stop> {
    let (Some(wanted), now) = (arguments.plan, plan.digest()) else { return Ok(()) };
    if wanted == now {
        return Ok(());
    }
    let message = format!("the plan has the digest {now}, and `--plan` names {wanted}");
    Err(Stop::new(Exit::Mismatch, message).with_help("look at the plan again: `glovebox plan FILE`"))
}

/// Drives a run of a pipeline. Everything that can be refused is refused before the run exists.
pub fn execute(
    host: &ComponentHost,
    arguments: &RunArguments,
    source: &CheckedPipeline,
    project: &Project,
) -> Result<FinishedRun, Stop> {
    let chosen = choose(arguments, source, project)?;
    let bound = bind(host, arguments, source, project, &chosen)?;
    let executor = prepare::ready(bound, project, &source.file, !arguments.people.no_input)?;
    refuse_plan(&executor.plan, arguments)?;
    prepare::warn_of_open_access(&executor);
    prepare::warn_of_dependencies(&executor.plan, project);
    let format = format(arguments);
    let present =
        answer_sources::present(&arguments.people, &arguments.output, &arguments.runs, &executor.plan.pipeline, &[])?;
    let key = user_key::to_sign()?;
    let mut include = include(&executor.plan)?;
    let folder = runs::create(&arguments.runs.runs_dir, chosen.id.clone())?;
    leave_out(&mut include, &executor.plan, project, &folder);
    let new = NewRun {
        include,
        earlier: retention::earlier(&arguments.runs.runs_dir, &project.workdir),
        ..new_run(arguments, source, project, folder.id.as_str().into(), &chosen)
    };
    let runs_dir = arguments.runs.runs_dir.clone();
    let retention = Retention { project: project.workdir.clone(), keep_runs: project.config.run.keep_runs };
    let begun = begin(executor, &folder, key, new, format, present, (&runs_dir, retention));
    let (run, removal) = drive::block_on(begun)??;
    Ok(FinishedRun { folder, run, format, runs_dir, removal })
}

/// What the arguments of a new run choose, in addition to its pipeline.
pub struct Chosen {
    /// The id of the run.
    pub id: RunId,
    /// The hold-out folders.
    pub sealed: Vec<Entry>,
    from: Option<NodeId>,
    script: Option<ScriptFile>,
}

/// Reads what the arguments of a new run choose.
pub fn choose(arguments: &RunArguments, source: &CheckedPipeline, project: &Project) -> Result<Chosen, Stop> {
    let id = arguments.run_id.as_deref().map_or_else(|| Ok(RunId::fresh()), RunId::parse)?;
    widening::refuse(project, &source.rule_report.rules)?;
    let from = begins_at(arguments, source)?;
    from.iter().try_for_each(|node| start_at::check(&source.pipeline, node))?;
    let script = arguments.execution.script.as_deref().map(script::read_script).transpose()?;
    Ok(Chosen { id, sealed: binding::holdouts(source, project)?, from, script })
}

/// Binds the pipeline of a new run.
pub fn bind(
    host: &ComponentHost,
    arguments: &RunArguments,
    source: &CheckedPipeline,
    project: &Project,
    chosen: &Chosen,
) -> Result<Bound, Stop> {
    let purpose = if arguments.execution.dangerously_no_sandbox { Purpose::RunUnconfined } else { Purpose::Run };
    let request = Request {
        script: chosen.script.as_ref(),
        purpose,
        sealed: chosen.sealed.clone(),
        parallel_max: arguments.execution.parallel.max_parallel,
        simulate: arguments.simulate,
        tier: arguments.tier,
        labels: arguments.execution.labels.set(),
    };
    prepare::bind(host, source, project, request)
}

/// Returns an error if the plan must not run.
pub fn refuse_plan(plan: &Plan, arguments: &RunArguments) -> Result<(), Stop> {
    refuse_other_plan(plan, arguments)?;
    refuse_unanswered(plan, arguments.simulate)?;
    Ok(binding::refuse_unpriced(plan, arguments.execution.spend.into())?)
}

/// Returns the inputs of a new run that copies no additional files.
pub fn new_run<'a>(
    arguments: &RunArguments,
    source: &'a CheckedPipeline,
    project: &'a Project,
    run_id: glovebox_record::RunId,
    chosen: &'a Chosen,
) -> NewRun<'a> {
    NewRun {
        run_id,
        source: &source.text,
        files: &source.files,
        pipeline_path: absolute(&source.file),
        project: &project.workdir,
        include: Include::default(),
        script: chosen.script.as_ref().map(|file| file.text.as_bytes()),
        inputs: arguments.project.inputs.iter().cloned().collect(),
        from: chosen.from.clone(),
        steps_max: arguments.execution.max_steps,
        wall_max: arguments.execution.max_wall_time,
        stall: arguments.execution.stall.into(),
        spend_max: arguments.execution.spend.into(),
        labels: std::collections::BTreeMap::new(),
        earlier: Vec::new(),
        shared: None,
    }
}

/// Reads the pipeline and its project: a file, or the command of the command line.
fn read(host: &ComponentHost, arguments: &RunArguments) -> Result<(CheckedPipeline, Project), Stop> {
    let (project, command) = (&arguments.project, &arguments.command);
    if command.command.is_empty() {
        let file = pipeline_file::choose(arguments.file.as_deref(), &project.workdir)?;
        return prepare::read_pipeline(host, &file, &source::inputs(&project.inputs), &project.workdir);
    }
    let text = command_line::pipeline(&command.command, &command.write, &project.workdir)?;
    let workdir = std::fs::canonicalize(&project.workdir).unwrap_or_else(|_| project.workdir.clone());
    prepare::read_command_line(host, &workdir.join(command_line::FILE_NAME), text, &project.workdir)
}

/// Returns the node at which the run begins instead of the start node.
fn begins_at(arguments: &RunArguments, source: &CheckedPipeline) -> Result<Option<NodeId>, Stop> {
    if !arguments.again.rerun_failed {
        return Ok(arguments.from.clone());
    }
    let (node, run) = last_failure::stage(&arguments.runs.runs_dir, &absolute(&source.file))?;
    terminal::say(format_args!("begins at `{}`, which failed in run `{run}`\n", visible::line(node.as_str())));
    Ok(Some(node))
}

/// Returns how the progress of a run is printed.
pub fn format(arguments: &RunArguments) -> ProgressFormat {
    let (json, quiet) = (arguments.output.json, arguments.output.quiet);
    match arguments.command.command.is_empty() {
        true => ProgressFormat::choose(json, quiet),
        false => ProgressFormat::choose_for_command(json, quiet),
    }
}

/// Refuses a plan with stages that no model answers, unless the user asked for simulated answers.
fn refuse_unanswered(plan: &Plan, simulate: bool) -> Result<(), Stop> {
    let nodes = plan.simulated();
    if simulate || nodes.is_empty() {
        return Ok(());
    }
    Err(Stop::new(Exit::Provider, format!("no model answers {}", terminal::named(&nodes))).with_help(
        "name a model under `[models]` in glovebox.toml (docs/models.md)\n\
         or answer from a script: `--script FILE` (docs/scripted-model.md)\n\
         or simulate success without asking a model: `--simulate`",
    ))
}

async fn begin(
    executor: Executor,
    folder: &RunFolder,
    key: Option<UserKey>,
    new: NewRun<'_>,
    format: ProgressFormat,
    present: Present,
    (runs_dir, retention): (&Path, Retention),
) -> Result<(Run, Removal), Stop> {
    let reporter = Reporter::new(format, &executor.plan.pipeline);
    let started = announced(Run::start(drive::open_dir(folder, key)?, executor, new), format).await;
    let mut run = started.map_err(|error| {
        runs::discard(folder);
        drive::stop(folder, &error)
    })?;
    report_left_out(&run);
    report_open_copies(&run);
    // The new run has taken over what it uses of old ones.
    let removal = Removal::start(runs_dir, retention);
    drive::drive(&mut run, folder, reporter, present).await?;
    Ok((run, removal))
}

/// Starts a run, and prints what takes so long if the start takes longer than [`QUIET_START_MAX`].
async fn announced<T>(starting: impl Future<Output = T>, format: ProgressFormat) -> T {
    let mut starting = std::pin::pin!(starting);
    tokio::select! {
        started = &mut starting => return started,
        () = tokio::time::sleep(QUIET_START_MAX) => {}
    }
    if matches!(format, ProgressFormat::Live | ProgressFormat::Lines) {
        terminal::say("copying the project\n");
    }
    starting.await
}

/// Warns of files of the project that could not be copied, so that stages do not see them. Files that git ignores are
/// not reported.
fn report_left_out(run: &Run) {
    let left_out = run.left_out();
    for skipped in left_out.iter().take(LEFT_OUT_SHOWN_MAX) {
        terminal::say(format_args!(
            "warning: left out of the run: {}: {}\n",
            visible::line(&skipped.path),
            skipped.reason
        ));
    }
    if left_out.len() > LEFT_OUT_SHOWN_MAX {
        terminal::say(format_args!("warning: left out of the run: {} more\n", left_out.len() - LEFT_OUT_SHOWN_MAX));
    }
}

/// Warns of copies of hold-outs in the workspace that every stage can read, if the pipeline allows them.
fn report_open_copies(run: &Run) {
    for open in run.open_copies().iter().take(LEFT_OUT_SHOWN_MAX) {
        let (holdout, copy) = (visible::line(&open.holdout), visible::line(&open.copy));
        terminal::say(format_args!("warning: hold-out {holdout} is also at {copy}, where every stage can read it\n"));
    }
}

/// Returns the files to copy in addition to the files that git knows.
pub fn include(plan: &Plan) -> Result<Include, Stop> {
    Include::parse(&plan.folders.include)
        .map_err(|error| Stop::new(Exit::Invalid, format!("`workspace.include` in glovebox.toml: {error}")))
}

/// Adds the paths that are not copied: the runs themselves, and folders that the sandbox shows.
pub fn leave_out(include: &mut Include, plan: &Plan, project: &Project, run: &RunFolder) {
    let runs_dir = run.path.parent().and_then(|folder| folder.strip_prefix(&project.workdir).ok());
    if let Some(inside) = runs_dir.and_then(Path::to_str).filter(|inside| !inside.is_empty()) {
        let entry = Entry::parse(&format!("{inside}/"));
        include.leave_out.extend(entry.ok());
    }
    // The sandbox mounts these folders from where they are, so they need not be copied.
    if plan.commands.sandbox.tier().is_some_and(Tier::has_own_root) {
        include.leave_out.extend(plan.folders.dependencies.iter().cloned());
    }
}

fn absolute(file: &Path) -> String {
    let path = std::fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    path.to_string_lossy().into_owned()
}
