//! `glovebox cancel`, `pause` and `wait`: control a run that another process drives.
//!
//! A request is a signed message in the run's folder, which the process that drives the run reads. If no process drives
//! the run, `cancel` takes the run's lock and records the end in the journal itself.

use crate::answer_sources;
use crate::arguments::{ControlArguments, WaitArguments};
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs::branches_now;
use crate::runs::journal;
use crate::runs::recorded;
use crate::runs::takeover::Watch;
use crate::runs::{self, RunFolder};
use crate::terminal::{self, lines};
use crate::user_key;
use glovebox_engine::driver::RunError;
use glovebox_engine::inbox::Message;
use glovebox_engine::run;
use glovebox_journal::event::{BranchId, Record, RunCanceled};
use glovebox_journal::ports::PortError;
use glovebox_plan::prepare::executor::Worker;
use glovebox_state::evidence::{ExitClass, ExitShape, RunStatus, RunSummary};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Interval at which the state of a run is polled.
pub const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How long the process that drives a run may take to end the run. Its stages get time to stop.
const ENDED_WITHIN: Duration = Duration::from_secs(60);
/// How long another process may hold the lock of a run after the process that drove the run has ended.
const LOCK_FREED_WITHIN: Duration = Duration::from_secs(5);
/// Interval at which the branches of a run are checked for a wait for a quota.
const QUOTA_LOOK_EVERY: Duration = Duration::from_secs(1);
/// Interval at which a request to cancel is written again. A request is lost if it is written while one process takes
/// the run over from another.
const ASK_EVERY: Duration = Duration::from_secs(1);

/// The document that `cancel --json`, `pause --json` and `wait --json` print.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "control.json")]
pub struct ControlFile<'a> {
    /// Version of this document.
    pub schema_version: u32,
    /// Id of the run.
    pub run_id: &'a str,
    /// `canceled`; `asked` for a pause, which takes effect when the current stages end; or the state of a run that was
    /// waited for: `success`, `fail`, `paused`, or `running` if the timeout passed first.
    pub state: &'a str,
    /// How the process that drove the run ended; null for a request, and while the run is running.
    #[schemars(with = "Option<ExitShape>")]
    pub exit: Option<ExitClass>,
}

/// Cancels a run for good.
pub fn cancel(arguments: &ControlArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    cancel_run(&run, &arguments.runs.runs_dir, &answer_sources::name(arguments.name.as_ref()))?;
    report(&run, arguments.json, "canceled", None, "is canceled")
}

/// Cancels a run for good, and returns when it has ended. `by` is the name that the record gets.
pub fn cancel_run(run: &RunFolder, runs_dir: &Path, by: &str) -> Result<(), Stop> {
    let began = Instant::now();
    let (mut asked, mut was_open): (Option<Instant>, bool) = (None, false);
    let mut watch = Watch::new(run);
    loop {
        let is_live = runs::is_live(run);
        // While a run is running, its records are read only once, to check that it belongs to this user.
        let records = if is_live && was_open { Vec::new() } else { read(run, runs_dir)? };
        if !is_live && (is_canceled(run, &records, was_open)? || end(run, by, began)?) {
            return Ok(());
        }
        was_open = true;
        let _ended_when_due = is_live && watch.is_stopped();
        if is_live && asked.is_none_or(|at| at.elapsed() > ASK_EVERY) {
            answer_sources::send(run, &Message::Cancel { by: by.to_owned() })?;
            asked = Some(Instant::now());
        }
        if began.elapsed() > ENDED_WITHIN {
            let message = format!("run `{}` was asked to end, and has not ended yet", run.id);
            let named = runs::spelled(&run.id, runs_dir);
            return Err(
                Stop::new(Exit::Transient, message).with_help(format!("wait for its end: `glovebox wait {named}`"))
            );
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Returns true if a person canceled the run after this command started. Returns an error if the run ended in another
/// way, or before this command started.
fn is_canceled(run: &RunFolder, records: &[Record], was_open: bool) -> Result<bool, Stop> {
    journal::beginning(run, records)?;
    let summary = RunSummary::from_records(records);
    if summary.end.finished_at.is_none() || summary.is_stopped() {
        return Ok(false);
    }
    match was_open && summary.is_canceled() {
        true => Ok(true),
        false => {
            let (state, why) =
                (how(&summary), if was_open { "before it was canceled" } else { "so there is nothing to cancel" });
            Err(Stop::new(Exit::Usage, format!("run `{}` has ended ({state}), {why}", run.id)))
        }
    }
}

/// Cancels a run that no process drives. Returns false if another process may hold its lock; the caller tries again.
fn end(run: &RunFolder, by: &str, began: Instant) -> Result<bool, Stop> {
    let verified = journal::read_start_and_resumes(run)?;
    let terms = journal::current_start(run, &verified.records)?;
    let pipeline = recorded::read(run, &terms)?.pipeline;
    let dir = drive::open_dir(run, user_key::to_verify()?)?;
    let canceled = run::cancel(dir, Worker::this_process(), pipeline, &verified, RunCanceled::by_person(by));
    match drive::block_on(canceled)? {
        Err(RunError::Port(PortError::Unavailable(_))) if began.elapsed() < LOCK_FREED_WITHIN => Ok(false),
        ended => ended.map_err(|error| drive::stop(run, &error)),
    }
}

/// Asks the process that drives a run to stop when the current stages end.
pub fn pause(arguments: &ControlArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    pause_run(&run, &arguments.runs.runs_dir, &answer_sources::name(arguments.name.as_ref()))?;
    report(&run, arguments.json, "asked", None, "pauses when its current stages end")
}

/// Asks the process that drives a run to stop when the current stages end. `by` is the name that the record gets.
pub fn pause_run(run: &RunFolder, runs_dir: &Path, by: &str) -> Result<(), Stop> {
    let is_live = runs::is_live(run);
    let records = read(run, runs_dir)?;
    journal::beginning(run, &records)?;
    if is_live {
        return answer_sources::send(run, &Message::Pause { by: by.to_owned() }).map(drop);
    }
    let summary = RunSummary::from_records(&records);
    if summary.end.finished_at.is_some() {
        let message = format!("run `{}` has ended ({}), so there is nothing to pause", run.id, how(&summary));
        return Err(Stop::new(Exit::Usage, message));
    }
    let named = runs::spelled(&run.id, runs_dir);
    let message = format!("no process drives run `{}`, so there is nothing to pause", run.id);
    Err(Stop::new(Exit::Usage, message).with_help(format!("continue it: `glovebox resume {named}`")))
}

/// Waits until no process drives a run, and returns the exit code of the run.
pub fn wait(arguments: &WaitArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    read(&run, &arguments.runs.runs_dir)?;
    let began = Instant::now();
    let mut waits = QuotaWaits::default();
    while runs::is_live(&run) {
        waits.tell(&run);
        let left = arguments.timeout.map(|most| most.saturating_sub(began.elapsed()));
        if left.is_some_and(|left| left.is_zero()) {
            report(&run, arguments.json, "running", None, "is running")?;
            let message = format!("run `{}` has not ended yet", run.id);
            return Err(Stop::new(Exit::Transient, message).with_help("wait again, with a longer `--timeout` or none"));
        }
        std::thread::sleep(left.unwrap_or(LOOK_EVERY).min(LOOK_EVERY));
    }
    let summary = RunSummary::from_records(&read(&run, &arguments.runs.runs_dir)?);
    refuse_killed(&run, &summary, &arguments.runs.runs_dir)?;
    let state = summary.status.as_str();
    report(&run, arguments.json, state, Some(summary.end.exit), &format!("ended: {}", how(&summary)))?;
    Ok(Exit::from(summary.end.exit))
}

/// Tells people who wait for a run that the run waits for a quota.
#[derive(Default)]
struct QuotaWaits {
    looked_at: Option<Instant>,
    told: BTreeSet<(BranchId, Timestamp)>,
}

impl QuotaWaits {
    /// Prints each wait once.
    fn tell(&mut self, run: &RunFolder) {
        if self.looked_at.is_some_and(|at| at.elapsed() < QUOTA_LOOK_EVERY) {
            return;
        }
        self.looked_at = Some(Instant::now());
        for branch in branches_now::read(run) {
            let (Some(provider), Some(until)) = (&branch.provider, branch.due_at) else { continue };
            if self.told.insert((branch.branch.clone(), until)) {
                terminal::say(format!("run {} {}\n", run.id, lines::quota_wait(provider, until)));
            }
        }
    }
}

/// Returns every record of a run; an error if the run belongs to another user.
pub fn read(run: &RunFolder, runs_dir: &Path) -> Result<Vec<Record>, Stop> {
    let verified = journal::read(run)?;
    let named = runs::spelled(&run.id, runs_dir);
    journal::refuse_foreign(run, verified.provenance, format!("`glovebox show {named}` shows it"))?;
    Ok(verified.records)
}

/// Returns an error for a run that was killed, because it has no exit code.
pub fn refuse_killed(run: &RunFolder, summary: &RunSummary, runs_dir: &Path) -> Result<(), Stop> {
    if summary.status != RunStatus::Unfinished {
        return Ok(());
    }
    let message = format!("run `{}` was killed: it has not ended, and no process drives it", run.id);
    let named = runs::spelled(&run.id, runs_dir);
    Err(Stop::new(Exit::Transient, message).with_help(format!("continue it: `glovebox resume {named}`")))
}

/// Returns the state of a run as a word.
pub fn how(summary: &RunSummary) -> &'static str {
    match summary.status {
        RunStatus::Fail if summary.is_canceled() => "canceled",
        status => status.as_str(),
    }
}

/// Returns the document that `cancel --json` and `pause --json` print.
pub fn document(run: &RunFolder, state: &str) -> Result<String, Stop> {
    terminal::json(&ControlFile { schema_version: 1, run_id: &run.id, state, exit: None })
}

fn report(run: &RunFolder, is_json: bool, state: &str, exit: Option<ExitClass>, text: &str) -> CommandResult {
    match is_json {
        true => terminal::print_json(&ControlFile { schema_version: 1, run_id: &run.id, state, exit })?,
        false => terminal::print(format!("run {} {text}\n", run.id)),
    }
    Ok(Exit::Ok)
}
