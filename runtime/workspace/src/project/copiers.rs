//! Threads that copy and hash regular files, while another thread lists the project and creates folders.
//!
//! The copying threads get folders as descriptors and one name for each file, so they resolve no paths. After the first
//! failure, all of them stop. If several threads fail, the error with the first path is returned. The limit on bytes
//! applies to all threads together.

use super::{FileFact, ProjectError, copy_hashed};
use crate::tree::{self, Owner};
use glovebox_record::Digest;
use glovebox_record::path::ScopePath;
use rustix::fs::{Stat, ioctl_ficlone};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle};

/// Maximum number of threads. More threads would only wait for each other, because the kernel creates the files of one
/// folder one after the other.
const THREADS_MAX: usize = 4;
/// Number of files in a batch. A project with fewer files is copied by the thread that lists it.
const BATCH: usize = 32;
/// Maximum number of batches that wait.
const WAITING_MAX: usize = 16;

/// One file to copy.
pub(super) struct Job {
    pub(super) path: ScopePath,
    /// The folder of the file in the project.
    pub(super) source: Arc<OwnedFd>,
    /// The folder of the file in the copy.
    pub(super) target: Arc<OwnedFd>,
    pub(super) stat: Stat,
}

/// State that all threads share.
pub(super) struct Shared {
    bytes_max: u64,
    bytes: AtomicU64,
    /// True until the file system refuses to share blocks.
    can_share: AtomicBool,
    has_failed: AtomicBool,
}

impl Shared {
    pub(super) fn new(bytes_max: u64) -> Self {
        let (bytes, can_share, has_failed) = (AtomicU64::new(0), AtomicBool::new(true), AtomicBool::new(false));
        Self { bytes_max, bytes, can_share, has_failed }
    }
}

type CopiedFiles = Vec<(ScopePath, FileFact)>;
type CopyFailure = (ScopePath, ProjectError);

/// Threads that are started with the first full batch, and the files that wait for a batch.
pub(super) struct Copiers<'s, 'e> {
    scope: &'s Scope<'s, 'e>,
    shared: &'s Shared,
    batch: Vec<Job>,
    threads: Option<Threads<'s>>,
}

struct Threads<'s> {
    jobs: SyncSender<Vec<Job>>,
    threads: Vec<ScopedJoinHandle<'s, Result<CopiedFiles, CopyFailure>>>,
}

impl<'s> Threads<'s> {
    fn start(scope: &'s Scope<'s, '_>, shared: &'s Shared) -> Self {
        let (jobs, waiting) = sync_channel(WAITING_MAX);
        let waiting = Arc::new(Mutex::new(waiting));
        let count = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
        let thread = |_| {
            let waiting = Arc::clone(&waiting);
            scope.spawn(move || work(&waiting, shared))
        };
        Self { jobs, threads: (0..count).map(thread).collect() }
    }
}

impl<'s, 'e> Copiers<'s, 'e> {
    pub(super) fn new(scope: &'s Scope<'s, 'e>, shared: &'s Shared) -> Self {
        Self { scope, shared, batch: Vec::new(), threads: None }
    }

    /// Adds a file to copy. Returns false after a failure; nothing more is copied then.
    pub(super) fn copy(&mut self, job: Job) -> bool {
        self.batch.push(job);
        if self.batch.len() == BATCH {
            self.hand_over();
        }
        !self.shared.has_failed.load(Ordering::Relaxed)
    }

    fn hand_over(&mut self) {
        let threads = self.threads.get_or_insert_with(|| Threads::start(self.scope, self.shared));
        // The receiver exists as long as the threads, so the send cannot fail.
        let _sent = threads.jobs.send(std::mem::take(&mut self.batch));
    }

    /// Waits until every file is copied. Returns the copied files.
    pub(super) fn finish(mut self) -> Result<CopiedFiles, ProjectError> {
        if self.threads.is_none() {
            let mut copied = Vec::new();
            let failed = self.shared.copy_all(self.batch, &mut copied);
            return failed.map_or(Ok(copied), |(_, error)| Err(error));
        }
        self.hand_over();
        let (mut copied, mut failed) = (Vec::new(), Vec::new());
        let threads = self.threads.map(|Threads { threads, .. }| threads);
        for thread in threads.into_iter().flatten() {
            match thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)) {
                Ok(some) => copied.extend(some),
                Err(one) => failed.push(one),
            }
        }
        match failed.into_iter().min_by(|(a, _), (b, _)| a.cmp(b)) {
            Some((_, error)) => Err(error),
            None => Ok(copied),
        }
    }
}

/// Copies queued files until the queue is closed. After a failure, the queue is drained without copying, so that no sender blocks.
fn work(waiting: &Mutex<Receiver<Vec<Job>>>, shared: &Shared) -> Result<CopiedFiles, CopyFailure> {
    let mut copied = Vec::new();
    let mut failure = None;
    loop {
        let batch = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(batch) = batch else { break };
        failure = shared.copy_all(batch, &mut copied).or(failure);
    }
    failure.map_or(Ok(copied), Err)
}

impl Shared {
    /// Copies files until a thread fails. Returns the failure if it happened in this thread.
    fn copy_all(&self, batch: Vec<Job>, copied: &mut CopiedFiles) -> Option<CopyFailure> {
        for job in batch {
            if self.has_failed.load(Ordering::Relaxed) {
                break;
            }
            match self.copy(&job) {
                Ok(fact) => copied.push((job.path, fact)),
                Err(error) => {
                    self.has_failed.store(true, Ordering::Relaxed);
                    return Some((job.path, error));
                }
            }
        }
        None
    }

    fn copy(&self, job: &Job) -> Result<FileFact, ProjectError> {
        let failed = |source: io::Error| ProjectError::io(Path::new(job.path.as_str()), source);
        let limit = || ProjectError::Limit { limit: "project_bytes", max: self.bytes_max };
        let name = OsStr::new(job.path.name().unwrap_or_default());
        // The planned size is reserved before anything is written, so that the threads together stay within the limit.
        let planned = tree::length(&job.stat);
        let before = self.bytes.fetch_add(planned, Ordering::Relaxed);
        let left = self.bytes_max.checked_sub(before).filter(|left| planned <= *left).ok_or_else(limit)?;
        let mut source = tree::open_regular(&job.source, name, Owner::Other).map_err(failed)?;
        let executable = tree::is_executable(&job.stat);
        let target = tree::create_file(&job.target, name, tree::copied_mode(&job.stat)).map_err(failed)?;
        let (digest, bytes) = self.content(&mut source, &target, job, left).map_err(failed)?;
        if bytes > left {
            return Err(limit());
        }
        // If the file grew or shrank since it was listed, its copied size is charged.
        self.bytes.fetch_add(bytes.wrapping_sub(planned), Ordering::Relaxed);
        tree::keep_times(OwnedFd::from(target), &job.stat).map_err(failed)?;
        Ok(FileFact { digest, bytes, executable })
    }

    /// Copies and hashes the content. If the file system supports it, the copy shares the blocks of the original until
    /// one of them is written, so it takes no space. A hard link would take no space either, but it would be the same
    /// file: a write to the workspace would change the project.
    fn content(&self, source: &mut File, target: &File, job: &Job, left: u64) -> io::Result<(Digest, u64)> {
        let is_shared = self.can_share.load(Ordering::Relaxed)
            && source.metadata()?.len() <= left
            && ioctl_ficlone(target, &*source).is_ok();
        if !is_shared {
            self.can_share.store(false, Ordering::Relaxed);
            return copy_hashed(source, target, left);
        }
        let name = OsStr::new(job.path.name().unwrap_or_default());
        copy_hashed(&mut tree::open_regular(&job.target, name, Owner::ThisProgram)?, io::sink(), left)
    }
}
