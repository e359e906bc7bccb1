//! Projections: the files of the run directory, made from the journal's records.
//!
//! Every file here can be thrown away and made again with the same bytes, and none is read to decide anything. The journal is
//! always ahead: after a crash the files are made again from its first record, whole files once and lines in one piece, so
//! that a reader gets no line twice and never an old state again.

pub mod checkpoint;
pub mod manifest;
pub mod run_files;
pub mod schema;
pub mod stage;
pub mod status;
pub mod trace;

use crate::event::{Digest, Event, Record, RunId, canonical};
use crate::ports::{BlobStore, PortError};
use crate::state::RunState;
use cap_std::fs::Dir;
use checkpoint::CheckpointFile;
use glovebox_pipeline::ir::Pipeline;
use manifest::{FinalFile, ManifestFile, Totals};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// Every event as one line, as the journal has it.
pub const PROGRESS_FILE: &str = "progress.ndjson";
/// What every node was given and what came of it.
pub const TRACE_FILE: &str = "trace.jsonl";
/// The last event.
pub const LIVE_FILE: &str = "live.json";
/// How the run began.
pub const MANIFEST_FILE: &str = "manifest.json";
/// Where the run stands.
pub const CHECKPOINT_FILE: &str = "checkpoint.json";
/// How the run ended.
pub const FINAL_FILE: &str = "final.json";

/// Why the files could not be made. The run itself is not harmed: its journal has everything.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// The run directory refused.
    #[error("could not write `{path}` in the run directory: {source}")]
    Io {
        /// Relative to the run directory.
        path: String,
        /// The system's answer.
        source: io::Error,
    },
    /// A blob that an event names cannot be read.
    #[error(transparent)]
    Blob(#[from] PortError),
    /// Something that cannot be written as JSON.
    #[error("could not write `{path}` as JSON: {source}")]
    Json {
        /// Relative to the run directory.
        path: String,
        /// What is wrong.
        source: serde_json::Error,
    },
}

/// What a file is to hold.
enum Content {
    Bytes(Vec<u8>),
    Blob(Digest),
    Nothing,
}

/// Keeps the files of one run where its journal is.
pub struct Projector<B> {
    dir: Dir,
    blobs: Arc<B>,
    pipeline: Arc<Pipeline>,
    state: RunState,
    totals: Totals,
    logs: Vec<String>,
    artifacts: BTreeMap<String, BTreeSet<String>>,
    waiting: BTreeMap<String, Content>,
    live: Vec<u8>,
    progress: Vec<u8>,
    trace: Vec<u8>,
    is_catching_up: bool,
}

impl<B: BlobStore> Projector<B> {
    /// Begins with a journal that has no records, or makes everything again: nothing is written until
    /// [`Projector::caught_up`], which is to be called after the records that are there.
    pub fn new(dir: Dir, blobs: Arc<B>, pipeline: Arc<Pipeline>) -> Self {
        Self {
            dir,
            blobs,
            pipeline,
            state: RunState::default(),
            totals: Totals::default(),
            logs: Vec::new(),
            artifacts: BTreeMap::new(),
            waiting: BTreeMap::new(),
            live: Vec::new(),
            progress: Vec::new(),
            trace: Vec::new(),
            is_catching_up: true,
        }
    }

    /// Makes all files of a journal.
    pub fn rebuild(dir: Dir, blobs: Arc<B>, pipeline: Arc<Pipeline>, records: &[Record]) -> Result<Self, ProjectError> {
        let mut projector = Self::new(dir, blobs, pipeline);
        projector.tell(records)?;
        projector.caught_up()?;
        Ok(projector)
    }

    /// Takes records in, in the order of the journal, each once. A record that it already has is skipped.
    pub fn tell(&mut self, records: &[Record]) -> Result<(), ProjectError> {
        for record in records.iter().filter(|record| record.seq > self.state.seq).collect::<Vec<_>>() {
            self.take(record)?;
        }
        if self.is_catching_up { Ok(()) } else { self.flush() }
    }

    /// Writes everything and from here on follows each append.
    pub fn caught_up(&mut self) -> Result<(), ProjectError> {
        // Lines go in whole, instead of what is there: a crash may have left a part of one.
        let (progress, trace) = (std::mem::take(&mut self.progress), std::mem::take(&mut self.trace));
        self.flush_files()?;
        self.replace(PROGRESS_FILE, &mut &progress[..])?;
        self.replace(TRACE_FILE, &mut &trace[..])?;
        self.flush_live()?;
        self.is_catching_up = false;
        Ok(())
    }

    fn take(&mut self, record: &Record) -> Result<(), ProjectError> {
        let before = trace::branch_of(&record.event, &self.state).context.clone();
        self.state.apply(record);
        for line in trace::lines(&self.pipeline, &before, record, &self.state) {
            push_line(&mut self.trace, TRACE_FILE, &line)?;
        }
        push_line(&mut self.progress, PROGRESS_FILE, record)?;
        self.live = pretty(LIVE_FILE, record)?;
        match &record.event {
            Event::RunStarted(started) => self.file(MANIFEST_FILE, &ManifestFile::of(record, started))?,
            Event::StageFinished(finished) => {
                self.totals.refusals = self.totals.refusals.saturating_add(finished.refusals_total);
                self.totals.quarantined += finished.quarantined.len() as u64;
                self.logs.push(stage::log_line(record, finished));
                self.stage(finished)?;
            }
            Event::StagePassed(passed) => self.passed(passed)?,
            // It goes on: how it was stopped is no longer how it ended.
            Event::RunResumed(_) => drop(self.waiting.insert(FINAL_FILE.to_owned(), Content::Nothing)),
            Event::RunFinished(finished) => {
                self.totals.steps = self.state.steps;
                let run_id = self.state.run_id().cloned().unwrap_or_else(|| RunId::new(""));
                self.file(FINAL_FILE, &FinalFile::of(record, run_id, finished, self.totals))?;
            }
            _ => {}
        }
        if completes(&record.event) {
            self.file(CHECKPOINT_FILE, &CheckpointFile::of(record, &self.state, &self.logs))?;
        }
        Ok(())
    }

    /// Files before lines: who reads of an end in `progress.ndjson` finds `final.json` there.
    fn flush(&mut self) -> Result<(), ProjectError> {
        self.flush_files()?;
        for (path, lines) in [(PROGRESS_FILE, &mut self.progress), (TRACE_FILE, &mut self.trace)] {
            run_files::append(&self.dir, path, lines).map_err(|source| io_error(path, source))?;
            lines.clear();
        }
        self.flush_live()
    }

    fn flush_files(&mut self) -> Result<(), ProjectError> {
        for (path, content) in std::mem::take(&mut self.waiting) {
            match content {
                Content::Bytes(bytes) => self.replace(&path, &mut &bytes[..])?,
                Content::Blob(digest) => self.replace(&path, &mut self.blobs.open(&digest)?)?,
                Content::Nothing => run_files::remove(&self.dir, &path).map_err(|source| io_error(&path, source))?,
            }
        }
        Ok(())
    }

    fn flush_live(&mut self) -> Result<(), ProjectError> {
        let live = std::mem::take(&mut self.live);
        if live.is_empty() { Ok(()) } else { self.replace(LIVE_FILE, &mut &live[..]) }
    }

    fn replace(&self, path: &str, bytes: &mut dyn io::Read) -> Result<(), ProjectError> {
        run_files::replace(&self.dir, path, bytes).map_err(|source| io_error(path, source))
    }

    fn file<T: Serialize>(&mut self, path: &str, content: &T) -> Result<(), ProjectError> {
        let bytes = pretty(path, content)?;
        self.waiting.insert(path.to_owned(), Content::Bytes(bytes));
        Ok(())
    }
}

fn completes(event: &Event) -> bool {
    use Event::{RunFinished, StageFinished, StagePassed, StageRetrying};
    matches!(event, StageFinished(_) | StagePassed(_) | StageRetrying(_) | RunFinished(_))
}

fn pretty<T: Serialize>(path: &str, content: &T) -> Result<Vec<u8>, ProjectError> {
    let mut bytes =
        serde_json::to_vec_pretty(content).map_err(|source| ProjectError::Json { path: path.to_owned(), source })?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn push_line<T: Serialize>(lines: &mut Vec<u8>, path: &str, line: &T) -> Result<(), ProjectError> {
    let text = canonical(line).map_err(|source| ProjectError::Json { path: path.to_owned(), source })?;
    lines.extend_from_slice(text.as_bytes());
    lines.push(b'\n');
    Ok(())
}

fn io_error(path: &str, source: io::Error) -> ProjectError {
    ProjectError::Io { path: path.to_owned(), source }
}
