//! Renames in a layer.
//!
//! A file of the layer is moved within the layer; a lower file is copied first. A directory is copied with all its
//! content and then moved as a whole. A directory that contains a hidden entry or one that cannot be copied is not
//! moved.

use super::View;
use super::error::ViewError;
use super::layer_stack::LayerStack;
use super::metadata::{Kind, Metadata};
use super::place::{Holder, Place};
use super::refuse::{ObjectFault, Operation};
use crate::layer::nodes::{EntryState, Node, PathState};
use crate::tree;
use glovebox_record::path::ScopePath;
use rustix::fd::OwnedFd;
use rustix::fs::AtFlags;
use std::ffi::OsStr;

const OPERATION: Operation = Operation::Rename;

impl View {
    /// Renames the entry at `from`. Both paths must have been checked.
    pub(super) fn rename_in_layer(
        &self,
        layered: &LayerStack,
        from: &ScopePath,
        source: &Place<'_>,
        to: &ScopePath,
        target: &Place<'_>,
    ) -> Result<(), ViewError> {
        let is_directory = source.found.is_some_and(|found| found.kind == Kind::Directory);
        match target.found.map(|found| found.kind) {
            _ if from == to => return self.charged_entry(to, || Ok(())),
            Some(Kind::Directory) if !is_directory => return Err(ViewError::IsADirectory),
            Some(Kind::Directory) if !self.is_empty(layered, OPERATION, to)? => return Err(ViewError::NotEmpty),
            Some(Kind::File | Kind::Symlink | Kind::Special) if is_directory => return Err(ViewError::NotADirectory),
            _ => {}
        }
        let Holder::Layer(_, origin) = &source.holder else { return Err(ViewError::Invalid) };
        match is_directory {
            true => self.copy_directory(layered, from)?,
            false => drop(self.in_layer(layered, OPERATION, from, origin)?),
        }
        let shows_lower = self.shows_below(layered, OPERATION, from);
        self.charged_entry(to, || layered.layer().rename(from, to, shows_lower))
    }

    /// Copies the content of a directory into the layer, so that no lower entries need to show in it.
    fn copy_directory(&self, layered: &LayerStack, top: &ScopePath) -> Result<(), ViewError> {
        let mut pending = vec![top.clone()];
        while let Some(path) = pending.pop() {
            let (shows_lower, own) = match layered.layer().seen(&path)? {
                PathState::Lower => (true, Vec::new()),
                PathState::Directory(seen) => (seen.shows_lower, layered.layer().top().listed(&path)),
                _ => return Err(ViewError::NotFound),
            };
            let is_directory = |listed: &EntryState| matches!(listed, EntryState::Directory);
            for (name, _) in own.iter().filter(|(_, listed)| is_directory(listed)) {
                pending.push(path.join(name).map_err(|_| ViewError::Invalid)?);
            }
            self.copy_folder(layered, &path)?;
            if !shows_lower {
                continue;
            }
            let copied = self.each_below(layered, OPERATION, &path, &mut |opened, entry| {
                let name = entry.file_name().to_str().map_err(|_| self.refuse_below(OPERATION, top))?;
                if own.iter().any(|(known, _)| **known == *name) {
                    return Ok(());
                }
                let child = path.join(name).map_err(|_| self.refuse_below(OPERATION, top))?;
                // A folder further down in the stack may have the same name.
                if !matches!(layered.layer().seen(&child)?, PathState::Lower) {
                    return Ok(());
                }
                if self.copy_entry(layered, &opened.fd, &child)? == Kind::Directory {
                    pending.push(child);
                }
                Ok(())
            });
            match copied {
                Ok(()) | Err(ViewError::NotFound) => {}
                Err(denied) => return Err(denied),
            }
        }
        Ok(())
    }

    /// Creates the entry of a directory in the layer, with the current times of the directory.
    fn copy_folder(&self, layered: &LayerStack, path: &ScopePath) -> Result<(), ViewError> {
        let found = self.look(OPERATION, path)?.1;
        Ok(layered.layer().set_folder_times(path, |times| {
            (times.accessed, times.modified) = (found.accessed, found.modified);
        })?)
    }

    /// Copies one lower entry. A directory is copied without its content.
    fn copy_entry(&self, layered: &LayerStack, directory: &OwnedFd, path: &ScopePath) -> Result<Kind, ViewError> {
        let name = path.name().unwrap_or(".");
        let metadata = Metadata::from_stat(&rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?);
        if self.hidden.contains(metadata.identity) {
            return Err(self.refuse_below(OPERATION, path));
        }
        self.charged_entry(path, || Ok(()))?;
        match metadata.kind {
            Kind::File => {
                let (place, _) = self.look(OPERATION, path)?;
                let Holder::Layer(_, origin) = &place.holder else { return Err(ViewError::Invalid) };
                self.in_layer(layered, OPERATION, path, origin)?;
            }
            Kind::Symlink => {
                self.charge_copy(layered, path, 0)?;
                let target = tree::read_link(directory, OsStr::new(name))?;
                layered.layer().put_copy(path, Node::Link(target))?;
            }
            Kind::Directory => self.charge_copy(layered, path, 0)?,
            Kind::Special => return Err(self.refuse_object(OPERATION, path, ObjectFault::Special)),
        }
        Ok(metadata.kind)
    }
}
