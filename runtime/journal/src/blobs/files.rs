//! Blobs as files: `ab/<64 hexadecimal digits>`, named by their content.
//!
//! A blob is either stored completely or not at all. It is first written to a temporary file without a flush.
//! [`BlobFiles::flush`] flushes all temporary files, then renames them, then flushes their folders. So a file with a
//! final name never loses bytes in a power failure.

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
/// Block size of common file systems, in bytes.
const BLOCK_BYTES: u64 = 4096;
/// Prefix of the names of temporary files.
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
    /// The temporary file name.
    name: String,
}

impl BlobFiles {
    pub(super) fn new(root: Dir) -> Self {
        Self { root, written: AtomicU64::new(0), waiting: Mutex::default() }
    }

    /// Returns the disk space, in bytes, of the new files that were put into this store.
    pub(super) fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Opens a file without digesting it.
    pub(super) fn open(&self, digest: &Digest) -> io::Result<File> {
        // The lock is held while the file is opened, because a flush renames it.
        let waiting = self.lock();
        match waiting.iter().find(|one| one.digest == *digest) {
            Some(one) => regular_file::open_in(&self.root, &one.name),
            None => {
                let name = file_name(digest);
                // A project may contain a run folder with a FIFO, and opening it would block forever.
                if !self.root.symlink_metadata(&name)?.is_file() {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
                }
                regular_file::open_in(&self.root, name)
            }
        }
    }

    /// Returns true if a file with this digest and length is stored or waits for a flush.
    pub(super) fn has(&self, digest: &Digest, bytes: u64) -> bool {
        let is_waiting = self.lock().iter().any(|one| one.digest == *digest && one.bytes == bytes);
        is_waiting || self.is_stored(digest, bytes)
    }

    /// Returns the length of a stored file in bytes, or `None` if it is not stored.
    pub(super) fn bytes(&self, digest: &Digest) -> Option<u64> {
        self.root.symlink_metadata(file_name(digest)).ok().map(|found| found.len())
    }

    /// Writes all bytes of a stream to a temporary file, which waits for [`BlobFiles::flush`].
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

    /// Makes every waiting file durable. After an error, all of them continue to wait.
    pub(super) fn flush(&self) -> Result<(), PortError> {
        let mut waiting = self.lock();
        if waiting.is_empty() {
            return Ok(());
        }
        self.publish(&waiting).map_err(unavailable)?;
        waiting.clear();
        Ok(())
    }

    /// Removes temporary files that a killed process left. Only the process that drives the run may call this.
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

    /// Copies the bytes to a temporary file and returns their digest and length.
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

    /// Flushes the contents, then renames the files, then flushes the folders.
    fn publish(&self, waiting: &[Waiting]) -> io::Result<()> {
        // A file that was renamed before an error already has its final name.
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

/// Flushes a directory. A rename is durable only after its directory was flushed.
fn flush(dir: &Dir) -> io::Result<()> {
    regular_file::flush_dir(dir)
}
