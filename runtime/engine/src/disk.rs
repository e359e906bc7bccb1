//! Measures the disk space of a run, for its limit `[run] disk_bytes_max`.
//!
//! The measured files are blobs, quarantine, caches, artifacts, the folders of nodes, the journal and its projections.
//! Files that have their own limit and do not grow with every stage are not measured: the workspace, the sealed
//! hold-outs, attempts in progress, the journal's write-ahead log. The whole folder is measured at the beginning and
//! when the limit may be reached. Between two measurements, the sizes of written files are added up, so that a check
//! costs the same at the end of a run as at its beginning.

use crate::project::run_files::{BytesWritten, in_blocks};
use crate::run_dir::EXCHANGES_DIR;
use crate::run_dir::{HOLDOUTS_DIR, RunDir, WORKSPACE_DIR};
use crate::run_dir::{QUARANTINE_DIR, REPOSITORIES_DIR, STAGE_DIR};
use cap_std::fs::{Dir, Metadata, MetadataExt};
use glovebox_journal::event::{BranchId, StageFinished};
use glovebox_journal::sqlite::{LOG_BYTES, LOG_FILE};
use glovebox_record::{Failure, FailureClass, FailureCode};
use glovebox_workspace::cache;
use glovebox_workspace::run_folder::JOURNAL_FILE;
use rustix::fs::AtFlags;
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Folders that have their own limits.
const NOT_COUNTED: [&str; 5] = [WORKSPACE_DIR, HOLDOUTS_DIR, STAGE_DIR, REPOSITORIES_DIR, EXCHANGES_DIR];
/// Maximum depth of folders that are measured. Deeper files are not measured. The host creates no folder that deep.
const DEPTH_MAX: usize = 128;
const BLOCK_BYTES: u64 = 512;

/// Measures the disk space of a run.
pub struct DiskGauge {
    run: Arc<RunDir>,
    /// Counts the bytes that the blob store writes into the run directory.
    stored: Arc<AtomicU64>,
    projected: BytesWritten,
    bytes_max: u64,
    kept: Mutex<Usage>,
}

/// The measured size of a run directory.
#[derive(Default)]
struct Usage {
    /// Number of bytes at the last measurement of the whole folder, without caches and journal.
    measured: u64,
    /// Number of bytes that blob store and projections had written at that time.
    written: u64,
    /// Number of bytes that attempts have moved to the quarantine since then, and the expected size of their output files.
    added: u64,
    /// Number of bytes of the caches. `None` if a stage may have changed the caches since they were measured.
    cache: Option<u64>,
    /// Branches whose workspace folder is included in `added`.
    branches: BTreeSet<BranchId>,
    /// True if there was no room at the last check.
    was_full: bool,
}

impl DiskGauge {
    /// Measures the disk space of the run so far. `stored` counts the bytes that the blob store writes, and `projected` those
    /// of the projections.
    ///
    /// # Errors
    ///
    /// Fails if the run directory cannot be read.
    pub fn new(run: Arc<RunDir>, stored: Arc<AtomicU64>, projected: BytesWritten, bytes_max: u64) -> io::Result<Self> {
        let gauge = Self { run, stored, projected, bytes_max, kept: Mutex::default() };
        *gauge.lock() = gauge.measure()?;
        Ok(gauge)
    }

    /// Adds the disk space of a finished attempt: the files that it has moved to the quarantine, and its output files
    /// and artifacts, which are written later.
    ///
    /// # Errors
    ///
    /// Fails if the run directory cannot be read.
    pub fn note(&self, finished: &StageFinished) -> io::Result<()> {
        let outputs =
            [&finished.files.stdout, &finished.files.stderr].into_iter().flatten().map(|captured| captured.bytes);
        // An artifact is stored twice: in the folder of its node, and in the folder of all attempts.
        let artifacts = finished.files.artifacts.iter().flat_map(|artifact| [artifact.bytes; 2]);
        let files = artifacts.chain(outputs).fold(0, |sum: u64, bytes| sum.saturating_add(in_blocks(bytes)));
        let set_aside = match finished.files.quarantined.is_empty() {
            true => 0,
            false => measure(&self.run.dir, format!("{QUARANTINE_DIR}/{}", finished.attempt.id), DEPTH_MAX)?,
        };
        let of_branch = self.folder_of_branch(finished)?;
        let mut kept = self.lock();
        kept.added = kept.added.saturating_add(files).saturating_add(set_aside).saturating_add(of_branch);
        // Only commands change a cache. Files that git ignores are kept in the folder of caches.
        if !finished.commands.receipts.is_empty() || finished.files.ignored.is_some() {
            kept.cache = None;
        }
        Ok(())
    }

    /// Returns the disk space that the first change of a branch adds, because the branch then gets its own copy of the workspace.
    fn folder_of_branch(&self, finished: &StageFinished) -> io::Result<u64> {
        let branch = &finished.attempt.task.branch;
        let is_first = *branch != BranchId::main()
            && !finished.files.changes.is_empty()
            && self.lock().branches.insert(branch.clone());
        if is_first { measure(&self.run.dir, WORKSPACE_DIR, DEPTH_MAX) } else { Ok(0) }
    }

    /// Returns true if the run is certainly below its limit. Does not measure the whole folder.
    ///
    /// # Errors
    ///
    /// Fails if the run directory cannot be read.
    pub fn has_room(&self) -> io::Result<bool> {
        let mut kept = self.lock();
        let written = self.written().saturating_sub(kept.written);
        let cache = match kept.cache {
            Some(cache) => cache,
            None => *kept.cache.insert(measure(&self.run.dir, cache::FOLDER, DEPTH_MAX)?),
        };
        let parts = [kept.measured, written, kept.added, cache, self.journal()?];
        kept.was_full = parts.into_iter().fold(0, u64::saturating_add) > self.bytes_max;
        Ok(!kept.was_full)
    }

    /// Returns true if there was no room at the last check, which is made after every stage.
    pub fn was_full(&self) -> bool {
        self.lock().was_full
    }

    /// Returns the failure of a run that is above its limit. `None` while there is room. Must be called after the run's files
    /// are written.
    ///
    /// # Errors
    ///
    /// Fails if the run directory cannot be read.
    pub fn over(&self) -> io::Result<Option<Failure>> {
        if self.has_room()? {
            return Ok(None);
        }
        *self.lock() = self.measure()?;
        let bytes = self.bytes()?;
        if bytes <= self.bytes_max {
            return Ok(None);
        }
        let reason = format!(
            "the run directory has {bytes} bytes, but `disk_bytes_max` under `[run]` in glovebox.toml allows {}",
            self.bytes_max
        );
        Ok(Some(Failure::new(FailureClass::Budget, FailureCode::RUN_DISK, reason)))
    }

    /// Returns the size at the last measurement.
    fn bytes(&self) -> io::Result<u64> {
        let kept = self.lock();
        Ok(kept.measured.saturating_add(kept.cache.unwrap_or(0)).saturating_add(self.journal()?))
    }

    fn measure(&self) -> io::Result<Usage> {
        let mut kept = Usage { written: self.written(), cache: Some(0), ..Usage::default() };
        for entry in self.run.dir.entries()? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !entry.file_type()?.is_dir() || NOT_COUNTED.contains(&name.as_str()) {
                continue;
            }
            let bytes = measure(&self.run.dir, &name, DEPTH_MAX)?;
            match name == cache::FOLDER {
                true => kept.cache = Some(bytes),
                false => kept.measured = kept.measured.saturating_add(bytes),
            }
        }
        kept.measured = kept.measured.saturating_add(files_in(&self.run.dir)?);
        Ok(kept)
    }

    fn journal(&self) -> io::Result<u64> {
        let stat = |name| rustix::fs::statat(&self.run.dir, name, AtFlags::SYMLINK_NOFOLLOW);
        let length =
            |name| if_there(stat(name).map(|found| in_bytes(found.st_blocks.cast_unsigned())).map_err(io::Error::from));
        // The usual length of the write-ahead log has its own limit and is not measured.
        Ok(length(JOURNAL_FILE)?.saturating_add(length(LOG_FILE)?.saturating_sub(LOG_BYTES)))
    }

    fn written(&self) -> u64 {
        self.stored.load(Ordering::Relaxed).saturating_add(self.projected.bytes())
    }

    fn lock(&self) -> MutexGuard<'_, Usage> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn on_disk(found: &Metadata) -> u64 {
    in_bytes(found.blocks())
}

fn in_bytes(blocks: u64) -> u64 {
    blocks.saturating_mul(BLOCK_BYTES)
}

/// Returns the size of the files directly in a folder, without the journal. Their number does not depend on the length of a run.
fn files_in(dir: &Dir) -> io::Result<u64> {
    let mut bytes = 0_u64;
    for entry in dir.entries()? {
        let entry = entry?;
        let is_journal = [JOURNAL_FILE, LOG_FILE].iter().any(|name| entry.file_name() == *name);
        if entry.file_type()?.is_file() && !is_journal {
            bytes = bytes.saturating_add(if_there(entry.metadata().map(|found| on_disk(&found)))?);
        }
    }
    Ok(bytes)
}

/// Returns the size of everything below a folder, without following symbolic links. Zero if the folder does not exist.
/// Folders that cannot be read, which a stage may have left, count as empty.
fn measure(dir: &Dir, path: impl AsRef<Path>, depth_left: usize) -> io::Result<u64> {
    let folder = match dir.open_dir(path) {
        Ok(folder) => folder,
        Err(error) => return if_there(Err(error)),
    };
    let mut bytes = 0_u64;
    for entry in folder.entries()? {
        let entry = entry?;
        let is_folder = entry.file_type()?.is_dir();
        bytes = bytes.saturating_add(if_there(entry.metadata().map(|found| on_disk(&found)))?);
        if let (true, Some(name), Some(left)) = (is_folder, entry.file_name().to_str(), depth_left.checked_sub(1)) {
            bytes = bytes.saturating_add(measure(&folder, name, left)?);
        }
    }
    Ok(bytes)
}

/// Counts a file as empty if it cannot be opened or was removed during the measurement.
fn if_there(found: io::Result<u64>) -> io::Result<u64> {
    match found {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => Ok(0),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use glovebox_journal::blobs::DirBlobs;
    use glovebox_journal::event::StageFiles;
    use glovebox_journal::ports::BlobStore;
    use glovebox_state::run_state::OpenTask;
    use glovebox_state::simulation::{self, task};

    fn run_dir() -> (tempfile::TempDir, Arc<RunDir>, Arc<DirBlobs>) {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let blobs = Arc::new(DirBlobs::open_in(&dir).unwrap());
        let run = Arc::new(RunDir { path: folder.path().to_owned(), dir, key: None });
        (folder, run, blobs)
    }

    fn attempt(id: &str) -> StageFinished {
        let open = OpenTask {
            task: task("build"),
            ordinal: 1,
            due_at: None,
            ready_seq: 0,
            head: 0,
            attempt_id: Some(id.into()),
            machine: None,
            quota: None,
        };
        simulation::finished(&open, glovebox_record::Outcome::new(glovebox_record::Status::Success))
    }

    fn with_files(id: &str, change: impl FnOnce(&mut StageFiles)) -> StageFinished {
        let mut finished = attempt(id);
        change(&mut finished.files);
        finished
    }

    fn put(folder: &tempfile::TempDir, path: &str, bytes: usize) {
        let file = folder.path().join(path);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, vec![3; bytes]).unwrap();
    }

    fn gauge(run: &Arc<RunDir>, blobs: &Arc<DirBlobs>, written: &BytesWritten, bytes_max: u64) -> DiskGauge {
        DiskGauge::new(Arc::clone(run), blobs.written(), written.clone(), bytes_max).unwrap()
    }

    #[test]
    fn what_has_a_bound_of_its_own_is_not_counted() {
        let (folder, run, blobs) = run_dir();
        blobs.put_bytes(&[1; 100_000]).unwrap();
        for path in ["build/response.md", "artifacts/build.1.1/x", "quarantine/a1/0001-x", "cache/k/o", "trace.jsonl"] {
            put(&folder, path, 50_000);
        }
        for path in ["workspace/large", "holdouts/files/large", "stage/a1/large", "repository/large", LOG_FILE] {
            put(&folder, path, 1_000_000);
        }
        let bytes = gauge(&run, &blobs, &BytesWritten::default(), u64::MAX).bytes().unwrap();
        assert!((350_000..420_000).contains(&bytes), "{bytes} bytes");
    }

    /// Everything that a run writes reduces the room immediately, before the next measurement of the whole folder.
    #[test]
    fn whatever_is_added_counts_at_once() {
        let quarantined = || glovebox_journal::event::RefusedChange { path: "x".into(), reason: "y".into() };
        let artifact = glovebox_journal::event::Artifact {
            name: "response.md".into(),
            media_type: "text/plain".into(),
            digest: glovebox_journal::event::Digest::ZERO,
            bytes: 600_000,
        };
        type Growth<'a> = &'a dyn Fn(&tempfile::TempDir, &DirBlobs, &BytesWritten, &DiskGauge);
        let growths: [Growth<'_>; 6] = [
            &|_, blobs, _, _| drop(blobs.put(&mut &[2; 1_200_000][..])),
            &|_, _, written, _| written.add(1_200_000),
            &|_, _, _, gauge| gauge.note(&with_files("a", |files| files.artifacts.push(artifact.clone()))).unwrap(),
            &|folder, _, _, gauge| {
                put(folder, "quarantine/a1/0001-x", 1_200_000);
                gauge.note(&with_files("a1", |files| files.quarantined.push(quarantined()))).unwrap();
            },
            &|folder, _, _, gauge| {
                put(folder, "cache/builder/k/o", 1_200_000);
                let ignored = glovebox_journal::event::IgnoredFiles { files: 1, bytes: 1, names: Vec::new() };
                gauge.note(&with_files("a1", |files| files.ignored = Some(ignored))).unwrap();
            },
            &|folder, _, _, _| put(folder, JOURNAL_FILE, 1_200_000),
        ];
        for (index, grow) in growths.into_iter().enumerate() {
            let (folder, run, blobs) = run_dir();
            let written = BytesWritten::default();
            let gauge = gauge(&run, &blobs, &written, 1_000_000);
            assert!(gauge.has_room().unwrap());
            grow(&folder, &blobs, &written, &gauge);
            assert!(!gauge.has_room().unwrap(), "growth {index}");
        }
    }

    #[test]
    fn a_bound_is_reported_with_both_numbers_and_only_of_what_is_there() {
        let (_folder, run, blobs) = run_dir();
        blobs.put_bytes(&[1; 100_000]).unwrap();
        let written = BytesWritten::default();
        let over = |bytes_max| gauge(&run, &blobs, &written, bytes_max).over().unwrap();
        assert_eq!(over(1 << 20), None);
        let failure = over(99_999).unwrap();
        assert_eq!((failure.class, failure.code), (FailureClass::Budget, FailureCode::RUN_DISK));
        assert!(failure.reason.ends_with("allows 99999"), "{}", failure.reason);
        let gauge = gauge(&run, &blobs, &written, 200_000);
        written.add(1_000_000);
        assert!(!gauge.has_room().unwrap() && gauge.over().unwrap().is_none() && gauge.has_room().unwrap());
    }

    #[test]
    fn the_folder_of_a_branch_counts_with_its_first_change() {
        let (folder, run, blobs) = run_dir();
        put(&folder, "workspace/big", 1 << 20);
        let gauge = DiskGauge::new(run, blobs.written(), BytesWritten::default(), 1 << 19).unwrap();
        let mut ended = attempt("a");
        ended.attempt.task.branch = "f-left".into();
        gauge.note(&ended).unwrap();
        assert!(gauge.has_room().unwrap(), "a branch without a change has no folder");
        let path = glovebox_record::path::ScopePath::parse("x").unwrap();
        ended.files.changes =
            vec![glovebox_journal::event::FileChange::bare(path, glovebox_journal::event::ChangeOp::Mkdir)];
        gauge.note(&ended).unwrap();
        assert!(!gauge.has_room().unwrap(), "its next attempt begins in a copy");
        assert!(gauge.over().unwrap().is_none(), "it is not there yet");
        put(&folder, "branches/f-left/workspace/big", 1 << 20);
        gauge.note(&ended).unwrap();
        assert!(gauge.over().unwrap().is_some());
    }
}
