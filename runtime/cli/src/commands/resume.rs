//! `glovebox resume`: continues a run that was stopped or killed, and gives a run that failed a second chance.
//!
//! Pipeline and inputs come from the run's blobs, and so does the script, unless there is another one. The plan must be the same as
//! before: another plan is exit 11, unless `--replan` accepts it.

use crate::arguments::ResumeArguments;
use crate::changes;
use crate::drive;
use crate::exit::{Ended, Exit, Stop};
use crate::prepare::{self, Purpose, Request, ScriptFile, SharedHost};
use crate::runs::{self, RunFolder};
use crate::source::{self, CheckedPipeline};
use crate::terminal::progress::{ProgressFormat, Reporter};
use crate::terminal::visible;
use crate::{begin_at, journal, project, replan, rule_plugins, user_key};
use glovebox_engine::event::{Event, Record, RunStarted};
use glovebox_engine::plan::{TIER_NONE, TIER_UNCONFINED};
use glovebox_engine::run::{Executor, Replan, ResumeTerms, Run};
use glovebox_engine::sqlite::VerifiedJournal;
use glovebox_record::Tier;
use glovebox_sandbox::holdout;
use std::path::Path;

/// Resumes a run. A run that succeeded, or that was canceled for good, is shown again with the same exit code.
pub fn resume(arguments: &ResumeArguments) -> Ended {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let format = ProgressFormat::choose(arguments.output.json, arguments.output.quiet);
    let verified = journal::read(&run)?;
    let named = runs::spelled(&run.id, &arguments.runs.runs_dir);
    let help =
        format!("`glovebox show {named}` shows it; start a new run with `glovebox run`; see docs/run-directory.md");
    journal::refuse_foreign(&run, verified.provenance, help)?;
    refuse_running(&run, &verified.records)?;
    runs::repair(&run)?;
    let terms = journal::terms(&run, &verified.records)?;
    refuse_other_confinement(&run, &terms, arguments)?;
    let source = source::of_run(&run, &terms)?;
    arguments.from.iter().try_for_each(|node| begin_at::check(&source.pipeline, node))?;
    let script = arguments.script.as_deref().map(prepare::read_script).transpose()?;
    let (executor, replan) = bind(&run, &terms, &source, (arguments, script.as_ref()))?;
    let changed = ResumeTerms {
        from: arguments.from.clone(),
        steps_max: arguments.max_steps,
        wall_max: arguments.max_wall_time,
        script: script.as_ref().map(|file| file.text.as_bytes()),
        replan,
    };
    let ended = drive::runtime()?.block_on(continue_run(executor, &run, (verified, changed), format))?;
    drive::conclude(&run, &ended, format, &arguments.runs.runs_dir)
}

/// Two processes never drive one run.
fn refuse_running(run: &RunFolder, records: &[Record]) -> Result<(), Stop> {
    if !runs::is_live(run) {
        return Ok(());
    }
    let worker = records.iter().rev().find_map(|record| match &record.event {
        Event::StageStarted(stage) => Some(&stage.worker),
        Event::RunResumed(resumed) => Some(&resumed.worker),
        _ => None,
    });
    let worker = worker.map(|worker| format!(" (`{}`)", visible::line(worker))).unwrap_or_default();
    Err(Stop::new(Exit::Transient, format!("run `{}` is running: another process{worker} drives it", run.id))
        .with_help("wait until it ends, or stop it with Ctrl-C where it runs; `glovebox ls` shows its state"))
}

async fn continue_run(
    executor: Executor,
    folder: &RunFolder,
    (verified, terms): (VerifiedJournal, ResumeTerms<'_>),
    format: ProgressFormat,
) -> Result<Run, Stop> {
    let dir = drive::open_dir(folder, user_key::to_verify()?)?;
    let reporter = Reporter::new(format, &executor.plan.pipeline);
    let opened = Run::open(dir, executor, verified, terms).await;
    let mut run = opened.map_err(|error| drive::stop(folder, &error))?;
    if !run.had_ended() {
        drive::drive(&mut run, folder, reporter).await?;
    }
    Ok(run)
}

fn bind(
    run: &RunFolder,
    terms: &RunStarted,
    source: &CheckedPipeline,
    (arguments, script): (&ResumeArguments, Option<&ScriptFile>),
) -> Result<(Executor, Option<Replan>), Stop> {
    let project = project::read_project(Path::new(&terms.source_dir), Some(&source.file))?;
    rule_plugins::check_unchanged(run, &project, &terms.rules)?;
    let kept = match terms.script_digest.as_ref().filter(|_| script.is_none()) {
        Some(digest) => {
            let text = changes::read_blob_text(run, &changes::open_blobs(run)?, digest)?;
            Some(prepare::parse_script(text, "of the run")?)
        }
        None => None,
    };
    let unconfined = terms.sandbox_tier == TIER_UNCONFINED;
    let purpose = if unconfined { Purpose::RunUnconfined } else { Purpose::Run };
    // The hold-outs from the start of the run; the project may have others now.
    let folders = terms.holdouts.as_ref().map_or(&[][..], |sealed| &sealed.folders);
    let holdouts = holdout::entries(folders).map_err(|error| Stop::new(Exit::Mismatch, error.to_string()))?;
    let request = Request { script: script.or(kept.as_ref()), purpose, sealed: holdouts };
    let executor = prepare::bind_plan(&SharedHost::default(), source, &project, request)?;
    prepare::warn_of_open_access(&executor);
    refuse_lower_tier(run, terms, &executor)?;
    let replan = replan::accept(run, terms, &executor.plan, arguments)?;
    Ok((executor, replan))
}

/// `--dangerously-no-sandbox` applies to one command: a resume must repeat it. It cannot remove the sandbox of a run that has one.
fn refuse_other_confinement(run: &RunFolder, started: &RunStarted, arguments: &ResumeArguments) -> Result<(), Stop> {
    let (tier, no_sandbox) = (&started.sandbox_tier, arguments.dangerously_no_sandbox);
    match (tier == TIER_UNCONFINED, no_sandbox) {
        (true, false) => {
            let message = format!(
                "run `{}` was started with `--dangerously-no-sandbox`, which holds for one command only: its commands could read, \
                 change and send away all that you can",
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

/// A resume never lowers the sandbox tier of a run.
fn refuse_lower_tier(run: &RunFolder, started: &RunStarted, executor: &Executor) -> Result<(), Stop> {
    let before = Tier::parse(&started.sandbox_tier);
    let (Some(before), Some(now)) = (before, executor.plan.sandbox.tier()) else { return Ok(()) };
    if now >= before {
        return Ok(());
    }
    let message =
        format!("run `{}` was started in sandbox tier `{before}`, this machine can now enforce `{now}`", run.id);
    Err(Stop::new(Exit::Policy, message).with_help("see what is missing: `glovebox doctor`; or start a new run"))
}
