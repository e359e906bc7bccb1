//! An open file of a view: reading and writing at offsets, within the quota.
//!
//! The rights of a handle are checked when it is opened and do not change. Every written byte goes through
//! [`FileHandle::write_at`] or [`FileHandle::append`], so that no stream evades the quota.

use super::error::ViewError;
use super::metadata::{Metadata, NewTime};
use super::open::OpenOptions;
use super::refuse::{ObjectFault, Operation};
use super::{Kind, View};
use crate::layer::handle::Handle;
use glovebox_record::path::ScopePath;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::sync::Arc;

/// An open regular file.
#[derive(Debug)]
pub struct FileHandle {
    view: Arc<View>,
    file: Backing,
    path: ScopePath,
    readable: bool,
    writable: bool,
}

/// The storage behind a handle.
#[derive(Debug)]
enum Backing {
    /// A file of a folder that the view changes.
    Disk(Arc<OwnedFd>),
    /// A file of a layer, or of a folder below it.
    Layer(Arc<Handle>),
}

impl FileHandle {
    pub(super) fn on_disk(view: Arc<View>, fd: OwnedFd, path: ScopePath, options: OpenOptions) -> Self {
        let (readable, writable) = (options.read, options.write);
        Self { view, file: Backing::Disk(Arc::new(fd)), path, readable, writable }
    }

    pub(super) fn in_layer(view: Arc<View>, handle: Arc<Handle>, path: ScopePath, options: OpenOptions) -> Self {
        let (readable, writable) = (options.read, options.write);
        Self { view, file: Backing::Layer(handle), path, readable, writable }
    }

    /// Returns the current descriptor of the file.
    fn descriptor(&self) -> Result<Arc<OwnedFd>, Errno> {
        match &self.file {
            Backing::Disk(fd) => Ok(Arc::clone(fd)),
            Backing::Layer(handle) => handle.descriptor(),
        }
    }

    /// Makes sure that the file can hold this many bytes, which may move it from memory to disk, and returns its
    /// descriptor.
    fn with_room(&self, bytes: u64) -> Result<Arc<OwnedFd>, Errno> {
        match &self.file {
            Backing::Disk(fd) => Ok(Arc::clone(fd)),
            Backing::Layer(handle) => handle.with_room(bytes),
        }
    }

    /// Returns the path by which the file was opened.
    pub fn path(&self) -> &ScopePath {
        &self.path
    }

    /// Returns true if the file was opened for reading.
    pub fn readable(&self) -> bool {
        self.readable
    }

    /// Returns true if the file was opened for writing.
    pub fn writable(&self) -> bool {
        self.writable
    }

    /// Reads into `buffer` from `offset`. Returns the number of bytes; 0 at the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, ViewError> {
        if !self.readable {
            return Err(ViewError::Io(Errno::BADF));
        }
        let fd = self.descriptor()?;
        Ok(rustix::io::retry_on_intr(|| rustix::io::pread(&fd, &mut *buffer, offset))?)
    }

    /// Writes all of `bytes` at `offset`. Charges the number of bytes, or the growth of the file if that is more: a
    /// hole is charged in full.
    pub fn write_at(&self, bytes: &[u8], offset: u64) -> Result<(), ViewError> {
        self.require_writable()?;
        if bytes.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(bytes.len() as u64).ok_or(ViewError::Io(Errno::FBIG))?;
        let size = self.metadata()?.size;
        self.view.charge_bytes(&self.path, end.saturating_sub(size).max(bytes.len() as u64))?;
        self.view.touch();
        let fd = self.with_room(end.max(size))?;
        let (mut rest, mut at) = (bytes, offset);
        while !rest.is_empty() {
            let written = rustix::io::retry_on_intr(|| rustix::io::pwrite(&fd, rest, at))?;
            if written == 0 {
                return Err(ViewError::Io(Errno::IO));
            }
            rest = &rest[written..];
            at += written as u64;
        }
        Ok(())
    }

    /// Writes all of `bytes` at the end of the file.
    pub fn append(&self, bytes: &[u8]) -> Result<(), ViewError> {
        self.require_writable()?;
        self.write_at(bytes, self.metadata()?.size)
    }

    /// Sets the length of the file. Growth counts against the quota, although it takes no space on disk.
    pub fn set_len(&self, size: u64) -> Result<(), ViewError> {
        self.require_writable()?;
        self.view.charge_bytes(&self.path, size.saturating_sub(self.metadata()?.size))?;
        self.view.touch();
        Ok(rustix::fs::ftruncate(self.with_room(size)?, size)?)
    }

    /// Sets the times of the file. The handle must be writable.
    pub fn set_times(&self, accessed: NewTime, modified: NewTime) -> Result<(), ViewError> {
        self.require_writable()?;
        let times = NewTime::pair(accessed, modified).ok_or(ViewError::Invalid)?;
        self.view.touch();
        Ok(rustix::fs::futimens(self.descriptor()?, &times)?)
    }

    /// Returns the metadata of the file.
    pub fn metadata(&self) -> Result<Metadata, ViewError> {
        let metadata = match &self.file {
            Backing::Disk(fd) => Metadata::from_stat(&rustix::fs::fstat(fd)?),
            Backing::Layer(handle) => match handle.content() {
                Some(content) => Metadata::for_content(&content)?,
                None => Metadata::from_stat(&rustix::fs::fstat(handle.descriptor()?)?),
            },
        };
        if metadata.kind == Kind::File { Ok(metadata) } else { Err(ViewError::Invalid) }
    }

    /// Flushes the content to disk, and with `all` also the metadata.
    pub fn sync(&self, all: bool) -> Result<(), ViewError> {
        let fd = self.descriptor()?;
        let done = if all { rustix::fs::fsync(fd) } else { rustix::fs::fdatasync(fd) };
        Ok(done?)
    }

    fn require_writable(&self) -> Result<(), ViewError> {
        if self.writable {
            return Ok(());
        }
        Err(self.view.refuse_object(Operation::Write, &self.path, ObjectFault::ReadOnlyHandle))
    }
}
