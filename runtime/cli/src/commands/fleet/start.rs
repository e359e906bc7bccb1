//! `glovebox run --nats`: starts a run of a fleet, and follows it.
//!
//! This process binds the plan, copies the project and stores everything that other machines need. With the first record the
//! run exists, and this process is not needed any more: it follows the journal, and passes a signal on. At the end it pulls the
//! run, so that the run directory is the same as after a run of this machine.

use super::gates::AtTerminal;
use super::pull;
use crate::answer_sources;
use crate::arguments::RunArguments;
use crate::commands::run::{self as local, Chosen};
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::fleet_connection::{ConnectedFleet, unread};
use crate::prepare;
use crate::runs::{self, RunFolder};
use crate::terminal::progress::Reporter;
use crate::terminal::{self, visible};
use futures_util::StreamExt as _;
use glovebox_engine::inbox::{GivenAnswer, Message, StopSignal};
use glovebox_engine::run::{NewRun, Session};
use glovebox_engine::stores::OpenStores;
use glovebox_fleet::drive::{DriveQueue, FleetStores};
use glovebox_fleet::log::NatsLog;
use glovebox_fleet::mail::{NatsMail, Sent};
use glovebox_fleet::statement::Role;
use glovebox_journal::event::{self, Event, Record};
use glovebox_journal::ports::RunLog;
use glovebox_pipeline::ir::Pipeline;
use glovebox_plan::plan::Plan;
use glovebox_plan::prepare::component_host::ComponentHost;
use glovebox_plan::prepare::dependencies;
use glovebox_plan::prepare::executor::Worker;
use glovebox_plan::prepare::project::Project;
use glovebox_plan::prepare::shipped::SettingFiles;
use glovebox_plan::prepare::source::CheckedPipeline;
use glovebox_record::RunId as RecordedId;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Time between two reads of the journal.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Number of records that are read at a time.
const PAGE_RECORDS: usize = 256;
/// Time after which this command says that no machine makes the first stage.
const NO_MACHINE_AFTER: Duration = Duration::from_secs(10);

/// Starts a run of a fleet, and follows it unless `--detach` is set.
pub fn run(
    host: &ComponentHost,
    arguments: &RunArguments,
    source: &CheckedPipeline,
    project: Project,
) -> CommandResult {
    refuse(arguments)?;
    let project = Project { is_portable: true, ..project };
    let chosen = local::choose(arguments, source, &project)?;
    let bound = local::bind(host, arguments, source, &project, &chosen)?;
    say_what_stays(&project);
    let confirm = prepare::confirmation(&project, !arguments.people.no_input);
    let (plan, worker) = bound.for_other_machines(&project, &source.file, &confirm)?;
    local::refuse_plan(&plan, arguments)?;
    let settings = SettingFiles::read(&project)?;
    let folder = runs::draft(&arguments.runs.runs_dir, chosen.id.clone())?;
    let started = Start { arguments, source, project: &project, plan: &plan, worker, settings, chosen };
    let ended = drive::block_on(started.run(&folder));
    // Its files are in the store, or the run does not exist.
    runs::discard(&folder);
    ended?
}

/// Warns of folders of installed dependencies, which are not copied.
fn say_what_stays(project: &Project) {
    let stays = dependencies::find(project, &[]).folders;
    if !stays.is_empty() {
        let folders: Vec<String> =
            stays.iter().map(|folder| format!("`{}`", visible::line(&folder.to_string()))).collect();
        terminal::say(format_args!(
            "warning: installed dependencies stay on this machine: {}\nhelp: install them in a stage: other machines do not have them\n",
            folders.join(", ")
        ));
    }
}

/// Refuses flags whose meaning depends on this machine.
fn refuse(arguments: &RunArguments) -> Result<(), Stop> {
    let people = &arguments.people;
    let refused = [
        ("--dangerously-no-sandbox", arguments.execution.dangerously_no_sandbox),
        ("--tier", arguments.tier.is_some()),
        ("--answers", people.answers.is_some()),
        ("--auto-approve", people.auto_approve),
        ("--max-parallel", arguments.execution.parallel.max_parallel.is_some()),
    ];
    match refused.into_iter().find(|(_, is_set)| *is_set) {
        Some((flag, _)) => Err(Stop::new(Exit::Usage, format!("`{flag}` has no meaning with `--nats`"))
            .with_help("leave one of them out: the machines of the fleet make the stages")),
        None => Ok(()),
    }
}

struct Start<'a> {
    arguments: &'a RunArguments,
    source: &'a CheckedPipeline,
    project: &'a Project,
    plan: &'a Arc<Plan>,
    worker: Worker,
    settings: SettingFiles,
    chosen: Chosen,
}

impl Start<'_> {
    async fn run(self, folder: &RunFolder) -> CommandResult {
        let Self { arguments, project, plan, .. } = &self;
        let arguments = *arguments;
        let connected = arguments.fleet.connect(&project.config, &project.workdir).await?;
        connected.require(&[Role::Drive, Role::Submit]).await?;
        let log = Arc::new(connected.fleet.log(connected.blobs.clone()));
        let id = RecordedId::from(self.chosen.id.as_str());
        if !log.read(&id, 1, 1).await.map_err(|error| unread(&error))?.is_empty() {
            return Err(Stop::new(Exit::Usage, format!("run `{id}` exists already in the fleet")));
        }
        let (format, plan, is_detached) = (local::format(arguments), Arc::clone(plan), arguments.detach);
        let (runs_dir, pipeline) = (arguments.runs.runs_dir.clone(), Arc::clone(&self.source.pipeline));
        let (final_id, waits) = (self.chosen.id.clone(), !arguments.no_wait);
        self.begin(folder, &connected, &log, &id).await?;
        if is_detached {
            terminal::print(format_args!("{id}\n"));
            return Ok(Exit::Ok);
        }
        terminal::say(format_args!("run {id} began in the fleet\n"));
        let reporter = Reporter::new(format, &plan.pipeline);
        let can_ask = answer_sources::can_ask(&arguments.people, &arguments.output);
        let followed = Followed { connected: &connected, log: &log, id: &id, pipeline: &pipeline, waits, can_ask };
        let records = followed.follow(reporter, Vec::new()).await?;
        let run = runs::create(&runs_dir, final_id)?;
        pull::into(&run, &log, &records, pipeline, true).await.inspect_err(|_| runs::discard(&run))?;
        pull::conclude(&run, &records, format, &runs_dir)
    }

    /// Stores everything that the run needs, and appends its first records.
    async fn begin(
        self,
        folder: &RunFolder,
        connected: &ConnectedFleet,
        log: &Arc<NatsLog>,
        id: &RecordedId,
    ) -> Result<(), Stop> {
        let Self { arguments, source, project, plan, worker, settings, chosen } = self;
        let ConnectedFleet { fleet, .. } = connected;
        match chosen.sealed.is_empty() {
            true => fleet.leave_open(id),
            false => connected.encrypt(id).await?,
        }
        let mail = NatsMail::begin(fleet, id).await.map_err(|error| Stop::new(Exit::Transient, error.to_string()))?;
        let lease = DriveQueue::open(fleet).await.map_err(|error| crate::fleet_connection::stop(&error))?;
        let blobs = log.blobs_of(id).await.map_err(|error| unread(&error))?;
        let (journal, blobs) = (Arc::clone(log), Arc::new(blobs));
        let stores = OpenStores::<FleetStores> { journal, blobs, mail, lease, held: None };
        let mut include = local::include(plan)?;
        local::leave_out(&mut include, plan, project, folder);
        let new = NewRun {
            include,
            shared: Some(settings),
            ..local::new_run(arguments, source, project, id.clone(), &chosen)
        };
        let dir = drive::open_dir(folder, None)?;
        let follower = |_: &_, _: &_| Ok(());
        let created = Session::create_in(dir, stores, worker, plan, new, |_, _| None, follower).await;
        let (session, (), _records) = created.map_err(|error| drive::stop(folder, &error))?;
        for skipped in &session.left_out {
            tracing::info!(path = skipped.path, "left out of the run");
        }
        Ok(())
    }
}

/// A run of a fleet that this process follows.
pub(super) struct Followed<'a> {
    pub(super) connected: &'a ConnectedFleet,
    pub(super) log: &'a Arc<NatsLog>,
    pub(super) id: &'a event::RunId,
    pub(super) pipeline: &'a Arc<Pipeline>,
    /// False if this process ends when no machine makes a stage.
    pub(super) waits: bool,
    /// True if a person at the terminal can be asked.
    pub(super) can_ask: bool,
}

impl Followed<'_> {
    /// Shows each record after the ones that were read before, until the run ends or is paused. Returns all records.
    pub(super) async fn follow(self, mut reporter: Reporter, before: Vec<Record>) -> Result<Vec<Record>, Stop> {
        let listen = |kind| signal(kind).map_err(|error| Stop::io("listen for signals", &error));
        let (mut interrupted, mut terminated) = (listen(SignalKind::interrupt())?, listen(SignalKind::terminate())?);
        // A run that a person continues has ended before the new records, or is paused there.
        let (known, mut records, mut asked) = (before.len(), before, false);
        let mut person = AtTerminal::new(self.can_ask);
        let (began, mut is_told, mut has_begun) = (tokio::time::Instant::now(), false, false);
        let notes = self.connected.fleet.notes(self.id).await.map_err(|error| crate::fleet_connection::stop(&error))?;
        let (mut notes, mut last_note) = (std::pin::pin!(notes), String::new());
        loop {
            let from = records.last().map_or(1, |last| last.seq + 1);
            let page = self.log.read(self.id, from, PAGE_RECORDS).await.map_err(|error| unread(&error))?;
            page.iter().for_each(|record| reporter.record(record));
            let new = page.len();
            records.extend(page);
            person.look(&records, new, self.log, self.pipeline, &reporter).await?;
            if records.len() > known && records.last().is_some_and(|last| is_end(&last.event, person.has_run_go_on())) {
                break;
            }
            has_begun |= records.iter().rev().take(new).any(|record| record.event.stage_started().is_some());
            if !has_begun && !is_told && began.elapsed() > NO_MACHINE_AFTER {
                is_told = true;
                terminal::say("no machine has taken the run in 10 seconds; start one: `glovebox work --nats URL`\n");
            }
            let signal = tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => continue,
                Some(note) = notes.next() => {
                    if !self.waits {
                        self.stop(StopSignal::Terminate).await?;
                        return Err(Stop::new(Exit::Policy, visible::line(&note).into_owned())
                            .with_help("start a machine that has it: `glovebox work --nats URL`; then `glovebox resume`"));
                    }
                    if note != last_note {
                        terminal::say(format_args!("{}\n", visible::line(&note)));
                        last_note = note;
                    }
                    continue;
                }
                answer = person.answer() => {
                    if let Some(given) = answer {
                        self.answer(given).await?;
                    }
                    continue;
                }
                _ = interrupted.recv() => {
                    if person.leave() {
                        continue;
                    }
                    StopSignal::Interrupt
                }
                _ = terminated.recv() => StopSignal::Terminate,
            };
            if asked {
                let message = format!("run `{}` goes on without this process", visible::line(self.id.as_str()));
                return Err(Stop::new(
                    if signal == StopSignal::Interrupt { Exit::Interrupted } else { Exit::Terminated },
                    message,
                ));
            }
            asked = true;
            self.stop(signal).await?;
        }
        reporter.close();
        Ok(records)
    }

    /// Sends the answer of the person at the terminal.
    async fn answer(&self, given: GivenAnswer) -> Result<(), Stop> {
        let question = visible::line(given.question.as_str()).into_owned();
        let sent = self.connected.fleet.send(self.id, &Message::Answer(given)).await;
        if sent.map_err(|error| Stop::new(Exit::Transient, error.to_string()))? == Sent::Earlier {
            terminal::say(format_args!("question `{question}` was answered already\n"));
        }
        Ok(())
    }

    /// Asks the run to stop, so that it can be resumed.
    async fn stop(&self, signal: StopSignal) -> Result<(), Stop> {
        let sent = self.connected.fleet.send(self.id, &Message::Stop { signal }).await;
        sent.map(drop).map_err(|error| Stop::new(Exit::Transient, error.to_string()))
    }
}

/// Returns true for the record after which no machine drives the run, unless the person at the terminal has it go on.
fn is_end(event: &Event, goes_on: bool) -> bool {
    match event {
        Event::RunFinished(_) => true,
        Event::RunPaused(_) => !goes_on,
        _ => false,
    }
}
