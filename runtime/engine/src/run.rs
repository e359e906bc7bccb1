//! A run on this machine: started or opened, and driven to its end.
//!
//! [`Run`] composes the journal, the attempts, the projections and the summary from a plan, so that every front end runs a pipeline in
//! the same way. It reads no environment and prints nothing.

mod begin;
mod holdouts;
mod session;
mod workspace;

pub use begin::NewRun;
pub use holdouts::{HOLDOUTS_DIR, HoldoutError, Holdouts, OpenCopy};
pub use session::{Replan, ResumeTerms, Session};
pub use workspace::apply_changes;

use crate::attempt::{AttemptError, SandboxEnv, Workbench, sweep};
use crate::blobs::DirBlobs;
use crate::disk::DiskGauge;
use crate::driver::{Assignment, RunError};
use crate::event::{Event, Record, SandboxRecord};
use crate::evidence::{RunSummary, VerdictFile};
use crate::plan::Plan;
use crate::ports::{BlobStore, Signals};
use crate::project::{ProjectError, Projector};
use crate::sqlite::VerifiedJournal;
use crate::state::RunState;
use cap_std::fs::Dir;
use glovebox_host::call::Progress;
use glovebox_host::host::Host;
use glovebox_record::NodeId;
use glovebox_sandbox::ignored::Ignored;
use glovebox_sandbox::project::{Base, Skipped};
use glovebox_sandbox::protect::Protected;
use glovebox_sandbox::user_key::UserKey;
use std::cell::RefCell;
use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Hints of progress that wait to be shown; more are dropped.
const HINTS_WAITING_MAX: usize = 256;
/// The largest pipeline that is read back.
const SOURCE_BYTES_MAX: u64 = 1 << 30;

/// The lock of the process that drives the run.
pub const OWNER_FILE: &str = "owner.sqlite";
/// The run's copy of the project.
pub const WORKSPACE_DIR: &str = "workspace";

/// The directory of one run. It exists before it gets here: where it lies is the caller's business.
pub struct RunDir {
    /// Its absolute path, for the stores that open files by path.
    pub path: PathBuf,
    /// The same directory, opened.
    pub dir: Dir,
    /// What its journal is signed with; none leaves it unsigned, so that it is never acted on later.
    pub key: Option<UserKey>,
}

impl RunDir {
    /// The run's copy of the project.
    pub fn workspace(&self) -> PathBuf {
        self.path.join(WORKSPACE_DIR)
    }

    /// The same directory for what must not sign anything.
    fn without_key(&self) -> io::Result<Self> {
        Ok(Self { path: self.path.clone(), dir: self.dir.try_clone()?, key: None })
    }
}

/// Who drives a run, and what confines its commands.
#[derive(Debug, Clone, Default)]
pub struct Worker {
    /// The name in the journal.
    pub name: String,
    /// What confines commands on this machine; none when no stage runs any.
    pub sandbox: Option<SandboxRecord>,
}

/// Everything that executes the stages of a plan on this machine.
pub struct Executor {
    /// What may happen.
    pub plan: Arc<Plan>,
    /// Executes components.
    pub host: Arc<Host>,
    /// What stages work on and behind.
    pub sandbox_env: SandboxEnv,
    /// What no stage may change, whatever its scope says.
    pub protected: Protected,
    /// Who drives.
    pub worker: Worker,
}

/// Something to show while a run goes on.
pub enum Update<'a> {
    /// A record was appended.
    Record(&'a Record),
    /// Something happens within an attempt of a node. It may be lost, and the attempt's record has all that matters.
    Activity {
        /// The node.
        node: &'a NodeId,
        /// What happens.
        progress: &'a Progress,
    },
}

/// A run that this process drives.
pub struct Run {
    session: Session,
    executor: Executor,
    projector: Projector<DirBlobs>,
    summary: RunSummary,
    begun: Vec<Record>,
}

impl Run {
    /// Starts a run in an empty directory, up to its first attempt.
    pub async fn start(dir: RunDir, executor: Executor, new: NewRun<'_>) -> Result<Self, RunError> {
        let (session, begun) = Session::create(dir, executor.worker.clone(), &executor.plan, new).await?;
        let mut run = Self::of(session, executor)?;
        run.tell(&begun)?;
        Ok(Self { begun, ..run })
    }

    /// Opens a run that was started before. One that can be resumed is taken over, up to its next attempt; the files of any other
    /// are made again. The journal is not read a second time.
    pub async fn open(
        dir: RunDir,
        executor: Executor,
        verified: VerifiedJournal,
        terms: ResumeTerms<'_>,
    ) -> Result<Self, RunError> {
        let (session, records) = Session::open(dir, executor.worker.clone(), verified)?;
        let mut run = Self::of(session, executor)?;
        run.tell(&records)?;
        if let Some(verdict) = run.session.verdict().filter(|_| !run.session.can_be_resumed()) {
            if terms.from.is_some() {
                return Err(RunError::Ended { run_id: run.session.run_id(), verdict });
            }
            // The process may have died between the last record and what follows from it.
            let Session { dir, blobs, state, .. } = &run.session;
            apply_changes(&dir.workspace(), blobs, state.main().changes.values())?;
            run.projector.caught_up().map_err(project_error)?;
            return Ok(run);
        }
        sweep(&run.session.dir);
        let begun = run.session.resume(&run.executor.plan.pipeline, terms).await?;
        run.tell(&begun)?;
        Ok(Self { begun, ..run })
    }

    /// True when it had ended before it was opened, so that there is nothing to drive.
    pub fn had_ended(&self) -> bool {
        self.begun.is_empty()
    }

    /// What it came to so far.
    pub fn summary(&self) -> &RunSummary {
        &self.summary
    }

    /// The same as a document; none before the run has begun.
    pub fn verdict(&self) -> Option<VerdictFile<'_>> {
        self.session.state.run.as_ref().map(|started| VerdictFile::of(&self.summary, started))
    }

    /// What of the project the workspace could not take, for a run that was just started.
    pub fn left_out(&self) -> &[Skipped] {
        &self.session.left_out
    }

    /// Copies of hold-outs that every stage can read, where the pipeline allows them; for a run that was just started.
    pub fn open_copies(&self) -> &[OpenCopy] {
        &self.session.open_copies
    }

    /// Drives it to its end. `watch` sees every record from the start or the resume on, in order, and hints between them.
    pub async fn drive<S: Signals>(&mut self, signals: &S, watch: impl FnMut(Update<'_>)) -> Result<(), RunError> {
        let (sender, hints) = mpsc::channel(HINTS_WAITING_MAX);
        let bench = Arc::new(self.bench(sender)?);
        // Whole files first: a crash may have cut them short.
        self.projector.caught_up().map_err(project_error)?;
        let watcher = RefCell::new(Watcher { watch, node: None });
        watcher.borrow_mut().records(&self.begun);
        let filled = self.fill_caches(&bench, signals).await?;
        watcher.borrow_mut().records(&filled);
        let Self { session, executor, projector, summary, .. } = self;
        let (dir, blobs, written) = (Arc::clone(&session.dir), Arc::clone(&session.blobs), projector.written());
        let disk = DiskGauge::new(dir, blobs, written, executor.plan.disk_bytes_max);
        let disk = disk.map_err(|error| RunError::Project(Box::new(error)))?;
        let (files, told) = (RefCell::new(Files { projector, failed: None }), Notify::new());
        let execute = async |assignment: Assignment| {
            bench.execute(&assignment).await.map_err(|error| Box::new(error) as Box<dyn Error + Send + Sync>)
        };
        let project = |records: &[Record], _state: &RunState| {
            files.borrow_mut().tell(records, &disk)?;
            told.notify_one();
            records.iter().for_each(|record| summary.apply(record));
            watcher.borrow_mut().records(records);
            Ok(())
        };
        let driven = tokio::select! {
            driven = session.drive(&executor.plan.pipeline, (signals, Some(&disk)), execute, project) => driven,
            never = show(hints, &watcher) => match never {},
            never = keep_written(&files, &told) => match never {},
        };
        // Also of a run that cannot go on.
        let written = files.borrow_mut().write();
        driven.and(written.map_err(RunError::Project))
    }

    fn of(session: Session, executor: Executor) -> Result<Self, RunError> {
        let dir = session.dir.dir.try_clone().map_err(|error| RunError::Project(Box::new(error)))?;
        let projector = Projector::new(dir, Arc::clone(&session.blobs), Arc::clone(&executor.plan.pipeline));
        Ok(Self { session, executor, projector, summary: RunSummary::default(), begun: Vec::new() })
    }

    fn tell(&mut self, records: &[Record]) -> Result<(), RunError> {
        records.iter().for_each(|record| self.summary.apply(record));
        self.projector.tell(records).map_err(project_error)
    }

    /// Fills caches that begin with the run's base, before the first stage changes it, and records it.
    async fn fill_caches<S: Signals>(
        &mut self,
        bench: &Workbench<DirBlobs>,
        signals: &S,
    ) -> Result<Vec<Record>, RunError> {
        let filled = bench.fill_caches(&self.session.state, signals.flag()).await;
        let failed = |(node, error): (NodeId, AttemptError)| RunError::Execute { node, source: Box::new(error) };
        let records = self.session.caches_filled(&self.executor.plan.pipeline, filled.map_err(failed)?).await?;
        self.tell(&records)?;
        Ok(records)
    }

    fn bench(&self, progress: Sender<Progress>) -> Result<Workbench<DirBlobs>, RunError> {
        let Executor { plan, host, sandbox_env, protected, .. } = &self.executor;
        Ok(Workbench {
            plan: Arc::clone(plan),
            host: Arc::clone(host),
            run: Arc::new(self.session.dir.without_key().map_err(|error| RunError::Project(Box::new(error)))?),
            blobs: Arc::clone(&self.session.blobs),
            sandbox_env: sandbox_env.clone(),
            protected: protected.clone(),
            ignored: Arc::new(self.ignored()?),
            holdouts: self.holdouts()?.map(Arc::new),
            progress,
        })
    }

    /// What git ignored when the run began, from its first record: the workspace's own rules may be a stage's.
    fn ignored(&self) -> Result<Ignored, RunError> {
        let Session { blobs, state, .. } = &self.session;
        let Some(started) = &state.run else { return Err(RunError::NotStarted) };
        let bytes = blobs.read_all(&started.base_digest, SOURCE_BYTES_MAX)?;
        let base: Base = serde_json::from_slice(&bytes).map_err(|error| RunError::Workspace(Box::new(error)))?;
        Ok(Ignored::of(&base.ignored))
    }

    fn holdouts(&self) -> Result<Option<Holdouts>, RunError> {
        let Session { dir, blobs, state, .. } = &self.session;
        let Some(started) = &state.run else { return Err(RunError::NotStarted) };
        let source = blobs.read_all(&started.pipeline_digest, SOURCE_BYTES_MAX)?;
        Holdouts::open(dir, state, &String::from_utf8_lossy(&source))
            .map_err(|error| RunError::Holdouts(Box::new(error)))
    }
}

fn project_error(error: ProjectError) -> RunError {
    RunError::Project(Box::new(error))
}

/// The run's files while it is driven.
struct Files<'a> {
    projector: &'a mut Projector<DirBlobs>,
    /// Why a write between two records failed.
    failed: Option<ProjectError>,
}

impl Files<'_> {
    fn tell(&mut self, records: &[Record], disk: &DiskGauge) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.projector.tell(records)?;
        // Whether a run is over its bound is found out by what is on disk.
        if disk.has_room()? { self.check() } else { self.write() }
    }

    fn write(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.projector.write()?;
        self.check()
    }

    fn write_if_due(&mut self) -> Result<(), ()> {
        if self.projector.due().is_none_or(|due| due > Instant::now()) {
            return Ok(());
        }
        self.projector.write().map_err(|error| self.failed = Some(error))
    }

    fn check(&mut self) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.failed.take().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Writes the run's files when they are due, for as long as it is polled: also while a stage takes its time.
async fn keep_written(files: &RefCell<Files<'_>>, told: &Notify) -> Infallible {
    loop {
        let due = files.borrow().projector.due();
        let Some(due) = due else {
            told.notified().await;
            continue;
        };
        tokio::time::sleep_until(due.into()).await;
        if files.borrow_mut().write_if_due().is_err() {
            // Told, and tried again, with the next records.
            told.notified().await;
        }
    }
}

/// Shows records and hints, and knows the node that hints are about: one stage runs at a time.
struct Watcher<W> {
    watch: W,
    node: Option<NodeId>,
}

impl<W: FnMut(Update<'_>)> Watcher<W> {
    fn records(&mut self, records: &[Record]) {
        for record in records {
            if let Event::StageStarted(stage) = &record.event {
                self.node = Some(stage.attempt.task.node.clone());
            }
            (self.watch)(Update::Record(record));
        }
    }

    fn activity(&mut self, progress: &Progress) {
        if let Some(node) = &self.node {
            (self.watch)(Update::Activity { node, progress });
        }
    }
}

/// Shows hints for as long as it is polled; never ends, since a run outlives its hints.
async fn show<W: FnMut(Update<'_>)>(mut hints: Receiver<Progress>, watcher: &RefCell<Watcher<W>>) -> Infallible {
    while let Some(hint) = hints.recv().await {
        watcher.borrow_mut().activity(&hint);
    }
    std::future::pending().await
}
