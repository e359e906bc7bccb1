//! The list of runs, and a cache of it, so that listing costs the same however long the runs were.
//!
//! A row is a hint for people: it comes from the first and the last record of a journal, which are not verified. The cache can be thrown
//! away. It counts only with a MAC of the user's key, and a row of it only while the run's journal is the same file with the same times.

use super::{RunFolder, is_live, list, short};
use crate::exit::Stop;
use crate::runs::journal;
use crate::user_key;
use clap::ValueEnum;
use glovebox_engine::attempt::exchanges::HeldCost;
use glovebox_journal::event::time_format;
use glovebox_journal::sqlite::Provenance;
use glovebox_record::spend::SpendTotals;
use glovebox_state::evidence::{RunStatus, RunSummary};
use glovebox_workspace::regular_file::{self, Links};
use glovebox_workspace::run_folder::JOURNAL_FILE;
use glovebox_workspace::tree;
use glovebox_workspace::user_key::UserKey;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// The cache in a folder of runs.
const INDEX_FILE: &str = ".index";
const PURPOSE: &str = "glovebox 2026 index of runs v2";
const INDEX_BYTES_MAX: u64 = 64 << 20;

/// How a run stands, for a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A process drives it.
    Running,
    /// It has not ended, and no process drives it.
    Unfinished,
    /// It waits for an answer, or somebody asked it to pause.
    Paused,
    /// It reached an exit with every goal gate satisfied.
    Success,
    /// It ended in any other way.
    Fail,
    /// Its journal cannot be read.
    Unreadable,
}

impl RunState {
    /// The word for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Unfinished => "unfinished",
            Self::Paused => "paused",
            Self::Success => "success",
            Self::Fail => "fail",
            Self::Unreadable => "unreadable",
        }
    }
}

/// One run of a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListedRun {
    /// The id.
    pub id: String,
    /// A short name that every command takes: the end of an id that Glovebox made, or the whole id.
    pub short: String,
    /// The graph's name; empty if the journal cannot be read.
    pub pipeline: String,
    /// How it stands.
    pub status: RunState,
    /// When it started; null if the journal cannot be read.
    #[serde(with = "time_format::option")]
    #[schemars(with = "Option<String>")]
    pub started: Option<Timestamp>,
    /// Milliseconds from the start to the last record; of a running run to now.
    pub duration_ms: u64,
    /// Bytes of its folder on disk; null while it is running.
    pub bytes: Option<u64>,
    /// The cost of its model calls, as far as records have it.
    #[serde(flatten)]
    pub spent: SpendTotals,
    /// Answers of models that a resume does not pay for again; absent without any, and while it is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldCost>,
    /// Whether this user started it on this machine.
    pub is_own: bool,
    /// Why its journal cannot be read.
    pub problem: Option<String>,
}

/// Identity, size and times of a journal, by which a later state of it is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    bytes: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn read(file: &Path) -> Option<Self> {
        let found = fs::symlink_metadata(file).ok()?;
        Some(Self {
            inode: found.ino(),
            bytes: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
            changed: (found.ctime(), found.ctime_nsec()),
        })
    }

    /// The journal and SQLite's log beside it, which a reader may leave empty.
    fn of_run(run: &RunFolder) -> [Option<Self>; 2] {
        let log = Self::read(&run.path.join("journal.sqlite-wal")).filter(|log| log.bytes > 0);
        [Self::read(&run.path.join(JOURNAL_FILE)), log]
    }
}

/// The stamps of a run after it was read. SQLite sets the owner of its log when root opens it, which changes a time of the file; what is
/// written to meanwhile keeps the stamps from before, which it will not have again.
fn settled(run: &RunFolder, before: [Option<Stamp>; 2]) -> [Option<Stamp>; 2] {
    let content = |stamps: &[Option<Stamp>; 2]| stamps.map(|stamp| stamp.map(|it| (it.inode, it.bytes, it.modified)));
    let after = Stamp::of_run(run);
    if content(&after) == content(&before) { after } else { before }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct CachedState {
    stamps: [Option<Stamp>; 2],
    row: ListedRun,
}

/// Every run of a folder, newest first. A run whose journal cannot be read is listed with the reason and hides no other.
pub fn rows(runs_dir: &Path) -> Result<Vec<ListedRun>, Stop> {
    let runs = list(runs_dir)?;
    let key = user_key::to_verify()?;
    let mut known = key.as_ref().and_then(|key| read(runs_dir, key)).unwrap_or_default();
    let mut kept = BTreeMap::new();
    let mut rows = Vec::with_capacity(runs.len());
    let mut is_new = runs.len() != known.len();
    for run in &runs {
        let stamps = Stamp::of_run(run);
        let cached = known.remove(&run.id).filter(|cached| cached.stamps == stamps);
        is_new |= cached.is_none();
        let row = match cached {
            Some(cached) if !matches!(cached.row.status, RunState::Unfinished | RunState::Paused) || !is_live(run) => {
                cached.row
            }
            _ => row(run, key.as_ref()),
        };
        if !matches!(row.status, RunState::Running | RunState::Unreadable) {
            kept.insert(run.id.clone(), CachedState { stamps: settled(run, stamps), row: row.clone() });
        }
        rows.push(row);
    }
    if let (true, Some(key)) = (is_new, &key) {
        // A folder that cannot be written is listed all the same.
        let _not_kept = write(runs_dir, key, &kept);
    }
    Ok(rows)
}

/// Forgets what was known of all runs of a folder, after their sizes changed, and what killed processes left of that.
pub fn forget(runs_dir: &Path) {
    if !super::folder::is_marked(runs_dir) {
        return;
    }
    let _never_made = fs::remove_file(runs_dir.join(INDEX_FILE));
    for entry in fs::read_dir(runs_dir).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix(INDEX_FILE)?.strip_prefix('-'));
        let is_process = process.is_some_and(|process| process.bytes().all(|byte| byte.is_ascii_digit()));
        if is_process && !process.is_some_and(|process| Path::new("/proc").join(process).exists()) {
            let _stays_until_gc = fs::remove_file(entry.path());
        }
    }
}

fn row(run: &RunFolder, key: Option<&UserKey>) -> ListedRun {
    let unread = |problem| ListedRun {
        id: run.id.clone(),
        short: short(&run.id).to_owned(),
        pipeline: String::new(),
        status: RunState::Unreadable,
        started: None,
        duration_ms: 0,
        bytes: None,
        spent: SpendTotals::default(),
        held: None,
        is_own: false,
        problem,
    };
    // Asked first: a run that ends meanwhile is then listed as running once more, and never as one that was given up.
    let is_live = is_live(run);
    let (ends, provenance, spent) = match journal::read_ends(run, key) {
        Ok(read) => read,
        Err(stop) => return ListedRun { bytes: tree::bytes_on_disk(&run.path).ok(), ..unread(Some(stop.message)) },
    };
    let mut summary = RunSummary::from_records(&ends);
    if is_live {
        summary.is_running(Timestamp::now());
    }
    let status = match summary.status {
        RunStatus::Running => RunState::Running,
        RunStatus::Unfinished => RunState::Unfinished,
        RunStatus::Paused => RunState::Paused,
        RunStatus::Success => RunState::Success,
        RunStatus::Fail => RunState::Fail,
    };
    let bytes = if is_live { None } else { tree::bytes_on_disk(&run.path).ok() };
    let (started, duration_ms) = (summary.started_at, summary.duration_ms);
    let is_own = provenance == Provenance::Own;
    let held = if is_live { None } else { run.held() };
    ListedRun { pipeline: summary.pipeline, status, started, duration_ms, bytes, spent, held, is_own, ..unread(None) }
}

/// Reads the cache: a line with its MAC, and a line of JSON. Anything else is no cache.
fn read(runs_dir: &Path, key: &UserKey) -> Option<BTreeMap<String, CachedState>> {
    let text = regular_file::read_text(&runs_dir.join(INDEX_FILE), Links::Within(runs_dir), INDEX_BYTES_MAX).ok()?;
    let (mac, rows) = text.split_once('\n')?;
    let expected = key.mac(PURPOSE, rows.as_bytes());
    // Compared in constant time.
    (blake3::Hash::from_hex(mac).ok()? == expected).then(|| serde_json::from_str(rows).ok()).flatten()
}

fn write(runs_dir: &Path, key: &UserKey, rows: &BTreeMap<String, CachedState>) -> io::Result<()> {
    if !super::folder::is_marked(runs_dir) {
        return Ok(());
    }
    let text = serde_json::to_string(rows)?;
    let beside = runs_dir.join(format!("{INDEX_FILE}-{}", std::process::id()));
    let written = new_file(&beside).and_then(|mut file| {
        write!(file, "{}\n{text}", key.mac(PURPOSE, text.as_bytes()).to_hex())?;
        fs::rename(&beside, runs_dir.join(INDEX_FILE))
    });
    written.inspect_err(|_| drop(fs::remove_file(&beside)))
}

fn new_file(path: &Path) -> io::Result<File> {
    File::options().write(true).create_new(true).mode(0o600).open(path)
}
