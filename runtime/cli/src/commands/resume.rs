//! `glovebox resume`: goes on with a run that a signal stopped, or that was killed or cut off by a crash.
//!
//! Everything is read from the run: pipeline, script and inputs from its blobs, the rest from the project it was started for.
//! What would run now must be what was agreed to then: another plan is exit 11.

use crate::arguments::ResumeArguments;
use crate::changes;
use crate::drive::{self, Drive};
use crate::exit::{Ended, Exit, Stop};
use crate::prepare::{self, Prepared, Purpose, Request, SharedHost};
use crate::runs::{self, RunFolder};
use crate::source::{self, Source};
use crate::terminal::progress::{Manner, Reporter};
use crate::{journal, project, rule_plugins, user_key};
use glovebox_engine::config::sandbox::Tier;
use glovebox_engine::event::RunStarted;
use glovebox_engine::plan::{TIER_NONE, TIER_UNCONFINED};
use glovebox_engine::run::{Session, apply_changes};
use glovebox_engine::sqlite::VerifiedJournal;
use glovebox_sandbox::holdout;
use std::path::Path;

/// Goes on with a run. One that has ended is shown again and ends as it did.
pub fn resume(arguments: &ResumeArguments) -> Ended {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let manner = Manner::choose(arguments.output.json, arguments.output.quiet);
    let VerifiedJournal { records, provenance } = journal::read(&run)?;
    let named = runs::spelled(&run.id, &arguments.runs.runs_dir);
    let help =
        format!("`glovebox show {named}` shows it; start a new run with `glovebox run`; see docs/run-directory.md");
    journal::refuse_foreign(&run, provenance, help)?;
    runs::repair(&run)?;
    let started = journal::beginning(&run, &records)?;
    refuse_other_walls(&run, started, arguments.dangerously_no_sandbox, &named)?;
    let source = source::of_run(&run, started)?;
    let bound = bind(&run, started, &source)?;
    drive::runtime()?.block_on(go_on(&bound, &source, &run, manner))?;
    drive::conclude(&run, manner, &arguments.runs.runs_dir)
}

async fn go_on(bound: &Prepared, source: &Source, run: &RunFolder, manner: Manner) -> Result<(), Stop> {
    let failed = |error| drive::stop(run, &error);
    let dir = drive::open_dir(run, user_key::to_verify()?)?;
    let opened = Session::open(dir, super::run::worker(), |_record, _state| Ok(()));
    let mut session = opened.map_err(failed)?;
    if session.is_over() {
        // The process may have died between the last record and what follows from it.
        apply_changes(&session.dir.workspace(), &session.blobs, session.state.changes.values()).map_err(failed)?;
        return drive::project(run, &bound.plan.pipeline, &session.blobs).map(drop);
    }
    glovebox_engine::attempt::sweep(&session.dir);
    let begun = session.resume(&source.pipeline, bound.sandbox.clone()).await.map_err(failed)?;
    let reporter = Reporter::new(manner, source.pipeline.nodes.iter().map(|node| node.id.as_str()));
    Drive { bound, source, run, reporter }.drive(session, &begun).await
}

fn bind(run: &RunFolder, started: &RunStarted, source: &Source) -> Result<Prepared, Stop> {
    let project = project::read_project(Path::new(&started.source_dir), Some(&source.file))?;
    rule_plugins::check_unchanged(run, &project, &started.rules)?;
    let script = match &started.script_digest {
        Some(digest) => {
            let text = changes::read_blob_text(run, &changes::open_blobs(run)?, digest)?;
            Some(prepare::parse_script(text, "of the run")?)
        }
        None => None,
    };
    let unconfined = started.sandbox_tier == TIER_UNCONFINED;
    let purpose = if unconfined { Purpose::RunUnconfined } else { Purpose::Run };
    // Those the run began with, whatever the project has now.
    let folders = started.holdouts.as_ref().map_or(&[][..], |sealed| &sealed.folders);
    let holdouts = holdout::entries(folders).map_err(|error| Stop::new(Exit::Mismatch, error.to_string()))?;
    let request = Request { script: script.as_ref(), purpose, sealed: holdouts };
    let bound = prepare::bind_plan(&SharedHost::default(), source, &project, request)?;
    prepare::warn_of_open_walls(&bound);
    refuse_lower_tier(run, started, &bound)?;
    if bound.plan.digest() != started.plan_digest {
        let message = format!(
            "run `{}` was started with another plan: a component, a grant or a limit has changed since",
            run.id
        );
        return Err(
            Stop::new(Exit::Mismatch, message).with_help("restore glovebox.toml and the plugins, or start a new run")
        );
    }
    Ok(bound)
}

/// A flag that takes walls down holds for one command: it is given again, or the run does not go on. Nor does it take down walls that
/// the run has had so far.
fn refuse_other_walls(run: &RunFolder, started: &RunStarted, no_sandbox: bool, named: &str) -> Result<(), Stop> {
    let tier = &started.sandbox_tier;
    match (tier == TIER_UNCONFINED, no_sandbox) {
        (true, false) => {
            let message = format!(
                "run `{}` was started with `--dangerously-no-sandbox`, which holds for one command only: its commands could read, \
                 change and send away all that you can",
                run.id
            );
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

/// What stood around the run's first stages stands around its last ones: a tier is never lowered on the way.
fn refuse_lower_tier(run: &RunFolder, started: &RunStarted, bound: &Prepared) -> Result<(), Stop> {
    let before = Tier::parse(&started.sandbox_tier);
    let (Some(before), Some(now)) = (before, bound.plan.sandbox.tier()) else { return Ok(()) };
    if now >= before {
        return Ok(());
    }
    let message =
        format!("run `{}` was started in sandbox tier `{before}`, this machine can now enforce `{now}`", run.id);
    Err(Stop::new(Exit::Policy, message).with_help("see what is missing: `glovebox doctor`; or start a new run"))
}
