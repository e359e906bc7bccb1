//! The plugins that this user pulled, by digest: `plugins/blake3-HEX.wasm` in the folder for data.
//!
//! A file is complete as soon as it has its name, and its bytes are hashed whenever it is read. So whatever happens to the folder, a
//! plugin has the bytes to which the operator agreed, or it does not run.
//!
//! Beside a component are its attachments: `blake3-HEX.wasm.ID.KIND`, where `ID` is derived from the content. So the projects of a
//! user add attachments of their own and never replace those of another project.

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
/// Number of hexadecimal digits of the digest of an attachment that are part of its name.
const ID_DIGITS: usize = 32;
/// Maximum number of attachments of one kind that a component has.
pub const ATTACHMENTS_MAX: usize = 64;
/// Maximum size of an attachment, in bytes.
pub const ATTACHMENT_BYTES_MAX: u64 = 256 << 10;

/// The kind of an attachment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachmentKind {
    /// A file of signatures.
    Signatures,
    /// A file of provenance.
    Provenance,
    /// A reference from which the bytes were pulled, as text.
    Origin,
}

impl AttachmentKind {
    /// Returns the ending of the name.
    fn ending(self) -> &'static str {
        match self {
            Self::Signatures => "sig.json",
            Self::Provenance => "provenance.json",
            Self::Origin => "origin",
        }
    }
}

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
    /// Another process writes for too long.
    #[error("another process holds the store of plugins, `{}`", folder.display())]
    Busy {
        /// The folder of the store.
        folder: PathBuf,
    },
    /// The component has too many attachments of a kind, or one that is too long.
    #[error(
        "it has more than {ATTACHMENTS_MAX} attachments of a kind in the store, or one of more than {ATTACHMENT_BYTES_MAX} bytes"
    )]
    Attachments,
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
        if !self.has(digest, bytes.len() as u64) {
            self.write(&self.file(digest), bytes)?;
        }
        Ok(digest)
    }

    /// Adds an attachment to a component, unless the component has it.
    ///
    /// # Errors
    ///
    /// As [`Store::put`]; also if the component has too many attachments.
    pub fn attach(&self, digest: Digest, kind: AttachmentKind, content: &[u8]) -> Result<(), StoreError> {
        let known = match self.attached(digest, kind) {
            // A damaged attachment is replaced if it is the same one.
            Err(StoreError::Damaged { .. }) => Vec::new(),
            known => known?,
        };
        if known.iter().any(|known| known == content) {
            return Ok(());
        }
        if known.len() >= ATTACHMENTS_MAX || content.len() as u64 > ATTACHMENT_BYTES_MAX {
            return Err(StoreError::Attachments);
        }
        self.write(&self.attachment(digest, kind, content), content)
    }

    /// Returns the attachments of a component, sorted by their names. Each is hashed. One that is damaged counts only if there is no
    /// other.
    ///
    /// # Errors
    ///
    /// All attachments of the kind are damaged, there are too many, or they cannot be read.
    pub fn attached(&self, digest: Digest, kind: AttachmentKind) -> Result<Vec<Vec<u8>>, StoreError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            read => read.map_err(|source| StoreError::Io { file: self.folder.clone(), source })?,
        };
        let (head, ending) = (format!("blake3-{}.wasm.", digest.hex()), format!(".{}", kind.ending()));
        let is_of_kind = |name: &str| {
            let id = name.strip_prefix(&head).and_then(|rest| rest.strip_suffix(&ending));
            id.is_some_and(|id| id.len() == ID_DIGITS)
        };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.filter(|name| is_of_kind(name)).collect();
        if names.len() > ATTACHMENTS_MAX {
            return Err(StoreError::Attachments);
        }
        names.sort_unstable();
        let (mut found, mut damaged) = (Vec::new(), None);
        for file in names.iter().map(|name| self.folder.join(name)) {
            let read = regular_file::read(&file, Links::Follow, ATTACHMENT_BYTES_MAX);
            let content = read.map_err(|source| StoreError::Io { file: file.clone(), source })?;
            match self.attachment(digest, kind, &content) == file {
                true => found.push(content),
                false => damaged = Some(StoreError::Damaged { file, found: Digest::hash(&content) }),
            }
        }
        match damaged {
            Some(damaged) if found.is_empty() => Err(damaged),
            _ => Ok(found),
        }
    }

    fn attachment(&self, digest: Digest, kind: AttachmentKind, content: &[u8]) -> PathBuf {
        let id = Digest::hash(content).hex();
        self.folder.join(format!("blake3-{}.wasm.{}.{}", digest.hex(), &id[..ID_DIGITS], kind.ending()))
    }

    /// Writes a file of the store. On failure, the store is as before.
    fn write(&self, file: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let at = |file: &Path| {
            let file = file.to_owned();
            move |source| StoreError::Io { file, source }
        };
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.folder).map_err(at(&self.folder))?;
        let folder = self.lock(WAIT_MAX)?;
        self.remove_unfinished();
        let unfinished = self.folder.join(format!("{}{UNFINISHED}", Digest::hash(bytes).hex()));
        let written = write(&unfinished, bytes).and_then(|()| std::fs::rename(&unfinished, file));
        written.and_then(|()| folder.sync_all()).map_err(|source| {
            // An error of the removal is ignored, because the earlier error is reported.
            drop(std::fs::remove_file(&unfinished));
            StoreError::Io { file: file.to_owned(), source }
        })
    }

    /// Waits for other processes that write, and keeps them out until the folder is closed.
    fn lock(&self, wait_max: Duration) -> Result<File, StoreError> {
        let at = |source| StoreError::Io { file: self.folder.clone(), source };
        let folder = regular_file::open_folder(&self.folder).map_err(at)?;
        let begin = Instant::now();
        loop {
            match folder.try_lock() {
                Ok(()) => return Ok(folder),
                Err(TryLockError::WouldBlock) if begin.elapsed() < wait_max => thread::sleep(POLL),
                Err(TryLockError::WouldBlock) => return Err(StoreError::Busy { folder: self.folder.clone() }),
                Err(TryLockError::Error(error)) => return Err(at(error)),
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
    fn a_store_that_is_held_for_too_long_is_busy() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_data_folder(folder.path());
        store.put(b"component").unwrap();
        let held = store.lock(Duration::ZERO).unwrap();
        assert!(matches!(store.lock(Duration::from_millis(30)), Err(StoreError::Busy { .. })));
        drop(held);
        store.lock(Duration::ZERO).unwrap();
    }

    #[test]
    fn attachments_are_a_set_and_are_hashed_when_they_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_data_folder(folder.path());
        let digest = store.put(b"component").unwrap();
        let signatures = || store.attached(digest, AttachmentKind::Signatures);
        assert!(signatures().unwrap().is_empty());
        for content in [b"one", b"two", b"one"] {
            store.attach(digest, AttachmentKind::Signatures, content).unwrap();
        }
        store.attach(digest, AttachmentKind::Origin, b"one").unwrap();
        let mut found = signatures().unwrap();
        found.sort();
        assert_eq!(found, [b"one", b"two"]);
        assert_eq!(store.attached(digest, AttachmentKind::Origin).unwrap(), [b"one"]);
        assert!(store.attached(Digest::hash(b"other"), AttachmentKind::Origin).unwrap().is_empty());
        fs::write(store.attachment(digest, AttachmentKind::Signatures, b"one"), b"onE").unwrap();
        assert_eq!(signatures().unwrap(), [b"two"], "a damaged one does not count");
        fs::write(store.attachment(digest, AttachmentKind::Signatures, b"two"), b"twO").unwrap();
        assert!(matches!(signatures(), Err(StoreError::Damaged { .. })), "nothing intact is left");
        store.attach(digest, AttachmentKind::Signatures, b"two").unwrap();
        assert_eq!(signatures().unwrap(), [b"two"], "it is replaced");
        let long = vec![0; ATTACHMENT_BYTES_MAX as usize + 1];
        assert!(matches!(store.attach(digest, AttachmentKind::Origin, &long), Err(StoreError::Attachments)));
    }

    #[test]
    fn a_component_has_a_limited_number_of_attachments() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::in_data_folder(folder.path());
        let digest = store.put(b"component").unwrap();
        for at in 0..=ATTACHMENTS_MAX {
            let content = at.to_string();
            let file = store.attachment(digest, AttachmentKind::Origin, content.as_bytes());
            match at {
                ATTACHMENTS_MAX => {
                    let refused = store.attach(digest, AttachmentKind::Origin, content.as_bytes());
                    assert!(matches!(refused, Err(StoreError::Attachments)));
                    fs::write(file, content).unwrap();
                    assert!(matches!(store.attached(digest, AttachmentKind::Origin), Err(StoreError::Attachments)));
                }
                _ => fs::write(file, content).unwrap(),
            }
        }
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
