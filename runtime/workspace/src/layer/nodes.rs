//! The entries of a layer, as a tree of names.
//!
//! Every node is an entry that the stage created, changed or removed, or a parent directory of such an entry. A
//! directory records whether the lower directory shows through. The tree is indexed by name at each level, so that each
//! name is stored once and a directory moves with its content.

use super::content::Content;
use glovebox_record::path::ScopePath;
use rustix::io::Errno;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// One entry of a layer.
#[derive(Debug)]
pub(crate) enum Node {
    /// A removed entry, which hides the lower one.
    Removed,
    /// A file with its content.
    File(Arc<Content>),
    /// A link, which was moved with its directory.
    Link(OsString),
    /// A directory.
    Folder(Folder),
}

/// Times of a directory. `None` means the time of the lower directory.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Times {
    pub(crate) accessed: Option<SystemTime>,
    pub(crate) modified: Option<SystemTime>,
}

/// A directory of a layer.
#[derive(Debug)]
pub(crate) struct Folder {
    /// True if entries of the lower directory show through.
    pub(crate) shows_lower: bool,
    /// True if the directory exists only because commands mount something at or below it. This is not a change.
    is_mount: bool,
    /// Number of the directory in the layer.
    pub(crate) number: u64,
    pub(crate) times: Option<Times>,
    entries: BTreeMap<Box<str>, Node>,
}

/// State of a path in a layer.
#[derive(Debug)]
pub(crate) enum PathState {
    /// Nothing exists at the path.
    Nothing,
    /// The lower entry shows, if there is one.
    Lower,
    File(Arc<Content>),
    Link,
    Directory(DirectoryState),
}

/// State of a directory of a layer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DirectoryState {
    /// True if the lower directory shows through.
    pub(crate) shows_lower: bool,
    pub(crate) number: u64,
    pub(crate) times: Option<Times>,
}

/// An entry in a directory of a layer.
#[derive(Debug)]
pub(crate) enum EntryState {
    Removed,
    File(Arc<Content>),
    Link,
    Directory,
}

impl Folder {
    /// Creates a directory through which all lower entries show.
    pub(crate) fn over_lower() -> Self {
        Self { shows_lower: true, is_mount: false, number: 0, times: None, entries: BTreeMap::new() }
    }

    /// Creates a new directory with the current time.
    pub(crate) fn empty(number: u64) -> Self {
        let now = Some(SystemTime::now());
        let times = Some(Times { accessed: now, modified: now });
        Self { shows_lower: false, number, times, ..Self::over_lower() }
    }

    /// Creates an empty directory in which no lower entries show, and its parents.
    pub(super) fn make_mount_point(&mut self, path: &ScopePath) {
        let mut at = self;
        for name in path.names() {
            let node = at.entries.entry(name.into());
            let node = node.or_insert_with(|| Node::Folder(Self { is_mount: true, ..Self::over_lower() }));
            let Node::Folder(folder) = node else { return };
            at = folder;
        }
        at.shows_lower = false;
    }

    /// Returns true if there are changes. Mount points are not changes.
    pub(super) fn is_changed(&self) -> bool {
        self.entries.values().any(|node| match node {
            Node::Folder(folder) => !folder.is_mount || folder.is_changed(),
            _ => true,
        })
    }

    /// Returns the state of a path, including whether lower entries show there.
    ///
    /// # Errors
    /// [`Errno::NOTDIR`] or [`Errno::LOOP`] if the path leads through a file or a link of the layer.
    pub(crate) fn seen(&self, path: &ScopePath) -> Result<PathState, Errno> {
        let (mut at, mut shows_lower) = (self, self.shows_lower);
        let mut names = path.names().peekable();
        while let Some(name) = names.next() {
            let is_last = names.peek().is_none();
            match at.entries.get(name) {
                None => return Ok(if shows_lower { PathState::Lower } else { PathState::Nothing }),
                Some(Node::Removed) => return Ok(PathState::Nothing),
                Some(Node::File(content)) if is_last => return Ok(PathState::File(Arc::clone(content))),
                Some(Node::Link(_)) if is_last => return Ok(PathState::Link),
                Some(Node::File(_)) => return Err(Errno::NOTDIR),
                Some(Node::Link(_)) => return Err(Errno::LOOP),
                Some(Node::Folder(folder)) => (at, shows_lower) = (folder, shows_lower && folder.shows_lower),
            }
        }
        Ok(PathState::Directory(DirectoryState { shows_lower, number: at.number, times: at.times }))
    }

    /// Returns the directory at a path. Creates missing entries for it and its parents, through which the lower directories show.
    pub(super) fn folder(&mut self, path: &ScopePath, number: &mut dyn FnMut() -> u64) -> Result<&mut Self, Errno> {
        let mut at = self;
        for name in path.names() {
            if !at.entries.contains_key(name) {
                let passed = Self { number: number(), ..Self::over_lower() };
                at.entries.insert(name.into(), Node::Folder(passed));
            }
            match at.entries.get_mut(name) {
                Some(Node::Folder(folder)) => at = folder,
                Some(Node::Removed) | None => return Err(Errno::NOENT),
                Some(Node::File(_)) => return Err(Errno::NOTDIR),
                Some(Node::Link(_)) => return Err(Errno::LOOP),
            }
        }
        Ok(at)
    }

    /// Returns the parent directory of a path, as [`Folder::folder`] does, and the last component of the path.
    pub(super) fn parent<'n>(
        &mut self,
        path: &'n ScopePath,
        number: &mut dyn FnMut() -> u64,
    ) -> Result<(&mut Self, &'n str), Errno> {
        let (Some(parent), Some(name)) = (path.parent(), path.name()) else { return Err(Errno::INVAL) };
        Ok((self.folder(&parent, number)?, name))
    }

    pub(super) fn insert(&mut self, name: &str, node: Node) {
        let is_new = !matches!(self.entries.insert(name.into(), node), Some(Node::File(_) | Node::Folder(_)));
        if is_new {
            self.note_change();
        }
    }

    pub(super) fn insert_copy(&mut self, name: &str, node: Node) {
        self.entries.insert(name.into(), node);
    }

    /// Removes a name. If `shows_lower` is true, a removed entry is left in its place, which hides the lower one.
    pub(super) fn take(&mut self, name: &str, shows_lower: bool) -> Option<Node> {
        self.note_change();
        match shows_lower && self.shows_lower {
            true => self.entries.insert(name.into(), Node::Removed),
            false => self.entries.remove(name),
        }
    }

    fn note_change(&mut self) {
        self.times.get_or_insert_with(Times::default).modified = Some(SystemTime::now());
    }

    /// Returns the file at a path.
    pub(super) fn file(&self, path: &Path) -> Option<Arc<Content>> {
        let mut at = self;
        let mut names = path.iter().peekable();
        while let Some(name) = names.next() {
            match at.entries.get(name.to_str()?)? {
                Node::Folder(folder) => at = folder,
                Node::File(content) if names.peek().is_none() => return Some(Arc::clone(content)),
                _ => return None,
            }
        }
        None
    }

    /// Returns the layer's own entries of a directory; empty if the directory has no entry in the layer.
    pub(crate) fn listed(&self, path: &ScopePath) -> Vec<(Box<str>, EntryState)> {
        let mut at = self;
        for name in path.names() {
            match at.entries.get(name) {
                Some(Node::Folder(folder)) => at = folder,
                _ => return Vec::new(),
            }
        }
        let listed = at.entries.iter().map(|(name, node)| {
            let listed = match node {
                Node::Removed => EntryState::Removed,
                Node::File(content) => EntryState::File(Arc::clone(content)),
                Node::Link(_) => EntryState::Link,
                Node::Folder(_) => EntryState::Directory,
            };
            (name.clone(), listed)
        });
        listed.collect()
    }

    /// Hides all lower entries in this directory, at any depth.
    pub(crate) fn cover_lower(&mut self) {
        let mut pending = vec![self];
        while let Some(folder) = pending.pop() {
            folder.shows_lower = false;
            folder.entries.retain(|_, node| !matches!(node, Node::Removed));
            pending.extend(folder.entries.values_mut().filter_map(|node| match node {
                Node::Folder(folder) => Some(folder),
                _ => None,
            }));
        }
    }

    /// Visits every entry except unchanged mount points, a directory before its content.
    pub(super) fn each<'f, E>(&'f self, visit: &mut dyn FnMut(&Path, u32, &'f Node) -> Result<(), E>) -> Result<(), E> {
        let mut pending = vec![(PathBuf::new(), 0_u32, self)];
        while let Some((at, depth, folder)) = pending.pop() {
            for (name, node) in &folder.entries {
                let path = at.join(&**name);
                if let Node::Folder(below) = node {
                    if below.is_mount && !below.is_changed() {
                        continue;
                    }
                    visit(&path, depth + 1, node)?;
                    pending.push((path, depth + 1, below));
                } else {
                    visit(&path, depth + 1, node)?;
                }
            }
        }
        Ok(())
    }
}
