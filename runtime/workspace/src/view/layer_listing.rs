//! Directories of a layer merged with the lower ones: listing them, and checking whether they are empty.

use super::View;
use super::directory::{Detail, DirectoryEntry, LIST_ENTRIES_MAX, OpenDirectory};
use super::error::ViewError;
use super::hidden::is_dot;
use super::layer_stack::LayerStack;
use super::metadata::{Kind, Metadata};
use super::refuse::Operation;
use crate::layer::nodes::{EntryState, PathState};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Access;
use rustix::fs::DirEntry;
use std::collections::BTreeSet;

impl View {
    /// Lists the visible entries of a directory, sorted by name.
    pub(super) fn list_layered(
        &self,
        layered: &LayerStack,
        path: &ScopePath,
        detail: Detail,
    ) -> Result<Vec<DirectoryEntry>, ViewError> {
        let operation = Operation::List;
        let shows_lower = match layered.layer().seen(path).map_err(|errno| self.denied(operation, path, errno))? {
            PathState::Nothing => return Err(ViewError::NotFound),
            PathState::File(_) => return Err(ViewError::NotADirectory),
            PathState::Link => return Err(self.refuse_link(operation, path)),
            PathState::Lower => true,
            PathState::Directory(seen) => seen.shows_lower,
        };
        let own = layered.layer().top().listed(path);
        let is_own = matches!(layered.layer().seen(path), Ok(PathState::Directory(_)));
        let mut known: BTreeSet<Box<str>> = BTreeSet::new();
        let mut listing = Vec::new();
        for (name, listed) in own {
            let child = path.join(&name).map_err(|_| ViewError::Invalid)?;
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
                listing.extend(self.entry(opened, &child, name, entry, detail)?);
                Ok(())
            });
            match listed {
                Err(ViewError::NotFound) if is_own => {}
                other => other?,
            }
        }
        listing.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(listing)
    }

    /// Visits the entries of a directory in the folders below a layer, folder by folder. Returns
    /// [`ViewError::NotFound`] if no folder has the directory, and [`ViewError::TooLarge`] if it has more than
    /// [`LIST_ENTRIES_MAX`] entries.
    pub(super) fn each_below(
        &self,
        layered: &LayerStack,
        operation: Operation,
        path: &ScopePath,
        visit: &mut dyn FnMut(&OpenDirectory, &DirEntry) -> Result<(), ViewError>,
    ) -> Result<(), ViewError> {
        let (mut count, mut found) = (0, Err(ViewError::NotFound));
        for root in layered.lower() {
            let opened = match self.open_directory(root, operation, path) {
                Ok(opened) => opened,
                Err(ViewError::NotFound) => continue,
                // An entry that is not a directory hides the entries of lower folders.
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
                    return Err(ViewError::TooLarge);
                }
                visit(&opened, &entry)?;
            }
        }
        found
    }

    /// Returns true if a directory has no entries, including entries that the stage cannot see.
    pub(super) fn is_empty(
        &self,
        layered: &LayerStack,
        operation: Operation,
        path: &ScopePath,
    ) -> Result<bool, ViewError> {
        let own = layered.layer().top().listed(path);
        if own.iter().any(|(_, listed)| !matches!(listed, EntryState::Removed)) {
            return Ok(false);
        }
        let shows_lower = match layered.layer().seen(path)? {
            PathState::Lower => true,
            PathState::Directory(seen) => seen.shows_lower,
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
            Some(Err(ViewError::TooLarge)) => Ok(false),
            None | Some(Ok(()) | Err(ViewError::NotFound)) => Ok(is_empty),
            Some(Err(denied)) => Err(denied),
        }
    }
}

/// Returns the kind and size of an entry of a layer, or `None` for a removed one.
fn shown_of(listed: &EntryState) -> Result<Option<(Kind, u64)>, ViewError> {
    Ok(match listed {
        EntryState::Removed => None,
        EntryState::File(content) => Some((Kind::File, Metadata::for_content(content)?.size)),
        EntryState::Link => Some((Kind::Symlink, 0)),
        EntryState::Directory => Some((Kind::Directory, 0)),
    })
}
