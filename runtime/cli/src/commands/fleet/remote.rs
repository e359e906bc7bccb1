//! Commands about one run of a fleet.
//!
//! A command that reads looks at a copy of the run, which is removed afterwards. A command that asks for something sends a
//! message to the run, and waits until the driver of the run has recorded it.

use super::pull;
use super::start::Followed;
use crate::answer_sources;
use crate::arguments::{
    AnswerArguments, ControlArguments, FleetArguments, ListArguments, ResumeArguments, RunsArguments, SteerArguments,
};
use crate::commands::answer::{Reply, read_reply};
use crate::drive::block_on;
use crate::exit::{CommandResult, Exit, Stop};
use crate::fleet_connection::{ConnectedFleet, unread};
use crate::prepare;
use crate::runs::index::ListedRun;
use crate::runs::{self, RunFolder, RunId, RunSelector, journal};
use crate::terminal::progress::{ProgressFormat, Reporter};
use crate::terminal::{self, visible};
use glovebox_engine::inbox::{GivenSteering, Message};
use glovebox_engine::run::Pulled;
use glovebox_fleet::log::NatsLog;
use glovebox_fleet::mail::Sent;
use glovebox_journal::event::{self, AnsweredBy, Record};
use glovebox_journal::ports::RunLog;
use glovebox_record::steering::STEERING_BYTES_MAX;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a driver may take to record a message.
const RECORDED_WITHIN: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl FleetArguments {
    /// Returns true if a command names a fleet.
    pub fn is_named(&self) -> bool {
        !self.nats.is_empty()
    }
}

/// A copy of a run, which is removed with the value.
pub struct RunCopy {
    _held: Pulled,
    _folder: tempfile::TempDir,
}

/// Makes a copy of a run as it is now, and points the arguments of a command to it.
pub fn copy(fleet: &FleetArguments, run: &RunSelector, runs: &mut RunsArguments) -> Result<RunCopy, Stop> {
    block_on(async {
        let connected = connect(fleet).await?;
        copy_of(&connected, &id(run)?, runs).await
    })?
}

async fn connect(fleet: &FleetArguments) -> Result<ConnectedFleet, Stop> {
    let project = prepare::read_project(Path::new("."), None)?;
    fleet.connect(&project.config, &project.workdir).await
}

/// Returns the id of a run, which must be named completely.
fn id(run: &RunSelector) -> Result<RunId, Stop> {
    match run {
        RunSelector::Id(id) => RunId::parse(id),
        RunSelector::Latest => Err(Stop::new(Exit::Usage, "`latest` names no run of a fleet")
            .with_help("name the run by its whole id, as `run --nats` printed it")),
    }
}

async fn copy_of(connected: &ConnectedFleet, id: &RunId, runs: &mut RunsArguments) -> Result<RunCopy, Stop> {
    let log = connected.fleet.log(connected.blobs.clone());
    let records = pull::existing(&log, id).await?;
    let pipeline = pull::pipeline(&log, &records).await?;
    let folder = tempfile::tempdir().map_err(|error| Stop::io("create a folder for a copy of the run", &error))?;
    runs.runs_dir = folder.path().join("runs");
    let run = runs::create(&runs.runs_dir, id.clone())?;
    let held = pull::into(&run, &log, &records, pipeline, false).await?;
    Ok(RunCopy { _held: held, _folder: folder })
}

/// Lists the runs of a fleet, newest first.
pub fn ls(arguments: &ListArguments) -> CommandResult {
    if arguments.watch {
        return Err(Stop::new(Exit::Usage, "`--watch` has no meaning with `--nats`").with_help("leave one of them out"));
    }
    let rows = block_on(async {
        let connected = connect(&arguments.fleet).await?;
        let log = connected.fleet.log(connected.blobs.clone());
        let runs = connected.fleet.runs().await.map_err(|error| crate::fleet_connection::stop(&error))?;
        let mut rows = Vec::new();
        for run in runs {
            rows.push(match pull::read(&log, &run).await {
                Ok(records) => {
                    let is_live = !pull::has_ended(&records) && !pull::is_paused(&records);
                    ListedRun { is_own: true, ..ListedRun::from_records(run.as_str(), &records, is_live) }
                }
                // A journal that cannot be read must not hide the others.
                Err(stop) => ListedRun::unread(run.as_str(), Some(stop.message)),
            });
        }
        rows.sort_by(|one, other| other.started.cmp(&one.started).then_with(|| other.id.cmp(&one.id)));
        Ok::<_, Stop>(rows)
    })??;
    crate::commands::ls::print(rows, arguments)
}

/// Answers a question of a run.
pub fn answer(arguments: &AnswerArguments) -> CommandResult {
    block_on(async {
        let connected = connect(&arguments.fleet).await?;
        let id = id(&arguments.run)?;
        let mut runs = RunsArguments { runs_dir: arguments.runs.runs_dir.clone() };
        let _copy = copy_of(&connected, &id, &mut runs).await?;
        let run = runs::select(&runs.runs_dir, &arguments.run)?;
        let reply = Reply {
            question: &arguments.question,
            value: &arguments.value,
            text: arguments.text.as_deref().unwrap_or_default(),
            by: answer_sources::name(arguments.name.as_ref()),
            how: AnsweredBy::Command,
        };
        let (asked, given, _answer) = read_reply(&run, &runs.runs_dir, reply)?;
        if send(&connected, &id, &Message::Answer(given)).await? == Sent::Earlier {
            let question = visible::line(asked.question.as_str()).into_owned();
            return Err(Stop::new(Exit::Policy, format!("question `{question}` was answered already")));
        }
        let question = asked.question.clone();
        let is_recorded =
            |record: &Record| record.event.question_answered().is_some_and(|answered| answered.question == question);
        told(&connected, &id, "the answer", is_recorded).await
    })?
}

/// Sends a message to the agents of a node.
pub fn steer(arguments: &SteerArguments) -> CommandResult {
    let text = arguments.text.trim();
    if !(1..=STEERING_BYTES_MAX).contains(&text.len()) {
        let message = format!("the text has {} bytes, expected 1 to {STEERING_BYTES_MAX}", text.len());
        return Err(Stop::new(Exit::Usage, message).with_help("put a long text into a file that the stage may read"));
    }
    let by = answer_sources::name(arguments.name.as_ref());
    let given = GivenSteering::new(arguments.node.clone(), text.to_owned(), by);
    let id = id(&arguments.run)?;
    block_on(async {
        let connected = connect(&arguments.fleet).await?;
        pull::existing(&connected.fleet.log(connected.blobs.clone()), &id).await?;
        send(&connected, &id, &Message::Steer(given.clone())).await?;
        let is_recorded = |record: &Record| matches!(&record.event, event::Event::StageSteered(steered) if steered.message == given.message);
        told(&connected, &id, "the message", is_recorded).await
    })?
}

/// Cancels a run for good.
pub fn cancel(arguments: &ControlArguments) -> CommandResult {
    let by = answer_sources::name(arguments.name.as_ref());
    let is_end = |record: &Record| matches!(record.event, event::Event::RunFinished(_));
    control(arguments, &Message::Cancel { by }, "the end", is_end)
}

/// Pauses a run when its current stages end.
pub fn pause(arguments: &ControlArguments) -> CommandResult {
    let by = answer_sources::name(arguments.name.as_ref());
    let is_end = |record: &Record| matches!(record.event, event::Event::RunPaused(_) | event::Event::RunFinished(_));
    control(arguments, &Message::Pause { by }, "the pause", is_end)
}

fn control(
    arguments: &ControlArguments,
    message: &Message,
    what: &str,
    is_recorded: impl Fn(&Record) -> bool,
) -> CommandResult {
    let id = id(&arguments.run)?;
    block_on(async {
        let connected = connect(&arguments.fleet).await?;
        let records = pull::existing(&connected.fleet.log(connected.blobs.clone()), &id).await?;
        if pull::has_ended(&records) {
            return Err(Stop::new(Exit::Usage, format!("run `{}` has ended", id.as_str())));
        }
        send(&connected, &id, message).await?;
        told(&connected, &id, what, is_recorded).await
    })?
}

/// Continues a run that failed or was paused, and follows it.
pub fn resume(arguments: &ResumeArguments) -> CommandResult {
    let is_changed = arguments.from.is_some()
        || arguments.replan
        || arguments.script.is_some()
        || arguments.max_steps.is_some()
        || arguments.max_wall_time.is_some()
        || arguments.dangerously_no_sandbox;
    if is_changed {
        return Err(Stop::new(Exit::Usage, "a run of a fleet is resumed without changes")
            .with_help("start a new run with other settings"));
    }
    let run_id = id(&arguments.run)?;
    block_on(async {
        let connected = connect(&arguments.fleet).await?;
        let log = Arc::new(connected.fleet.log(connected.blobs.clone()));
        let before = pull::existing(&log, &run_id).await?;
        let pipeline = pull::pipeline(&log, &before).await?;
        let recorded = event::RunId::from(run_id.as_str());
        let last = before.last().map_or(0, |last| last.seq);
        let asked = connected.fleet.resume(&recorded, last).await;
        asked.map_err(|error| Stop::new(Exit::Transient, error.to_string()))?;
        let format = ProgressFormat::choose(arguments.output.json, arguments.output.quiet);
        let reporter = Reporter::new(format, &pipeline);
        let can_ask = answer_sources::can_ask(&arguments.people, &arguments.output);
        let followed =
            Followed { connected: &connected, log: &log, id: &recorded, pipeline: &pipeline, waits: true, can_ask };
        let records = followed.follow(reporter, before).await?;
        let runs_dir = &arguments.runs.runs_dir;
        let run = create_again(runs_dir, run_id, &records)?;
        pull::into(&run, &log, &records, pipeline, true).await.inspect_err(|_| runs::discard(&run))?;
        pull::conclude(&run, &records, format, runs_dir)
    })?
}

/// Creates the directory of a run. A copy of the same run that was made when it was paused or failed is removed.
fn create_again(runs_dir: &Path, id: RunId, records: &[Record]) -> Result<RunFolder, Stop> {
    let earlier = runs::with_id(runs_dir, &id.as_str().into());
    let is_same = |earlier: &RunFolder| {
        let found = journal::read(earlier).ok().and_then(|verified| verified.records.first().map(|first| first.hash));
        found.is_some() && found == records.first().map(|first| first.hash)
    };
    if let Some(earlier) = earlier.filter(is_same) {
        runs::discard(&earlier);
    }
    runs::create(runs_dir, id)
}

async fn send(connected: &ConnectedFleet, id: &RunId, message: &Message) -> Result<Sent, Stop> {
    let sent = connected.fleet.send(&id.as_str().into(), message).await;
    sent.map_err(|error| Stop::new(Exit::Transient, error.to_string()))
}

/// Waits until the journal of a run has a record.
async fn told(
    connected: &ConnectedFleet,
    id: &RunId,
    what: &str,
    is_recorded: impl Fn(&Record) -> bool,
) -> CommandResult {
    let log: NatsLog = connected.fleet.log(connected.blobs.clone());
    let (run, began, mut from) = (event::RunId::from(id.as_str()), tokio::time::Instant::now(), 1);
    loop {
        let page = log.read(&run, from, usize::MAX).await.map_err(|error| unread(&error))?;
        from = page.last().map_or(from, |last| last.seq + 1);
        if page.iter().any(&is_recorded) {
            terminal::print(format_args!("run {} recorded {what}\n", id.as_str()));
            return Ok(Exit::Ok);
        }
        if began.elapsed() > RECORDED_WITHIN {
            let message = format!("no machine has recorded {what} of run `{}` yet", id.as_str());
            return Err(Stop::new(Exit::Transient, message)
                .with_help("it is stored; a machine that drives runs records it: `glovebox work`"));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
