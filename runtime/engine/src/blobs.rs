//! Blobs in a directory: `ab/<64 hexadecimal digits>`, named by their content.
//!
//! Knows bytes and digests, never what they are for. A blob is there completely or not at all (temporary file, flush, rename,
//! flush of the directory), and its bytes are digested again whenever it is opened, so a blob that rotted is an error and
//! never an input.

use crate::event::Digest;
use crate::ports::{BlobStore, PortError};
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{self, Cursor, Read, Seek, Write};
use std::sync::atomic::{AtomicU64, Ordering};

/// Folder of the blobs in the run's folder.
pub const BLOBS_DIR: &str = "blobs";

/// Blobs up to this size are handed out from memory, so that what was digested is what is read.
const IN_MEMORY_MAX: u64 = 8 * 1024 * 1024;
const COPY_BYTES: usize = 64 * 1024;
/// What a file takes at least and in steps of, on every common file system.
const BLOCK_BYTES: u64 = 4096;

/// The directory `blobs/` of a run.
pub struct DirBlobs {
    root: Dir,
    written: AtomicU64,
}

impl DirBlobs {
    /// Takes the directory; it must be out of reach of every stage.
    pub fn new(root: Dir) -> Self {
        Self { root, written: AtomicU64::new(0) }
    }

    /// Bytes on disk of blobs that were new when they were put here, as far as this store was asked to.
    pub fn written_bytes(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Opens `blobs` in a run directory, made when it is not there.
    pub fn open_in(run: &Dir) -> Result<Self, PortError> {
        run.create_dir_all(BLOBS_DIR).and_then(|()| run.open_dir(BLOBS_DIR)).map(Self::new).map_err(unavailable)
    }

    /// Opens a blob's file without digesting it, for readers that do so themselves while they copy.
    pub fn open_file(&self, digest: &Digest) -> io::Result<File> {
        self.root.open(file_name(digest))
    }

    /// Stores what a file holds. One that is stored already is only read.
    pub fn keep(&self, file: &mut std::fs::File) -> Result<(), PortError> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(&mut *file).map_err(unavailable)?;
        let bytes = file.stream_position().map_err(unavailable)?;
        if self.is_stored(&hasher.finalize().into(), bytes) {
            return Ok(());
        }
        file.rewind().map_err(unavailable)?;
        self.put(file).map(drop)
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
                Ok(0) => break,
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hasher.update(&buffer[..count]);
            file.write_all(&buffer[..count])?;
            length += count as u64;
        }
        let digest = hasher.finalize().into();
        if !self.is_stored(&digest, length) {
            file.sync_all()?;
        }
        Ok((digest, length))
    }

    fn publish(&self, temporary: &str, digest: &Digest) -> io::Result<()> {
        let folder = &digest.hex()[..2];
        match self.root.create_dir(folder) {
            Ok(()) => flush(&self.root)?,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
        self.root.rename(temporary, &self.root, file_name(digest))?;
        flush(&self.root.open_dir(folder)?)
    }
}

impl BlobStore for DirBlobs {
    fn put(&self, bytes: &mut dyn Read) -> Result<Digest, PortError> {
        let temporary = format!(".new-{}", ulid::Ulid::generate());
        let stored = self.receive(&temporary, bytes).and_then(|(digest, length)| {
            if self.is_stored(&digest, length) {
                self.root.remove_file(&temporary)?;
            } else {
                self.publish(&temporary, &digest)?;
                self.written.fetch_add(length.next_multiple_of(BLOCK_BYTES), Ordering::Relaxed);
            }
            Ok(digest)
        });
        stored.map_err(|error| {
            let _ = self.root.remove_file(&temporary);
            unavailable(error)
        })
    }

    fn put_bytes(&self, mut bytes: &[u8]) -> Result<Digest, PortError> {
        let digest = Digest::of(bytes);
        if self.is_stored(&digest, bytes.len() as u64) { Ok(digest) } else { self.put(&mut bytes) }
    }

    fn open(&self, digest: &Digest) -> Result<Box<dyn Read + Send>, PortError> {
        let mut file = self.root.open(file_name(digest)).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => corrupt(digest, "it is missing"),
            _ => unavailable(error),
        })?;
        if file.metadata().map_err(unavailable)?.len() <= IN_MEMORY_MAX {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(unavailable)?;
            return match Digest::of(&bytes) == *digest {
                true => Ok(Box::new(Cursor::new(bytes))),
                false => Err(corrupt(digest, "its bytes have another digest")),
            };
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

fn file_name(digest: &Digest) -> String {
    let hex = digest.hex();
    format!("{}/{hex}", &hex[..2])
}

/// A rename is durable only when its directory is.
fn flush(dir: &Dir) -> io::Result<()> {
    dir.open(".")?.sync_all()
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
            assert_eq!(digest, Digest::of(bytes));
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
        let digest = Digest::of(b"never stored");
        let error = blobs.open(&digest).err().unwrap().to_string();
        assert_eq!(error, format!("blob {digest} is corrupt: it is missing"));
    }

    #[test]
    fn reading_more_than_the_bound_is_an_error() {
        let (_dir, blobs) = store();
        let digest = blobs.put_bytes(b"hello").unwrap();
        assert!(blobs.read_all(&digest, 4).is_err());
    }
}
