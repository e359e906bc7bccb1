//! A run on this machine: its directory, created or opened again, and driven to its end.
//!
//! A [`Session`] holds the run's lock, so nobody else drives it. Creating one puts the journal's first record after everything
//! that the record names; opening one verifies the whole chain before a word of it is believed. The workspace is the base copy
//! and the changes of finished stages, applied again on resume, since a crash may have cut the last ones short.

mod begin;
mod holdouts;
mod workspace;

pub use begin::NewRun;
pub use holdouts::{HOLDOUTS_DIR, HoldoutError, Holdouts, OpenCopy};
pub use workspace::apply_changes;

use crate::blobs::DirBlobs;
use crate::disk::DiskGauge;
use crate::driver::{Claim, Driver, GRACE, RunError, replay};
use crate::event::{CacheFilled, Event, Record, SandboxRecord, StageFinished, Verdict};
use crate::ports::{RunLog, Signals};
use crate::sqlite::{Owner, SqliteLog};
use crate::state::RunState;
use cap_std::fs::Dir;
use glovebox_pipeline::ir::Pipeline;
use glovebox_sandbox::run::JOURNAL_FILE;
use glovebox_sandbox::user_key::UserKey;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The lock of whoever drives the run.
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
}

/// A run that this process may drive.
pub struct Session {
    /// Its directory, shared with whoever makes its attempts.
    pub dir: Arc<RunDir>,
    /// Its journal.
    pub journal: SqliteLog,
    /// Its blobs.
    pub blobs: Arc<DirBlobs>,
    /// What is known of it.
    pub state: RunState,
    /// Copies of hold-outs that the workspace began with, where the pipeline allows them; found by [`Session::create`].
    pub open_copies: Vec<OpenCopy>,
    worker: String,
    last: Option<Event>,
    // Let go last: until the stores above are closed nobody else may open them.
    _owner: Owner,
}

impl Session {
    /// Opens a run that was started before: takes the lock, verifies the chain and its signatures, reads the state back. `seen` is told every
    /// record with the state it led to, so that files can be made again.
    pub fn open(
        dir: RunDir,
        worker: String,
        seen: impl FnMut(&Record, &RunState) -> Result<(), RunError>,
    ) -> Result<Self, RunError> {
        let (owner, journal, blobs) = stores(&dir)?;
        let (state, last) = replay(&journal, seen)?;
        let open_copies = Vec::new();
        Ok(Self { dir: Arc::new(dir), journal, blobs, state, worker, last, open_copies, _owner: owner })
    }

    /// Takes the run over: brings the workspace to where the journal says, abandons an attempt that was cut off and appends
    /// whatever decision was outstanding. A run that has ended is an error that says how, unless a signal stopped it.
    pub async fn resume(
        &mut self,
        pipeline: &Pipeline,
        sandbox: Option<SandboxRecord>,
    ) -> Result<Vec<Record>, RunError> {
        if let Some(verdict) = self.state.verdict.as_ref().filter(|_| self.state.is_over()) {
            let run_id = self.run_id().into();
            return Err(RunError::Ended { run_id, verdict: verdict.status });
        }
        apply_changes(&self.dir.workspace(), &self.blobs, self.state.changes.values())?;
        let last = self.last.take();
        let mut driver = driver(pipeline, &self.journal, &(), &self.worker, &mut self.state);
        let resumed = driver.resume(last, sandbox).await;
        self.state = driver.state;
        resumed
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
        let mut driver = driver(pipeline, &self.journal, &(), &self.worker, &mut self.state);
        let noted = driver.note(events).await;
        self.state = driver.state;
        noted
    }

    /// Drives the run to its end, see [`Driver::drive`]. After each append the workspace follows, then `project` is told. No stage
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
        E: AsyncFn(&Claim, &RunState) -> Result<StageFinished, Box<dyn Error + Send + Sync>>,
        P: FnMut(&[Record], &RunState) -> Result<(), Box<dyn Error + Send + Sync>>,
    {
        let (workspace, blobs) = (self.dir.workspace(), Arc::clone(&self.blobs));
        let mut driver = driver(pipeline, &self.journal, signals, &self.worker, &mut self.state);
        driver.disk = disk;
        let driven = driver.drive(execute, |records, state| {
            follow(&workspace, &blobs, records)?;
            project(records, state)
        });
        let driven = driven.await;
        self.state = driver.state;
        driven
    }

    /// The run's id; empty only before it was started.
    pub fn run_id(&self) -> &str {
        self.state.run.as_ref().map_or("", |run| run.run_id.as_str())
    }

    /// True when nothing of it is left to do; one that a signal stopped can be resumed.
    pub fn is_over(&self) -> bool {
        self.state.is_over()
    }

    /// How it ended, if it has.
    pub fn verdict(&self) -> Option<Verdict> {
        self.state.verdict.as_ref().map(|ended| ended.status)
    }
}

fn driver<'a, J: RunLog, S>(
    pipeline: &'a Pipeline,
    journal: &'a J,
    signals: &'a S,
    worker: &str,
    state: &mut RunState,
) -> Driver<'a, J, S> {
    let (worker, state) = (worker.to_owned(), std::mem::take(state));
    Driver { pipeline, journal, signals, worker, grace: GRACE, disk: None, state }
}

/// The lock first: nothing of a run is opened for writing without it.
fn stores(dir: &RunDir) -> Result<(Owner, SqliteLog, Arc<DirBlobs>), RunError> {
    let owner = Owner::acquire(&dir.path.join(OWNER_FILE))?;
    let journal = SqliteLog::open_signed(&dir.path.join(JOURNAL_FILE), dir.key.clone())?;
    let blobs = Arc::new(DirBlobs::open_in(&dir.dir)?);
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
