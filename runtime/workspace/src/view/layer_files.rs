//! Files of a layer: opening and creating them, and copying files into the layer before they are changed.
//!
//! The folders below the layer are only read, through the same walk and with the same checks as in a view without a
//! layer. Copies are bounded by `disk_bytes` and [`COPIED_ENTRIES_MAX`].

use super::error::ViewError;
use super::file::FileHandle;
use super::layer_stack::LayerStack;
use super::metadata::{Kind, Metadata, NewTime};
use super::open::OpenOptions;
use super::place::{Holder, Origin, Place, last_name};
use super::refuse::Operation;
use super::{View, charge};
use crate::layer::COPIED_ENTRIES_MAX;
use crate::layer::content::Content;
use crate::layer::handle::Handle;
use crate::layer::nodes::Node;
use crate::tree;
use glovebox_record::LimitName;
use glovebox_record::path::ScopePath;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, Stat, Timestamps};
use std::sync::Arc;

/// Minimum number of bytes that are charged for a copied file.
const COPY_BYTES_MIN: u64 = 4 << 10;
const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

impl View {
    /// Opens a regular file of the layer or of a lower folder. A lower file is copied into the layer before it can be changed.
    pub(super) fn open_in_layer(
        self: &Arc<Self>,
        layered: &LayerStack,
        origin: &Origin<'_>,
        path: &ScopePath,
        options: OpenOptions,
    ) -> Result<FileHandle, ViewError> {
        let handle = match origin {
            Origin::Content(content) => self.open_content(path, content, options)?,
            Origin::Lower(root, directory) => {
                let flags = READ | OFlags::CLOEXEC;
                let fd = root.open_name(directory.as_fd(), last_name(path), flags, Mode::empty());
                let fd = fd.map_err(|errno| self.denied(options.operation(), path, errno))?;
                let opened = rustix::fs::fstat(&fd)?;
                self.require_plain_file(options, path, &Metadata::from_stat(&opened))?;
                if options.changes() {
                    let keeps = if options.truncate { None } else { Some(&fd) };
                    let content = self.copy(layered, path, keeps, &opened)?;
                    self.open_content(path, &content, options)?
                } else {
                    layered.layer().read_lower(path, fd)
                }
            }
            Origin::Nowhere | Origin::Layer => return Err(ViewError::NotFound),
        };
        Ok(FileHandle::in_layer(Arc::clone(self), handle, path.clone(), options))
    }

    fn open_content(
        &self,
        path: &ScopePath,
        content: &Arc<Content>,
        options: OpenOptions,
    ) -> Result<Arc<Handle>, ViewError> {
        let handle = Handle::new(path, content)?;
        if options.truncate {
            rustix::fs::ftruncate(handle.descriptor()?, 0)?;
            self.touch();
        }
        Ok(handle)
    }

    /// Creates a file in the layer at a path where nothing exists.
    pub(super) fn create_in_layer(
        self: &Arc<Self>,
        layered: &LayerStack,
        path: &ScopePath,
        options: OpenOptions,
    ) -> Result<FileHandle, ViewError> {
        let content = self.charged_entry(path, || layered.layer().create_file(path))?;
        let handle = Handle::new(path, &content)?;
        Ok(FileHandle::in_layer(Arc::clone(self), handle, path.clone(), options))
    }

    /// Copies a lower file into the layer, or creates an empty file in its place if `from` is `None`.
    pub(super) fn copy(
        &self,
        layered: &LayerStack,
        path: &ScopePath,
        from: Option<&OwnedFd>,
        stat: &Stat,
    ) -> Result<Arc<Content>, ViewError> {
        let bytes = if from.is_some() { tree::length(stat) } else { 0 };
        self.charge_copy(layered, path, bytes)?;
        let content = layered.layer().new_content(tree::is_executable(stat))?;
        if let Some(from) = from {
            content.open()?.fill(from, stat)?;
        }
        layered.layer().put_copy(path, Node::File(Arc::clone(&content)))?;
        layered.layer().read_copy(path, &content)?;
        Ok(content)
    }

    /// Charges one entry and the disk usage of a copy.
    pub(super) fn charge_copy(&self, layered: &LayerStack, path: &ScopePath, bytes: u64) -> Result<(), ViewError> {
        if !charge(&layered.copied_entries, 1, COPIED_ENTRIES_MAX) {
            return Err(self.refuse_quota(path, LimitName::WriteEntries));
        }
        if !charge(&layered.copied_bytes, bytes.max(COPY_BYTES_MIN), self.limits.disk_bytes) {
            return Err(self.refuse_quota(path, LimitName::DiskBytes));
        }
        Ok(())
    }

    /// Returns the file at a path as a file of the layer. A lower file is copied first.
    pub(super) fn in_layer(
        &self,
        layered: &LayerStack,
        operation: Operation,
        path: &ScopePath,
        origin: &Origin<'_>,
    ) -> Result<Arc<Content>, ViewError> {
        let (root, directory) = match origin {
            Origin::Content(content) => return Ok(Arc::clone(content)),
            Origin::Lower(root, directory) => (root, directory),
            Origin::Nowhere | Origin::Layer => return Err(ViewError::NotFound),
        };
        let fd = root.open_name(directory.as_fd(), last_name(path), READ | OFlags::CLOEXEC, Mode::empty());
        let fd = fd.map_err(|errno| self.denied(operation, path, errno))?;
        let opened = rustix::fs::fstat(&fd)?;
        let metadata = Metadata::from_stat(&opened);
        if self.hidden.contains(metadata.identity) {
            return Err(self.refuse_hidden_object(operation, path));
        }
        if metadata.kind != Kind::File {
            return Err(ViewError::Invalid);
        }
        self.copy(layered, path, Some(&fd), &opened)
    }

    /// Sets the times of a file or directory.
    pub(super) fn set_times_in_layer(
        &self,
        place: &Place<'_>,
        layered: &LayerStack,
        path: &ScopePath,
        new: [NewTime; 2],
        times: Timestamps,
    ) -> Result<(), ViewError> {
        let Holder::Layer(_, origin) = &place.holder else { return Err(ViewError::Invalid) };
        if place.found.is_some_and(|found| found.kind == Kind::Directory) {
            let [accessed, modified] = new.map(NewTime::time);
            return Ok(layered.layer().set_folder_times(path, |times| {
                times.accessed = accessed.or(times.accessed);
                times.modified = modified.or(times.modified);
            })?);
        }
        let content = self.in_layer(layered, Operation::SetTimes, path, origin)?;
        let handle = Handle::new(path, &content)?;
        Ok(rustix::fs::futimens(handle.descriptor()?, &times)?)
    }
}
