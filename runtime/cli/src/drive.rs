//! Driving a run from the command line: signals in, progress out, and the exit code that its journal means.
//!
//! Shared by `run` and `resume`. Decides nothing about the run; the first Ctrl-C asks it to stop and waits for its last
//! record, the second ends the process at once.

use crate::exit::{Ended, Exit, Stop};
use crate::prepare::Prepared;
use crate::runs::RunFolder;
use crate::source::Source;
use crate::terminal::progress::{Manner, Reporter};
use crate::terminal::summary;
use crate::terminal::{self, visible};
use crate::{journal, runs};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::attempt::Workbench;
use glovebox_engine::blobs::DirBlobs;
use glovebox_engine::disk::DiskGauge;
use glovebox_engine::driver::RunError;
use glovebox_engine::event::{Event, Record};
use glovebox_engine::evidence::RunSummary;
use glovebox_engine::ports::{PortError, Signals};
use glovebox_engine::project::Projector;
use glovebox_engine::run::{HoldoutError, Holdouts, RunDir, Session};
use glovebox_engine::signals::LocalSignals;
use glovebox_host::call::Progress;
use glovebox_pipeline::ir::Pipeline;
use glovebox_sandbox::user_key::UserKey;
use std::cell::RefCell;
use std::convert::Infallible;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Hints of progress that wait to be shown; more are dropped.
const PROGRESS_WAITING_MAX: usize = 256;

/// A run in this process's hands.
pub struct Drive<'a> {
    /// The plan and the host.
    pub bound: &'a Prepared,
    /// The pipeline as the run keeps it.
    pub source: &'a Source,
    /// The run's folder.
    pub run: &'a RunFolder,
    /// Shows progress.
    pub reporter: Reporter,
}

/// Opens a run's folder for the engine. With a key what is appended to its journal is signed.
pub fn open_dir(run: &RunFolder, key: Option<UserKey>) -> Result<RunDir, Stop> {
    let dir = Dir::open_ambient_dir(&run.path, ambient_authority())
        .map_err(|error| Stop::io(format!("open run `{}`", run.id), &error))?;
    Ok(RunDir { path: run.path.clone(), dir, key })
}

/// Makes a run's files from its journal, as it is now.
pub fn project(run: &RunFolder, pipeline: &Arc<Pipeline>, blobs: &Arc<DirBlobs>) -> Result<Projector<DirBlobs>, Stop> {
    let dir = open_dir(run, None)?.dir;
    let projector = Projector::rebuild(dir, Arc::clone(blobs), Arc::clone(pipeline), &journal::read(run)?.records);
    projector.map_err(|error| stop(run, &RunError::Project(Box::new(error))))
}

/// Starts the executor that a run lives on.
pub fn runtime() -> Result<tokio::runtime::Runtime, Stop> {
    let built = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    built.map_err(|error| Stop::io("start the executor", &error))
}

impl Drive<'_> {
    /// Drives a session to its end. `begun` are the records it began or was resumed with. The run's files are made again
    /// from the whole journal first, since a crash may have cut them short.
    pub async fn drive(self, mut session: Session, begun: &[Record]) -> Result<(), Stop> {
        let signals = LocalSignals::new();
        let listening = tokio::spawn(listen(signals.clone())?);
        let (sender, receiver) = mpsc::channel(PROGRESS_WAITING_MAX);
        let bench = self.bench(&session, sender)?;
        let mut projector = project(self.run, &self.bound.plan.pipeline, &session.blobs)?;
        let shown = RefCell::new(Shown { reporter: self.reporter, node: String::new() });
        shown.borrow_mut().records(begun);
        let filled = fill_caches(&bench, &mut session, &self.bound.plan.pipeline, signals.flag()).await;
        let filled = filled.map_err(|error| stop(self.run, &error))?;
        projector.tell(&filled).map_err(|error| stop(self.run, &RunError::Project(Box::new(error))))?;
        shown.borrow_mut().records(&filled);
        let pipeline = Arc::clone(&self.bound.plan.pipeline);
        let disk = DiskGauge::new(Arc::clone(&session.dir), Arc::clone(&session.blobs), self.bound.plan.disk_bytes_max)
            .map_err(|error| Stop::io(format!("measure run `{}`", self.run.id), &error))?;
        let execute = async |claim: &_, state: &_| {
            bench.execute(claim, state).await.map_err(|error| Box::new(error) as Box<dyn Error + Send + Sync>)
        };
        let project = |records: &[Record], _state: &_| {
            projector.tell(records)?;
            shown.borrow_mut().records(records);
            Ok(())
        };
        let driven = tokio::select! {
            driven = session.drive(&pipeline, (&signals, Some(&disk)), execute, project) => driven,
            never = show(receiver, &shown) => match never {},
        };
        shown.borrow_mut().reporter.close();
        listening.abort();
        driven.map_err(|error| stop(self.run, &error))
    }

    fn bench(&self, session: &Session, progress: Sender<Progress>) -> Result<Workbench<DirBlobs>, Stop> {
        Ok(Workbench {
            plan: Arc::new(self.bound.plan.clone()),
            host: Arc::clone(&self.bound.host),
            run: Arc::new(open_dir(self.run, None)?),
            blobs: Arc::clone(&session.blobs),
            ground: self.bound.ground.clone(),
            protected: self.bound.protected.clone(),
            holdouts: self.holdouts(session)?.map(Arc::new),
            progress,
        })
    }

    fn holdouts(&self, session: &Session) -> Result<Option<Holdouts>, Stop> {
        Holdouts::open(&session.dir, &session.state, &self.source.text)
            .map_err(|error| Stop::new(Exit::Mismatch, format!("run `{}`: {error}", self.run.id)))
    }
}

/// Fills caches that begin with the run's base, before the first stage changes it, and records it.
async fn fill_caches(
    bench: &Workbench<DirBlobs>,
    session: &mut Session,
    pipeline: &Pipeline,
    canceled: Arc<AtomicBool>,
) -> Result<Vec<Record>, RunError> {
    let filled = bench.fill_caches(&session.state, canceled).await;
    let filled = filled.map_err(|(node, error)| RunError::Execute { node, source: Box::new(error) })?;
    session.caches_filled(pipeline, filled).await
}

/// What is shown, and the node that hints are about: one stage runs at a time.
struct Shown {
    reporter: Reporter,
    node: String,
}

impl Shown {
    fn records(&mut self, records: &[Record]) {
        for record in records {
            if let Event::StageStarted(stage) = &record.event {
                self.node = stage.attempt.task.node.to_string();
            }
            self.reporter.record(record);
        }
    }
}

/// Shows hints for as long as it is polled; never ends, since a run outlives its hints.
async fn show(mut hints: Receiver<Progress>, shown: &RefCell<Shown>) -> Infallible {
    while let Some(hint) = hints.recv().await {
        let mut shown = shown.borrow_mut();
        let node = shown.node.clone();
        shown.reporter.activity(&node, &hint);
    }
    std::future::pending().await
}

/// Turns the operating system's signals into the wish to stop.
fn listen(signals: LocalSignals) -> Result<impl Future<Output = ()>, Stop> {
    let on = |kind: SignalKind| signal(kind).map_err(|error| Stop::io("listen for signals", &error));
    let (mut interrupt, mut terminate) = (on(SignalKind::interrupt())?, on(SignalKind::terminate())?);
    Ok(async move {
        let exit = first_of(&mut interrupt, &mut terminate).await;
        let name = if exit == Exit::Terminated { "signal TERM" } else { "signal INT" };
        terminal::say("stopping after this stage; press Ctrl-C again to stop at once\n");
        signals.cancel(name);
        let exit = first_of(&mut interrupt, &mut terminate).await;
        std::process::exit(i32::from(exit.code()));
    })
}

async fn first_of(interrupt: &mut Signal, terminate: &mut Signal) -> Exit {
    tokio::select! {
        _ = interrupt.recv() => Exit::Interrupted,
        _ = terminate.recv() => Exit::Terminated,
    }
}

/// Why a run could not be driven on, with the command that does.
pub fn stop(run: &RunFolder, error: &RunError) -> Stop {
    let exit = match error {
        RunError::Port(PortError::Corrupt { .. } | PortError::Version { .. }) => Exit::Mismatch,
        RunError::Port(PortError::Foreign { .. }) => Exit::Policy,
        RunError::Port(_) | RunError::Execute { .. } | RunError::Project(_) => Exit::Transient,
        RunError::Holdouts(source) => match source.downcast_ref() {
            Some(HoldoutError::Seal(_)) => Exit::Invalid,
            Some(HoldoutError::Differs(_)) => Exit::Mismatch,
            Some(HoldoutError::Copied(_)) => Exit::Policy,
            None => Exit::Internal,
        },
        RunError::Workspace(_) | RunError::Ended { .. } => Exit::Usage,
        RunError::Stalled(_) | RunError::NotStarted => Exit::Internal,
    };
    let mut message = format!("run `{}`: {error}", run.id);
    let mut cause = error.source();
    while let Some(error) = cause {
        message.push_str(&format!(": {error}"));
        cause = error.source();
    }
    let stop = Stop::new(exit, message);
    match error {
        RunError::Holdouts(source) if matches!(source.downcast_ref(), Some(HoldoutError::Copied(_))) => stop.with_help(
            "remove the copies or add them to `.gitignore`; if builders may read them, set `scenario_copies=\"allow\"` on the graph",
        ),
        _ => stop,
    }
}

/// Prints what a run came to and answers with the exit code that its journal means.
pub fn conclude(run: &RunFolder, manner: Manner, runs_dir: &Path) -> Ended {
    let records = journal::read(run)?.records;
    let found = RunSummary::of(&records);
    let text = summary::render(&found, &runs::named(run, runs_dir)?);
    match manner {
        Manner::Json => terminal::say(&text),
        _ => terminal::print(&text),
    }
    let exit = Exit::from(found.exit);
    tracing::debug!(run = %visible::line(&run.id), code = exit.code(), "concluded");
    Ok(exit)
}
