//! The stores of a run under its lock, and the driver that uses them.
//!
//! A [`Session`] holds the run's lease, so no other process drives the run. Creating a session appends the journal's first
//! record after everything that the record names is stored. Opening one reads the journal, a few records at a time, and keeps
//! only the resulting state. The workspace is the copy of the project and the changes of finished stages. On resume the
//! changes are applied again, since a crash may have interrupted this.

use super::branches;
use super::restore::{CacheRemoval, restore};
use super::workspace::{WorkspaceFollower, keep_replaced};
use super::{OpenCopy, RunDir, VisitPoint, apply_changes};
use crate::assignment::{Assignment, AttemptResult};
use crate::clock::{self, RunClock};
use crate::disk::DiskGauge;
use crate::driver::{Driver, Fault, Follow, RunError};
use crate::edge_check::EdgeCheck;
use crate::executors::{Executors, Here};
use crate::inbox::{Inbox, Mail, forget_requests};
use crate::liveness::LivenessStream;
use crate::merge_check::MergeCheck;
use crate::reserve::Reserve;
use crate::stores::{self, Embedded, OpenStores, Stores};
use glovebox_journal::event::{
    CacheFilled, Digest, DriverId, Event, Record, Repaired, Replanned, RunCanceled, RunId, RunResumed, Verdict,
    WentBack,
};
use glovebox_journal::ports::{BlobStore, Leases, RunLog, Signals};
use glovebox_journal::queue::Queue;
use glovebox_journal::rewind::{self, Fold};
use glovebox_journal::sqlite::{Owner, SqliteLog, Tip, VerifiedJournal};
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_plan::plan::compare::{Addition, Change, additions};
use glovebox_plan::plan::{Plan, PlanCapabilities};
use glovebox_plan::prepare::executor::Worker;
use glovebox_record::liveness::StallSettings;
use glovebox_record::scope::Entry;
use glovebox_record::spend::SpendBounds;
use glovebox_record::{Failure, RunBounds};
use glovebox_state::decide::{failed, limit_reached, resumes_at, visits_used_up, with_exits};
use glovebox_state::evidence::Replay;
use glovebox_state::run_state::{LastEvents, PendingDecisions, RunState};
use glovebox_workspace::project::SkippedEntry;
use glovebox_workspace::run_folder::JOURNAL_FILE;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of bytes that are copied to this machine to restore the workspace.
const FETCH_BYTES_MAX: u64 = 8 << 30;

/// A run that this process may drive.
pub struct Session<S: Stores = Embedded> {
    /// The run directory, which attempts share.
    pub dir: Arc<RunDir>,
    /// The journal of the run.
    pub journal: S::Log,
    /// The blobs of the run.
    pub blobs: Arc<S::Blobs>,
    /// The state of the run so far: the only fold of its journal.
    pub replay: Replay,
    /// Copies of hold-outs in the initial workspace, if the pipeline allows them. Set by [`Session::create`].
    pub open_copies: Vec<OpenCopy>,
    /// Files of the project that could not be copied. Set by [`Session::create`].
    pub left_out: Vec<SkippedEntry>,
    pub(super) worker: Worker,
    pub(super) pending: PendingDecisions,
    /// The last events of the journal as it was read, for a takeover.
    pub(super) last: LastEvents,
    /// The id of the takeover by this process. `None` if it started or resumed the run.
    pub(super) takeover: Option<DriverId>,
    /// The clock of all drivers of this session.
    pub(super) clock: RunClock,
    /// False if the attempts are made on other machines, so that this one needs no workspace.
    pub(super) has_workspace: bool,
    /// The space for the end of the run. `None` if this process does not drive the run.
    pub(super) reserve: Option<Reserve>,
    /// The messages to the run, until it is driven.
    pub(super) mail: Option<S::Mail>,
    pub(super) lease: S::Lease,
    // Dropped last: no other process may open the stores above before they are closed.
    pub(super) held: <S::Lease as Leases>::Held,
}

/// The changes that a resume makes. The default changes nothing, and continues a failed run at the node that failed.
#[derive(Default)]
pub struct ResumeTerms<'a> {
    /// The node at which the run restarts. `None` for the default.
    pub from: Option<NodeId>,
    /// The visit to which the run goes back. Its node replaces `from`. `None` if the run does not go back.
    pub back: Option<VisitPoint>,
    /// New maximum number of steps of the run. `None` to keep the current one.
    pub steps_max: Option<u64>,
    /// New maximum driven time of the run. `None` to keep the current one.
    pub wall_max: Option<Duration>,
    /// New settings of the stall watchdog. The default keeps the current ones.
    pub stall: StallSettings,
    /// New budget of the run's model calls.
    pub spend_max: SpendBounds,
    /// New script for the model. `None` to keep the current one.
    pub script: Option<&'a [u8]>,
    /// New plan. `None` to keep the current one.
    pub replan: Option<Replan>,
    /// True if stored answers of attempts that were interrupted are removed, so that models are asked again.
    pub asks_again: bool,
}

/// The plan with which a run continues instead of its earlier plan.
pub struct Replan {
    /// The digest of the plan.
    pub plan_digest: Digest,
    /// The digests of the plan's components, by handler type.
    pub components: BTreeMap<String, Digest>,
    /// The write scopes that are narrower than what the nodes ask for.
    pub narrowed_scopes: BTreeMap<NodeId, Vec<Entry>>,
    /// The capabilities of the plan.
    pub capabilities: PlanCapabilities,
    /// The differences from the plan before.
    pub change: Change,
    /// The source of model answers: `scripted`, `live` or `simulated`.
    pub model: &'static str,
    /// The stages that get a simulated answer.
    pub simulated: BTreeSet<NodeId>,
}

impl Replan {
    /// Creates the plan for a resume, and compares it with what the earlier plan allowed.
    pub fn new(plan: &Plan, bounds: RunBounds, before: &PlanCapabilities) -> Self {
        let capabilities = plan.capabilities(bounds);
        let lines = |additions: Vec<Addition>| additions.iter().map(ToString::to_string).collect();
        let change =
            Change { more: lines(additions(before, &capabilities)), less: lines(additions(&capabilities, before)) };
        let (model, simulated) = (plan.model_word(), plan.simulated());
        Self {
            plan_digest: plan.digest(),
            components: plan.components(),
            narrowed_scopes: plan.narrowed_scopes(),
            capabilities,
            change,
            model,
            simulated,
        }
    }
}

/// The inputs of driving a run, in addition to its plan.
pub struct DriveLimits<'a, M = ()> {
    /// Answers, steering messages and requests to pause from other processes.
    pub inbox: Inbox<M>,
    /// The disk gauge: no stage begins while the run directory is larger than it allows. `None` if disk space has no limit.
    pub disk: Option<&'a DiskGauge>,
    /// The stream of the attempts' signs of life. `None` if nobody gets it.
    pub liveness: Option<&'a LivenessStream<'a>>,
}

impl Default for DriveLimits<'_> {
    fn default() -> Self {
        Self { inbox: Inbox::default(), disk: None, liveness: None }
    }
}

/// A run that this process may drive after it has read the journal.
pub struct ReadProblem {
    /// The run directory.
    pub dir: Arc<RunDir>,
    /// The blobs of the run.
    pub blobs: Arc<<Embedded as Stores>::Blobs>,
    /// False if the run has gone back to before a visit, or may have done so. Then folds skip records, and all records
    /// must be kept.
    pub is_linear: bool,
    journal: SqliteLog,
    worker: Worker,
    mail: <Embedded as Stores>::Mail,
    lease: <Embedded as Stores>::Lease,
    // Dropped last, as in a session.
    held: <<Embedded as Stores>::Lease as Leases>::Held,
}

impl ReadProblem {
    /// Reads and verifies the journal of a run that never went back, and keeps only its fold. `follower` gets every record in
    /// order, page by page.
    pub fn read(self, follower: &mut impl Follow) -> Result<Session, RunError> {
        let (mut fold, mut queue) = (JournalFold::new(follower), Queue::default());
        self.pages(&mut queue, |page| {
            page.into_iter().for_each(|record| fold.take(record));
            fold.follower.appended(&[]).map_err(RunError::Project)
        })?;
        self.session(fold, queue)
    }

    /// As [`ReadProblem::read`], but for every run, and also returns all records.
    pub fn read_whole(self, follower: &mut impl Follow) -> Result<(Session, Vec<Record>), RunError> {
        let (mut records, mut queue) = (Vec::new(), Queue::default());
        self.pages(&mut queue, |page| {
            records.extend(page);
            records.iter_mut().for_each(|record: &mut Record| record.text.forget());
            Ok(())
        })?;
        let mut fold = JournalFold::new(follower);
        rewind::fold(&records, &mut fold);
        fold.follower.appended(&[]).map_err(RunError::Project)?;
        let session = self.session(fold, queue)?;
        Ok((session, records))
    }

    fn pages(
        &self,
        queue: &mut Queue,
        mut take: impl FnMut(Vec<Record>) -> Result<(), RunError>,
    ) -> Result<(), RunError> {
        let mut tip = Tip::START;
        loop {
            let page = self.journal.next_page(&mut tip)?;
            if page.is_empty() {
                return Ok(());
            }
            page.iter().for_each(|record| queue.apply(record));
            take(page)?;
        }
    }

    fn session<F>(self, fold: JournalFold<'_, F>, queue: Queue) -> Result<Session, RunError> {
        let Self { dir, blobs, journal, worker, mail, lease, held, .. } = self;
        journal.begin_queue(queue);
        Session::from_fold(dir, OpenStores { journal, blobs, mail, lease, held }, worker, fold)
    }
}

/// Folds a journal while it is read. Keeps the state of the run and the last events, whose follow-up decisions may be missing. Each
/// record is also passed to the follower.
pub(super) struct JournalFold<'a, F> {
    replay: Replay,
    last: LastEvents,
    pub(super) follower: &'a mut F,
}

impl<'a, F: Follow> JournalFold<'a, F> {
    pub(super) fn new(follower: &'a mut F) -> Self {
        Self { replay: Replay::default(), last: LastEvents::default(), follower }
    }

    fn take(&mut self, record: Record) {
        self.replay.apply(&record);
        self.follower.record(&record, &self.replay);
        self.last.note(record, &self.replay.state);
    }
}

impl<F: Follow> Fold for JournalFold<'_, F> {
    type Past = Replay;

    fn apply(&mut self, record: &Record) {
        self.take(record.clone());
    }

    fn go_back(&mut self, past: Replay) {
        self.replay.go_back(past);
    }
}

impl Session {
    /// Opens a run that was started before and takes its lock. The journal is read afterwards, with [`ReadProblem::read`].
    pub fn open(dir: RunDir, worker: Worker, verified: &VerifiedJournal) -> Result<ReadProblem, RunError> {
        let run = verified.run_id().ok_or(RunError::NotStarted)?;
        let lease = stores::lease(&dir);
        let held = Owner::acquire(&lease.0)?;
        forget_requests(&dir.dir);
        let (journal, has_grown) = SqliteLog::reopen(&dir.path.join(JOURNAL_FILE), dir.key.clone(), verified)?;
        let is_linear = !has_grown && rewind::rewind_count(&verified.records) == 0;
        let blobs = Arc::new(journal.blobs(&dir.dir)?);
        let mail = stores::mail(&dir, run)?;
        Ok(ReadProblem { dir: Arc::new(dir), blobs, is_linear, journal, worker, mail, lease, held })
    }
}

impl<S: Stores> Session<S> {
    pub(super) fn from_fold<F>(
        dir: Arc<RunDir>,
        stores: OpenStores<S>,
        worker: Worker,
        fold: JournalFold<'_, F>,
    ) -> Result<Self, RunError> {
        let (replay, last) = (fold.replay, fold.last);
        replay.state.run.as_ref().ok_or(RunError::NotStarted)?;
        let pending = last.clone().pending();
        Ok(Self { last, ..Self::new(dir, stores, worker, replay, pending) })
    }

    /// Creates the session of a run with this state.
    pub(super) fn new(
        dir: Arc<RunDir>,
        stores: OpenStores<S>,
        worker: Worker,
        replay: Replay,
        pending: PendingDecisions,
    ) -> Self {
        let OpenStores { journal, blobs, mail, lease, held } = stores;
        Self {
            dir,
            journal,
            blobs,
            replay,
            open_copies: Vec::new(),
            left_out: Vec::new(),
            worker,
            pending,
            last: LastEvents::default(),
            takeover: None,
            clock: RunClock::start(),
            has_workspace: true,
            reserve: None,
            mail: Some(mail),
            lease,
            held,
        }
    }

    /// Takes the run over: restores the workspace to the state in the journal, abandons an attempt that was interrupted
    /// and appends all pending decisions. A failed run restarts at the node that failed, or at the node in `terms`. For
    /// a run that succeeded or was canceled for good, returns an error with its verdict. `past` is the state before the
    /// visit to which the run goes back.
    pub async fn resume(
        &mut self,
        pipeline: &Pipeline,
        terms: ResumeTerms<'_>,
        past: Option<Replay>,
        follower: &mut impl Follow,
    ) -> Result<Vec<Record>, RunError> {
        if let Some(verdict) = self.replay.state.verdict.as_ref().filter(|_| !self.replay.state.can_be_resumed()) {
            return Err(RunError::Ended { run_id: self.run_id(), verdict: verdict.status });
        }
        let resumed = self.resumed(pipeline, terms)?;
        let used_up = || visits_used_up(pipeline, &self.replay.state, &resumed);
        if let Some(failure) = limit_reached(&self.replay.state, &resumed).or_else(used_up) {
            return Err(RunError::LimitReached(failure));
        }
        let goes_back = past.is_some();
        past.into_iter().for_each(|past| self.replay.go_back(past));
        let resumed = match self.has_workspace {
            true => self.reopen_workspace(resumed, goes_back).await?,
            false => resumed,
        };
        let (run, replay, pending) = self.position();
        // A pending fan-in merges changes, so the workspace must be updated too.
        let follower = self.updating_workspace(follower);
        let mut driver = self.driver(pipeline, &(), follower, run, replay, PendingDecisions::default());
        let resumed = driver.resume(pending, resumed).await;
        (self.replay, self.pending) = driver.into_parts();
        resumed
    }

    /// Prepares the run directory for a resume. Returns the event of the resume with what this changed.
    async fn reopen_workspace(&mut self, resumed: RunResumed, goes_back: bool) -> Result<RunResumed, RunError> {
        self.reserve = Some(Reserve::keep(&self.dir).map_err(|error| RunError::Project(Box::new(error)))?);
        self.blobs.sweep()?;
        S::lengthen(&self.journal, &self.dir.dir)?;
        let clock_went_back = self.replay.state.at.is_some_and(clock::is_behind);
        let removal = CacheRemoval { goes_back, clock_went_back };
        let caches_removed = removal.perform(&self.dir, &self.replay.state)?;
        branches::sweep(&self.dir, caches_removed).map_err(|error| RunError::Workspace(Box::new(error)))?;
        let repaired = self.restore_workspace().await?;
        // Changes that the run undoes by going back are not reported as changes of another process.
        let repaired = repaired.filter(|_| !goes_back);
        Ok(RunResumed { repaired, caches_removed, clock_went_back, ..resumed })
    }

    /// Restores the workspace to the state in the journal. Returns what differed from it.
    pub(super) async fn restore_workspace(&self) -> Result<Option<Repaired>, RunError> {
        let (workspace, changes) = (self.dir.workspace(), &self.replay.state.main().changes);
        // A process may have been killed between a commit and the application of its changes. Files are stored durably before
        // they are overwritten.
        keep_replaced(&workspace, &*self.blobs, changes.values())?;
        self.journal.append(&self.run_id(), &[], Timestamp::now(), &[]).await?;
        let digests: Vec<Digest> = changes.values().filter_map(|change| change.digest).collect();
        self.blobs.fetch(&digests, FETCH_BYTES_MAX).await?;
        apply_changes(&workspace, &*self.blobs, changes.values())?;
        restore(&self.dir, &*self.blobs, &self.replay.state)
    }

    /// Ends the run for good. An attempt that was interrupted is abandoned, and the changes of all others are applied to the
    /// workspace.
    pub(super) async fn cancel(
        &mut self,
        pipeline: &Pipeline,
        canceled: RunCanceled,
        follower: &mut impl Follow,
    ) -> Result<(), RunError> {
        S::lengthen(&self.journal, &self.dir.dir)?;
        let (workspace, changes) = (self.dir.workspace(), &self.replay.state.main().changes);
        keep_replaced(&workspace, &*self.blobs, changes.values())?;
        let (run, replay, pending) = self.position();
        let mut driver = self.driver(pipeline, &(), follower, run, replay, pending);
        let ended = driver.cancel_idle(canceled).await;
        (self.replay, self.pending) = driver.into_parts();
        ended?;
        apply_changes(&workspace, &*self.blobs, self.replay.state.main().changes.values())
    }

    /// Appends the end of a run that cannot continue. A resume continues where it stopped.
    pub(super) async fn end(
        &mut self,
        pipeline: &Pipeline,
        failure: Failure,
        follower: &mut impl Follow,
    ) -> Result<Vec<Record>, RunError> {
        let (run, replay, pending) = self.position();
        let mut driver = self.driver(pipeline, &(), follower, run, replay, pending);
        let ended = with_exits(&driver.replay.state, failed(failure));
        let ended = driver.note(ended).await;
        (self.replay, self.pending) = driver.into_parts();
        ended
    }

    /// Creates the `run.resumed` event of a resume with these changes. Every blob that the event names is durable.
    fn resumed(&self, pipeline: &Pipeline, terms: ResumeTerms<'_>) -> Result<RunResumed, RunError> {
        let ResumeTerms { from, back, steps_max, wall_max, stall, spend_max, script, replan, asks_again: _ } = terms;
        let replanned = replan.map(|replan| {
            let json = serde_json::to_vec(&replan.capabilities).map_err(|error| RunError::Project(Box::new(error)))?;
            let capabilities_digest = self.blobs.put_bytes(&json)?;
            let Change { more, less } = replan.change;
            Ok::<_, RunError>(Replanned {
                plan_digest: replan.plan_digest,
                components: replan.components,
                narrowed_scopes: replan.narrowed_scopes,
                capabilities_digest,
                more,
                less,
                model: Some(replan.model.to_owned()),
                simulated: replan.simulated,
            })
        });
        // Matches a forked run that has no records of its own yet.
        let forked = self.replay.state.run.as_ref().and_then(|run| run.forked_from.as_ref());
        let forked = forked.filter(|from| from.seq == self.replay.state.seq);
        let (fork_node, context) = forked.map(|from| (from.node.clone(), from.context.clone())).unzip();
        let context = context.unwrap_or_default();
        let (from, back) = match back {
            Some(VisitPoint { node, visit, generation, seq }) => {
                (Some(node), Some(WentBack { visit, generation, seq: seq.saturating_sub(1) }))
            }
            None => (from, None),
        };
        let ended = self.replay.state.verdict.as_deref();
        let failed = ended.and_then(|ended| resumes_at(pipeline, &self.replay.state, ended)).cloned();
        Ok(RunResumed {
            worker: self.worker.name.clone(),
            sandbox: self.worker.sandbox.clone(),
            from: from.or(failed).or(fork_node),
            back,
            context,
            steps_max,
            wall_max_ms: wall_max.map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)),
            stall,
            spend_max,
            script_digest: script.map(|script| self.blobs.put_bytes(script)).transpose()?,
            replanned: replanned.transpose()?,
            ..RunResumed::default()
        })
    }

    /// Records that caches were filled.
    pub async fn caches_filled(
        &mut self,
        pipeline: &Pipeline,
        filled: Vec<CacheFilled>,
        follower: &mut impl Follow,
    ) -> Result<Vec<Record>, RunError> {
        if filled.is_empty() {
            return Ok(Vec::new());
        }
        let events = filled.into_iter().map(|filled| Event::CacheFilled(Box::new(filled))).collect();
        let (run, replay, pending) = self.position();
        let mut driver = self.driver(pipeline, &(), follower, run, replay, pending);
        let noted = driver.note(events).await;
        (self.replay, self.pending) = driver.into_parts();
        noted
    }

    /// Drives the run to its end with its plan, and makes the attempts in this process; see [`Driver::drive`].
    pub async fn drive<G, E, M>(
        &mut self,
        plan: &Plan,
        signals: &G,
        limits: DriveLimits<'_, M>,
        follower: &mut impl Follow,
        execute: E,
    ) -> Result<(), RunError>
    where
        G: Signals,
        E: AsyncFn(Assignment) -> Result<AttemptResult, Fault>,
        M: Mail,
    {
        let (workspace, blobs) = (self.dir.workspace(), Arc::clone(&self.blobs));
        // Files that a commit replaces in the workspace are stored durably with it, and so are files that a later merge at a
        // fan-in may replace.
        let execute = async |assignment: Assignment| {
            let result = execute(assignment).await?;
            let AttemptResult { finished, .. } = &result;
            keep_replaced(&workspace, &*blobs, finished.files.changes.iter().chain(finished.proposed()))?;
            blobs.flush().await?;
            Ok(result)
        };
        self.drive_on(plan, signals, limits, follower, &Here(&execute)).await
    }

    /// As [`Session::drive`], but the attempts are made by `executors`. After each append the workspace is updated first, then
    /// `follower` is called. Ends with an error if the lease of the run is lost.
    pub async fn drive_on<G: Signals, X: Executors, M: Mail>(
        &mut self,
        plan: &Plan,
        signals: &G,
        limits: DriveLimits<'_, M>,
        follower: &mut impl Follow,
        executors: &X,
    ) -> Result<(), RunError> {
        let (run, replay, pending) = self.position();
        let follower = self.updating_workspace(follower);
        let mut driver = Driver {
            disk: limits.disk,
            liveness: limits.liveness,
            no_change: plan.checks.no_change.as_ref(),
            parallel_max: plan.bounds.parallel_max,
            takeover: self.takeover.clone(),
            ..self.driver(&plan.pipeline, signals, follower, run, replay, pending)
        };
        let driven = tokio::select! {
            biased;
            driven = driver.drive_on(executors, limits.inbox) => driven,
            lost = self.lease.keep(&self.held) => Err(lost.into()),
        };
        (self.replay, self.pending) = driver.into_parts();
        driven
    }

    /// Returns the driver that continues the run with these values.
    pub(super) fn driver<'s, G, F: Follow>(
        &'s self,
        pipeline: &'s Pipeline,
        signals: &'s G,
        follower: F,
        run: RunId,
        replay: Replay,
        pending: PendingDecisions,
    ) -> Driver<'s, S::Log, G, F> {
        Driver {
            clock: self.clock,
            replay,
            pending,
            merge_check: Some(MergeCheck(&*self.blobs)),
            edge_check: Some(EdgeCheck(&self.worker.policies)),
            ..Driver::new(run, pipeline, &self.journal, signals, self.worker.name.clone(), follower)
        }
    }

    /// Returns a follower that updates the workspace, if this machine has one, before `next` is called.
    pub(super) fn updating_workspace<'s, F: Follow>(&'s self, next: &'s mut F) -> WorkspaceFollower<'s, F, S::Blobs> {
        let Self { dir, blobs, has_workspace, .. } = self;
        WorkspaceFollower { dir, blobs, next, is_stopped: false, has_workspace: *has_workspace }
    }

    /// Takes the values with which a driver continues. The driver returns them at its end.
    pub(super) fn position(&mut self) -> (RunId, Replay, PendingDecisions) {
        (self.run_id(), std::mem::take(&mut self.replay), std::mem::take(&mut self.pending))
    }

    /// Returns the state of the run.
    pub fn state(&self) -> &RunState {
        &self.replay.state
    }

    /// Returns the run's id. It is empty only before the run is started.
    pub fn run_id(&self) -> RunId {
        self.replay.state.run_id().cloned().unwrap_or_else(|| RunId::new(""))
    }

    /// Returns true if the run can be resumed: it has not ended, or it failed.
    pub fn can_be_resumed(&self) -> bool {
        self.replay.state.can_be_resumed()
    }

    /// Returns how the run ended. `None` if it has not ended.
    pub fn verdict(&self) -> Option<Verdict> {
        self.replay.state.verdict.as_ref().map(|ended| ended.status)
    }
}
