//! A run's stores under its lock, and the driver over them.
//!
//! A [`Session`] holds the run's lock, so no other process drives the run. Creating one appends the journal's first record after
//! everything that the record names is stored. Opening one takes records that were verified and reads only what follows them. The
//! workspace is the base copy and the changes of finished stages, applied again on resume, since a crash may have cut the last short.

use super::workspace::keep_replaced;
use super::{OWNER_FILE, OpenCopy, RunDir, Worker, apply_changes};
use crate::blobs::DirBlobs;
use crate::decide::limit_reached;
use crate::disk::DiskGauge;
use crate::driver::{Assignment, Driver, GRACE, RunError, replay};
use crate::event::{CacheFilled, Digest, Event, Record, Replanned, RunId, RunResumed, StageFinished, Verdict};
use crate::plan::compare::{Addition, Change, additions};
use crate::plan::{Plan, PlanCapabilities, RunBounds};
use crate::ports::{BlobStore, RunLog, Signals};
use crate::sqlite::{Owner, SqliteLog, VerifiedJournal};
use crate::state::RunState;
use glovebox_pipeline::ir::{NodeId, Pipeline};
use glovebox_sandbox::project::Skipped;
use glovebox_sandbox::run::JOURNAL_FILE;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A run that this process may drive.
pub struct Session {
    /// Its directory, which attempts share.
    pub dir: Arc<RunDir>,
    /// Its journal.
    pub journal: SqliteLog,
    /// Its blobs.
    pub blobs: Arc<DirBlobs>,
    /// What is known of it.
    pub state: RunState,
    /// Copies of hold-outs that the workspace began with, where the pipeline allows them; found by [`Session::create`].
    pub open_copies: Vec<OpenCopy>,
    /// What of the project the copy could not take; found by [`Session::create`].
    pub left_out: Vec<Skipped>,
    pub(super) worker: Worker,
    pub(super) last: Option<Event>,
    // Dropped last: no other process may open the stores above before they are closed.
    pub(super) _owner: Owner,
}

/// What a resume changes. The default changes nothing, and begins a run that failed again at the node that failed.
#[derive(Default)]
pub struct ResumeTerms<'a> {
    /// The node to begin again at.
    pub from: Option<NodeId>,
    /// The most steps of the run from here on.
    pub steps_max: Option<u64>,
    /// The longest driven time of the run from here on.
    pub wall_max: Option<Duration>,
    /// Another script for the model.
    pub script: Option<&'a [u8]>,
    /// Another plan.
    pub replan: Option<Replan>,
}

/// The plan that a run continues with in place of its own.
pub struct Replan {
    /// Its digest.
    pub plan_digest: Digest,
    /// Its components: digest by handler.
    pub components: BTreeMap<String, Digest>,
    /// What it allows.
    pub capabilities: PlanCapabilities,
    /// How that differs from the plan before.
    pub change: Change,
}

impl Replan {
    /// A plan, compared with what the plan before allowed.
    pub fn of(plan: &Plan, bounds: RunBounds, before: &PlanCapabilities) -> Self {
        let capabilities = plan.capabilities(bounds);
        let lines = |additions: Vec<Addition>| additions.iter().map(ToString::to_string).collect();
        let change =
            Change { more: lines(additions(before, &capabilities)), less: lines(additions(&capabilities, before)) };
        Self { plan_digest: plan.digest(), components: plan.components(), capabilities, change }
    }
}

impl Session {
    /// Opens a run that was started before: takes the lock, verifies what was appended since `verified` was read, and folds the
    /// state. Returns every record, for the projections.
    pub fn open(dir: RunDir, worker: Worker, verified: VerifiedJournal) -> Result<(Self, Vec<Record>), RunError> {
        if verified.run_id().is_none() {
            return Err(RunError::NotStarted);
        }
        let owner = Owner::acquire(&dir.path.join(OWNER_FILE))?;
        let (journal, tail) = SqliteLog::reopen(&dir.path.join(JOURNAL_FILE), dir.key.clone(), &verified)?;
        let mut records = verified.records;
        records.extend(tail);
        let (state, last) = replay(&records)?;
        let blobs = Arc::new(journal.blobs(&dir.dir)?);
        let (open_copies, left_out) = (Vec::new(), Vec::new());
        let dir = Arc::new(dir);
        let session = Self { dir, journal, blobs, state, worker, last, open_copies, left_out, _owner: owner };
        Ok((session, records))
    }

    /// Takes the run over: brings the workspace to where the journal says, abandons an attempt that was cut off and appends
    /// whatever decision was outstanding. A run that failed begins again at the node that failed, or at the node that is asked for.
    /// One that succeeded, or that was canceled for good, is an error that says how it ended.
    pub async fn resume(&mut self, pipeline: &Pipeline, terms: ResumeTerms<'_>) -> Result<Vec<Record>, RunError> {
        if let Some(verdict) = self.state.verdict.as_ref().filter(|_| !self.state.can_be_resumed()) {
            return Err(RunError::Ended { run_id: self.run_id(), verdict: verdict.status });
        }
        let resumed = self.resumed(terms)?;
        if let Some(failure) = limit_reached(&self.state, &resumed) {
            return Err(RunError::LimitReached(failure));
        }
        self.blobs.sweep()?;
        self.journal.lengthen(&self.dir.dir)?;
        self.restore_workspace().await?;
        let last = self.last.take();
        let begun = (self.run_id(), std::mem::take(&mut self.state));
        let mut driver = driver(begun, pipeline, (&self.journal, &()), &self.worker);
        let resumed = driver.resume(last, resumed).await;
        self.state = driver.state;
        resumed
    }

    /// Brings the workspace to where the journal says.
    async fn restore_workspace(&self) -> Result<(), RunError> {
        let (workspace, changes) = (self.dir.workspace(), &self.state.main().changes);
        // A version before may have been cut off between a commit and this. Nothing is overwritten before it is kept durably.
        keep_replaced(&workspace, &self.blobs, changes.values())?;
        self.journal.append(&self.run_id(), &[], Timestamp::now(), &[]).await?;
        apply_changes(&workspace, &self.blobs, changes.values())
    }

    /// The record of a resume under these terms; what it names is durable.
    fn resumed(&self, terms: ResumeTerms<'_>) -> Result<RunResumed, RunError> {
        let ResumeTerms { from, steps_max, wall_max, script, replan } = terms;
        let replanned = replan.map(|replan| {
            let json = serde_json::to_vec(&replan.capabilities).map_err(|error| RunError::Project(Box::new(error)))?;
            let capabilities_digest = self.blobs.put_bytes(&json)?;
            let Change { more, less } = replan.change;
            let (plan_digest, components) = (replan.plan_digest, replan.components);
            Ok::<_, RunError>(Replanned { plan_digest, components, capabilities_digest, more, less })
        });
        Ok(RunResumed {
            worker: self.worker.name.clone(),
            sandbox: self.worker.sandbox.clone(),
            from: from.or_else(|| self.state.node_to_repeat().cloned()),
            steps_max,
            wall_max_ms: wall_max.map(|wall| u64::try_from(wall.as_millis()).unwrap_or(u64::MAX)),
            script_digest: script.map(|script| self.blobs.put_bytes(script)).transpose()?,
            replanned: replanned.transpose()?,
        })
    }

    /// Records that caches were filled.
    pub async fn caches_filled(
        &mut self,
        pipeline: &Pipeline,
        filled: Vec<CacheFilled>,
    ) -> Result<Vec<Record>, RunError> {
        if filled.is_empty() {
            return Ok(Vec::new());
        }
        let events = filled.into_iter().map(|filled| Event::CacheFilled(Box::new(filled))).collect();
        let begun = (self.run_id(), std::mem::take(&mut self.state));
        let mut driver = driver(begun, pipeline, (&self.journal, &()), &self.worker);
        let noted = driver.note(events).await;
        self.state = driver.state;
        noted
    }

    /// Drives the run to its end, see [`Driver::drive`]. After each append the workspace follows, then `project` gets the records. No stage
    /// begins while the run's folder holds more than `disk` allows.
    pub async fn drive<S, E, P>(
        &mut self,
        pipeline: &Pipeline,
        (signals, disk): (&S, Option<&DiskGauge>),
        execute: E,
        mut project: P,
    ) -> Result<(), RunError>
    where
        S: Signals,
        E: AsyncFn(Assignment) -> Result<StageFinished, Box<dyn Error + Send + Sync>>,
        P: FnMut(&[Record], &RunState) -> Result<(), Box<dyn Error + Send + Sync>>,
    {
        let (workspace, blobs) = (self.dir.workspace(), Arc::clone(&self.blobs));
        let begun = (self.run_id(), std::mem::take(&mut self.state));
        let mut driver = driver(begun, pipeline, (&self.journal, signals), &self.worker);
        driver.disk = disk;
        // What a commit replaces in the workspace is durable with it.
        let execute = async |assignment: Assignment| {
            let finished = execute(assignment).await?;
            keep_replaced(&workspace, &blobs, finished.changes.iter())?;
            Ok(finished)
        };
        let driven = driver.drive(execute, |records, state| {
            follow(&workspace, &blobs, records)?;
            project(records, state)
        });
        let driven = driven.await;
        self.state = driver.state;
        driven
    }

    /// The run's id; empty only before it was started.
    pub fn run_id(&self) -> RunId {
        self.state.run_id().cloned().unwrap_or_else(|| RunId::new(""))
    }

    /// True when a resume can take it up: it has not ended, or it failed.
    pub fn can_be_resumed(&self) -> bool {
        self.state.can_be_resumed()
    }

    /// How it ended, if it has.
    pub fn verdict(&self) -> Option<Verdict> {
        self.state.verdict.as_ref().map(|ended| ended.status)
    }
}

/// A driver of a run that stands at this state.
pub(super) fn driver<'a, J: RunLog, S>(
    (run, state): (RunId, RunState),
    pipeline: &'a Pipeline,
    (journal, signals): (&'a J, &'a S),
    worker: &Worker,
) -> Driver<'a, J, S> {
    let worker = worker.name.clone();
    Driver { run, pipeline, journal, signals, worker, grace: GRACE, disk: None, state }
}

/// The lock first: nothing of a run is opened for writing without it.
pub(super) fn stores(dir: &RunDir, run: &RunId) -> Result<(Owner, SqliteLog, Arc<DirBlobs>), RunError> {
    let owner = Owner::acquire(&dir.path.join(OWNER_FILE))?;
    let journal = SqliteLog::open_signed(&dir.path.join(JOURNAL_FILE), run.clone(), dir.key.clone())?;
    let blobs = Arc::new(journal.blobs(&dir.dir)?);
    journal.lengthen(&dir.dir)?;
    Ok((owner, journal, blobs))
}

/// Applies the changes of stages that were just committed.
fn follow(workspace: &Path, blobs: &DirBlobs, records: &[Record]) -> Result<(), Box<dyn Error + Send + Sync>> {
    for record in records {
        if let Event::StageFinished(finished) = &record.event {
            apply_changes(workspace, blobs, finished.changes.iter())?;
        }
    }
    Ok(())
}
