//! A layer and the folders below it, as a view works on them: what is read, listed and copied.
//!
//! The folders below are only read, through the same walk and the same checks as a view without a layer. What is copied is bounded by
//! `disk_bytes` and [`COPIED_ENTRIES_MAX`].

use super::denied::Denied;
use super::directory::{Detail, DirectoryEntry, LIST_ENTRIES_MAX, OpenDirectory};
use super::file::FileHandle;
use super::hidden::is_dot;
use super::metadata::{Kind, Metadata};
use super::open::OpenOptions;
use super::place::{Origin, Place, last_name};
use super::refuse::Operation;
use super::root::Root;
use super::{View, ViewProblem, charge};
use crate::layer::content::Content;
use crate::layer::handle::Handle;
use crate::layer::nodes::{Listed, Node, Seen};
use crate::layer::{COPIED_ENTRIES_MAX, Layer};
use crate::tree;
use glovebox_record::LimitName;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{DirEntry, Mode, OFlags, Stat, Timestamps};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// What a copied file takes on disk at least.
const COPY_BYTES_MIN: u64 = 4 << 10;
const READ: OFlags = OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// A layer and the folders below it.
#[derive(Debug)]
pub(super) struct Layered {
    layer: Arc<Layer>,
    lower: Vec<Root>,
    copied_bytes: AtomicU64,
    copied_entries: AtomicU64,
}

impl Layered {
    pub(super) fn open(layer: &Arc<Layer>) -> Result<Self, ViewProblem> {
        let roots = layer.lower.trees().map(|tree| tree.duplicate().map(Root::new));
        let lower = roots.collect::<Result<Vec<_>, _>>();
        let lower = lower.map_err(|error| ViewProblem::Root {
            root: "the workspace".to_owned(),
            source: rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::IO),
        })?;
        Ok(Self { layer: Arc::clone(layer), lower, copied_bytes: AtomicU64::new(0), copied_entries: AtomicU64::new(0) })
    }

    pub(super) fn layer(&self) -> &Arc<Layer> {
        &self.layer
    }

    /// The folders below, the first on top.
    pub(super) fn lower(&self) -> impl Iterator<Item = &Root> {
        self.lower.iter()
    }

    /// The folder at which the layer is mounted, once it is.
    pub(super) fn merged(&self) -> Option<&Root> {
        self.layer.merged()
    }
}

impl View {
    /// Opens a regular file of the layer or below it. One below is copied before it may be changed.
    pub(super) fn open_in_layer(
        self: &Arc<Self>,
        layered: &Layered,
        origin: &Origin<'_>,
        path: &ScopePath,
        options: OpenOptions,
    ) -> Result<FileHandle, Denied> {
        let handle = match origin {
            Origin::Content(content) => self.open_content(path, content, options)?,
            Origin::Lower(root, directory) => {
                let flags = READ | OFlags::CLOEXEC;
                let fd = root.open_name(directory.as_fd(), last_name(path), flags, Mode::empty());
                let fd = fd.map_err(|errno| self.denied(options.operation(), path, errno))?;
                let opened = rustix::fs::fstat(&fd)?;
                self.require_plain_file(options, path, &Metadata::of(&opened))?;
                if options.changes() {
                    let keeps = if options.truncate { None } else { Some(&fd) };
                    let content = self.copy(layered, path, keeps, &opened)?;
                    self.open_content(path, &content, options)?
                } else {
                    layered.layer.read_lower(path, fd)
                }
            }
            Origin::Nowhere | Origin::Layer => return Err(Denied::NotFound),
        };
        Ok(FileHandle::of_layer(Arc::clone(self), handle, path.clone(), options))
    }

    fn open_content(
        &self,
        path: &ScopePath,
        content: &Arc<Content>,
        options: OpenOptions,
    ) -> Result<Arc<Handle>, Denied> {
        let handle = Handle::of(path, content)?;
        if options.truncate {
            rustix::fs::ftruncate(handle.descriptor()?, 0)?;
            self.touch();
        }
        Ok(handle)
    }

    /// Makes a file in the layer where nothing is.
    pub(super) fn create_in_layer(
        self: &Arc<Self>,
        layered: &Layered,
        path: &ScopePath,
        options: OpenOptions,
    ) -> Result<FileHandle, Denied> {
        let content = self.charged_entry(path, || layered.layer.create_file(path))?;
        let handle = Handle::of(path, &content)?;
        Ok(FileHandle::of_layer(Arc::clone(self), handle, path.clone(), options))
    }

    /// Copies a file into the layer, or makes an empty one in its place.
    pub(super) fn copy(
        &self,
        layered: &Layered,
        path: &ScopePath,
        from: Option<&OwnedFd>,
        stat: &Stat,
    ) -> Result<Arc<Content>, Denied> {
        let bytes = if from.is_some() { tree::length(stat) } else { 0 };
        self.charge_copy(layered, path, bytes)?;
        let content = layered.layer.new_content(tree::is_executable(stat))?;
        if let Some(from) = from {
            content.open()?.fill(from, stat)?;
        }
        layered.layer.put_copy(path, Node::File(Arc::clone(&content)))?;
        layered.layer.read_copy(path, &content)?;
        Ok(content)
    }

    /// Charges what a copy takes on disk, and its entry.
    pub(super) fn charge_copy(&self, layered: &Layered, path: &ScopePath, bytes: u64) -> Result<(), Denied> {
        if !charge(&layered.copied_entries, 1, COPIED_ENTRIES_MAX) {
            return Err(self.refuse_quota(path, LimitName::WriteEntries));
        }
        if !charge(&layered.copied_bytes, bytes.max(COPY_BYTES_MIN), self.limits.disk_bytes) {
            return Err(self.refuse_quota(path, LimitName::DiskBytes));
        }
        Ok(())
    }

    /// The file at a place as one of the layer, copied if it lies below.
    pub(super) fn in_layer(
        &self,
        layered: &Layered,
        operation: Operation,
        path: &ScopePath,
        origin: &Origin<'_>,
    ) -> Result<Arc<Content>, Denied> {
        let (root, directory) = match origin {
            Origin::Content(content) => return Ok(Arc::clone(content)),
            Origin::Lower(root, directory) => (root, directory),
            Origin::Nowhere | Origin::Layer => return Err(Denied::NotFound),
        };
        let fd = root.open_name(directory.as_fd(), last_name(path), READ | OFlags::CLOEXEC, Mode::empty());
        let fd = fd.map_err(|errno| self.denied(operation, path, errno))?;
        let opened = rustix::fs::fstat(&fd)?;
        let metadata = Metadata::of(&opened);
        if self.hidden.contains(metadata.identity) {
            return Err(self.refuse_hidden_object(operation, path));
        }
        if metadata.kind != Kind::File {
            return Err(Denied::Invalid);
        }
        self.copy(layered, path, Some(&fd), &opened)
    }

    /// Sets the times of a file or directory.
    pub(super) fn set_times_in_layer(
        &self,
        place: &Place<'_>,
        layered: &Layered,
        path: &ScopePath,
        (new, times): ([super::NewTime; 2], Timestamps),
    ) -> Result<(), Denied> {
        let super::place::Holder::Layer(_, origin) = &place.holder else { return Err(Denied::Invalid) };
        if place.found.is_some_and(|found| found.kind == Kind::Directory) {
            let [accessed, modified] = new.map(super::NewTime::time);
            return Ok(layered.layer.set_folder_times(path, |times| {
                times.accessed = accessed.or(times.accessed);
                times.modified = modified.or(times.modified);
            })?);
        }
        let content = self.in_layer(layered, Operation::SetTimes, path, origin)?;
        let handle = Handle::of(path, &content)?;
        Ok(rustix::fs::futimens(handle.descriptor()?, &times)?)
    }

    /// Lists what the stage sees in a directory, sorted by name.
    pub(super) fn list_layered(
        &self,
        layered: &Layered,
        path: &ScopePath,
        detail: Detail,
    ) -> Result<Vec<DirectoryEntry>, Denied> {
        let operation = Operation::List;
        let shows_lower = match layered.layer.seen(path).map_err(|errno| self.denied(operation, path, errno))? {
            Seen::Nothing => return Err(Denied::NotFound),
            Seen::File(_) => return Err(Denied::NotADirectory),
            Seen::Link => return Err(self.refuse_link(operation, path)),
            Seen::Lower => true,
            Seen::Directory(seen) => seen.shows_lower,
        };
        let own = layered.layer.top().listed(path);
        let is_own = matches!(layered.layer.seen(path), Ok(Seen::Directory(_)));
        let mut known: BTreeSet<Box<str>> = BTreeSet::new();
        let mut listing = Vec::new();
        for (name, listed) in own {
            let child = path.join(&name).map_err(|_| Denied::Invalid)?;
            if let Some((kind, size)) = shown_of(&listed)? {
                let access = self.scope.access(&child);
                if access > Access::Absent && (access > Access::Traverse || kind == Kind::Directory) {
                    listing.push(DirectoryEntry { name: name.to_string(), kind, size, identity: None });
                }
            }
            known.insert(name);
        }
        if shows_lower {
            let listed = self.each_below(layered, operation, path, &mut |opened, entry| {
                let Ok(name) = entry.file_name().to_str() else { return Ok(()) };
                if !known.insert(name.into()) {
                    return Ok(());
                }
                let Ok(child) = path.join(name) else { return Ok(()) };
                listing.extend(self.entry(opened, (&child, name), (entry, detail))?);
                Ok(())
            });
            match listed {
                Err(Denied::NotFound) if is_own => {}
                other => other?,
            }
        }
        listing.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }

    /// Visits the names below a layer in a directory, folder by folder. Not found when no folder has it; too large when there are
    /// more than [`LIST_ENTRIES_MAX`].
    pub(super) fn each_below(
        &self,
        layered: &Layered,
        operation: Operation,
        path: &ScopePath,
        visit: &mut dyn FnMut(&OpenDirectory, &DirEntry) -> Result<(), Denied>,
    ) -> Result<(), Denied> {
        let (mut count, mut found) = (0, Err(Denied::NotFound));
        for root in layered.lower() {
            let opened = match self.open_directory(root, operation, path) {
                Ok(opened) => opened,
                Err(Denied::NotFound) => continue,
                // What is no directory hides what the next folders have there.
                Err(_) if found.is_ok() => break,
                Err(denied) => return Err(denied),
            };
            found = Ok(());
            for entry in opened.entries()? {
                let entry = entry?;
                if is_dot(entry.file_name()) {
                    continue;
                }
                count += 1;
                if count > LIST_ENTRIES_MAX {
                    return Err(Denied::TooLarge);
                }
                visit(&opened, &entry)?;
            }
        }
        found
    }

    /// True when a directory holds nothing for the stage, and nothing that it cannot see.
    pub(super) fn is_empty(&self, layered: &Layered, operation: Operation, path: &ScopePath) -> Result<bool, Denied> {
        let own = layered.layer.top().listed(path);
        if own.iter().any(|(_, listed)| !matches!(listed, Listed::Removed)) {
            return Ok(false);
        }
        let shows_lower = match layered.layer.seen(path)? {
            Seen::Lower => true,
            Seen::Directory(seen) => seen.shows_lower,
            _ => false,
        };
        let removed: BTreeSet<&str> = own.iter().map(|(name, _)| &**name).collect();
        let mut is_empty = true;
        let each = shows_lower.then(|| {
            self.each_below(layered, operation, path, &mut |_, entry| {
                is_empty &= entry.file_name().to_str().is_ok_and(|name| removed.contains(name));
                Ok(())
            })
        });
        match each {
            Some(Err(Denied::TooLarge)) => Ok(false),
            None | Some(Ok(()) | Err(Denied::NotFound)) => Ok(is_empty),
            Some(Err(denied)) => Err(denied),
        }
    }
}

/// The kind and size of an entry of a layer; nothing for what was removed.
fn shown_of(listed: &Listed) -> Result<Option<(Kind, u64)>, Denied> {
    Ok(match listed {
        Listed::Removed => None,
        Listed::File(content) => Some((Kind::File, Metadata::of_content(content)?.size)),
        Listed::Link => Some((Kind::Symlink, 0)),
        Listed::Directory => Some((Kind::Directory, 0)),
    })
}
