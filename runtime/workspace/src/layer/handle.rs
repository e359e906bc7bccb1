//! An opened file of a stage with a layer: of the layer itself, or of what lies below it.
//!
//! A file that is opened for reading and then copied into the layer is read from there, as if it were one file. The same holds when
//! the layer is mounted for commands.

use super::Layer;
use super::content::{Content, ContentUse};
use crate::root::Root;
use glovebox_record::path::ScopePath;
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// An opened file.
#[derive(Debug)]
pub(crate) struct Handle {
    path: ScopePath,
    behind: Mutex<HandleSource>,
}

#[derive(Debug)]
enum HandleSource {
    /// A file below the layer, only read.
    Lower(Arc<OwnedFd>),
    /// A file of the layer.
    Content(ContentUse),
}

/// Handles of files below the layer.
#[derive(Debug, Default)]
pub(super) struct Readers(Mutex<Vec<Weak<Handle>>>);

impl Readers {
    fn locked(&self) -> MutexGuard<'_, Vec<Weak<Handle>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The handles that still read a file below the layer, with others left out for good.
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
    /// Makes a handle that reads a file below the layer.
    pub(crate) fn read_lower(&self, path: &ScopePath, fd: OwnedFd) -> Arc<Handle> {
        let handle = Arc::new(Handle { path: path.clone(), behind: Mutex::new(HandleSource::Lower(Arc::new(fd))) });
        self.readers.add(&handle);
        handle
    }

    /// Lets the handles that read the file at this path read its copy.
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

    /// Lets the handles that read files below the layer read those of the mounted folder.
    pub(super) fn read_merged(&self, root: &Root) {
        self.readers.each(&mut |handle, behind| {
            if let Ok(fd) = root.file(&handle.path, OFlags::RDONLY) {
                *behind = HandleSource::Lower(Arc::new(fd));
            }
        });
    }
}

impl Handle {
    /// Makes a handle of a file of the layer.
    pub(crate) fn new(path: &ScopePath, content: &Arc<Content>) -> Result<Arc<Self>, Errno> {
        Ok(Arc::new(Self { path: path.clone(), behind: Mutex::new(HandleSource::Content(content.open()?)) }))
    }

    fn behind(&self) -> MutexGuard<'_, HandleSource> {
        self.behind.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The descriptor of the file as it is now.
    pub(crate) fn descriptor(&self) -> Result<Arc<OwnedFd>, Errno> {
        match &*self.behind() {
            HandleSource::Lower(fd) => Ok(Arc::clone(fd)),
            HandleSource::Content(opened) => opened.descriptor(),
        }
    }

    /// The descriptor of a file of the layer, which has room for this length.
    pub(crate) fn with_room(&self, bytes: u64) -> Result<Arc<OwnedFd>, Errno> {
        match &*self.behind() {
            HandleSource::Lower(_) => Err(Errno::BADF),
            HandleSource::Content(opened) => opened.with_room(bytes),
        }
    }

    /// The content, where it is a file of the layer that was not laid out.
    pub(crate) fn content(&self) -> Option<Arc<Content>> {
        match &*self.behind() {
            HandleSource::Content(opened) if !opened.content().is_laid_out() => Some(Arc::clone(opened.content())),
            _ => None,
        }
    }
}
