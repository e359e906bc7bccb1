//! `glovebox resume`: continues a run that was stopped or killed, and retries a run that failed.
//!
//! The pipeline, the inputs and the script are read from the run's blobs; `--script` replaces the script. The plan must
//! be the same as before. Another plan ends with exit 11, unless `--replan` accepts it.

use crate::answer_sources::{self, Present};
use crate::arguments::{LabelArguments, ResumeArguments};
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::exports::reports;
use crate::prepare;
use crate::replan;
use crate::runs::changes;
use crate::runs::journal;
use crate::runs::recorded;
use crate::runs::start_at;
use crate::runs::takeover::{self, Watch};
use crate::runs::{self, RunFolder};
use crate::terminal::progress::{ProgressFormat, Reporter};
use crate::terminal::{self, lines, visible};
use crate::user_key;
use glovebox_engine::run::{QuotaAtResume, Replan, ResumeTerms, Run, VisitPoint};
use glovebox_host::llm::Provider;
use glovebox_journal::event::{Record, RunStarted};
use glovebox_journal::rewind;
use glovebox_journal::sqlite::VerifiedJournal;
use glovebox_plan::plan::{TIER_NONE, TIER_UNCONFINED};
use glovebox_plan::prepare::binding::{self, Purpose, Request};
use glovebox_plan::prepare::executor::Executor;
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::rule_plugins;
use glovebox_plan::prepare::script::{self, ScriptFile};
use glovebox_plan::prepare::source::CheckedPipeline;
use glovebox_record::spend::SpendBounds;
use glovebox_record::{NodeId, Tier};
use glovebox_workspace::holdout;
use std::path::Path;

/// Resumes a run. For a run that succeeded or was canceled, prints its summary again and returns the same exit code.
pub fn resume(arguments: &ResumeArguments) -> CommandResult {
    drive::leave_session(arguments.own_session);
    reports::require_places(&arguments.reports)?;
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    go_on(arguments, &run)
}

/// Resumes a run, and writes its reports when it has ended.
pub fn go_on(arguments: &ResumeArguments, run: &RunFolder) -> CommandResult {
    let exit = take_up(arguments, run)?;
    reports::after(&arguments.reports, run, exit)
}

fn take_up(arguments: &ResumeArguments, run: &RunFolder) -> CommandResult {
    let format = ProgressFormat::choose(arguments.output.json, arguments.output.quiet);
    let mut verified = journal::read_start_and_resumes(run)?;
    let named = runs::spelled(&run.id, &arguments.runs.runs_dir);
    let help =
        format!("`glovebox show {named}` shows it; start a new run with `glovebox run`; see docs/run-directory.md");
    journal::refuse_foreign(run, verified.provenance, help)?;
    if runs::is_live(run) {
        refuse_running(run)?;
        // The other process may have appended records while this process waited.
        verified = journal::read_start_and_resumes(run)?;
    }
    runs::repair(run)?;
    let terms = journal::current_start(run, &verified.records)?;
    refuse_other_confinement(run, &terms, arguments)?;
    let source = recorded::read(run, &terms)?;
    let (from, back) = begins(run, arguments, &source)?;
    let script = arguments.script.as_deref().map(script::read_script).transpose()?;
    let (executor, replan) = bind(run, &terms, &source, arguments, script.as_ref())?;
    let changed = ResumeTerms {
        from,
        back,
        steps_max: arguments.max_steps,
        wall_max: arguments.max_wall_time,
        stall: arguments.stall.into(),
        // As in `run`, a flag cannot raise the operator's bound.
        spend_max: SpendBounds::from(arguments.spend).or(terms.bounds.spend_max).least(executor.plan.bounds.spend_max),
        script: script.as_ref().map(|file| file.text.as_bytes()),
        replan,
        asks_again: arguments.live,
    };
    // The records are needed only to find which answers of the answer file were used.
    let reads = arguments.people.answers.is_some();
    let records = if reads { journal::read(run)?.records } else { Vec::new() };
    let present = answer_sources::present(
        &arguments.people,
        &arguments.output,
        &arguments.runs,
        &executor.plan.pipeline,
        &records,
    )?;
    let ended = drive::block_on(continue_run(executor, run, &verified, changed, format, present))??;
    drive::conclude(run, &ended, format, &arguments.runs.runs_dir)
}

/// Returns the node at which the user wants to restart the run, or the visit to which the run goes back.
fn begins(
    run: &RunFolder,
    arguments: &ResumeArguments,
    source: &CheckedPipeline,
) -> Result<(Option<NodeId>, Option<VisitPoint>), Stop> {
    let Some((node, visit)) = arguments.from.clone() else { return Ok((None, None)) };
    start_at::check(&source.pipeline, &node)?;
    if visit.is_none() {
        return Ok((Some(node), None));
    }
    let records = journal::read(run)?.records;
    let point = start_at::visit(run, &records, node, visit)?;
    if rewind::rewind_count(&records) >= rewind::BACKS_MAX {
        let message = format!("run `{}` went back {} times, which is the maximum", run.id, rewind::BACKS_MAX);
        let named = runs::spelled(&run.id, &arguments.runs.runs_dir);
        let help = format!("begin a new run there: `glovebox fork {named} {}@{}`", point.node, point.visit);
        return Err(Stop::new(Exit::Usage, message).with_help(help));
    }
    Ok((None, Some(point)))
}

/// Refuses a run that another process drives. A process that is stopped for longer than its lease no longer drives the
/// run.
fn refuse_running(run: &RunFolder) -> Result<(), Stop> {
    if Watch::new(run).wait() {
        return Ok(());
    }
    Err(running(run)?)
}

/// Returns the error for a run that another process drives, with the name of that process.
fn running(run: &RunFolder) -> Result<Stop, Stop> {
    let worker = match takeover::driver(run) {
        // The process may not have recorded its resume yet.
        Some(process) => Some(format!("pid-{process}")),
        None => journal::read(run)?.records.iter().rev().find_map(|Record { event, .. }| {
            let of_claim = event.stage_started().map(|started| started.worker.clone());
            let of_takeover = || event.run_taken_over().map(|taken| taken.machine.to_string());
            of_claim.or_else(|| event.run_resumed().map(|resumed| resumed.worker.clone())).or_else(of_takeover)
        }),
    };
    let worker = worker.map(|worker| format!(" (`{}`)", visible::line(&worker))).unwrap_or_default();
    Ok(Stop::new(Exit::Transient, format!("run `{}` is running: another process{worker} drives it", run.id))
        .with_help("wait until it ends with `glovebox attach`, or end it with `glovebox pause` or `glovebox cancel`"))
}

async fn continue_run(
    executor: Executor,
    folder: &RunFolder,
    verified: &VerifiedJournal,
    terms: ResumeTerms<'_>,
    format: ProgressFormat,
    present: Present,
) -> Result<Run, Stop> {
    let dir = drive::open_dir(folder, user_key::to_verify()?)?;
    let reporter = Reporter::new(format, &executor.plan.pipeline);
    let opened = Run::open(dir, executor, verified, terms).await;
    let mut run = match opened {
        Ok(run) => run,
        // Another process took the run over since it was found to be idle.
        Err(_) if runs::is_live(folder) => return Err(running(folder)?),
        Err(error) => return Err(drive::stop(folder, &error)),
    };
    if !run.had_ended() {
        if format != ProgressFormat::Quiet {
            run.quota_waits().iter().for_each(say_quota_wait);
        }
        drive::drive(&mut run, folder, reporter, present).await?;
    }
    Ok(run)
}

/// Says when a stage goes on that waits for the quota of a provider.
fn say_quota_wait(wait: &QuotaAtResume) {
    let (node, provider) = (visible::line(wait.node.as_str()), visible::line(&wait.provider));
    match wait.is_early {
        true => terminal::say(format!(
            "{node} tries again now, although the quota of {provider} resumes at {}\n",
            terminal::moment(wait.resume_at)
        )),
        false => terminal::say(format!("{node} {}\n", lines::quota_wait(&wait.provider, wait.resume_at))),
    }
}

fn bind(
    run: &RunFolder,
    terms: &RunStarted,
    source: &CheckedPipeline,
    arguments: &ResumeArguments,
    script: Option<&ScriptFile>,
) -> Result<(Executor, Option<Replan>), Stop> {
    let project = project_of(run, terms, source)?;
    rule_plugins::check_unchanged(run.id.as_str(), &project, &terms.pipeline.rules)?;
    let kept = match terms.model.script_digest.as_ref().filter(|_| script.is_none()) {
        Some(digest) => {
            let text = changes::read_blob_text(run, &changes::open_blobs(run)?, digest)?;
            Some(script::parse_script(text, "of the run")?)
        }
        None => None,
    };
    // The hold-outs are those of the start of the run. The project may have others now.
    let folders = terms.workspace.holdouts.as_ref().map_or(&[][..], |sealed| &sealed.folders);
    let holdouts = holdout::entries(folders).map_err(|error| Stop::new(Exit::Mismatch, error.to_string()))?;
    let parallel_max = arguments.parallel.max_parallel;
    let simulate = terms.model.provider == Provider::Simulated.as_str();
    let script = script.or(kept.as_ref());
    let labels = arguments.labels.set();
    let purpose = purpose_of(terms);
    let request = Request { script, purpose, sealed: holdouts, parallel_max, simulate, tier: None, labels };
    let bound = prepare::bind(&prepare::component_host(), source, &project, request)?;
    let executor = prepare::ready(bound, &project, &source.file, !arguments.people.no_input)?;
    prepare::warn_of_open_access(&executor);
    binding::refuse_unpriced(&executor.plan, SpendBounds::from(arguments.spend).or(terms.bounds.spend_max))?;
    refuse_lower_tier(run, terms, &executor)?;
    let replan = replan::accept(run, terms, &executor.plan, arguments)?;
    Ok((executor, replan))
}

/// Refuses a run with a stage that this machine cannot run, before anything of it is copied.
pub fn require_machine(run: &RunFolder, terms: &RunStarted, labels: &LabelArguments) -> Result<(), Stop> {
    let source = recorded::read(run, terms)?;
    let project = project_of(run, terms, &source)?;
    Ok(binding::require_machine(&source, &project, labels.set(), purpose_of(terms))?)
}

fn purpose_of(terms: &RunStarted) -> Purpose {
    if terms.commands.tier == TIER_UNCONFINED { Purpose::RunUnconfined } else { Purpose::Run }
}

/// Reads the settings of the project for which the run was started. The project's path is part of the run's plan, so a
/// project that was moved must be reachable at that path.
fn project_of(run: &RunFolder, terms: &RunStarted, source: &CheckedPipeline) -> Result<Project, Stop> {
    let folder = Path::new(&terms.workspace.source_dir);
    if folder.exists() {
        return prepare::read_project(folder, Some(&source.file));
    }
    let id = visible::line(&run.id);
    let named = visible::line(&terms.workspace.source_dir);
    Err(Stop::new(Exit::Usage, format!("run `{id}` was started for `{named}`, which does not exist any more")).with_help(format!(
        "if the project was moved, move it back or make a link at the old place, then repeat the command. Where the project is now, \
         `glovebox diff {id}` and `glovebox apply {id} --workdir .` work"
    )))
}

/// Refuses a change of `--dangerously-no-sandbox`. The flag applies to one command, so a resume must repeat it. The
/// flag cannot remove the sandbox of a run that has one.
fn refuse_other_confinement(run: &RunFolder, started: &RunStarted, arguments: &ResumeArguments) -> Result<(), Stop> {
    let (tier, no_sandbox) = (&started.commands.tier, arguments.dangerously_no_sandbox);
    match (tier == TIER_UNCONFINED, no_sandbox) {
        (true, false) => {
            let message = format!(
                "run `{}` was started with `--dangerously-no-sandbox`, which applies to one command only: the commands of the run could \
                 read, change and send everything that you can",
                run.id
            );
            let named = runs::spelled(&run.id, &arguments.runs.runs_dir);
            let help = format!("repeat the flag: `glovebox resume {named} --dangerously-no-sandbox`");
            Err(Stop::new(Exit::Policy, message).with_help(help))
        }
        (false, true) if tier != TIER_NONE => {
            let message = format!("run `{}` was started in sandbox tier `{tier}`, which a resume never lowers", run.id);
            Err(Stop::new(Exit::Policy, message)
                .with_help("remove `--dangerously-no-sandbox`, or start a new run with it"))
        }
        _ => Ok(()),
    }
}

/// Returns an error if this machine can only enforce a lower sandbox tier than that of the run.
fn refuse_lower_tier(run: &RunFolder, started: &RunStarted, executor: &Executor) -> Result<(), Stop> {
    let before = Tier::parse(&started.commands.tier);
    let (Some(before), Some(now)) = (before, executor.plan.commands.sandbox.tier()) else { return Ok(()) };
    if now >= before {
        return Ok(());
    }
    let message = format!(
        "run `{}` was started in sandbox tier `{before}`, but this machine can now enforce only `{now}`",
        run.id
    );
    Err(Stop::new(Exit::Policy, message).with_help("see what is missing: `glovebox doctor`; or start a new run"))
}
