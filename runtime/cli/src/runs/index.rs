//! The list of runs, with a cache, so that the cost of listing does not depend on the length of the runs.
//!
//! A row is only information for people: it comes from the first and the last record of a journal, which are not
//! verified. The cache can be deleted at any time. The cache is used only if it has a MAC of the user's key. A row of
//! the cache is used only while the run's journal is the same file with the same times.

use super::{RunFolder, branches_now, is_live, list, remove, short, with_id};
use crate::exit::Stop;
use crate::runs::journal;
use crate::user_key;
use clap::ValueEnum;
use glovebox_engine::attempt::exchanges::HeldCost;
use glovebox_journal::event::Record;
use glovebox_journal::event::time_format;
use glovebox_journal::sqlite::Provenance;
use glovebox_record::RunId;
use glovebox_record::spend::SpendTotals;
use glovebox_state::evidence::{BranchNow, ProofCounts, RunStatus, RunSummary};
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

/// Name of the cache file in a folder of runs.
const INDEX_FILE: &str = ".index";
const PURPOSE: &str = "glovebox 2026 index of runs v3";
const INDEX_BYTES_MAX: u64 = 64 << 20;
/// Maximum size of a journal that a list reads as a whole, to count what its run proved, bytes.
const COUNTED_BYTES_MAX: u64 = 4 << 20;

/// State of a run in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// A process drives the run.
    Running,
    /// The run has not ended, and no process drives it.
    Unfinished,
    /// The run waits for an answer, or a person asked it to pause.
    Paused,
    /// The run reached an exit with every goal gate satisfied.
    Success,
    /// The run ended in any other way.
    Fail,
    /// The journal of the run cannot be read.
    Unreadable,
}

impl RunState {
    /// Returns the state as a word.
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

/// What a run proved: numbers of stages, by what their last attempts prove. A stage is counted once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListedProof {
    /// Stages with a receipt that proves their success.
    pub proved: usize,
    /// Stages whose receipts prove it with a reservation, such as a subject that was not isolated.
    pub reserved: usize,
    /// Stages that passed without a receipt.
    pub claimed: usize,
    /// Stages whose verifying commands did not pass.
    pub not_proved: usize,
}

impl From<ProofCounts> for ListedProof {
    fn from(counts: ProofCounts) -> Self {
        let ProofCounts { proved, reserved, claimed, not_proved } = counts;
        Self { proved, reserved, claimed, not_proved }
    }
}

/// One run of a list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListedRun {
    /// Id of the run.
    pub id: String,
    /// A short name that every command accepts: the end of an id that Glovebox generated, or the whole id.
    pub short: String,
    /// Name of the pipeline's graph; empty if the journal cannot be read.
    pub pipeline: String,
    /// Folder of the project that the run copied; empty if the journal cannot be read.
    pub project: String,
    /// Id of the run from which this run was forked; absent if it is not a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<String>,
    /// State of the run.
    pub status: RunState,
    /// Time of the start; null if the journal cannot be read.
    #[serde(with = "time_format::option")]
    #[schemars(with = "Option<String>")]
    pub started: Option<Timestamp>,
    /// Milliseconds from the start to the last record, or to now if the run is running.
    pub duration_ms: u64,
    /// The branches of a running run, with what each executes and waits for; absent otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub branches: Vec<BranchNow>,
    /// Size of the run's folder on disk in bytes; null while the run is running.
    pub bytes: Option<u64>,
    /// Cost of the model calls that the records contain.
    #[serde(flatten)]
    pub spent: SpendTotals,
    /// Model answers that a resume reuses instead of paying again; absent if there are none, and while the run is
    /// running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldCost>,
    /// Whether this user started the run on this machine.
    pub is_own: bool,
    /// What the run proved. Absent while the run is running, for a run of another user, and if the journal is longer than
    /// 4 MiB: then `show` reads it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<ListedProof>,
    /// Why the journal cannot be read; null if it can be read.
    pub problem: Option<String>,
}

/// Identity, size and times of a file. If they change, the journal may have changed.
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

    /// Returns the stamps of the journal and of its write-ahead log. A write-ahead log that a reader left empty has no
    /// stamp. If the run's folder is a symbolic link, neither file has one.
    fn of_run(run: &RunFolder) -> [Option<Self>; 2] {
        if !remove::is_folder(run) {
            return [None; 2];
        }
        let log = Self::read(&run.path.join("journal.sqlite-wal")).filter(|log| log.bytes > 0);
        [Self::read(&run.path.join(JOURNAL_FILE)), log]
    }
}

/// Returns the stamps of a run after it was read. SQLite may set the owner of its write-ahead log when root opens it,
/// which changes the file's change time. If content was written during the read, the stamps from before the read are
/// returned. The files no longer match them, so the next listing reads the row again.
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

/// Returns every run of a folder, newest first. A run whose journal cannot be read is listed with the reason, and does
/// not prevent the listing of the others.
pub fn rows(runs_dir: &Path) -> Result<Vec<ListedRun>, Stop> {
    rows_of(runs_dir, &list(runs_dir)?)
}

/// Returns these runs, which are all runs of a folder, newest first.
pub fn rows_of(runs_dir: &Path, runs: &[RunFolder]) -> Result<Vec<ListedRun>, Stop> {
    let key = user_key::to_verify()?;
    let mut known = key.as_ref().and_then(|key| read(runs_dir, key)).unwrap_or_default();
    let mut kept = BTreeMap::new();
    let mut rows = Vec::with_capacity(runs.len());
    let mut is_new = runs.len() != known.len();
    for run in runs {
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
        // If the cache cannot be written, the runs are still listed.
        let _not_kept = write(runs_dir, key, &kept);
    }
    Ok(rows)
}

/// Counts what the runs of these rows proved. This reads whole journals, each of them once: the cache keeps the counts.
pub fn count_proofs(runs_dir: &Path, rows: &mut [ListedRun]) -> Result<(), Stop> {
    let uncounted: Vec<_> = rows.iter_mut().filter_map(|row| Some((uncounted(runs_dir, row)?, row))).collect();
    if uncounted.is_empty() {
        return Ok(());
    }
    let key = user_key::to_verify()?;
    let mut known = key.as_ref().and_then(|key| read(runs_dir, key)).unwrap_or_default();
    for (run, row) in uncounted {
        let stamps = Stamp::of_run(&run);
        row.proof = proof(&run).ok();
        if let Some(cached) = known.get_mut(&row.id).filter(|cached| cached.stamps == stamps) {
            (cached.row.proof, cached.stamps) = (row.proof, settled(&run, stamps));
        }
    }
    if let Some(key) = &key {
        // If the cache cannot be written, the runs are still listed.
        let _not_kept = write(runs_dir, key, &known);
    }
    Ok(())
}

/// Returns the run of a row whose proof can be counted and is not counted yet.
fn uncounted(runs_dir: &Path, row: &ListedRun) -> Option<RunFolder> {
    let has_none = matches!(row.status, RunState::Running | RunState::Unreadable) || !row.is_own || row.proof.is_some();
    let run = if has_none { None } else { with_id(runs_dir, &RunId::from(row.id.as_str())) };
    run.filter(|run| {
        Stamp::of_run(run).into_iter().flatten().map(|stamp| stamp.bytes).sum::<u64>() <= COUNTED_BYTES_MAX
    })
}

fn proof(run: &RunFolder) -> Result<ListedProof, Stop> {
    let journal = journal::open_of_anybody(run)?;
    let summary = RunSummary::read(&journal, |_| {}).map_err(|error| journal::unreadable(run, &error))?;
    Ok(summary.proof.counts().into())
}

/// Removes rows from the cache of a folder, because the sizes of these runs changed. The other rows stay, so that the next
/// listing reads only these runs.
pub fn forget_rows(runs_dir: &Path, ids: &[String]) {
    if ids.is_empty() {
        return;
    }
    let Ok(Some(key)) = user_key::to_verify() else { return forget(runs_dir) };
    let Some(mut known) = read(runs_dir, &key) else { return };
    known.retain(|id, _| !ids.contains(id));
    if write(runs_dir, &key, &known).is_err() {
        forget(runs_dir);
    }
}

/// Removes the cache of a folder, because the sizes of its runs changed, and temporary files of the cache from killed
/// processes.
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

impl ListedRun {
    /// Returns the row of a run whose journal cannot be read.
    pub fn unread(id: &str, problem: Option<String>) -> Self {
        Self {
            id: id.to_owned(),
            short: short(id).to_owned(),
            pipeline: String::new(),
            project: String::new(),
            forked_from: None,
            status: RunState::Unreadable,
            started: None,
            duration_ms: 0,
            branches: Vec::new(),
            bytes: None,
            spent: SpendTotals::default(),
            held: None,
            is_own: false,
            proof: None,
            problem,
        }
    }

    /// Returns the row of a run with these records, or the first and the last ones. `is_live` is true while it is driven.
    pub fn from_records(id: &str, records: &[Record], is_live: bool) -> Self {
        let mut summary = RunSummary::from_records(records);
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
        let begun = records.first().and_then(|first| first.event.run_started());
        Self {
            project: begun.map(|begun| begun.workspace.source_dir.clone()).unwrap_or_default(),
            forked_from: summary.forked_from.map(|from| from.run_id.as_str().to_owned()),
            status,
            started: summary.started_at,
            duration_ms: summary.duration_ms,
            pipeline: summary.pipeline,
            ..Self::unread(id, None)
        }
    }
}

fn row(run: &RunFolder, key: Option<&UserKey>) -> ListedRun {
    let unread = |problem| ListedRun::unread(&run.id, problem);
    // This is checked before the read: a run that ends during the read is then listed as running, and never as
    // unfinished.
    let is_live = is_live(run);
    let (ends, provenance, spent) = match journal::read_ends(run, key) {
        Ok(read) => read,
        Err(stop) => return ListedRun { bytes: tree::bytes_on_disk(&run.path).ok(), ..unread(Some(stop.message)) },
    };
    ListedRun {
        branches: if is_live { branches_now::read(run) } else { Vec::new() },
        bytes: if is_live { None } else { tree::bytes_on_disk(&run.path).ok() },
        spent,
        held: if is_live { None } else { run.held() },
        is_own: provenance == Provenance::Own,
        ..ListedRun::from_records(&run.id, &ends, is_live)
    }
}

/// Reads the cache: a line with its MAC, and a line of JSON. Returns `None` for any other content.
fn read(runs_dir: &Path, key: &UserKey) -> Option<BTreeMap<String, CachedState>> {
    let text = regular_file::read_text(&runs_dir.join(INDEX_FILE), Links::Within(runs_dir), INDEX_BYTES_MAX).ok()?;
    let (mac, rows) = text.split_once('\n')?;
    let expected = key.mac(PURPOSE, rows.as_bytes());
    // The comparison takes constant time.
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
