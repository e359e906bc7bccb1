//! The plugins that this user pulled, by digest: `plugins/blake3-HEX.wasm` in the folder for data.
//!
//! A file is complete as soon as it has its name, and its bytes are hashed whenever it is read. So whatever happens to the folder, a
//! plugin has the bytes to which the operator agreed, or it does not run.

use glovebox_record::Digest;
use glovebox_workspace::regular_file::{self, Links};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The folder of plugins, in the folder for data.
const FOLDER: &str = "plugins";
/// Ending of a file that is being written.
const UNFINISHED: &str = ".new";
/// Maximum time to wait for another process that writes.
const WAIT_MAX: Duration = Duration::from_secs(30);
/// Time between two attempts to lock the folder.
const POLL: Duration = Duration::from_millis(10);

/// The store of a user. It may not exist yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    folder: PathBuf,
}

/// Why the store has no bytes for a digest.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// There is no file for the digest.
    #[error("it is not in the store of plugins, `{}`", folder.display())]
    Absent {
        /// The folder of the store.
        folder: PathBuf,
    },
    /// The file has other bytes than its name says.
    #[error("its file in the store is damaged: `{}` has the digest {found}", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// The digest of its bytes.
        found: Digest,
    },
    /// The file cannot be read or written.
    #[error("`{}`: {source}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

impl Store {
    /// Returns the store in a folder for data. Nothing is created.
    pub fn in_data_folder(folder: &Path) -> Self {
        Self { folder: folder.join(FOLDER) }
    }

    /// Returns the file for a digest, which need not exist.
    pub fn file(&self, digest: Digest) -> PathBuf {
        self.folder.join(format!("blake3-{}.wasm", digest.hex()))
    }

    /// Returns the bytes with this digest.
    ///
    /// # Errors
    ///
    /// The store does not have them, or has more than `bytes_max` or other bytes.
    pub fn read(&self, digest: Digest, bytes_max: u64) -> Result<Vec<u8>, StoreError> {
        let file = self.file(digest);
        let bytes = match regular_file::read(&file, Links::Follow, bytes_max) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Err(StoreError::Absent { folder: self.folder.clone() });
            }
            read => read.map_err(|source| StoreError::Io { file: file.clone(), source })?,
        };
        match Digest::hash(&bytes) {
            found if found == digest => Ok(bytes),
            found => Err(StoreError::Damaged { file, found }),
        }
    }

    /// Returns true if the store has the bytes with this digest.
    pub fn has(&self, digest: Digest, bytes_max: u64) -> bool {
        self.read(digest, bytes_max).is_ok()
    }

    /// Stores bytes, unless the store has them. A damaged file is replaced. On failure, the store is as before.
    ///
    /// # Errors
    ///
    /// The file cannot be written, or another process holds the store for too long.
    pub fn put(&self, bytes: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::hash(bytes);
        if self.has(digest, bytes.len() as u64) {
            return Ok(digest);
        }
        let at = |file: &Path| {
            let file = file.to_owned();
            move |source| StoreError::Io { file, source }
        };
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.folder).map_err(at(&self.folder))?;
        let folder = self.lock().map_err(at(&self.folder))?;
        self.remove_unfinished();
        let file = self.file(digest);
        let unfinished = self.folder.join(format!("{}{UNFINISHED}", digest.hex()));
        let written = write(&unfinished, bytes).and_then(|()| std::fs::rename(&unfinished, &file));
        written.and_then(|()| folder.sync_all()).map_err(|source| {
            // An error of the removal is ignored, because the earlier error is reported.
            drop(std::fs::remove_file(&unfinished));
            StoreError::Io { file, source }
        })?;
        Ok(digest)
    }

    /// Waits for other processes that write, and keeps them out until the folder is closed.
    fn lock(&self) -> io::Result<File> {
        let folder = regular_file::open_folder(&self.folder)?;
        let begin = Instant::now();
        loop {
            match folder.try_lock() {
                Ok(()) => return Ok(folder),
                Err(TryLockError::WouldBlock) if begin.elapsed() < WAIT_MAX => thread::sleep(POLL),
                Err(TryLockError::WouldBlock) => return Err(ErrorKind::TimedOut.into()),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
    }

    /// Removes files of processes that died while they wrote. The folder is locked, so nobody writes them.
    fn remove_unfinished(&self) {
        let entries = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_unfinished = |name: &std::ffi::OsStr| name.to_string_lossy().ends_with(UNFINISHED);
        for entry in entries.filter(|entry| is_unfinished(&entry.file_name())) {
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut created = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    created.write_all(bytes)?;
    created.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const BYTES_MAX: u64 = 1 << 20;

    fn names(store: &Store) -> Vec<String> {
        let entries = fs::read_dir(&store.folder).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn bytes_are_hashed_when_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_data_folder(&folder.path().join("new/data"));
        let digest = Digest::hash(b"component");
        assert!(matches!(store.read(digest, BYTES_MAX), Err(StoreError::Absent { .. })));
        assert_eq!(store.put(b"component").unwrap(), digest);
        assert_eq!(store.read(digest, BYTES_MAX).unwrap(), b"component");
        assert!(matches!(store.read(digest, 3), Err(StoreError::Io { .. })));
        fs::write(store.file(digest), b"componenT").unwrap();
        assert!(matches!(store.read(digest, BYTES_MAX), Err(StoreError::Damaged { .. })));
        assert_eq!(store.put(b"component").unwrap(), digest);
        assert_eq!(store.read(digest, BYTES_MAX).unwrap(), b"component");
        assert_eq!(names(&store), [format!("blake3-{}.wasm", digest.hex())]);
    }

    #[test]
    fn writers_at_once_store_one_file_and_clean_up_after_the_dead() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_data_folder(folder.path());
        fs::create_dir(&store.folder).unwrap();
        fs::write(store.folder.join("dead.new"), b"half").unwrap();
        let bytes = vec![7; 100_000];
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| store.put(&bytes).unwrap());
            }
        });
        assert_eq!(names(&store).len(), 1);
        assert_eq!(store.read(Digest::hash(&bytes), BYTES_MAX).unwrap(), bytes);
    }
}
