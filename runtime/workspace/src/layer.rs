//! The changes of one stage as a layer over the workspace, without a mount: writes, removals and renames of a component.
//!
//! The workspace is only read. A file is copied into the layer when it is first opened for writing; a removed file is an entry
//! without content; a renamed file moves within the layer. The layer lists its changes itself: nothing is copied when a stage begins,
//! nothing is searched when it ends, and the cost depends on what the stage touched alone.
//!
//! - `nodes` has the entries, in memory; their number is bounded by `write_entries` and `COPIED_ENTRIES_MAX`.
//! - `content` has the bytes: small amounts in memory, the others in the stage's own folder, which is created when it is first needed.
//! - `handle` has the files that the component holds open, which follow a copy.
//! - `lay_out` turns the layer into the upper folder of an overlay, when the stage first runs a command: from then on the view works
//!   on the mounted folder, as the commands do, and the changes are found as in every overlay.
//!
//! The layer knows only the scope it was created with: [`crate::view`] checks every operation of a component before it gets here.

pub(crate) mod content;
pub(crate) mod handle;
mod lay_out;
pub(crate) mod nodes;

use crate::lower::{self, LowerFolders, ViewOverrides};
use crate::overlay::Overlay;
use crate::root::Root;
use crate::stage_error::StageError;
use crate::tree::{self, Tree};
use content::{Content, Store};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use handle::Readers;
use nodes::{Folder, Node, PathState};
use rustix::io::Errno;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Most files and directories that may be copied into one layer.
pub(crate) const COPIED_ENTRIES_MAX: u64 = 100_000;

/// The changes of one stage over its view of the workspace.
#[derive(Debug)]
pub struct Layer {
    workspace: PathBuf,
    at: PathBuf,
    overrides: ViewOverrides,
    pub(crate) lower: LowerFolders,
    store: Arc<Store>,
    top: Mutex<Folder>,
    readers: Readers,
    /// For its commands.
    mounted: MountState,
    /// Its files without the marks of an overlay, once they are to be kept.
    kept: OnceLock<Tree>,
}

/// A layer for commands. One that started over has another one after it, and the last one counts.
#[derive(Debug, Default)]
struct MountState {
    /// The layer as files, once a command needs them.
    overlay: OnceLock<Overlay>,
    /// The mounted folder, once there is one.
    merged: OnceLock<Root>,
    next: OnceLock<Box<MountState>>,
}

impl MountState {
    fn last(&self) -> &Self {
        std::iter::successors(Some(self), |mounted| mounted.next.get().map(Box::as_ref)).last().unwrap_or(self)
    }
}

impl Layer {
    /// Makes an empty layer over the workspace; `at` is made when it is needed. Denied: the workspace is only read.
    ///
    /// # Errors
    /// [`StageError::Io`] when a folder cannot be opened.
    pub fn open(
        workspace: &Path,
        at: &Path,
        scope: &Scope,
        overrides: &ViewOverrides,
    ) -> Result<Arc<Self>, StageError> {
        let store = Store::new(at.to_owned());
        let mut lower = LowerFolders::open(workspace, scope, overrides)?;
        let failed = |source| StageError::io(at, source);
        if !lower::has_local_clock(&lower.workspace).map_err(failed)? {
            let fresh = store.folder().and_then(|folder| folder.directory(Path::new(""))).map_err(failed)?;
            lower.begun = lower::begun(&fresh).map_err(failed)?;
        }
        let layer = Self {
            workspace: workspace.to_owned(),
            at: at.to_owned(),
            overrides: overrides.clone(),
            lower,
            store: Arc::new(store),
            top: Mutex::new(empty(&overrides.mount_points)),
            readers: Readers::default(),
            mounted: MountState::default(),
            kept: OnceLock::new(),
        };
        Ok(Arc::new(layer))
    }

    /// True when nothing was ever changed, copied or laid out.
    pub(crate) fn is_untouched(&self) -> bool {
        self.overlay().is_none() && !self.top().is_changed()
    }

    /// The layer as files, once it was laid out.
    pub(crate) fn overlay(&self) -> Option<&Overlay> {
        self.mounted.last().overlay.get()
    }

    /// The mounted folder on which views work now; none while they work on the layer itself.
    pub(crate) fn merged(&self) -> Option<&Root> {
        self.mounted.last().merged.get()
    }

    /// Drops every change: the layer is empty again, and views work on it until it is mounted again. The component's open files stay
    /// open, and writes to them are lost. No jail that has the layer mounted may be alive.
    pub(crate) fn start_over(&self) -> Result<(), StageError> {
        let mut top = self.top();
        let last = self.mounted.last();
        if let Some(overlay) = last.overlay.get() {
            overlay.clear()?;
            // The lock on the entries prevents concurrent additions.
            last.next.get_or_init(Box::default);
        }
        *top = empty(&self.overrides.mount_points);
        Ok(())
    }

    /// The entries.
    pub(crate) fn top(&self) -> MutexGuard<'_, Folder> {
        self.top.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state of a path in the layer.
    pub(crate) fn seen(&self, path: &ScopePath) -> Result<PathState, Errno> {
        self.top().seen(path)
    }

    /// Adds an empty file where nothing is.
    pub(crate) fn create_file(&self, path: &ScopePath) -> Result<Arc<Content>, Errno> {
        let content = self.store.create(false)?;
        self.put(path, Node::File(Arc::clone(&content)))?;
        Ok(content)
    }

    /// Makes an empty file for a copy that [`Layer::put`] adds.
    pub(crate) fn new_content(&self, executable: bool) -> Result<Arc<Content>, Errno> {
        self.store.create(executable)
    }

    /// Adds a new directory where nothing is: nothing of what lies below shows in it.
    pub(crate) fn make_directory(&self, path: &ScopePath) -> Result<(), Errno> {
        self.put(path, Node::Folder(Folder::empty(self.store.number())))
    }

    /// Puts a node at a path; its directory exists for the stage.
    pub(crate) fn put(&self, path: &ScopePath, node: Node) -> Result<(), Errno> {
        let mut top = self.top();
        let (parent, name) = top.parent(path, &mut || self.store.number())?;
        parent.insert(name, node);
        Ok(())
    }

    /// Puts a copy of what lies below at its own path: nothing changes for the stage.
    pub(crate) fn put_copy(&self, path: &ScopePath, node: Node) -> Result<(), Errno> {
        let mut top = self.top();
        let (parent, name) = top.parent(path, &mut || self.store.number())?;
        parent.insert_copy(name, node);
        Ok(())
    }

    /// Moves an entry of the layer. A directory moves with its content: no entry of lower folders shows in it.
    pub(crate) fn rename(&self, from: &ScopePath, to: &ScopePath, shows_lower: bool) -> Result<(), Errno> {
        let mut node = self.take(from, shows_lower)?.ok_or(Errno::NOENT)?;
        if let Node::Folder(folder) = &mut node {
            folder.cover_lower();
        }
        self.put(to, node)
    }

    /// Takes a path away. `shows_lower` says whether something would show in its place.
    pub(crate) fn remove(&self, path: &ScopePath, shows_lower: bool) -> Result<(), Errno> {
        self.take(path, shows_lower).map(drop)
    }

    fn take(&self, path: &ScopePath, shows_lower: bool) -> Result<Option<Node>, Errno> {
        let mut top = self.top();
        let (parent, name) = top.parent(path, &mut || self.store.number())?;
        Ok(parent.take(name, shows_lower))
    }

    /// Notes the times of a directory, which gets an entry for them.
    pub(crate) fn set_folder_times(
        &self,
        path: &ScopePath,
        change: impl FnOnce(&mut nodes::Times),
    ) -> Result<(), Errno> {
        let mut top = self.top();
        let folder = top.folder(path, &mut || self.store.number())?;
        change(folder.times.get_or_insert_with(nodes::Times::default));
        Ok(())
    }

    /// Opens the content of a changed file for reading.
    ///
    /// # Errors
    /// The system's error; [`Errno::NOENT`] when the path is no file of the layer.
    pub(crate) fn open_changed(&self, path: &Path) -> Result<std::fs::File, std::io::Error> {
        if let Some(overlay) = self.overlay() {
            return overlay.upper.file(path);
        }
        let content = self.top().file(path).ok_or(Errno::NOENT)?;
        content.reader()
    }

    /// Visits every entry, a directory before its content, with its path and depth.
    pub(crate) fn each<E>(&self, visit: &mut dyn FnMut(&Path, u32, &Node) -> Result<(), E>) -> Result<(), E> {
        self.top().each(visit)
    }

    /// True when the stage has its own folder.
    pub(crate) fn has_folder(&self) -> bool {
        self.store.has_folder()
    }

    /// Removes the stage's own folder, if there is one.
    ///
    /// # Errors
    /// [`StageError::Io`] when the system refuses.
    pub(crate) fn remove_folder(&self) -> Result<(), StageError> {
        if !self.has_folder() {
            return Ok(());
        }
        tree::remove_all(&self.at).map_err(|source| StageError::io(&self.at, source))
    }
}

/// The entries of a layer in which nothing was changed.
fn empty(mount_points: &[ScopePath]) -> Folder {
    let mut top = Folder::over_lower();
    mount_points.iter().for_each(|path| top.make_mount_point(path));
    top
}
