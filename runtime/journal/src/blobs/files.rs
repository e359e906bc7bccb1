//! Blobs as files: `ab/<64 hexadecimal digits>`, named by their content.
//!
//! A blob is there completely or not at all. It is written to a temporary file without a flush, and waits there: [`BlobFiles::flush`] flushes
//! all files that wait, then renames them, then flushes their folders. So no name ever stands for bytes that a power cut can take.

use super::unavailable;
use crate::event::Digest;
use crate::ports::PortError;
use cap_std::fs::{Dir, File, OpenOptions};
use glovebox_workspace::regular_file;
use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const COPY_BYTES: usize = 64 * 1024;
/// The block size of every common file system.
const BLOCK_BYTES: u64 = 4096;
/// How the names of temporary files begin.
const TEMPORARY: &str = ".new-";

/// The files of a run's blobs.
pub(crate) struct BlobFiles {
    root: Dir,
    written: AtomicU64,
    waiting: Mutex<Vec<Waiting>>,
}

/// A file that is not flushed yet.
struct Waiting {
    digest: Digest,
    bytes: u64,
    /// Its temporary name.
    name: String,
}

impl BlobFiles {
    pub(super) fn new(root: Dir) -> Self {
        Self { root, written: AtomicU64::new(0), waiting: Mutex::default() }
    }

    /// Bytes on disk of files that were new when they were put here.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Opens a file without digesting it.
    pub(super) fn open(&self, digest: &Digest) -> io::Result<File> {
        // Held while it is opened: a flush renames it.
        let waiting = self.lock();
        match waiting.iter().find(|one| one.digest == *digest) {
            Some(one) => regular_file::open_in(&self.root, &one.name),
            None => {
                let name = file_name(digest);
                // A pipe in a run folder that came with a project would be waited for without end.
                if !self.root.symlink_metadata(&name)?.is_file() {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
                }
                regular_file::open_in(&self.root, name)
            }
        }
    }

    /// True if a file of this digest and length is there, flushed or waiting.
    pub(super) fn has(&self, digest: &Digest, bytes: u64) -> bool {
        let is_waiting = self.lock().iter().any(|one| one.digest == *digest && one.bytes == bytes);
        is_waiting || self.is_stored(digest, bytes)
    }

    /// The length of a file that is stored; none if it is not.
    pub(super) fn bytes(&self, digest: &Digest) -> Option<u64> {
        self.root.symlink_metadata(file_name(digest)).ok().map(|found| found.len())
    }

    /// Takes all bytes of a stream into a file that waits for [`BlobFiles::flush`].
    pub(super) fn put(&self, bytes: &mut dyn Read) -> Result<Digest, PortError> {
        let name = format!("{TEMPORARY}{}", ulid::Ulid::generate());
        let received = self.receive(&name, bytes).and_then(|(digest, bytes)| {
            if self.has(&digest, bytes) {
                self.root.remove_file(&name)?;
            } else {
                self.lock().push(Waiting { digest, bytes, name: name.clone() });
                self.written.fetch_add(bytes.next_multiple_of(BLOCK_BYTES), Ordering::Relaxed);
            }
            Ok(digest)
        });
        received.map_err(|error| {
            let _ = self.root.remove_file(&name);
            unavailable(error)
        })
    }

    /// Makes every file that waits durable. What could not be flushed goes on waiting.
    pub(super) fn flush(&self) -> Result<(), PortError> {
        let mut waiting = self.lock();
        if waiting.is_empty() {
            return Ok(());
        }
        self.publish(&waiting).map_err(unavailable)?;
        waiting.clear();
        Ok(())
    }

    /// Removes what a killed process left half-written. Only for the process that drives the run.
    pub(super) fn sweep(&self) -> io::Result<()> {
        for entry in self.root.entries()? {
            let name = entry?.file_name();
            if name.to_string_lossy().starts_with(TEMPORARY) {
                self.root.remove_file(name)?;
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stored(&self, digest: &Digest, bytes: u64) -> bool {
        self.root.symlink_metadata(file_name(digest)).is_ok_and(|found| found.is_file() && found.len() == bytes)
    }

    /// Copies to a temporary file; its digest and length.
    fn receive(&self, name: &str, bytes: &mut dyn Read) -> io::Result<(Digest, u64)> {
        let mut file = self.root.open_with(name, OpenOptions::new().write(true).create(true).truncate(true))?;
        let mut hasher = blake3::Hasher::new();
        let mut length = 0;
        let mut buffer = vec![0; COPY_BYTES];
        loop {
            let count = match bytes.read(&mut buffer) {
                Ok(0) => return Ok((hasher.finalize().into(), length)),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hasher.update(&buffer[..count]);
            file.write_all(&buffer[..count])?;
            length += count as u64;
        }
    }

    /// Content, then names, then folders: each is durable before the next can be.
    fn publish(&self, waiting: &[Waiting]) -> io::Result<()> {
        // One that was renamed before an error is there under its own name.
        let unnamed = waiting.iter().filter(|one| !self.is_stored(&one.digest, one.bytes)).collect::<Vec<_>>();
        for one in &unnamed {
            regular_file::open_in(&self.root, &one.name)?.sync_data()?;
        }
        let folders: BTreeSet<String> = waiting.iter().map(|one| folder_name(&one.digest)).collect();
        let mut is_new = false;
        for folder in &folders {
            match self.root.create_dir(folder) {
                Ok(()) => is_new = true,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        for one in unnamed {
            self.root.rename(&one.name, &self.root, file_name(&one.digest))?;
        }
        for folder in folders {
            flush(&self.root.open_dir(folder)?)?;
        }
        if is_new { flush(&self.root) } else { Ok(()) }
    }
}

fn folder_name(digest: &Digest) -> String {
    digest.hex()[..2].to_owned()
}

pub(super) fn file_name(digest: &Digest) -> String {
    let hex = digest.hex();
    format!("{}/{hex}", &hex[..2])
}

/// A rename is durable only when its directory is.
fn flush(dir: &Dir) -> io::Result<()> {
    regular_file::flush_dir(dir)
}
