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
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const COPY_BYTES: usize = 64 * 1024;
/// Block size of common file systems, in bytes.
const BLOCK_BYTES: u64 = 4096;
/// Prefix of the names of temporary files.
const TEMPORARY: &str = ".new-";

/// The files of a run's blobs.
pub(crate) struct BlobFiles {
    root: Dir,
    written: Arc<AtomicU64>,
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
        Self { root, written: Arc::default(), waiting: Mutex::default() }
    }

    /// Returns the counter of the disk space, in bytes, of the new files that were put into this store.
    pub(super) fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
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
        // A file that an earlier, failed flush renamed already has its final name.
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

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;

    fn store() -> (tempfile::TempDir, BlobFiles) {
        let place = tempfile::tempdir().unwrap();
        let root = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        (place, BlobFiles::new(root))
    }

    fn put(files: &BlobFiles, mut bytes: &[u8]) -> Digest {
        files.put(&mut bytes).unwrap()
    }

    /// Returns the names in the folder. The name of a temporary file is reduced to its prefix.
    fn names(place: &tempfile::TempDir) -> Vec<String> {
        let names = std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<String> = names
            .map(|name| name.to_str().unwrap().to_owned())
            .map(|name| if name.starts_with(TEMPORARY) { TEMPORARY.to_owned() } else { name })
            .collect();
        names.sort();
        names
    }

    fn read(files: &BlobFiles, digest: &Digest) -> Vec<u8> {
        let mut bytes = Vec::new();
        files.open(digest).unwrap().read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn a_file_is_found_by_digest_and_length_before_and_after_the_flush() {
        let (_place, files) = store();
        let (one, other) = (put(&files, b"one"), put(&files, b"three"));
        for flushed in [false, true] {
            assert_eq!((read(&files, &one), read(&files, &other)), (b"one".to_vec(), b"three".to_vec()));
            assert!(files.has(&one, 3) && files.has(&other, 5), "{flushed}");
            assert!(!files.has(&one, 5) && !files.has(&Digest::hash(b"two"), 3), "{flushed}");
            assert_eq!(files.bytes(&one), flushed.then_some(3));
            files.flush().unwrap();
        }
    }

    #[test]
    fn the_same_bytes_are_written_once() {
        let (place, files) = store();
        for round in 0..3 {
            put(&files, b"one");
            assert_eq!(files.written().load(Ordering::Relaxed), BLOCK_BYTES);
            assert_eq!(names(&place).len(), 1, "a temporary file or the folder of the stored one");
            if round == 1 {
                files.flush().unwrap();
            }
        }
        put(&files, &[7; 4097]);
        assert_eq!(files.written().load(Ordering::Relaxed), 3 * BLOCK_BYTES);
        put(&files, b"");
        assert_eq!(files.written().load(Ordering::Relaxed), 3 * BLOCK_BYTES, "an empty file has no block");
    }

    #[test]
    fn a_folder_in_the_place_of_a_file_is_not_the_file() {
        let (place, files) = store();
        let digest = Digest::hash(b"one");
        let folder = place.path().join(file_name(&digest));
        std::fs::create_dir_all(&folder).unwrap();
        let bytes = std::fs::metadata(&folder).unwrap().len();
        assert!(!files.has(&digest, bytes));
        let error = files.open(&digest).unwrap_err();
        assert_eq!(error.to_string(), "it is not a regular file");
    }

    #[test]
    fn a_sweep_removes_only_temporary_files() {
        let (place, files) = store();
        let stored = put(&files, b"one");
        files.flush().unwrap();
        put(&files, b"left by a process that was killed");
        std::fs::write(place.path().join("other"), "").unwrap();
        BlobFiles::new(files.root.try_clone().unwrap()).sweep().unwrap();
        assert_eq!(names(&place), [folder_name(&stored), "other".to_owned()]);
        assert_eq!(read(&files, &stored), b"one");
    }

    /// A reader that is interrupted before each byte, and fails with this error at the end.
    struct Torn<'b>(&'b [u8], bool, Option<io::ErrorKind>);

    impl Read for Torn<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            match (self.1, self.0.is_empty(), self.2) {
                (true, ..) => Err(io::ErrorKind::Interrupted.into()),
                (false, true, Some(kind)) => Err(kind.into()),
                (false, ..) => self.0.read(&mut buffer[..1]),
            }
        }
    }

    #[test]
    fn an_interrupted_reader_is_read_on_and_a_failed_one_leaves_nothing() {
        let (place, files) = store();
        let digest = files.put(&mut Torn(b"one", false, None)).unwrap();
        assert_eq!(read(&files, &digest), b"one");
        files.flush().unwrap();
        assert!(files.put(&mut Torn(b"two", false, Some(io::ErrorKind::BrokenPipe))).is_err());
        assert_eq!(names(&place), [folder_name(&digest)]);
    }

    #[test]
    fn a_flush_goes_on_after_one_that_failed_halfway() {
        let (place, files) = store();
        let digest = put(&files, b"one");
        let temporary = place.path().join(&files.lock()[0].name);
        let folder = place.path().join(folder_name(&digest));
        // The folder exists and the file has its final name, as if an earlier flush had failed after the rename.
        std::fs::create_dir(&folder).unwrap();
        std::fs::rename(temporary, place.path().join(file_name(&digest))).unwrap();
        files.flush().unwrap();
        assert_eq!(read(&files, &digest), b"one");
        // Without its temporary file, nothing can be stored.
        let lost = put(&files, b"two");
        std::fs::remove_file(place.path().join(&files.lock()[0].name)).unwrap();
        assert!(files.flush().is_err());
        assert!(files.has(&lost, 3), "it continues to wait");
    }
}
