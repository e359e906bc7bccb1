//! A run on a machine that makes its attempts and does not drive it.
//!
//! Everything comes from the stores that the machines share: the journal, the settings, and the contents of files by digest.
//! The project is on another machine, and nothing of it is read. An [`UnboundRun`] has the initial files of the run, for the
//! binding of its plan on this machine. A [`MachineRun`] makes attempts with that plan. It follows the journal up to the claim
//! of each attempt, so that the workspace has the state in which the attempt was claimed.
//!
//! The directory is only a copy. Build caches and files at ignored paths are not part of the record, so an attempt on another
//! machine does not see them.

use super::budget::{budget, has_spending_bounds};
use super::packs::{self, Contents};
use super::workspace::{WorkspaceFollower, keep_replaced};
use super::{HOLDOUTS_DIR, Holdouts, RunDir, WORKSPACE_DIR, bench};
use crate::assignment::{Assignment, AttemptResult};
use crate::attempt::{AttemptError, Claims, ExchangeStore, HandedOn, Workbench, exchanges, sweep};
use crate::driver::{Follow, RunError};
use crate::holdouts;
use crate::run_dir::BRANCHES_DIR;
use glovebox_host::budget::{Budget, Till};
use glovebox_host::call::AttemptProgress;
use glovebox_host::llm::Steering;
use glovebox_jail::pulse::Pulse;
use glovebox_journal::event::{
    AttemptId, BranchId, Record, RunId, RunResumed, RunStarted, StartedPlan, StartedPlugin, StartedSettings, Task,
};
use glovebox_journal::ports::{BlobStore, RunLog};
use glovebox_journal::rewind::{self, Fold as _};
use glovebox_plan::plan::Plan;
use glovebox_plan::prepare::executor::Executor;
use glovebox_plan::prepare::shipped::{SettingFiles, ShippedComponent, ShippedComponents};
use glovebox_record::Digest;
use glovebox_state::evidence::Replay;
use glovebox_workspace::project::Base;
use glovebox_workspace::{cache, restore as workspace_restore, tree};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io::{self, ErrorKind, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::Mutex;
use tokio::sync::mpsc::Sender;

/// The beginning of the names of plugins in the first record.
pub(super) const PLUGINS: &str = "plugins.";
/// The beginning of the names of policies in the first record.
pub(super) const POLICIES: &str = "policies.";
/// The folder of the contents of files in the directory of the run.
const CONTENTS_DIR: &str = "contents";
/// The folder of the contents of hold-outs in the directory of the run, while they are unpacked.
const HOLDOUT_CONTENTS_DIR: &str = "holdout-contents";
/// The folder of the settings in the directory of the run.
const SETTINGS_DIR: &str = "settings";
/// Maximum number of settings, components and signatures of a run.
const SETTINGS_MAX: usize = 1024;
/// Maximum size of everything together that the binding of a run reads from blobs, in bytes.
const SETTINGS_BYTES_MAX: u64 = 512 << 20;
/// Maximum size of the list of the initial files, in bytes. It has room for 200,000 files with long names.
const BASE_BYTES_MAX: u64 = 256 << 20;
/// Number of records that are read at a time.
const PAGE_RECORDS: usize = 256;

/// Why a machine could not make an attempt. The attempt is not decided by it: another machine may make it.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The stores or the files of this machine failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The run was not started for several machines.
    #[error("run `{0}` was started for one machine")]
    NotShared(RunId),
    /// The first record cannot be that of the run, or is one that no machine of this version writes.
    #[error("run `{run}` cannot be made here: {reason}")]
    Refused {
        /// The run.
        run: RunId,
        /// What is wrong.
        reason: String,
    },
    /// The plan that this machine binds is not the plan of the run.
    #[error("this machine binds another plan: {differs} (digest {found}, expected {expected})")]
    OtherPlan {
        /// What differs.
        differs: String,
        /// The digest of the plan on this machine.
        found: Digest,
        /// The digest in the journal.
        expected: Digest,
    },
    /// The run does not wait for the attempt any more.
    #[error("the attempt {0} is not the one that the run waits for")]
    Overtaken(AttemptId),
    /// The attempt could not be executed because of an error of this machine.
    #[error(transparent)]
    Attempt(#[from] AttemptError),
}

/// An attempt that was claimed for a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClaimedTask {
    /// The attempt.
    pub attempt: AttemptId,
    /// Its branch.
    pub branch: BranchId,
    /// Sequence number of the record with the claim.
    pub token: u64,
}

/// What the machine knows of an attempt while it is made.
#[derive(Debug, Clone, Default)]
pub struct AttemptControl {
    /// A flag that is set to ask the attempt to stop.
    pub stop: Arc<AtomicBool>,
    /// Messages for the agent of the attempt.
    pub steering: Steering,
    /// Counts what the host observes of the attempt.
    pub pulse: Pulse,
    /// The budget of the run, which the machine that drives it keeps. `None` if nothing decides about the attempt's spending.
    pub till: Option<Arc<dyn Till>>,
    /// Where machines keep the exchanges of attempts. `None` if an attempt that is made again asks its models again.
    pub exchanges: Option<Arc<dyn ExchangeStore>>,
}

/// A run whose initial files are on this machine, before its plan is bound here.
pub struct UnboundRun<L, B> {
    dir: RunDir,
    journal: Arc<L>,
    blobs: Arc<B>,
    started: RunStarted,
    base: Base,
    contents: Arc<Contents>,
    /// Number of bytes that may still be read for the binding.
    left: AtomicU64,
}

impl<L: RunLog + 'static, B: BlobStore + 'static> UnboundRun<L, B> {
    /// Reads the first record of a run, and copies its initial files to the workspace in `dir`. Files of an earlier process
    /// in the directory are replaced. The contents that this machine lacks are fetched to the folder that `shared` returns for the
    /// size of all files, in bytes, or to one of the run alone.
    ///
    /// # Errors
    ///
    /// The run has not begun or was started for one machine, its first record is that of another run or names more files than a
    /// run may have, or a store or the disk fails.
    pub async fn open(
        dir: RunDir,
        journal: Arc<L>,
        blobs: Arc<B>,
        run: &RunId,
        shared: impl FnOnce(u64) -> Option<Arc<Contents>> + Send + 'static,
    ) -> Result<Self, MachineError> {
        let first = journal.read(run, 1, 1).await.map_err(RunError::from)?;
        let started = first.first().and_then(|first| first.event.run_started()).ok_or(RunError::NotStarted)?.clone();
        let (Some(_), Some(packs)) = (&started.settings, started.workspace.packs_digest) else {
            return Err(MachineError::NotShared(run.clone()));
        };
        let refused = |reason: String| MachineError::Refused { run: run.clone(), reason };
        // Another run's journal would decide what this machine makes.
        if started.run_id != *run {
            return Err(refused("its first record is that of another run".to_owned()));
        }
        let base = read_base(Arc::clone(&blobs), started.workspace.base_digest).await?;
        if let Some(fault) = base.fault() {
            return Err(refused(format!("the list of its files: {fault}")));
        }
        blocking(move || {
            let folder = |name| dir.path.join(name);
            // Nothing of it is in the journal, so nothing is known about it after the end of an earlier process.
            for left in [BRANCHES_DIR, cache::FOLDER, SETTINGS_DIR, CONTENTS_DIR, HOLDOUTS_DIR, HOLDOUT_CONTENTS_DIR] {
                tree::remove_all(&folder(left)).map_err(disk)?;
            }
            sweep(&dir);
            let bytes = base.files.values().fold(0_u64, |sum, fact| sum.saturating_add(fact.bytes));
            // Nothing of a run with hold-outs outlives its directory.
            let shared = if started.workspace.holdouts.is_none() { shared(bytes) } else { None };
            let contents = match shared {
                Some(shared) => shared,
                None => {
                    dir.dir.create_dir_all(CONTENTS_DIR).map_err(disk)?;
                    Arc::new(Contents::new(folder(CONTENTS_DIR)))
                }
            };
            contents.fetch(&base, &packs, &*blobs)?;
            dir.dir.create_dir_all(WORKSPACE_DIR).map_err(disk)?;
            restore_to(&dir, &base, &contents, &*blobs, &Replay::default())?;
            let left = AtomicU64::new(SETTINGS_BYTES_MAX);
            Ok(Self { dir, journal, blobs, started, base, contents, left })
        })
        .await
        .map_err(MachineError::from)
    }

    /// Returns the first record of the run.
    pub fn started(&self) -> &RunStarted {
        &self.started
    }

    /// Returns the path of the workspace, which has the initial files of the run.
    pub fn workspace(&self) -> PathBuf {
        self.dir.workspace()
    }

    /// Returns an empty folder for the settings of the run.
    ///
    /// # Errors
    ///
    /// The folder cannot be created.
    pub fn settings_folder(&self) -> io::Result<PathBuf> {
        self.dir.dir.create_dir_all(SETTINGS_DIR)?;
        Ok(self.dir.path.join(SETTINGS_DIR))
    }

    /// Reads a blob of the run that is text.
    ///
    /// # Errors
    ///
    /// The blob is missing or is not text, or the binding has read more than 512 MiB.
    pub fn text(&self, digest: &Digest) -> Result<String, RunError> {
        String::from_utf8(self.read(digest)?).map_err(|error| RunError::Workspace(Box::new(error)))
    }

    /// Reads a blob for the binding. Whoever began the run names the blobs, and may name one any number of times.
    fn read(&self, digest: &Digest) -> Result<Vec<u8>, RunError> {
        let bytes = self.blobs.read_all(digest, self.left.load(Ordering::Relaxed))?;
        self.left.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
        Ok(bytes)
    }

    /// Reads the settings of the run. Blocks.
    ///
    /// # Errors
    ///
    /// A blob is missing or rotten, or there are more than 1,024 settings, or 512 MiB of them.
    pub fn settings(&self) -> Result<SettingFiles, RunError> {
        let settings = self.started.settings.as_deref().ok_or(RunError::NotStarted)?;
        let StartedSettings { config_digest, lock_digest, plugins, setting_files } = settings;
        let signatures: usize = plugins.values().map(|plugin| plugin.signatures.len()).sum();
        if plugins.len().saturating_add(signatures).saturating_add(setting_files.len()) > SETTINGS_MAX {
            return Err(RunError::Workspace(format!("the run has more than {SETTINGS_MAX} settings").into()));
        }
        let read = |digest: &Digest| self.read(digest);
        let component = |StartedPlugin { digest, signatures }: &StartedPlugin| {
            let signatures = signatures.iter().map(read).collect::<Result<_, _>>()?;
            Ok::<_, RunError>(ShippedComponent { bytes: read(digest)?.into(), signatures })
        };
        let mut components = ShippedComponents::default();
        for (key, plugin) in plugins {
            if let Some(name) = key.strip_prefix(PLUGINS) {
                components.plugins.insert(name.to_owned(), component(plugin)?);
            } else if let Some(name) = key.strip_prefix(POLICIES) {
                components.policies.insert(name.to_owned(), component(plugin)?);
            }
        }
        let files = setting_files.iter().map(|(path, digest)| Ok((path.clone(), read(digest)?)));
        Ok(SettingFiles {
            config: config_digest.as_ref().map(read).transpose()?,
            lock: lock_digest.as_ref().map(read).transpose()?,
            components,
            files: files.collect::<Result<BTreeMap<_, _>, RunError>>()?,
        })
    }

    /// Binds the run to its plan on this machine.
    ///
    /// # Errors
    ///
    /// The plan of `executor` is not the one of the run.
    pub fn bind(self, executor: Executor, progress: Sender<AttemptProgress>) -> Result<MachineRun<L, B>, MachineError> {
        let (found, expected) = (executor.plan.digest(), self.started.plan.digest);
        if found != expected {
            let differs = difference(&self.started, &executor.plan);
            return Err(MachineError::OtherPlan { differs, found, expected });
        }
        let Self { dir, journal, blobs, started, base, contents, .. } = self;
        let position = Position { replay: Replay::default(), next: 1, claims: HashMap::new() };
        Ok(MachineRun {
            run: started.run_id,
            dir: Arc::new(dir),
            journal,
            blobs,
            base,
            contents,
            executor,
            progress,
            position: Mutex::new(position),
            holdouts: OnceLock::new(),
        })
    }
}

/// A run on this machine, with its plan.
pub struct MachineRun<L, B> {
    run: RunId,
    dir: Arc<RunDir>,
    journal: Arc<L>,
    blobs: Arc<B>,
    base: Base,
    contents: Arc<Contents>,
    executor: Executor,
    progress: Sender<AttemptProgress>,
    position: Mutex<Position>,
    /// The hold-outs, which are opened for the first attempt.
    holdouts: OnceLock<Option<Arc<Holdouts>>>,
}

/// How far this machine has followed the journal.
struct Position {
    replay: Replay,
    /// The number of the next record. The workspace has the changes of all earlier ones.
    next: u64,
    /// The claims of each attempt that may be made again, by its task and ordinal.
    claims: HashMap<(Task, u32), Claims>,
}

impl Position {
    /// Applies the claim or the end of an attempt.
    fn note(&mut self, record: &Record) {
        if let Some(started) = record.event.stage_started() {
            let of = (started.attempt.task.clone(), started.attempt.ordinal);
            let machine = started.machine.clone().map(|machine| (record.seq, machine));
            self.claims.entry(of).or_default().machines.extend(machine);
        }
        if let Some(finished) = record.event.stage_finished() {
            let of = (finished.attempt.task.clone(), finished.attempt.ordinal);
            match exchanges::may_be_repeated(finished.outcome.failure.as_ref()) {
                true => self.claims.entry(of).or_default().booked = record.seq,
                false => drop(self.claims.remove(&of)),
            }
        }
    }
}

impl<L: RunLog, B: BlobStore + 'static> MachineRun<L, B> {
    /// Returns what executes the stages of the run here.
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    /// Makes an attempt, and returns its result. Everything that the result names is stored for all machines.
    ///
    /// # Errors
    ///
    /// The run does not wait for the attempt, or this machine cannot make it.
    pub async fn make(&self, task: &ClaimedTask, control: &AttemptControl) -> Result<AttemptResult, MachineError> {
        let (assignment, bench) = self.assignment(task, control).await?;
        let bench = Arc::new(bench);
        let result = bench.execute(&assignment).await?;
        let AttemptResult { finished, .. } = &result;
        let workspace = self.dir.workspace();
        keep_replaced(&workspace, &*self.blobs, finished.files.changes.iter().chain(finished.proposed()))
            .map_err(RunError::from)?;
        self.blobs.flush().await.map_err(RunError::from)?;
        Ok(result)
    }

    /// Follows the journal to the claim of an attempt, and returns what it needs.
    async fn assignment(
        &self,
        task: &ClaimedTask,
        control: &AttemptControl,
    ) -> Result<(Assignment, Workbench<B>), MachineError> {
        let mut position = self.position.lock().await;
        self.follow(&mut position, task.token).await?;
        let state = &position.replay.state;
        let overtaken = || MachineError::Overtaken(task.attempt.clone());
        let run = Arc::clone(state.run.as_ref().ok_or(RunError::NotStarted)?);
        let branch = state.branch(&task.branch);
        let open =
            branch.open().filter(|open| open.attempt_id.as_ref() == Some(&task.attempt)).ok_or_else(overtaken)?;
        // The order must be one for this machine.
        if open.machine.as_ref().is_none_or(|machine| machine.as_str() != self.executor.worker.name) {
            return Err(overtaken());
        }
        let attempt = open.attempt(&task.attempt);
        state.steering(open).for_each(|message| control.steering.push(message));
        let assignment = Assignment {
            token: task.token,
            granted: state.granted(&attempt.task.node),
            attempt,
            run,
            branch: Arc::clone(branch),
            stop: Arc::clone(&control.stop),
            steering: control.steering.clone(),
            pulse: control.pulse.clone(),
        };
        let bench = bench(&self.executor, &self.dir, &self.blobs, state, self.progress.clone())?;
        let holdouts = match self.holdouts.get() {
            Some(opened) => opened.clone(),
            None => {
                self.fetch_holdouts(&assignment.run)?;
                let opened = holdouts::open(&self.dir, state, &*self.blobs)?.map(Arc::new);
                self.holdouts.get_or_init(|| opened).clone()
            }
        };
        let plan = &self.executor.plan;
        let budget = match &control.till {
            Some(till) if has_spending_bounds(plan, state) => Budget::elsewhere(plan.models.price, Arc::clone(till)),
            _ => budget(plan, state),
        };
        let budget = Arc::new(budget);
        let claims = position.claims.get(&(assignment.attempt.task.clone(), assignment.attempt.ordinal));
        let judges = plan.bindings.get(&assignment.stage()).is_some_and(|binding| binding.is_verifier());
        let claims = Claims { judges, ..claims.cloned().unwrap_or_default() };
        let handed_on = control.exchanges.clone().map(|store| HandedOn { store, claims });
        Ok((assignment, Workbench { budget, holdouts, handed_on, ..bench }))
    }

    /// Unpacks the hold-outs of the run, for its first attempt on this machine.
    fn fetch_holdouts(&self, run: &RunStarted) -> Result<(), RunError> {
        let Some(sealed) = &run.workspace.holdouts else { return Ok(()) };
        let (contents, into) = (self.dir.path.join(HOLDOUT_CONTENTS_DIR), self.dir.path.join(HOLDOUTS_DIR));
        // An earlier try may have ended in between.
        [&contents, &into].into_iter().try_for_each(|folder| tree::remove_all(folder)).map_err(disk)?;
        self.dir.dir.create_dir_all(HOLDOUT_CONTENTS_DIR).map_err(disk)?;
        let fetched = packs::fetch_holdouts(sealed, &*self.blobs, &contents, &into);
        tree::remove_all(&contents).map_err(disk)?;
        fetched
    }

    /// Reads the journal at least up to a record, and applies its changes to the workspace.
    async fn follow(&self, position: &mut Position, until: u64) -> Result<(), RunError> {
        while position.next <= until {
            let page = self.journal.read(&self.run, position.next, PAGE_RECORDS).await?;
            let Some(last) = page.last() else { return Ok(()) };
            let next = last.seq + 1;
            let is_first = position.next == 1;
            // After a resume that goes back, the workspace is that of an earlier visit, and caches must not have what is undone.
            let is_reset = |resumed: &RunResumed| resumed.back.is_some() || resumed.caches_removed;
            if is_first || page.iter().any(|record| record.event.run_resumed().is_some_and(is_reset)) {
                self.begin_again(position, next).await?;
                continue;
            }
            self.apply(position, &page)?;
            position.next = next;
        }
        Ok(())
    }

    fn apply(&self, position: &mut Position, page: &[Record]) -> Result<(), RunError> {
        let mut follower = WorkspaceFollower {
            dir: &self.dir,
            blobs: &*self.blobs,
            next: &mut (),
            is_stopped: false,
            has_workspace: true,
        };
        for record in page {
            position.replay.apply(record);
            position.note(record);
            follower.record(record, &position.replay);
            follower.appended(std::slice::from_ref(record)).map_err(RunError::Project)?;
        }
        Ok(())
    }

    /// Reads all records before number `next`, and restores the workspace to the state after them.
    async fn begin_again(&self, position: &mut Position, next: u64) -> Result<(), RunError> {
        let mut records: Vec<Record> = Vec::new();
        while records.last().is_none_or(|last| last.seq + 1 < next) {
            let from = records.last().map_or(1, |last| last.seq + 1);
            let page = self.journal.read(&self.run, from, PAGE_RECORDS).await?;
            if page.is_empty() {
                return Err(RunError::NotStarted);
            }
            records.extend(page);
        }
        records.retain(|record| record.seq < next);
        let replay = rewind::after(rewind::before(&records, next - 1));
        tree::remove_all(&self.dir.path.join(BRANCHES_DIR)).map_err(disk)?;
        tree::remove_all(&self.dir.path.join(cache::FOLDER)).map_err(disk)?;
        restore_to(&self.dir, &self.base, &self.contents, &*self.blobs, &replay)?;
        *position = Position { replay, next, claims: HashMap::new() };
        records.iter().for_each(|record| position.note(record));
        Ok(())
    }
}

/// Returns what differs between the plan of a run and that of this machine, as far as the first record says. The settings are
/// those of the run, so it is usually the version of Glovebox.
fn difference(started: &RunStarted, plan: &Plan) -> String {
    let StartedPlan { components, narrowed_scopes, .. } = &started.plan;
    let here = plan.components();
    let handlers = components.keys().chain(here.keys()).collect::<BTreeSet<_>>().into_iter();
    let others: Vec<String> = handlers
        .filter(|handler| components.get(*handler) != here.get(*handler))
        .map(|handler| format!("`{handler}`"))
        .collect();
    if !others.is_empty() {
        return format!("the components for {} differ", others.join(", "));
    }
    match plan.narrowed_scopes() == *narrowed_scopes {
        false => "the write scopes differ".to_owned(),
        true => "something else than components and write scopes differs".to_owned(),
    }
}

/// Reads the list of the initial files.
async fn read_base<B: BlobStore + 'static>(blobs: Arc<B>, digest: Digest) -> Result<Base, RunError> {
    let read = move || {
        let base = blobs.read_all(&digest, BASE_BYTES_MAX)?;
        serde_json::from_slice(&base).map_err(|error| RunError::Workspace(Box::new(error)))
    };
    blocking(read).await
}

/// Restores the workspace to a state of the run.
fn restore_to(
    dir: &RunDir,
    base: &Base,
    contents: &Contents,
    blobs: &impl BlobStore,
    replay: &Replay,
) -> Result<(), RunError> {
    let open = |digest: &Digest| -> io::Result<Box<dyn Read + Send>> {
        match contents.open(digest) {
            Err(error) if error.kind() == ErrorKind::NotFound => blobs.open_unverified(digest),
            found => Ok(Box::new(found?)),
        }
    };
    let changes = replay.state.main().changes.values();
    workspace_restore::restore(&dir.workspace(), base, changes, &open)
        .map(drop)
        .map_err(|error| RunError::Workspace(Box::new(error)))
}

/// Runs blocking work on a thread of its own.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RunError> + Send + 'static,
) -> Result<T, RunError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(panic) => Err(RunError::Workspace(Box::new(panic))),
    }
}

fn disk(error: io::Error) -> RunError {
    RunError::Workspace(Box::new(error))
}
