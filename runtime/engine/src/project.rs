//! Projections: the files of the run directory, made from the journal's records.
//!
//! A [`Projector`] has no fold of its own: it gets each record, and the state of the run after it, from the fold that
//! the driver uses for its decisions.
//!
//! Every file here can be deleted and rebuilt with the same bytes, and no file is read to decide anything. The journal
//! is always ahead: records are collected and written a moment later, within limits of time and memory. After a crash
//! the files are rebuilt from the first record. During a rebuild, files that change are written only at the end and
//! files of lines are replaced atomically, so that a reader sees no line twice and no old state.

pub mod checkpoint;
mod lines;
pub mod manifest;
mod parallel;
pub mod run_files;
pub mod schema;
pub mod stage;
pub mod status;
pub mod trace;

use crate::follow::{Fault, Follow};
use cap_std::fs::Dir;
use checkpoint::{CheckpointFile, Completed};
use glovebox_journal::event::{AttemptId, BranchId, Digest, Event, Record, RunFinished, StatusIngested, Verdict};
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::Failure;
use glovebox_state::context::Context;
use glovebox_state::evidence::{BranchNow, BranchesNow, Replay};
use glovebox_state::run_state::RunState;
use jiff::Timestamp;
use lines::Lines;
use manifest::{FinalFile, ManifestFile, Totals};
use run_files::{BytesWritten, Folder};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Display;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// All events, one line each, as in the journal.
pub const PROGRESS_FILE: &str = "progress.ndjson";
/// The inputs and outcomes of every node.
pub const TRACE_FILE: &str = "trace.jsonl";
/// The last event.
pub const LIVE_FILE: &str = "live.json";
/// How the run began.
pub const MANIFEST_FILE: &str = "manifest.json";
/// The current node of each branch.
pub const CHECKPOINT_FILE: &str = "checkpoint.json";
/// How the run ended.
pub const FINAL_FILE: &str = "final.json";

/// Why the files could not be written. The run itself is not affected: its journal contains everything.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A file or folder of the run directory could not be read or written.
    #[error("could not write `{path}` in the run directory: {source}")]
    Io {
        /// The path, relative to the run directory.
        path: String,
        /// The system's error.
        source: io::Error,
    },
    /// A blob that an event names cannot be read.
    #[error(transparent)]
    Blob(#[from] PortError),
    /// A value cannot be written as JSON.
    #[error("could not write `{path}` as JSON: {source}")]
    Json {
        /// The path, relative to the run directory.
        path: String,
        /// The error of the serializer.
        source: serde_json::Error,
    },
}

/// Time between two writes of the files.
pub const WRITE_EVERY: Duration = Duration::from_millis(100);
/// Maximum number of bytes that wait to be written. Blobs do not count, because they are read from the blob store only
/// when they are written.
const WAITING_BYTES_MAX: usize = 1024 * 1024;
/// Estimated memory of a waiting file in addition to its bytes.
const ENTRY_BYTES: usize = 256;

/// Files of a folder, by name.
type Files = BTreeMap<String, Content>;

/// The content of a file that waits to be written.
enum Content {
    Bytes(Vec<u8>),
    Blob(Digest),
    /// A hard link to the file with the same name in another folder.
    Link {
        folder: String,
        digest: Digest,
    },
    Nothing,
}

impl Content {
    /// Returns the estimated memory of the file while it waits.
    fn bytes(&self) -> usize {
        ENTRY_BYTES + if let Self::Bytes(bytes) = self { bytes.len() } else { 0 }
    }

    /// Returns the folder with the file to which this hard link refers.
    fn folder(&self) -> Option<&String> {
        if let Self::Link { folder, .. } = self { Some(folder) } else { None }
    }
}

/// Returns true for a folder of artifacts, which one attempt fills once. The folder of a node also contains a status.
fn is_history(files: &Files) -> bool {
    files.values().all(|content| matches!(content, Content::Blob(_)))
}

/// Writes the files of one run, at most [`WRITE_EVERY`] behind the journal.
pub struct Projector<B> {
    dir: Dir,
    blobs: Arc<B>,
    pipeline: Arc<Pipeline>,
    /// The sequence number of the last record that was handled.
    seq: u64,
    has_ended: bool,
    /// The first error while a record was handled, not returned yet by [`Projector::advance`]. `None` if there is none.
    failed: Option<ProjectError>,
    totals: Totals,
    completed: Option<Completed>,
    logs: VecDeque<String>,
    /// Names of the files other than the status in each task's folder.
    names: BTreeMap<String, BTreeSet<String>>,
    /// The decisions about status files of attempts that have not ended.
    answers: BTreeMap<AttemptId, StatusIngested>,
    /// The context of each branch after the trace lines so far.
    traced: BTreeMap<BranchId, Context>,
    /// The files that wait to be written, by folder and name.
    waiting: BTreeMap<String, Files>,
    waiting_bytes: usize,
    /// The branches of the run after the last record.
    branches: BranchesNow,
    progress: Lines,
    trace: Lines,
    written: BytesWritten,
    /// The time since which records wait. `None` if everything is written.
    waits_since: Option<Instant>,
    written_at: Option<Instant>,
    is_catching_up: bool,
}

impl<B: BlobStore> Projector<B> {
    /// Creates the projector of a journal without records, or of a journal whose files are rebuilt. Nothing is written
    /// until [`Projector::caught_up`], which must be called after the existing records.
    pub fn new(dir: Dir, blobs: Arc<B>, pipeline: Arc<Pipeline>) -> Self {
        Self {
            dir,
            blobs,
            pipeline,
            seq: 0,
            has_ended: false,
            failed: None,
            totals: Totals::default(),
            completed: None,
            logs: VecDeque::new(),
            names: BTreeMap::new(),
            answers: BTreeMap::new(),
            traced: BTreeMap::new(),
            waiting: BTreeMap::new(),
            waiting_bytes: 0,
            branches: BranchesNow::default(),
            progress: Lines::new(PROGRESS_FILE),
            trace: Lines::new(TRACE_FILE),
            written: BytesWritten::default(),
            waits_since: None,
            written_at: None,
            is_catching_up: true,
        }
    }

    /// Creates the projector of a run that has no files yet. Nothing is rebuilt, and the first write is due only after
    /// [`WRITE_EVERY`], so that the first stage does not wait for it.
    pub fn beginning(dir: Dir, blobs: Arc<B>, pipeline: Arc<Pipeline>) -> Self {
        Self { is_catching_up: false, written_at: Some(Instant::now()), ..Self::new(dir, blobs, pipeline) }
    }

    /// Returns the counter of the bytes that are written.
    pub fn written(&self) -> BytesWritten {
        self.written.clone()
    }

    /// Returns when [`Projector::write`] must be called. `None` while nothing waits.
    pub fn due(&self) -> Option<Instant> {
        let since = self.waits_since.filter(|_| !self.is_catching_up)?;
        Some(self.written_at.map_or(since, |at| at + WRITE_EVERY))
    }

    /// Writes the waiting files if the last write is long enough ago, if too much waits, or if the run has ended. While
    /// the files are rebuilt, only limits the memory of waiting files. Must be called after each append and each page
    /// of records that was read. Fails if a record could not be handled.
    pub fn advance(&mut self) -> Result<(), ProjectError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.is_catching_up {
            for lines in [&mut self.progress, &mut self.trace] {
                lines.spill(&self.dir).map_err(|source| io_error(lines.name, source))?;
            }
            return if self.waiting_bytes > WAITING_BYTES_MAX { self.write_history() } else { Ok(()) };
        }
        let waits = self.waiting_bytes + self.progress.bytes() + self.trace.bytes();
        let is_due = self.due().is_some_and(|due| due <= Instant::now());
        if is_due || self.has_ended || waits > WAITING_BYTES_MAX { self.write() } else { Ok(()) }
    }

    /// Writes everything, and follows the journal from then on. Does nothing if the projector already follows the
    /// journal.
    pub fn caught_up(&mut self) -> Result<(), ProjectError> {
        if !self.is_catching_up {
            return Ok(());
        }
        run_files::forget_unnamed(&self.dir).map_err(|source| io_error(".", source))?;
        self.write_files()?;
        let live = self.live()?;
        // Files of lines are replaced as a whole, because a crash may have left a partial line.
        for lines in [&mut self.progress, &mut self.trace] {
            let bytes = lines.replace(&self.dir).map_err(|source| io_error(lines.name, source))?;
            self.written.add(bytes);
        }
        self.write_live(live)?;
        self.is_catching_up = false;
        self.is_written();
        Ok(())
    }

    /// Writes what waits. Files come before lines, so that a reader who finds the end of the run in `progress.ndjson`
    /// also finds `final.json`.
    pub fn write(&mut self) -> Result<(), ProjectError> {
        if self.is_catching_up || self.waits_since.is_none() {
            return Ok(());
        }
        self.write_files()?;
        let live = self.live()?;
        for lines in [&mut self.progress, &mut self.trace] {
            let bytes = lines.append(&self.dir).map_err(|source| io_error(lines.name, source))?;
            self.written.add(bytes);
        }
        self.write_live(live)?;
        self.is_written();
        Ok(())
    }

    /// Handles a record, given the state of the run after it.
    fn take(&mut self, record: &Record, state: &RunState) -> Result<(), ProjectError> {
        self.waits_since.get_or_insert_with(Instant::now);
        (self.seq, self.has_ended) = (record.seq, state.verdict.is_some());
        self.trace_record(record, state)?;
        self.branches.apply(record);
        self.progress.push_record(record).map_err(|source| json_error(PROGRESS_FILE, source))?;
        match &record.event {
            Event::RunStarted(started) => self.file("", MANIFEST_FILE, &ManifestFile::new(record, started))?,
            Event::StatusIngested(ingested) => {
                self.answers.insert(ingested.attempt.id.clone(), (**ingested).clone());
            }
            Event::StageFinished(finished) => {
                self.totals.add(finished);
                self.logs.push_back(stage::log_line(record, finished));
                self.logs.drain(..self.logs.len().saturating_sub(checkpoint::LOGS_MAX));
                self.stage(finished)?;
            }
            Event::StagePassed(passed) => self.passed(passed, state)?,
            Event::ParallelJoined(joined) => self.joined(joined)?,
            Event::FanInFinished(finished) => self.fan_in(finished)?,
            Event::QuestionAnswered(answered) if answered.recovery => {}
            Event::QuestionAnswered(answered) => self.answered(answered)?,
            Event::RecoveryDecided(decided) => self.decided(decided)?,
            // The run continues, so `final.json` of the stopped run is removed.
            Event::RunResumed(_) => self.hold("", FINAL_FILE, Content::Nothing),
            Event::RunFinished(finished) => {
                if let Some(content) = self.final_file(&record.at, state, finished)? {
                    self.hold("", FINAL_FILE, content);
                }
            }
            _ => {}
        }
        if completes(&record.event) {
            self.completed = Some(Completed::after(record, state));
        }
        Ok(())
    }

    fn final_file(
        &mut self,
        at: &Timestamp,
        state: &RunState,
        finished: &RunFinished,
    ) -> Result<Option<Content>, ProjectError> {
        let Some(started) = &state.run else { return Ok(None) };
        (self.totals.steps, self.totals.generation) = (state.steps, state.generation());
        pretty(FINAL_FILE, &FinalFile::new(at, started, finished, self.totals)).map(Content::Bytes).map(Some)
    }

    /// Writes `final.json` at the end of a run that could not write its files or that has no record of its end. Other
    /// files that wait are left to a resume. `failure` is why the run cannot continue.
    pub fn write_end(&mut self, state: &RunState, at: Timestamp, failure: Failure) -> Result<(), ProjectError> {
        let stopped = RunFinished {
            status: Verdict::Fail,
            exit_node: None,
            failure: Some(failure),
            resumes_at: None,
            artifact: Some(FINAL_FILE.to_owned()),
        };
        let finished = state.verdict.as_deref().unwrap_or(&stopped);
        let Some(content) =
            self.final_file(&state.at.filter(|_| state.verdict.is_some()).unwrap_or(at), state, finished)?
        else {
            return Ok(());
        };
        self.write_folder("", BTreeMap::from([(FINAL_FILE.to_owned(), content)]), None).map(drop)
    }

    /// Adds the trace lines of a record, with the changes of its branch's context since the previous line.
    fn trace_record(&mut self, record: &Record, state: &RunState) -> Result<(), ProjectError> {
        let branch = record.event.branch().cloned().unwrap_or_else(BranchId::main);
        match &record.event {
            // The branch begins with the context of its parent branch.
            Event::BranchStarted(started) => {
                let known = self.traced.get(&started.parent).cloned().unwrap_or_default();
                self.traced.insert(branch.clone(), known);
            }
            // A resume of a canceled run continues with its branches.
            Event::BranchFinished(_) if state.canceled.is_none() => drop(self.traced.remove(&branch)),
            _ => {}
        }
        let now = state.branch(&branch).context.clone();
        let before = self.traced.get(&branch).cloned().unwrap_or_default();
        let lines = trace::lines(&self.pipeline, &before, record, state);
        if lines.iter().any(|line| line.fact.has_context()) {
            self.traced.insert(branch, now);
        }
        lines.iter().try_for_each(|line| self.trace.push(line)).map_err(|source| json_error(TRACE_FILE, source))
    }

    /// Writes files that no later record changes, so that memory is bounded while a journal is read.
    fn write_history(&mut self) -> Result<(), ProjectError> {
        let (history, others) = std::mem::take(&mut self.waiting).into_iter().partition(|(_, files)| is_history(files));
        self.waiting = others;
        self.waiting_bytes = self.waiting.values().map(|files| files.values().map(Content::bytes).sum::<usize>()).sum();
        let history: BTreeMap<String, _> = history;
        history.into_iter().try_for_each(|(folder, files)| self.write_folder(&folder, files, None).map(drop))
    }

    fn write_files(&mut self) -> Result<(), ProjectError> {
        if let Some(completed) = self.completed.take() {
            let file = CheckpointFile::new(&completed, &self.logs);
            self.file("", CHECKPOINT_FILE, &file)?;
        }
        let mut waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        // Files of the run are written last, after everything to which they refer. Targets of hard links are written
        // before the links.
        let of_run = waiting.remove("");
        let (kept, others): (BTreeMap<String, Files>, BTreeMap<String, Files>) =
            waiting.into_iter().partition(|(_, files)| is_history(files));
        let (mut kept, written) = (kept, &*self);
        for (folder, files) in others {
            let linked = files.values().find_map(Content::folder).and_then(|folder| kept.remove_entry(folder));
            let linked = linked.map(|(path, files)| {
                let folder = written.write_folder(&path, files, None)?;
                Ok::<_, ProjectError>((path, folder))
            });
            written.write_folder(&folder, files, linked.transpose()?)?;
        }
        for (folder, files) in kept.into_iter().chain(of_run.map(|files| (String::new(), files))) {
            written.write_folder(&folder, files, None)?;
        }
        Ok(())
    }

    /// Writes a folder and returns it. All hard links in it are to files of one other folder. `others` is that folder,
    /// if it is already open.
    fn write_folder<'s>(
        &'s self,
        path: &str,
        files: Files,
        mut others: Option<(String, Folder<'s>)>,
    ) -> Result<Folder<'s>, ProjectError> {
        if !self.is_catching_up
            && is_history(&files)
            && let Some(folder) = self.write_new(Path::new(path), &files)?
        {
            return Ok(folder);
        }
        let folder = Folder::open(&self.dir, path, &self.written).map_err(|source| io_error(path, source))?;
        for (name, content) in files {
            let put = match content {
                Content::Bytes(bytes) if path.is_empty() && name == FINAL_FILE => {
                    folder.put_durably(&name, &mut &bytes[..])
                }
                Content::Bytes(bytes) if self.is_catching_up => folder.put_if_other(&name, || Ok(&bytes[..])),
                Content::Bytes(bytes) => folder.put(&name, &mut &bytes[..]),
                Content::Blob(digest) if self.is_catching_up => self.put_blob_again(&folder, &name, &digest)?,
                Content::Blob(digest) => folder.put(&name, &mut self.blobs.open(&digest)?),
                Content::Link { folder: from, digest } => {
                    let linked = self.opened(&mut others, from).and_then(|from| folder.link(from, &name));
                    // Not every file system supports hard links.
                    if linked.is_ok() { linked } else { folder.put(&name, &mut self.blobs.open(&digest)?) }
                }
                Content::Nothing => folder.remove(&name),
            };
            put.map_err(|source| io_error(format_args!("{path}/{name}"), source))?;
        }
        Ok(folder)
    }

    /// Creates a folder of blobs atomically. `None` if a folder with this name exists.
    fn write_new(&self, path: &Path, files: &Files) -> Result<Option<Folder<'_>>, ProjectError> {
        let failed = |source| io_error(path.display(), source);
        let folder = Folder::begin(&self.dir, &self.written).map_err(failed)?;
        for (name, content) in files {
            let Content::Blob(digest) = content else { continue };
            folder.fill(name, &mut self.blobs.open(digest)?).map_err(failed)?;
        }
        Ok(folder.name(&self.dir, path).map_err(failed)?.then_some(folder))
    }

    /// Opens a folder, unless it is already the open one.
    fn opened<'o, 's: 'o>(
        &'s self,
        open: &'o mut Option<(String, Folder<'s>)>,
        path: String,
    ) -> io::Result<&'o Folder<'s>> {
        let opened = match open.take() {
            Some(opened) if opened.0 == path => opened,
            _ => {
                let folder = Folder::open(&self.dir, &path, &self.written)?;
                (path, folder)
            }
        };
        Ok(&open.insert(opened).1)
    }

    /// Writes a blob to a file, unless the file already has this content. Most artifacts already exist when a run is
    /// resumed, and reading them costs less than writing them.
    fn put_blob_again(
        &self,
        folder: &Folder<'_>,
        name: impl AsRef<Path>,
        digest: &Digest,
    ) -> Result<io::Result<()>, ProjectError> {
        let put = folder.put_if_other(name, || self.blobs.open(digest).map_err(BlobOrFile::Blob));
        match put {
            Ok(()) => Ok(Ok(())),
            Err(BlobOrFile::File(error)) => Ok(Err(error)),
            Err(BlobOrFile::Blob(error)) => Err(error.into()),
        }
    }

    /// Returns the last event and the branches as a file. `None` if there was no event since the last write.
    fn live(&self) -> Result<Option<Vec<u8>>, ProjectError> {
        if self.progress.last().is_empty() {
            return Ok(None);
        }
        let failed = |source| json_error(LIVE_FILE, source);
        let mut record: serde_json::Value = serde_json::from_slice(self.progress.last()).map_err(failed)?;
        let branches: Vec<&BranchNow> = self.branches.branches().collect();
        if !branches.is_empty() {
            record["branches"] = serde_json::to_value(branches).map_err(failed)?;
        }
        pretty(LIVE_FILE, &record).map(Some)
    }

    fn write_live(&self, live: Option<Vec<u8>>) -> Result<(), ProjectError> {
        let Some(live) = live else { return Ok(()) };
        self.write_folder("", BTreeMap::from([(LIVE_FILE.to_owned(), Content::Bytes(live))]), None).map(drop)
    }

    fn is_written(&mut self) {
        self.waits_since = None;
        self.written_at = Some(Instant::now());
    }

    fn file<T: Serialize>(&mut self, folder: &str, name: &str, content: &T) -> Result<(), ProjectError> {
        let bytes = pretty(name, content)?;
        self.hold(folder, name, Content::Bytes(bytes));
        Ok(())
    }

    fn hold(&mut self, folder: &str, name: &str, content: Content) {
        self.waiting_bytes += content.bytes();
        match self.waiting.get_mut(folder) {
            Some(files) => drop(files.insert(name.to_owned(), content)),
            None => drop(self.waiting.insert(folder.to_owned(), BTreeMap::from([(name.to_owned(), content)]))),
        }
    }
}

/// Skips a record that the projector has already handled.
impl<B: BlobStore> Follow for Projector<B> {
    fn record(&mut self, record: &Record, replay: &Replay) {
        if record.seq > self.seq
            && let Err(error) = self.take(record, &replay.state)
        {
            self.failed.get_or_insert(error);
        }
    }

    fn appended(&mut self, _records: &[Record]) -> Result<(), Fault> {
        Ok(self.advance()?)
    }
}

/// The error of a blob or of a file.
enum BlobOrFile {
    Blob(PortError),
    File(io::Error),
}

impl From<io::Error> for BlobOrFile {
    fn from(error: io::Error) -> Self {
        Self::File(error)
    }
}

fn completes(event: &Event) -> bool {
    use Event::{QuestionAnswered, RunFinished, StageFinished, StagePassed, StageRetrying};
    let is_open = match event {
        StageFinished(finished) => finished.follow_up.verifying || finished.files.recoverable.is_some(),
        QuestionAnswered(answered) => answered.recovery,
        Event::RecoveryDecided(decided) => return !decided.verifying,
        _ => false,
    };
    if is_open {
        return false;
    }
    matches!(event, QuestionAnswered(_) | StageFinished(_) | StagePassed(_) | StageRetrying(_) | RunFinished(_))
        || matches!(event, Event::ParallelJoined(_) | Event::FanInFinished(_))
}

fn pretty<T: Serialize>(path: impl Display, content: &T) -> Result<Vec<u8>, ProjectError> {
    let mut bytes = serde_json::to_vec_pretty(content).map_err(|source| json_error(path, source))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn json_error(path: impl Display, source: serde_json::Error) -> ProjectError {
    ProjectError::Json { path: path.to_string(), source }
}

fn io_error(path: impl Display, source: io::Error) -> ProjectError {
    ProjectError::Io { path: path.to_string(), source }
}
