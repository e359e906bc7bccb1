//! An open file of a stage with a layer: a file of the layer, or a lower file.
//!
//! If a lower file is opened for reading and then copied into the layer, the handle reads the copy from then on. If the
//! layer is mounted for commands, the handle reads the file of the mounted folder.

use super::Layer;
use super::content::{Content, ContentUse};
use crate::root::Root;
use glovebox_record::path::ScopePath;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An open file.
#[derive(Debug)]
pub(crate) struct Handle {
    path: ScopePath,
    behind: Mutex<HandleSource>,
}

#[derive(Debug)]
enum HandleSource {
    /// A lower file, which is only read.
    Lower(Arc<OwnedFd>),
    /// A file of the layer.
    Content(ContentUse),
}

/// Handles of lower files.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<Vec<Weak<Handle>>>);

impl Readers {
    fn locked(&self) -> MutexGuard<'_, Vec<Weak<Handle>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` for every handle that still reads a lower file, and forgets all other handles.
    fn each(&self, act: &mut dyn FnMut(&Handle, &mut HandleSource)) {
        self.locked().retain(|reader| {
            let Some(handle) = reader.upgrade() else { return false };
            let mut behind = handle.behind();
            if matches!(*behind, HandleSource::Lower(_)) {
                act(&handle, &mut behind);
            }
            matches!(*behind, HandleSource::Lower(_))
        });
    }

    fn add(&self, handle: &Arc<Handle>) {
        let mut readers = self.locked();
        if readers.len() == readers.capacity() {
            readers.retain(|reader| reader.strong_count() > 0);
        }
        readers.push(Arc::downgrade(handle));
    }
}

impl Layer {
    /// Creates a handle that reads a lower file.
    pub(crate) fn read_lower(&self, path: &ScopePath, fd: OwnedFd) -> Arc<Handle> {
        let handle = Arc::new(Handle { path: path.clone(), behind: Mutex::new(HandleSource::Lower(Arc::new(fd))) });
        self.readers.add(&handle);
        handle
    }

    /// Switches the handles that read the lower file at this path to its copy.
    pub(crate) fn read_copy(&self, path: &ScopePath, copy: &Arc<Content>) -> Result<(), Errno> {
        let mut failed = Ok(());
        self.readers.each(&mut |handle, behind| {
            if handle.path == *path {
                match copy.open() {
                    Ok(opened) => *behind = HandleSource::Content(opened),
                    Err(error) => failed = Err(error),
                }
            }
        });
        failed
    }

    /// Switches the handles that read lower files to the files of the mounted folder.
    pub(super) fn read_merged(&self, root: &Root) {
        self.readers.each(&mut |handle, behind| {
            if let Ok(fd) = root.file(&handle.path, OFlags::RDONLY) {
                *behind = HandleSource::Lower(Arc::new(fd));
            }
        });
    }
}

impl Handle {
    /// Creates a handle of a file of the layer.
    pub(crate) fn new(path: &ScopePath, content: &Arc<Content>) -> Result<Arc<Self>, Errno> {
        Ok(Arc::new(Self { path: path.clone(), behind: Mutex::new(HandleSource::Content(content.open()?)) }))
    }

    fn behind(&self) -> MutexGuard<'_, HandleSource> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the current descriptor of the file.
    pub(crate) fn descriptor(&self) -> Result<Arc<OwnedFd>, Errno> {
        match &*self.behind() {
            HandleSource::Lower(fd) => Ok(Arc::clone(fd)),
            HandleSource::Content(opened) => opened.descriptor(),
        }
    }

    /// Makes sure that a file of the layer can hold this many bytes, which may move it from memory to disk, and returns
    /// its descriptor.
    pub(crate) fn with_room(&self, bytes: u64) -> Result<Arc<OwnedFd>, Errno> {
        match &*self.behind() {
            HandleSource::Lower(_) => Err(Errno::BADF),
            HandleSource::Content(opened) => opened.with_room(bytes),
        }
    }

    /// Returns the content if the file is in the layer and was not moved to an overlay.
    pub(crate) fn content(&self) -> Option<Arc<Content>> {
        match &*self.behind() {
            HandleSource::Content(opened) if !opened.content().is_laid_out() => Some(Arc::clone(opened.content())),
            _ => None,
        }
    }
}
