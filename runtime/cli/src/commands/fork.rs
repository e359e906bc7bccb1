//! `glovebox fork`: creates a run that begins with the state that another run had before a visit: the same files,
//! context and plan.
//!
//! The other run is only read, and it may be running. The new run gets its name only when its folder is complete. Then
//! the new run is resumed. `--replan` accepts another plan.

use crate::arguments::{ForkArguments, ResumeArguments};
use crate::commands::resume;
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::exports::reports;
use crate::runs::changes;
use crate::runs::journal;
use crate::runs::start_at;
use crate::runs::{self, RunFolder, RunId, RunSelector};
use crate::terminal::{self, visible};
use crate::user_key;
use glovebox_engine::run::{Source, VisitPoint};
use glovebox_journal::event::Record;
use glovebox_journal::rewind;
use glovebox_journal::sqlite::VerifiedJournal;
use glovebox_state::context::{ContextKey, KEY_BYTES_MAX, StoredUpdates, VALUE_BYTES_MAX, filter_updates};
use glovebox_state::run_state::RunState;
use glovebox_workspace::ignored_store::IgnoredStore;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Creates the new run and drives it to its end.
pub fn fork(mut arguments: ForkArguments) -> CommandResult {
    drive::leave_session(arguments.own_session);
    if let Some((key, _)) = arguments.context.iter().find(|(key, _)| ContextKey(key).is_reserved()) {
        let message = format!("`--set {key}`: only the engine writes the context key `{key}`");
        return Err(Stop::new(Exit::Usage, message).with_help("set a key of your own, such as `--set round=2`"));
    }
    let other = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let verified = journal::read(&other)?;
    reports::require_places(&arguments.reports)?;
    let named = runs::spelled(&other.id, &arguments.runs.runs_dir);
    let help = format!("`glovebox show {named}` shows it; start a new run with `glovebox run`");
    journal::refuse_foreign(&other, verified.provenance, help)?;
    resume::require_machine(&other, journal::beginning(&other, &verified.records)?, &arguments.labels)?;
    let (node, visit) = arguments.at.clone();
    let point = start_at::visit(&other, &verified.records, node, visit)?;
    let context: BTreeMap<String, String> = std::mem::take(&mut arguments.context).into_iter().collect();
    refuse_large(&context, rewind::before(&verified.records, point.seq.saturating_sub(1)))?;
    let id = arguments.run_id.as_deref().map_or_else(|| Ok(RunId::fresh()), RunId::parse)?;
    let draft = runs::draft(&arguments.runs.runs_dir, id)?;
    let run =
        copy(&other, &verified, &draft, point, context).and_then(|()| runs::publish(&draft, &arguments.runs.runs_dir));
    let run = run.inspect_err(|_| runs::discard(&draft))?;
    if !arguments.output.quiet && IgnoredStore::has_any(&other.path) {
        terminal::say(
            "note: the new run begins without the files that stages wrote at ignored paths, since no record has them; if a \
             stage needs them, fork at the stage that writes them\n",
        );
    }
    resume::go_on(&resumed(arguments, &run), &run)
}

/// Copies another run up to a visit into a new folder, with the values of `context` set.
fn copy(
    other: &RunFolder,
    journal: &VerifiedJournal,
    run: &RunFolder,
    point: VisitPoint,
    context: BTreeMap<String, String>,
) -> Result<(), Stop> {
    let dir = drive::open_dir(run, user_key::to_sign()?)?;
    let blobs = changes::open_blobs(other)?;
    let source = Source { dir: &other.path, records: &journal.records, blobs: &blobs };
    let id = run.id.as_str().into();
    let copied = drive::block_on(glovebox_engine::run::fork(&dir, &id, source, point, context))?;
    copied.map_err(|error| drive::stop(run, &error))
}

/// Refuses keys that a stage may not set, and values that are too large. Every checkpoint contains the whole context, so the size of
/// the context is limited.
fn refuse_large(context: &BTreeMap<String, String>, before: Vec<&Record>) -> Result<(), Stop> {
    let state: RunState = rewind::after(before);
    let updates: BTreeMap<String, Value> =
        context.iter().map(|(key, value)| (key.clone(), Value::from(value.as_str()))).collect();
    let help = "set a key of your own, such as `--set round=2`; put a large value into a file that a stage reads";
    let refused = |key: &str, reason: &str| {
        let message = format!("`--set {}`: {reason}", visible::line(key));
        Err(Stop::new(Exit::Usage, message).with_help(help))
    };
    for (key, value) in &updates {
        // A stage may set a larger value, because the engine stores it as a blob. `--set` does not.
        let bytes = key.len() + value.to_string().len();
        if key.len() <= KEY_BYTES_MAX && bytes > VALUE_BYTES_MAX {
            let reason = format!("key and value have {bytes} bytes as JSON, expected at most {VALUE_BYTES_MAX}");
            return refused(key, &reason);
        }
    }
    let none = BTreeSet::new();
    let stored = StoredUpdates { keys: &none, run_bytes: state.stored_bytes };
    let (_, refusals) = filter_updates(&state.main().context, updates, stored);
    refusals.first().map_or(Ok(()), |refusal| refused(&refusal.path, &refusal.reason))
}

/// Returns the arguments of the resume that continues the new run.
fn resumed(arguments: ForkArguments, run: &RunFolder) -> ResumeArguments {
    ResumeArguments {
        run: RunSelector::Id(run.id.clone()),
        from: None,
        own_session: arguments.own_session,
        replan: arguments.replan,
        live: false,
        yes: arguments.yes,
        script: arguments.script,
        max_steps: arguments.max_steps,
        max_wall_time: arguments.max_wall_time,
        stall: arguments.stall,
        spend: arguments.spend,
        parallel: arguments.parallel,
        labels: arguments.labels,
        dangerously_no_sandbox: arguments.dangerously_no_sandbox,
        runs: arguments.runs,
        #[cfg(feature = "fleet")]
        fleet: crate::arguments::FleetArguments::default(),
        people: arguments.people,
        output: arguments.output,
        reports: arguments.reports,
    }
}
