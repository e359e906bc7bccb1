//! Writes the files and records of a component stage without any code of Glovebox: its records and blobs in a SQLite
//! database, durably, and its artifact files.
//!
//! The measured cost is that of the storage layout alone, before anything is executed. The sizes are those of a stage
//! that asks a simulated model.

use super::cost::Cost;
use rusqlite::{Connection, params};
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat, mkdirat, openat};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Sizes in bytes of the four records of a stage.
const RECORDS: [usize; 4] = [200, 160, 210, 1_700];
/// Names and sizes in bytes of the artifacts of a stage: its prompt, the answer and the transcript.
const ARTIFACTS: [(&str, usize); 3] = [("prompt.md", 820), ("response.md", 35), ("transcript.ndjson", 1_980)];
const STATUS_BYTES: usize = 510;
/// A placeholder for the hashes and digests that are stored with each record and blob.
const HASH: [u8; 32] = [7; 32];
/// Length of the write-ahead log between two checkpoints, in pages of 4 KiB.
const LOG_PAGES: u32 = 512;
const TABLES: &str = "
    CREATE TABLE record (seq INTEGER PRIMARY KEY, at INTEGER, subject TEXT, prev BLOB, hash BLOB, mac BLOB, event TEXT) STRICT;
    CREATE TABLE blob (id INTEGER PRIMARY KEY, digest BLOB, bytes BLOB) STRICT;";

/// Writes what `stages` stages leave behind into a new folder. Returns the cost of one stage: time, and processor time
/// of this thread. The later work of the kernel to write the files to disk is not included.
///
/// The folder is not removed: after a removal, ext4 without a journal is slow to create files for a while.
pub(crate) fn behind(folder: &Path, stages: u32) -> Cost {
    let folder = Folder::make(&folder.join("left"));
    let database = folder.database();
    let (cpu, start) = (thread_cpu(), Instant::now());
    for stage in 0..stages {
        record(&database, stage);
        folder.fill(stage);
    }
    Cost { wall: start.elapsed() / stages, cpu: (thread_cpu() - cpu) / stages, ..Cost::default() }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap())
}

/// Writes the records and blobs of a stage in one durable transaction.
fn record(database: &Connection, stage: u32) {
    let run = |sql, values: &[&dyn rusqlite::ToSql]| {
        database.prepare_cached(sql).unwrap().execute(values).unwrap();
    };
    run("BEGIN IMMEDIATE", params![]);
    for (at, bytes) in RECORDS.into_iter().enumerate() {
        let (seq, event) = (i64::from(stage) * 4 + at as i64 + 1, "e".repeat(bytes));
        let sql = "INSERT INTO record (seq, at, subject, prev, hash, mac, event) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)";
        run(sql, params![seq, 1_764_000_000_000_i64 + seq, format!("task:n{stage}"), HASH, HASH, HASH, event]);
    }
    for (_, bytes) in ARTIFACTS {
        run("INSERT INTO blob (digest, bytes) VALUES (?1, ?2)", params![HASH, vec![b'b'; bytes]]);
    }
    run("COMMIT", params![]);
}

struct Folder {
    at: PathBuf,
    run: OwnedFd,
}

impl Folder {
    fn make(above: &Path) -> Self {
        if fs::create_dir(above).is_ok() {
            // As in the folder of runs: the file system places each new folder in its own part of the disk.
            let _ = Command::new("chattr").arg("+T").arg(above).output();
        }
        let at = above.join(format!("run-{}", fs::read_dir(above).unwrap().count()));
        fs::create_dir_all(at.join("artifacts")).unwrap();
        let run = openat(CWD, &at, OFlags::DIRECTORY, Mode::empty()).unwrap();
        Self { at, run }
    }

    /// Creates a database whose write-ahead log has its full length before the first record.
    fn database(&self) -> Connection {
        let path = self.at.join("journal.sqlite");
        let database = Connection::open(&path).unwrap();
        for (name, value) in [("journal_mode", "WAL"), ("synchronous", "FULL")] {
            database.pragma_update(None, name, value).unwrap();
        }
        database.pragma_update(None, "wal_autocheckpoint", LOG_PAGES).unwrap();
        database.execute_batch(TABLES).unwrap();
        let mut log = File::options().append(true).open(path.with_extension("sqlite-wal")).unwrap();
        log.write_all(&vec![0; LOG_PAGES as usize * 4_120]).unwrap();
        database
    }

    /// Writes the artifacts folder of an attempt, and the folder of its node, which has the same files and a status.
    fn fill(&self, stage: u32) {
        let folder = |name: String| {
            mkdirat(&self.run, &name, Mode::RWXU).unwrap();
            openat(&self.run, &name, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
        };
        let (kept, own) = (folder(format!("artifacts/n{stage}.1.1")), folder(format!("n{stage}")));
        for (name, bytes) in ARTIFACTS {
            write(&kept, name, bytes);
            linkat(&kept, name, &own, name, AtFlags::empty()).unwrap();
        }
        write(&own, "status.json", STATUS_BYTES);
    }
}

fn write(folder: &OwnedFd, name: &str, bytes: usize) {
    let file = openat(folder, name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL, Mode::RUSR | Mode::WUSR).unwrap();
    File::from(file).write_all(&vec![b'b'; bytes]).unwrap();
}
