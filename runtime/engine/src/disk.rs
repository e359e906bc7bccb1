//! What a run keeps on disk, and its bound: `[run] disk_bytes_max`.
//!
//! Counted are blobs, quarantine, caches, artifacts, the folders of nodes, the journal and the files made from it. Not counted is what
//! has a bound of its own and does not grow with every stage: the workspace, the sealed hold-outs, attempts under way. Measured
//! once as a whole; after that only what the last attempt can have added to, so that a check costs the same at the end of a run as
//! at its beginning.

use crate::attempt::{QUARANTINE_DIR, REPOSITORIES_DIR, STAGE_DIR};
use crate::blobs::{BLOBS_DIR, DirBlobs};
use crate::event::StageFinished;
use crate::project::run_files::{history_folder, task_folder};
use crate::run::{HOLDOUTS_DIR, RunDir, WORKSPACE_DIR};
use cap_std::fs::{Dir, Metadata, MetadataExt};
use glovebox_record::{Failure, FailureClass, FailureCode};
use glovebox_sandbox::cache;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Folders with bounds of their own.
const NOT_COUNTED: [&str; 4] = [WORKSPACE_DIR, HOLDOUTS_DIR, STAGE_DIR, REPOSITORIES_DIR];
/// Deepest folder that is measured; what lies below counts nothing. The host makes none that deep.
const DEPTH_MAX: usize = 128;
const BLOCK_BYTES: u64 = 512;

/// Watches a run's folder.
pub struct DiskGauge {
    run: Arc<RunDir>,
    blobs: Arc<DirBlobs>,
    bytes_max: u64,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// Bytes by folder, relative to the run's.
    folders: BTreeMap<String, u64>,
    /// Folders that were added to since they were measured.
    stale: Vec<String>,
    /// Bytes of blobs that were there when the gauge was made, less what the store had written by then.
    blobs_before: u64,
}

impl DiskGauge {
    /// Measures what the run keeps so far.
    ///
    /// # Errors
    /// When its folder cannot be read.
    pub fn new(run: Arc<RunDir>, blobs: Arc<DirBlobs>, bytes_max: u64) -> io::Result<Self> {
        let mut kept = Kept::default();
        for entry in run.dir.entries()? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            if !entry.file_type()?.is_dir() || NOT_COUNTED.contains(&name.as_str()) {
                continue;
            }
            let bytes = measure(&run.dir, &name, DEPTH_MAX)?;
            if name == BLOBS_DIR {
                kept.blobs_before = bytes.saturating_sub(blobs.written_bytes());
            } else {
                kept.folders.insert(name, bytes);
            }
        }
        Ok(Self { run, blobs, bytes_max, kept: Mutex::new(kept) })
    }

    /// Notes what an attempt can have added to; it is measured when it is asked for next.
    pub fn note(&self, finished: &StageFinished) {
        let mut stale = vec![task_folder(&finished.attempt.task), history_folder(&finished.attempt)];
        if !finished.quarantined.is_empty() {
            stale.push(format!("{QUARANTINE_DIR}/{}", finished.attempt.id));
        }
        // A cache changes by commands only, and what git ignores is kept beside caches.
        if !finished.receipts.is_empty() || finished.ignored.is_some() {
            stale.push(cache::FOLDER.to_owned());
        }
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).stale.extend(stale);
    }

    /// Why no further stage may begin; none while there is room.
    ///
    /// # Errors
    /// When the run's folder cannot be read.
    pub fn over(&self) -> io::Result<Option<Failure>> {
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

    fn bytes(&self) -> io::Result<u64> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        for folder in std::mem::take(&mut kept.stale) {
            let bytes = measure(&self.run.dir, &folder, DEPTH_MAX)?;
            kept.folders.insert(folder, bytes);
        }
        let blobs = kept.blobs_before.saturating_add(self.blobs.written_bytes());
        let files = files_in(&self.run.dir)?;
        Ok(kept.folders.values().fold(blobs.saturating_add(files), |sum, bytes| sum.saturating_add(*bytes)))
    }
}

fn on_disk(found: &Metadata) -> u64 {
    found.blocks().saturating_mul(BLOCK_BYTES)
}

/// The files directly in a folder: as many as a run has names for, whatever its length.
fn files_in(dir: &Dir) -> io::Result<u64> {
    let mut bytes = 0_u64;
    for entry in dir.entries()? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            bytes = bytes.saturating_add(if_there(entry.metadata().map(|found| on_disk(&found)))?);
        }
    }
    Ok(bytes)
}

/// Everything below a folder, links not followed; nothing when it is not there. A stage may have left folders that cannot be read.
fn measure(dir: &Dir, path: &str, depth_left: usize) -> io::Result<u64> {
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

/// What went away meanwhile, or cannot be opened, counts nothing.
fn if_there(found: io::Result<u64>) -> io::Result<u64> {
    match found {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied) => Ok(0),
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::BlobStore;
    use crate::simulation::{self, task};
    use crate::state::OpenTask;
    use cap_std::ambient_authority;

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
        };
        simulation::finished(&open, glovebox_record::Outcome::of(glovebox_record::Status::Success))
    }

    #[test]
    fn a_running_total_is_what_a_new_measure_finds() {
        let (folder, run, blobs) = run_dir();
        blobs.put_bytes(&[1; 100_000]).unwrap();
        let gauge = DiskGauge::new(Arc::clone(&run), Arc::clone(&blobs), u64::MAX).unwrap();
        let before = gauge.bytes().unwrap();
        assert!(before >= 100_000);
        blobs.put_bytes(&[2; 200_000]).unwrap();
        blobs.put_bytes(&[2; 200_000]).unwrap();
        for path in
            ["build/response.md", "artifacts/build.1.1/response.md", "quarantine/a1/0001-x", "cache/builder/k/o"]
        {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, vec![3; 50_000]).unwrap();
        }
        std::fs::write(folder.path().join("trace.jsonl"), vec![4; 30_000]).unwrap();
        for path in ["workspace/large", "holdouts/files/large", "stage/a1/large", "repository/large"] {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, vec![5; 1_000_000]).unwrap();
        }
        let quarantined = crate::event::Quarantined { path: "x".into(), reason: "y".into() };
        gauge.note(&StageFinished { quarantined: vec![quarantined], ..attempt("a1") });
        gauge.kept.lock().unwrap().stale.push("cache".to_owned());
        let after = gauge.bytes().unwrap();
        let added = after - before;
        assert!((430_000..480_000).contains(&added), "{added} bytes: each blob once, the workspace not at all");
        let anew = DiskGauge::new(run, blobs, u64::MAX).unwrap().bytes().unwrap();
        assert!(anew.abs_diff(after) < 32_000, "{anew} instead of {after}");
    }

    #[test]
    fn a_bound_is_reported_with_both_numbers() {
        let (_folder, run, blobs) = run_dir();
        blobs.put_bytes(&[1; 100_000]).unwrap();
        let over = |bytes_max| DiskGauge::new(Arc::clone(&run), Arc::clone(&blobs), bytes_max).unwrap().over().unwrap();
        assert_eq!(over(1 << 20), None);
        let failure = over(99_999).unwrap();
        assert_eq!((failure.class, failure.code), (FailureClass::Budget, FailureCode::RUN_DISK));
        assert!(failure.reason.ends_with("allows 99999"), "{}", failure.reason);
    }
}
