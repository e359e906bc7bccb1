//! A run on this machine: started or opened, and driven to its end.
//!
//! [`Run`] connects the journal, the attempts, the projections and the summary of a run with a plan, so that every front end
//! runs a pipeline in the same way. It reads no environment and prints nothing.

mod begin;
mod branches;
mod budget;
mod cancel;
mod ending;
mod fork;
mod machine;
mod missing;
mod packs;
mod pull;
mod quota;
mod reported;
mod restore;
mod reuse;
mod session;
mod takeover;
mod workspace;

pub use crate::holdouts::{HoldoutError, Holdouts, OpenCopy};
pub use crate::run_dir::{
    APPLIED_FILE, HOLDOUTS_DIR, OWNER_FILE, RunDir, WORKSPACE_DIR, branch_folder, branch_workspace,
};
pub use begin::NewRun;
pub use budget::budget;
pub use cancel::cancel;
pub use ending::lacks_space;
pub use fork::{NoVisit, Source, VisitPoint, fork, visits};
pub use machine::{AttemptControl, ClaimedTask, MachineError, MachineRun, UnboundRun};
pub use packs::Contents;
pub use pull::{Pulled, pull};
pub use quota::QuotaAtResume;
pub use reported::{NamedBlob, ResultCheck, named_blobs};
pub use reuse::EarlierRun;
pub use session::{DriveLimits, ReadProblem, Replan, ResumeTerms, Session};
pub use workspace::apply_changes;

use crate::assignment::Assignment;
use crate::attempt::{AttemptError, HeldSpending, Preparing, Workbench, exchanges, sweep};
use crate::disk::DiskGauge;
use crate::driver::{Fault, Follow, RunError};
use crate::inbox::{Attendance, Inbox};
use crate::live::OutputWatch;
use crate::liveness::LivenessStream;
use crate::project::{ProjectError, Projector};
use crate::stores::{Embedded, Stores};
use cap_std::fs::Dir;
use glovebox_host::call::{AttemptProgress, Progress};
use glovebox_jail::jail::Jail;
use glovebox_journal::event::{Attempt, AttemptId, BranchId, Record};
use glovebox_journal::liveness::LivenessLine;
use glovebox_journal::ports::{BlobStore, Signals};
use glovebox_journal::rewind;
use glovebox_journal::sqlite::VerifiedJournal;
use glovebox_pipeline::ir::HandlerKind;
use glovebox_plan::prepare::executor::Executor;
use glovebox_record::{NodeId, Tier};
use glovebox_state::evidence::{Replay, RunSummary, VerdictFile};
use glovebox_state::run_state::RunState;
use glovebox_workspace::ignored::IgnoreMatcher;
use glovebox_workspace::project::{Base, SkippedEntry};
use jiff::Timestamp;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::error::Error;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;
use tokio::sync::mpsc::{self, Receiver, Sender};

/// Maximum number of progress events that wait to be shown. Further ones are dropped.
const HINTS_WAITING_MAX: usize = 256;

/// Something to show while a run is driven.
pub enum Update<'a> {
    /// A record was appended.
    Record(&'a Record),
    /// Progress of an attempt. It may be lost, because the attempt's record contains everything important.
    Activity {
        /// The branch of the attempt.
        branch: &'a BranchId,
        /// The node of the attempt.
        node: &'a NodeId,
        /// The progress event.
        progress: &'a Progress,
    },
    /// A line of the liveness stream.
    Liveness(&'a LivenessLine),
}

/// A run that this process drives.
pub struct Run<S: Stores = Embedded> {
    session: Session<S>,
    executor: Executor,
    projector: Projector<S::Blobs>,
    begun: Vec<Record>,
    quota_waits: Vec<QuotaAtResume>,
    output_watch: Option<OutputWatch>,
    /// True if another process drove the run before. What it knew of commands and programs is not known any more.
    is_resumed: bool,
}

impl Run {
    /// Starts a run in an empty directory, up to its first attempt.
    pub async fn start(dir: RunDir, executor: Executor, mut new: NewRun<'_>) -> Result<Self, RunError> {
        prepare_jail(&executor);
        let earlier = std::mem::take(&mut new.earlier);
        let pipeline = Arc::clone(&executor.plan.pipeline);
        let files = |dir: &RunDir, blobs: &Arc<<Embedded as Stores>::Blobs>| {
            Ok(Projector::beginning(files_of(dir)?, Arc::clone(blobs), Arc::clone(&pipeline)))
        };
        let caches = |dir: &RunDir, base: &Base| reuse::take(dir, &executor, base, &earlier);
        let created = Session::create(dir, executor.worker.clone(), &executor.plan, new, caches, files).await?;
        let (session, projector, begun) = created;
        let quota_waits = Vec::new();
        Ok(Self { session, executor, projector, begun, quota_waits, output_watch: None, is_resumed: false })
    }

    /// Opens a run that was started before. If it can be resumed, it is taken over, up to its next attempt. If not, its files
    /// are rebuilt. Only the state is kept in memory, unless the run goes back to a visit or has done so before. Then all
    /// records are kept.
    pub async fn open(
        dir: RunDir,
        executor: Executor,
        verified: &VerifiedJournal,
        terms: ResumeTerms<'_>,
    ) -> Result<Self, RunError> {
        let unread = Session::open(dir, executor.worker.clone(), verified)?;
        let (mut run, records) = Self::read(unread, executor, terms.back.is_some())?;
        if let Some(verdict) = run.session.verdict().filter(|_| !run.session.can_be_resumed()) {
            if terms.from.is_some() || terms.back.is_some() {
                let run_id = run.session.run_id();
                return Err(match run.session.state().canceled.clone() {
                    Some(by) => RunError::Canceled { run_id, by },
                    None => RunError::Ended { run_id, verdict },
                });
            }
            // The process may have died after the last record, before its changes were applied.
            let Session { dir, blobs, replay, .. } = &run.session;
            apply_changes(&dir.workspace(), &**blobs, replay.state.main().changes.values())?;
            run.projector.caught_up().map_err(project_error)?;
            return Ok(run);
        }
        sweep(&run.session.dir);
        if terms.asks_again {
            exchanges::drop_all(&run.session.dir.dir).map_err(|error| RunError::Project(Box::new(error)))?;
        }
        let before = terms.back.as_ref().map(|back| rewind::before(&records, back.seq.saturating_sub(1)));
        let past: Option<Replay> = before.map(rewind::after);
        let restarts = terms.from.is_some() || past.is_some();
        let quota_waits =
            if restarts { Vec::new() } else { QuotaAtResume::find(run.session.state(), Timestamp::now()) };
        let begun = run.session.resume(&run.executor.plan.pipeline, terms, past, &mut run.projector).await?;
        Ok(Self { begun, quota_waits, ..run })
    }

    /// Reads the journal of a run, and returns all records if they are needed.
    fn read(unread: ReadProblem, executor: Executor, goes_back: bool) -> Result<(Self, Vec<Record>), RunError> {
        let pipeline = Arc::clone(&executor.plan.pipeline);
        let mut projector = Projector::new(files_of(&unread.dir)?, Arc::clone(&unread.blobs), pipeline);
        let (session, records) = if unread.is_linear && !goes_back {
            (unread.read(&mut projector)?, Vec::new())
        } else {
            unread.read_whole(&mut projector)?
        };
        let (begun, quota_waits) = (Vec::new(), Vec::new());
        Ok((Self { session, executor, projector, begun, quota_waits, output_watch: None, is_resumed: true }, records))
    }
}

impl<S: Stores> Run<S> {
    /// Returns true if the run had ended before it was opened, so that there is nothing to drive.
    pub fn had_ended(&self) -> bool {
        self.begun.is_empty()
    }

    /// Returns the stages that waited for a quota when the run was resumed.
    pub fn quota_waits(&self) -> &[QuotaAtResume] {
        &self.quota_waits
    }

    /// Returns the summary so far.
    pub fn summary(&self) -> &RunSummary {
        &self.session.replay.summary
    }

    /// Returns the summary as a document. `None` before the run has begun.
    pub fn verdict(&self) -> Option<VerdictFile<'_>> {
        self.session.state().run.as_ref().map(|started| VerdictFile::new(self.summary(), started))
    }

    /// Returns the files of the project that could not be copied. Only for a run that was just started.
    pub fn left_out(&self) -> &[SkippedEntry] {
        &self.session.left_out
    }

    /// Returns copies of hold-outs that every stage can read, if the pipeline allows them. Only for a run that was just started.
    pub fn open_copies(&self) -> &[OpenCopy] {
        &self.session.open_copies
    }

    /// Sets the function that gets the output of commands while they run. A stage that can read hold-outs has none. The command
    /// waits for the function.
    pub fn watch_output(&mut self, watch: Option<OutputWatch>) {
        self.output_watch = watch;
    }

    /// Drives the run to its end. `watch` gets every record since the start or the resume, in order, and progress events
    /// between them.
    pub async fn drive<G: Signals>(
        &mut self,
        signals: &G,
        attendance: Attendance,
        watch: impl FnMut(Update<'_>),
    ) -> Result<(), RunError> {
        let (sender, hints) = mpsc::channel(HINTS_WAITING_MAX);
        let hints = RefCell::new(hints);
        let bench = Arc::new(self.bench(sender)?);
        reuse::withdraw(&self.session.dir)?;
        // The files are completed first, because a crash may have left parts.
        self.projector.caught_up().map_err(project_error)?;
        let watcher = RefCell::new(Watcher { watch, under_way: BTreeMap::new() });
        watcher.borrow_mut().records(&self.begun);
        let mut inbox = Inbox::new(attendance, self.session.mail.take());
        let filled = tokio::select! {
            filled = self.fill_caches(&bench, signals) => filled?,
            never = inbox.keep_looking(signals) => match never {},
        };
        watcher.borrow_mut().records(&filled);
        let Self { session, executor, projector, .. } = self;
        let (dir, stored, written) = (Arc::clone(&session.dir), session.blobs.written(), projector.written());
        let disk = DiskGauge::new(dir, stored, written, executor.plan.bounds.disk_bytes_max);
        let disk = disk.map_err(|error| RunError::Project(Box::new(error)))?;
        let (files, told) = (RefCell::new(Files { projector, failed: None }), Notify::new());
        let execute = async |assignment: Assignment| {
            bench.execute(&assignment).await.map_err(|error| Box::new(error) as Box<dyn Error + Send + Sync>)
        };
        let (lines, signs) = mpsc::channel(HINTS_WAITING_MAX);
        let liveness = LivenessStream::new(&bench.run.dir, lines);
        let mut follower = RunFollower {
            files: &files,
            liveness: &liveness,
            told: &told,
            disk: &disk,
            dir: &bench.run.dir,
            hints: &hints,
            watcher: &watcher,
        };
        let limits = DriveLimits { inbox, disk: Some(&disk), liveness: Some(&liveness) };
        let driven = tokio::select! {
            driven = session.drive(&executor.plan, signals, limits, &mut follower, execute) => driven,
            never = show(&hints, &watcher) => match never {},
            never = show_liveness(signs, &watcher) => match never {},
            never = keep_written(&files, &told) => match never {},
        };
        // This is done even if the run cannot continue.
        let written = files.borrow_mut().write();
        let driven = driven.and(written.map_err(RunError::Project));
        let ended = self.complete(&driven).await?;
        watcher.borrow_mut().records(&ended);
        driven?;
        if self.session.verdict().is_some() && !self.is_resumed {
            let base = restore::base(&*self.session.blobs, self.session.state())?;
            reuse::offer(&self.session.dir, &self.executor, &base, self.summary());
        }
        Ok(())
    }

    /// Fills caches from the files that the run began with, before the first stage changes a file, and records this.
    async fn fill_caches<G: Signals>(
        &mut self,
        bench: &Workbench<S::Blobs>,
        signals: &G,
    ) -> Result<Vec<Record>, RunError> {
        let filled = bench.fill_caches(self.session.state(), signals.flag()).await;
        let failed = |(node, error): (NodeId, AttemptError)| RunError::Execute { node, source: Box::new(error) };
        let pipeline = &self.executor.plan.pipeline;
        self.session.caches_filled(pipeline, filled.map_err(failed)?, &mut self.projector).await
    }

    fn bench(&self, progress: Sender<AttemptProgress>) -> Result<Workbench<S::Blobs>, RunError> {
        let Session { dir, blobs, replay, .. } = &self.session;
        let bench = bench(&self.executor, dir, blobs, &replay.state, progress)?;
        Ok(Workbench { holdouts: self.holdouts()?.map(Arc::new), output_watch: self.output_watch.clone(), ..bench })
    }

    fn holdouts(&self) -> Result<Option<Holdouts>, RunError> {
        let Session { dir, blobs, replay: Replay { state, .. }, .. } = &self.session;
        crate::holdouts::open(dir, state, &**blobs)
    }
}

/// Returns everything that the attempts of a run share, without hold-outs.
fn bench<B: BlobStore>(
    executor: &Executor,
    dir: &RunDir,
    blobs: &Arc<B>,
    state: &RunState,
    progress: Sender<AttemptProgress>,
) -> Result<Workbench<B>, RunError> {
    let Executor { plan, host, sandbox_env, protected, targets, revocations, .. } = executor;
    let base = restore::base(&**blobs, state)?;
    let ignored = Arc::new(IgnoreMatcher::new(&base.ignored));
    let is_verification = |kind: HandlerKind| kind == HandlerKind::Verification && plan.checks.verify.is_some();
    let mut kinds = plan.pipeline.nodes.iter().map(|node| node.handler.kind());
    let is_told_base = kinds.any(|kind| kind.judges_changes() || is_verification(kind));
    // The repository of commands has the last commit of the project.
    let has_commit = state.run.as_ref().is_some_and(|run| run.workspace.git.commit.is_some());
    let is_needed = is_told_base || (has_commit && plan.bindings.values().any(|binding| binding.runs_commands()));
    Ok(Workbench {
        plan: Arc::clone(plan),
        host: Arc::clone(host),
        run: Arc::new(dir.without_key().map_err(|error| RunError::Project(Box::new(error)))?),
        blobs: Arc::clone(blobs),
        sandbox_env: sandbox_env.clone(),
        protected: protected.clone(),
        // The ignore rules of the beginning of the run are used, because a stage may have changed the ignore rules
        // in the workspace.
        ignored,
        base: if is_needed { Arc::new(base) } else { Arc::default() },
        budget: Arc::new(budget(plan, state)),
        targets: Arc::clone(targets),
        revocations: Arc::clone(revocations),
        policies: Arc::clone(&executor.worker.policies),
        holdouts: None,
        progress,
        handed_on: None,
        output_watch: None,
        preparing: Preparing::default(),
        held: HeldSpending::default(),
    })
}

/// If a first stage runs commands, begins to build its jail while the run's folder is made.
fn prepare_jail(Executor { plan, sandbox_env, .. }: &Executor) {
    let first = plan.pipeline.outgoing(&plan.pipeline.start).filter_map(|(_, edge)| plan.bindings.get(&edge.to));
    let first = first.into_iter().find(|binding| binding.runs_commands());
    if let (Some(Tier::Full), Some(binding)) = (sandbox_env.tier, first) {
        Jail::prepare(&sandbox_env.policy, &binding.command_access.network);
    }
}

/// Returns the directory with the run's files.
fn files_of(dir: &RunDir) -> Result<Dir, RunError> {
    dir.dir.try_clone().map_err(|error| RunError::Project(Box::new(error)))
}

fn project_error(error: ProjectError) -> RunError {
    RunError::Project(Box::new(error))
}

/// The run's files while it is driven.
struct Files<'a, B> {
    projector: &'a mut Projector<B>,
    /// The error of a write between two records. `None` if there was none.
    failed: Option<ProjectError>,
}

impl<B: BlobStore> Files<'_, B> {
    fn advance(&mut self, disk: &DiskGauge) -> Result<(), Fault> {
        self.projector.advance()?;
        // Whether a run is above its disk limit is decided by the files on disk, so they are written first.
        if disk.was_full() { self.write() } else { self.check() }
    }

    fn write(&mut self) -> Result<(), Fault> {
        self.projector.write()?;
        self.check()
    }

    fn write_if_due(&mut self) -> Result<(), ()> {
        if self.projector.due().is_none_or(|due| due > Instant::now()) {
            return Ok(());
        }
        self.projector.write().map_err(|error| self.failed = Some(error))
    }

    fn check(&mut self) -> Result<(), Fault> {
        self.failed.take().map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Follows a run that is driven: writes its files, updates its exchanges with models, and calls `watch`.
struct RunFollower<'a, 'f, W, B> {
    files: &'a RefCell<Files<'f, B>>,
    liveness: &'a LivenessStream<'a>,
    told: &'a Notify,
    disk: &'a DiskGauge,
    dir: &'a Dir,
    hints: &'a RefCell<Receiver<AttemptProgress>>,
    watcher: &'a RefCell<Watcher<W>>,
}

impl<W: FnMut(Update<'_>), B: BlobStore> Follow for RunFollower<'_, '_, W, B> {
    fn record(&mut self, record: &Record, replay: &Replay) {
        self.files.borrow_mut().projector.record(record, replay);
    }

    fn appended(&mut self, records: &[Record]) -> Result<(), Fault> {
        self.files.borrow_mut().advance(self.disk)?;
        self.told.notify_one();
        records.iter().for_each(|record| exchanges::note(self.dir, record));
        self.liveness.note(records);
        let mut watcher = self.watcher.borrow_mut();
        show_waiting(self.hints, &mut watcher);
        watcher.records(records);
        Ok(())
    }
}

/// Writes the run's files when they are due, for as long as the future is polled, so that files are also written during a
/// long stage.
async fn keep_written<B: BlobStore>(files: &RefCell<Files<'_, B>>, told: &Notify) -> Infallible {
    loop {
        let due = files.borrow().projector.due();
        let Some(due) = due else {
            told.notified().await;
            continue;
        };
        tokio::time::sleep_until(due.into()).await;
        if files.borrow_mut().write_if_due().is_err() {
            // The error is reported, and the write is repeated, with the next records.
            told.notified().await;
        }
    }
}

/// Shows records and progress events. Progress of an attempt that has ended is not shown.
struct Watcher<W> {
    watch: W,
    under_way: BTreeMap<AttemptId, (BranchId, NodeId)>,
}

impl<W: FnMut(Update<'_>)> Watcher<W> {
    fn records(&mut self, records: &[Record]) {
        for record in records {
            if let Some(started) = record.event.stage_started() {
                let Attempt { task, id, .. } = started.attempt.clone();
                self.under_way.insert(id, (task.branch, task.node));
            } else if let Some(id) = record.event.ended_attempt() {
                self.under_way.remove(id);
            }
            (self.watch)(Update::Record(record));
        }
    }

    fn liveness(&mut self, line: &LivenessLine) {
        (self.watch)(Update::Liveness(line));
    }

    fn activity(&mut self, AttemptProgress { attempt, progress }: &AttemptProgress) {
        if let Some((branch, node)) = self.under_way.get(attempt) {
            (self.watch)(Update::Activity { branch, node, progress });
        }
    }
}

/// Shows progress events for as long as the future is polled. The future never ends, even if there are no more events.
async fn show<W: FnMut(Update<'_>)>(
    hints: &RefCell<Receiver<AttemptProgress>>,
    watcher: &RefCell<Watcher<W>>,
) -> Infallible {
    while let Some(hint) = poll_fn(|context| hints.borrow_mut().poll_recv(context)).await {
        watcher.borrow_mut().activity(&hint);
    }
    std::future::pending().await
}

/// Shows the lines of the liveness stream for as long as the future is polled.
async fn show_liveness<W: FnMut(Update<'_>)>(
    mut signs: Receiver<LivenessLine>,
    watcher: &RefCell<Watcher<W>>,
) -> Infallible {
    while let Some(line) = signs.recv().await {
        watcher.borrow_mut().liveness(&line);
    }
    std::future::pending().await
}

/// Shows the progress events that came before a record, because they are about the attempt that the record ends.
fn show_waiting<W: FnMut(Update<'_>)>(hints: &RefCell<Receiver<AttemptProgress>>, watcher: &mut Watcher<W>) {
    while let Ok(hint) = hints.borrow_mut().try_recv() {
        watcher.activity(&hint);
    }
}
