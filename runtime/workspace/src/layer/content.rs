//! The content of the files in a layer: small amounts in memory, the rest in the stage's own folder.
//!
//! Content in memory is a memfd, and content in the folder is a regular file, so both are read and written through a
//! file descriptor. Content that exceeds the bounds for memory moves to the folder, even while it is open. When the
//! last reference to a file's content is dropped, the memfd or file is removed.

use super::nodes::Times;
use crate::tree::{self, Tree};
use rustix::fs::{AtFlags, MemfdFlags, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Maximum length in bytes of the content of one file in memory.
const FILE_MEMORY_BYTES_MAX: u64 = 256 << 10;
/// Maximum total size in bytes of all file contents of one layer in memory.
const MEMORY_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of files of one layer in memory. Each one needs a descriptor.
const MEMORY_FILES_MAX: u64 = 32;
/// Minimum number of bytes that are charged for a file in memory.
const PAGE_BYTES: u64 = 4 << 10;
const PRIVATE: Mode = Mode::RUSR.union(Mode::WUSR);

/// Storage for the file contents of one layer.
#[derive(Debug)]
pub(super) struct Store {
    at: PathBuf,
    folder: Mutex<Option<Arc<Tree>>>,
    numbers: AtomicU64,
    memory_bytes: AtomicU64,
    memory_files: AtomicU64,
}

/// The content of one file.
#[derive(Debug)]
pub(crate) struct Content {
    store: Arc<Store>,
    /// Number of the file in the layer.
    pub(crate) number: u64,
    /// True if the owner may execute the file.
    pub(crate) executable: bool,
    held: Mutex<ContentState>,
}

#[derive(Debug)]
struct ContentState {
    place: Storage,
    /// The descriptor; set while the content is in memory or in use.
    fd: Option<Arc<OwnedFd>>,
    users: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Storage {
    /// In memory, with the number of bytes that are charged for it.
    Memory(u64),
    /// In the stage's folder, in a file named by the content's number.
    Folder,
    /// In the upper folder of an overlay, which is removed as a whole.
    LaidOut,
}

/// The content of an open file. The content stays open until the last `ContentUse` of it is dropped.
#[derive(Debug)]
pub(crate) struct ContentUse(Arc<Content>);

impl Store {
    pub(super) fn new(at: PathBuf) -> Self {
        let zero = || AtomicU64::new(0);
        Self { at, folder: Mutex::default(), numbers: zero(), memory_bytes: zero(), memory_files: zero() }
    }

    /// Returns a number that is unique in the layer, counted from 1.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn has_folder(&self) -> bool {
        self.locked().is_some()
    }

    /// Returns the stage's own folder. Creates it and its parents if necessary.
    pub(super) fn folder(&self) -> io::Result<Arc<Tree>> {
        let mut folder = self.locked();
        if let Some(made) = &*folder {
            return Ok(Arc::clone(made));
        }
        self.make_above()?;
        let made = Arc::new(Tree::create(&self.at)?);
        *folder = Some(Arc::clone(&made));
        Ok(made)
    }

    /// Creates the parents of the stage's own folder.
    pub(super) fn make_above(&self) -> io::Result<()> {
        match self.at.parent() {
            Some(above) => DirBuilder::new().recursive(true).mode(0o700).create(above),
            None => Ok(()),
        }
    }

    /// Sets the stage's own folder to one that another part of the layer created.
    pub(super) fn adopt(&self, made: Tree) {
        *self.locked() = Some(Arc::new(made));
    }

    fn locked(&self) -> MutexGuard<'_, Option<Arc<Tree>>> {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the content of an empty file.
    pub(super) fn create(self: &Arc<Self>, executable: bool) -> Result<Arc<Content>, Errno> {
        let number = self.number();
        let held = match self.in_memory() {
            Some(fd) => ContentState { place: Storage::Memory(PAGE_BYTES), fd: Some(Arc::new(fd)), users: 0 },
            None => {
                drop(self.on_disk(number)?);
                ContentState { place: Storage::Folder, fd: None, users: 0 }
            }
        };
        Ok(Arc::new(Content { store: Arc::clone(self), number, executable, held: Mutex::new(held) }))
    }

    /// Creates an empty file in memory, or returns `None` if a bound is reached.
    fn in_memory(&self) -> Option<OwnedFd> {
        let one_more = |files: u64| Some(files + 1).filter(|files| *files <= MEMORY_FILES_MAX);
        self.memory_files.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).ok()?;
        if !self.charge(0, PAGE_BYTES) {
            self.memory_files.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        memory_file().inspect_err(|_| self.give_back(PAGE_BYTES)).ok()
    }

    /// Reserves memory for file content that grows. Returns false if the bound is reached.
    fn charge(&self, has: u64, needs: u64) -> bool {
        let more = needs.saturating_sub(has);
        let within = |used: u64| used.checked_add(more).filter(|sum| *sum <= MEMORY_BYTES_MAX);
        self.memory_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.memory_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.memory_files.fetch_sub(1, Ordering::Relaxed);
    }

    fn on_disk(&self, number: u64) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = self.folder().map_err(errno)?;
        rustix::fs::openat(&*folder, name(number), flags, PRIVATE)
    }

    fn opened(&self, number: u64, flags: OFlags) -> Result<OwnedFd, Errno> {
        let folder = self.folder().map_err(errno)?;
        rustix::fs::openat(&*folder, name(number), flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty())
    }
}

/// Creates an empty memfd that cannot be executed.
fn memory_file() -> Result<OwnedFd, Errno> {
    let made = |flags: MemfdFlags| rustix::fs::memfd_create("glovebox-layer", MemfdFlags::CLOEXEC | flags);
    match made(MemfdFlags::NOEXEC_SEAL) {
        // The kernel is older than Linux 6.3.
        Err(Errno::INVAL) => made(MemfdFlags::empty()),
        other => other,
    }
}

fn name(number: u64) -> String {
    format!("content-{number}")
}

/// Converts an error of the standard library to an [`Errno`].
pub(crate) fn errno(error: io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

impl Content {
    fn held(&self) -> MutexGuard<'_, ContentState> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the content for reading and writing.
    pub(crate) fn open(self: &Arc<Self>) -> Result<ContentUse, Errno> {
        let mut held = self.held();
        if held.fd.is_none() {
            held.fd = Some(Arc::new(self.store.opened(self.number, OFlags::RDWR)?));
        }
        held.users += 1;
        Ok(ContentUse(Arc::clone(self)))
    }

    /// Opens the content for reading from the beginning, with a file position of its own.
    #[expect(clippy::disallowed_methods, reason = "reopens a file that this module created")]
    pub(crate) fn reader(&self) -> io::Result<File> {
        let held = self.held();
        match &held.fd {
            Some(fd) => File::open(format!("/proc/self/fd/{}", fd.as_raw_fd())),
            None => Ok(File::from(self.store.opened(self.number, OFlags::RDONLY)?)),
        }
    }

    /// Returns the status of the file.
    pub(crate) fn stat(&self) -> Result<Stat, Errno> {
        let held = self.held();
        match &held.fd {
            Some(fd) => rustix::fs::fstat(fd),
            None => {
                let folder = self.store.folder().map_err(errno)?;
                rustix::fs::statat(&*folder, name(self.number), AtFlags::SYMLINK_NOFOLLOW)
            }
        }
    }

    /// Reserves space for this many bytes. Content that is too long for memory moves to the folder.
    fn make_room(&self, bytes: u64) -> Result<(), Errno> {
        let mut held = self.held();
        let Storage::Memory(charged) = held.place else { return Ok(()) };
        let needs = bytes.max(PAGE_BYTES);
        if needs <= charged {
            return Ok(());
        }
        if bytes <= FILE_MEMORY_BYTES_MAX && self.store.charge(charged, needs) {
            held.place = Storage::Memory(needs);
            return Ok(());
        }
        let moved = self.store.on_disk(self.number)?;
        self.copy_to(&held, &moved)?;
        (held.place, held.fd) = (Storage::Folder, (held.users > 0).then(|| Arc::new(moved)));
        self.store.give_back(charged);
        Ok(())
    }

    /// Copies the content and the times to another file.
    #[expect(clippy::disallowed_methods, reason = "reopens a file that this module created")]
    fn copy_to(&self, held: &ContentState, to: &OwnedFd) -> Result<(), Errno> {
        let fd = held.fd.as_ref().ok_or(Errno::BADF)?;
        let stat = rustix::fs::fstat(fd)?;
        let mut from = File::open(format!("/proc/self/fd/{}", fd.as_raw_fd())).map_err(errno)?;
        let mut to = File::from(to.try_clone().map_err(errno)?);
        io::copy(&mut from, &mut to).map_err(errno)?;
        tree::keep_times(&to, &stat).map_err(errno)
    }

    /// Returns true while the component has the file open.
    pub(super) fn is_in_use(&self) -> bool {
        self.held().users > 0
    }

    /// Returns true if the content is a file of an overlay.
    pub(crate) fn is_laid_out(&self) -> bool {
        self.held().place == Storage::LaidOut
    }

    /// Moves the content to a name in a directory of an overlay.
    pub(super) fn lay_out(&self, directory: &OwnedFd, to: &OsStr) -> Result<(), Errno> {
        let mut held = self.held();
        let mode = tree::file_mode(self.executable);
        match held.place {
            Storage::LaidOut => return Err(Errno::BUSY),
            Storage::Memory(charged) => {
                let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let made = rustix::fs::openat(directory, to, flags, mode)?;
                self.copy_to(&held, &made)?;
                rustix::fs::fchmod(&made, mode)?;
                held.fd = (held.users > 0).then(|| Arc::new(made));
                self.store.give_back(charged);
            }
            Storage::Folder => {
                let folder = self.store.folder().map_err(errno)?;
                rustix::fs::renameat(&*folder, name(self.number), directory, to)?;
                rustix::fs::chmodat(directory, to, mode, AtFlags::empty())?;
            }
        }
        held.place = Storage::LaidOut;
        Ok(())
    }

    /// Replaces the descriptor that all users of the content work on.
    pub(super) fn replace(&self, fd: OwnedFd) {
        self.held().fd = Some(Arc::new(fd));
    }
}

impl Drop for Content {
    fn drop(&mut self) {
        let held = self.held.get_mut().unwrap_or_else(PoisonError::into_inner);
        match held.place {
            Storage::Memory(charged) => self.store.give_back(charged),
            // If the file cannot be removed, it is removed with the folder later.
            Storage::Folder => self.store.folder().iter().for_each(|folder| {
                let _ = rustix::fs::unlinkat(folder, name(self.number), AtFlags::empty());
            }),
            Storage::LaidOut => {}
        }
    }
}

impl ContentUse {
    /// Returns the content.
    pub(crate) fn content(&self) -> &Arc<Content> {
        &self.0
    }

    /// Returns the descriptor.
    pub(crate) fn descriptor(&self) -> Result<Arc<OwnedFd>, Errno> {
        self.0.held().fd.as_ref().map(Arc::clone).ok_or(Errno::BADF)
    }

    /// Makes sure that the file can hold this many bytes, which may move it from memory to disk, and returns its
    /// descriptor.
    pub(crate) fn with_room(&self, bytes: u64) -> Result<Arc<OwnedFd>, Errno> {
        self.0.make_room(bytes)?;
        self.descriptor()
    }

    /// Fills empty content from a file of this length and copies the times of the file.
    pub(crate) fn fill(&self, from: impl AsFd, stat: &Stat) -> Result<(), Errno> {
        let mut from = File::from(from.as_fd().try_clone_to_owned().map_err(errno)?).take(tree::length(stat));
        let mut to = File::from(self.with_room(tree::length(stat))?.try_clone().map_err(errno)?);
        let is_in_memory = matches!(self.0.held().place, Storage::Memory(_));
        match is_in_memory {
            true => {
                let mut bytes = Vec::new();
                from.read_to_end(&mut bytes).and_then(|_| to.write_all(&bytes)).map_err(errno)?;
            }
            false => drop(io::copy(&mut from, &mut to).map_err(errno)?),
        }
        tree::keep_times(&to, stat).map_err(errno)
    }
}

impl Drop for ContentUse {
    fn drop(&mut self) {
        let mut held = self.0.held();
        held.users = held.users.saturating_sub(1);
        if held.users == 0 && !matches!(held.place, Storage::Memory(_)) {
            held.fd = None;
        }
    }
}

/// Sets the times of a directory to those of the layer.
pub(super) fn set_times(directory: &OwnedFd, times: Times) -> io::Result<()> {
    let mut new = std::fs::FileTimes::new();
    if let Some(accessed) = times.accessed {
        new = new.set_accessed(accessed);
    }
    if let Some(modified) = times.modified {
        new = new.set_modified(modified);
    }
    File::from(directory.try_clone()?).set_times(new)
}
