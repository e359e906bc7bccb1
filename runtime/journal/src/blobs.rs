//! The blobs of a run: small ones in the journal's database, large ones as files in `blobs/`.
//!
//! This module knows bytes and digests, never the purpose of a blob. With a journal, a blob that was put becomes
//! durable with the next append. Without a journal, every blob is a file and is durable at once. Bytes from the disk
//! are hashed again whenever a blob is opened, so a blob that was damaged on disk is reported as an error and is never
//! used.

mod files;
mod outbox;
pub(crate) mod rows;

pub use outbox::{Outbox, PendingBlobs, SMALL_BYTES_MAX};

use crate::event::Digest;
use crate::ports::{BlobStore, PortError, read_at_most};
use cap_std::fs::Dir;
use files::BlobFiles;
use rows::BlobRows;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Folder of the blobs in the run's folder.
pub const BLOBS_DIR: &str = "blobs";

/// Maximum size in bytes of a file blob that is read into memory and hashed there. A larger file is hashed first and
/// then read again, so its bytes could change in between.
const IN_MEMORY_MAX: u64 = 8 * 1024 * 1024;

/// The blobs of a run's folder.
pub struct DirBlobs {
    files: Arc<BlobFiles>,
    small: Option<SmallBlobs>,
}

/// The store of small blobs. A blob waits for an append or is in the database.
pub(crate) struct SmallBlobs {
    pub(crate) outbox: Arc<Outbox>,
    pub(crate) rows: BlobRows,
}

impl DirBlobs {
    /// Creates a store in the directory `blobs/`, which no stage may be able to reach. Every blob is a file.
    pub fn new(root: Dir) -> Self {
        Self { files: Arc::new(BlobFiles::new(root)), small: None }
    }

    /// Opens the folder `blobs` of a run directory and creates it if it does not exist. Every blob is a file.
    pub fn open_in(run: &Dir) -> Result<Self, PortError> {
        run.create_dir_all(BLOBS_DIR).and_then(|()| run.open_dir(BLOBS_DIR)).map(Self::new).map_err(unavailable)
    }

    /// Returns this store with a journal attached, which stores the small blobs and makes all blobs durable.
    pub(crate) fn with(self, small: SmallBlobs) -> Self {
        small.outbox.flushes(&self.files);
        Self { small: Some(small), ..self }
    }

    /// Checks that a blob exists and has this length and digest.
    pub fn verify(&self, digest: &Digest, bytes: u64) -> Result<(), PortError> {
        // The length is compared before the file is hashed, because a sparse file can be of any length.
        match self.files.bytes(digest).is_some_and(|found| found != bytes) {
            true => Err(corrupt(digest, &format!("its length is not {bytes} bytes"))),
            false => self.open(digest).map(drop),
        }
    }

    /// Returns the blob if it is stored as a small one.
    fn small(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, PortError> {
        let Some(small) = &self.small else { return Ok(None) };
        match small.outbox.get(digest) {
            Some(bytes) => Ok(Some(bytes)),
            None => small.rows.read(digest),
        }
    }

    fn put_file(&self, bytes: &mut dyn Read) -> Result<Digest, PortError> {
        let digest = self.files.put(bytes)?;
        if self.small.is_none() {
            self.files.flush()?;
        }
        Ok(digest)
    }
}

impl BlobStore for DirBlobs {
    fn put(&self, bytes: &mut dyn Read) -> Result<Digest, PortError> {
        let mut beginning = Vec::new();
        Read::take(&mut *bytes, SMALL_BYTES_MAX as u64 + 1).read_to_end(&mut beginning).map_err(unavailable)?;
        match beginning.len() <= SMALL_BYTES_MAX {
            true => self.put_bytes(&beginning),
            false => self.put_file(&mut beginning.as_slice().chain(bytes)),
        }
    }

    fn put_bytes(&self, mut bytes: &[u8]) -> Result<Digest, PortError> {
        let digest = Digest::hash(bytes);
        let is_taken = match &self.small {
            Some(small) => small.outbox.offer(&digest, bytes)?,
            None => false,
        };
        if is_taken || self.files.has(&digest, bytes.len() as u64) { Ok(digest) } else { self.put_file(&mut bytes) }
    }

    fn read_all(&self, digest: &Digest, bytes_max: u64) -> Result<Vec<u8>, PortError> {
        // The length is compared before the file is hashed, because a sparse file can be of any length.
        if self.files.bytes(digest).is_some_and(|bytes| bytes > bytes_max) {
            return Err(corrupt(digest, &format!("it has more than {bytes_max} bytes, the most that is read at once")));
        }
        read_at_most(self.open(digest)?, digest, bytes_max)
    }

    fn open_unverified(&self, digest: &Digest) -> io::Result<Box<dyn Read + Send>> {
        match self.small(digest).map_err(io::Error::other)? {
            Some(bytes) => Ok(Box::new(Cursor::new(bytes))),
            None => Ok(Box::new(self.files.open(digest)?)),
        }
    }

    fn keep(&self, file: &mut File) -> Result<(), PortError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&mut *file).map_err(unavailable)?;
        let bytes = file.stream_position().map_err(unavailable)?;
        if self.files.has(&hasher.finalize().into(), bytes) {
            return Ok(());
        }
        file.rewind().map_err(unavailable)?;
        self.put(file).map(drop)
    }

    fn sweep(&self) -> Result<(), PortError> {
        self.files.sweep().map_err(unavailable)
    }

    fn written(&self) -> Arc<AtomicU64> {
        self.files.written()
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, PortError> {
        if let Some(SmallBlobs { outbox, rows }) = &self.small {
            // A blob in the outbox was hashed when it was put and has never left the memory of this process.
            if let Some(bytes) = outbox.get(digest) {
                return Ok(Box::new(Cursor::new(bytes)));
            }
            if let Some(bytes) = rows.read(digest)? {
                return verified(digest, bytes);
            }
        }
        let mut file = self.files.open(digest).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => corrupt(digest, "it is missing"),
            _ => unavailable(error),
        })?;
        if file.metadata().map_err(unavailable)?.len() <= IN_MEMORY_MAX {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(unavailable)?;
            return verified(digest, bytes);
        }
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&mut file).map_err(unavailable)?;
        if Digest::from(hasher.finalize()) != *digest {
            return Err(corrupt(digest, "its bytes have another digest"));
        }
        file.rewind().map_err(unavailable)?;
        Ok(Box::new(file))
    }
}

/// Returns a reader of the bytes if they have the digest.
fn verified<B>(digest: &Digest, bytes: B) -> Result<Box<dyn Read + Send>, PortError>
where
    B: AsRef<[u8]> + Send + 'static,
{
    match Digest::hash(bytes.as_ref()) == *digest {
        true => Ok(Box::new(Cursor::new(bytes))),
        false => Err(corrupt(digest, "its bytes have another digest")),
    }
}

fn unavailable(error: io::Error) -> PortError {
    PortError::Unavailable(error.to_string())
}

fn corrupt(digest: &Digest, found: &str) -> PortError {
    PortError::Corrupt { what: format!("blob {digest}"), found: found.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use files::file_name;
    use std::sync::atomic::Ordering;

    fn store() -> (tempfile::TempDir, DirBlobs) {
        let dir = tempfile::tempdir().unwrap();
        let run = Dir::open_ambient_dir(dir.path(), ambient_authority()).unwrap();
        let blobs = DirBlobs::open_in(&run).unwrap();
        (dir, blobs)
    }

    #[test]
    fn what_is_put_is_what_is_opened_and_the_second_time_costs_nothing() {
        let (dir, blobs) = store();
        let large = vec![7u8; IN_MEMORY_MAX as usize + 1];
        for bytes in [&b""[..], b"hello", &large] {
            let digest = blobs.put(&mut &bytes[..]).unwrap();
            assert_eq!(digest, Digest::hash(bytes));
            assert_eq!(blobs.put_bytes(bytes).unwrap(), digest);
            assert_eq!(blobs.read_all(&digest, bytes.len() as u64).unwrap(), bytes);
        }
        let left: Vec<_> =
            std::fs::read_dir(dir.path().join("blobs")).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| name.len() == 2), "no temporary file stays: {left:?}");
    }

    #[test]
    fn a_blob_that_rotted_is_refused() {
        let (dir, blobs) = store();
        let large = vec![7u8; IN_MEMORY_MAX as usize + 1];
        for bytes in [&b"hello"[..], &large] {
            let digest = blobs.put_bytes(bytes).unwrap();
            let path = dir.path().join("blobs").join(file_name(&digest));
            let mut rotten = bytes.to_vec();
            rotten[0] ^= 1;
            std::fs::write(&path, rotten).unwrap();
            assert!(matches!(blobs.open(&digest), Err(PortError::Corrupt { .. })));
        }
    }

    #[test]
    fn a_blob_that_is_not_there_is_named() {
        let (_dir, blobs) = store();
        let digest = Digest::hash(b"never stored");
        let error = blobs.open(&digest).err().unwrap().to_string();
        assert_eq!(error, format!("blob {digest} is corrupt: it is missing"));
    }

    #[test]
    fn reading_more_than_the_bound_is_an_error() {
        let (_dir, blobs) = store();
        let digest = blobs.put_bytes(b"hello").unwrap();
        let error = blobs.read_all(&digest, 4).unwrap_err().to_string();
        assert!(error.contains("it has more than 4 bytes"), "refused before it is read: {error}");
    }

    #[test]
    fn a_blob_is_verified_by_its_length_and_its_bytes() {
        let (dir, blobs) = store();
        let digest = blobs.put_bytes(b"hello").unwrap();
        blobs.verify(&digest, 5).unwrap();
        let says = |digest: &Digest, bytes| blobs.verify(digest, bytes).unwrap_err().to_string();
        assert_eq!(says(&digest, 4), format!("blob {digest} is corrupt: its length is not 4 bytes"));
        let missing = Digest::hash(b"never stored");
        assert_eq!(says(&missing, 4), format!("blob {missing} is corrupt: it is missing"));
        std::fs::write(dir.path().join("blobs").join(file_name(&digest)), "hallo").unwrap();
        assert_eq!(says(&digest, 5), format!("blob {digest} is corrupt: its bytes have another digest"));
    }

    #[test]
    fn a_file_is_kept_whole_unless_it_is_stored() {
        let (dir, blobs) = store();
        // The empty blob is stored. Its digest must not be confused with that of the file.
        blobs.put_bytes(b"").unwrap();
        let large = vec![7; SMALL_BYTES_MAX + 1];
        for (bytes, written) in
            [(&b"hello"[..], 4096), (b"hello", 4096), (&large, 4096 + 69_632), (&large, 4096 + 69_632)]
        {
            let path = dir.path().join("file");
            std::fs::write(&path, bytes).unwrap();
            blobs.keep(&mut File::open(&path).unwrap()).unwrap();
            assert_eq!(blobs.read_all(&Digest::hash(bytes), bytes.len() as u64).unwrap(), bytes);
            assert_eq!(blobs.written().load(Ordering::Relaxed), written);
        }
    }

    #[test]
    fn a_sweep_leaves_the_blobs() {
        let (dir, blobs) = store();
        let digest = blobs.put_bytes(b"hello").unwrap();
        let left = dir.path().join("blobs/.new-1");
        std::fs::write(&left, "he").unwrap();
        blobs.sweep().unwrap();
        assert!(!left.exists());
        blobs.verify(&digest, 5).unwrap();
    }

    #[test]
    fn only_a_file_that_fits_into_memory_is_read_when_it_is_opened() {
        let (dir, blobs) = store();
        for (bytes, in_memory) in [(5, true), (IN_MEMORY_MAX as usize, true), (IN_MEMORY_MAX as usize + 1, false)] {
            let digest = blobs.put_bytes(&vec![7; bytes]).unwrap();
            let mut opened = blobs.open(&digest).unwrap();
            std::fs::write(dir.path().join("blobs").join(file_name(&digest)), vec![8; bytes]).unwrap();
            let mut first = [0];
            opened.read_exact(&mut first).unwrap();
            assert_eq!(first, [if in_memory { 7 } else { 8 }], "{bytes}");
        }
    }
}
