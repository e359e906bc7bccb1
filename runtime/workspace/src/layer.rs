//! The changes of one stage as a layer over the workspace, without a mount: writes, removals and renames of a component.
//!
//! The workspace is only read. A file is copied into the layer when it is first opened for writing. A removed file is
//! an entry without content. A renamed file moves within the layer. The layer lists its changes itself: nothing is
//! copied when a stage begins, nothing is searched when it ends, and the cost depends only on the files that the stage
//! touched.
//!
//! - `nodes` has the entries, in memory. Their number is bounded by `write_entries` and `COPIED_ENTRIES_MAX`.
//! - `content` has the bytes: small amounts in memory, the rest in the stage's own folder, which is created when it is
//!   first needed.
//! - `handle` has the files that the component has open. A handle switches to the copy when its file is copied into the layer.
//! - `lay_out` turns the layer into the upper folder of an overlay when the stage first runs a command. From then on
//!   the view works on the mounted folder, as the commands do, and the changes are found as in every overlay.
//!
//! The layer knows only the scope it was created with. [`crate::view`] checks every operation of a component before it
//! calls the layer.

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

/// Maximum number of files and directories that may be copied into one layer.
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
    /// State of the overlay for the stage's commands.
    mounted: MountState,
    /// The layer's files as a tree without whiteouts and opaque attributes; set when they are stored.
    kept: OnceLock<Tree>,
}

/// State of a layer that is mounted for commands. After [`Layer::reset`], a new state is linked in `next`, and the
/// last state is the current one.
#[derive(Debug, Default)]
struct MountState {
    /// The overlay on disk; set when a command first needs it.
    overlay: OnceLock<Overlay>,
    /// The mounted folder; set once it is mounted.
    merged: OnceLock<Root>,
    next: OnceLock<Box<MountState>>,
}

impl MountState {
    fn last(&self) -> &Self {
        std::iter::successors(Some(self), |mounted| mounted.next.get().map(Box::as_ref)).last().unwrap_or(self)
    }
}

impl Layer {
    /// Creates an empty layer over the workspace. The folder `at` is created when it is first needed. The workspace is only read.
    ///
    /// # Errors
    /// [`StageError::Io`] if a folder cannot be opened.
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

    /// Returns true if nothing was ever changed or copied and the layer was not turned into an overlay.
    pub(crate) fn is_untouched(&self) -> bool {
        self.overlay().is_none() && !self.top().is_changed()
    }

    /// Returns the overlay on disk, or `None` if the layer was not turned into one.
    pub(crate) fn overlay(&self) -> Option<&Overlay> {
        self.mounted.last().overlay.get()
    }

    /// Returns the mounted folder on which views work, or `None` if they work on the layer itself.
    pub(crate) fn merged(&self) -> Option<&Root> {
        self.mounted.last().merged.get()
    }

    /// Drops every change. The layer is then empty, and views work on it until it is mounted again. Files that the
    /// component has open stay open, and writes to them are lost. No jail that has the layer mounted may be alive.
    pub(crate) fn reset(&self) -> Result<(), StageError> {
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

    /// Locks and returns the entries.
    pub(crate) fn top(&self) -> MutexGuard<'_, Folder> {
        self.top.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the state of a path in the layer.
    pub(crate) fn seen(&self, path: &ScopePath) -> Result<PathState, Errno> {
        self.top().seen(path)
    }

    /// Adds an empty file at a path where nothing exists.
    pub(crate) fn create_file(&self, path: &ScopePath) -> Result<Arc<Content>, Errno> {
        let content = self.store.create(false)?;
        self.put(path, Node::File(Arc::clone(&content)))?;
        Ok(content)
    }

    /// Creates empty file content for a copy that [`Layer::put`] adds.
    pub(crate) fn new_content(&self, executable: bool) -> Result<Arc<Content>, Errno> {
        self.store.create(executable)
    }

    /// Adds a new directory at a path where nothing exists. No lower entries show in it.
    pub(crate) fn make_directory(&self, path: &ScopePath) -> Result<(), Errno> {
        self.put(path, Node::Folder(Folder::empty(self.store.number())))
    }

    /// Puts a node at a path. The parent directory must exist for the stage.
    pub(crate) fn put(&self, path: &ScopePath, node: Node) -> Result<(), Errno> {
        let mut top = self.top();
        let (parent, name) = top.parent(path, &mut || self.store.number())?;
        parent.insert(name, node);
        Ok(())
    }

    /// Puts a copy of a lower entry at the same path. The stage sees no change.
    pub(crate) fn put_copy(&self, path: &ScopePath, node: Node) -> Result<(), Errno> {
        let mut top = self.top();
        let (parent, name) = top.parent(path, &mut || self.store.number())?;
        parent.insert_copy(name, node);
        Ok(())
    }

    /// Moves an entry of the layer. A directory moves with its content, and no lower entries show in it afterwards.
    /// `shows_lower` is true if a lower entry exists at the old path.
    pub(crate) fn rename(&self, from: &ScopePath, to: &ScopePath, shows_lower: bool) -> Result<(), Errno> {
        let mut node = self.take(from, shows_lower)?.ok_or(Errno::NOENT)?;
        if let Node::Folder(folder) = &mut node {
            folder.cover_lower();
        }
        self.put(to, node)
    }

    /// Removes a path. `shows_lower` is true if a lower entry exists at the path and must be hidden.
    pub(crate) fn remove(&self, path: &ScopePath, shows_lower: bool) -> Result<(), Errno> {
        self.take(path, shows_lower).map(drop)
    }

    fn take(&self, path: &ScopePath, shows_lower: bool) -> Result<Option<Node>, Errno> {
        let mut top = self.top();
        let (parent, name) = top.parent(path, &mut || self.store.number())?;
        Ok(parent.take(name, shows_lower))
    }

    /// Sets times of a directory. The directory gets an entry in the layer if it has none.
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
    /// The system's error. [`Errno::NOENT`] if the path is not a file of the layer.
    pub(crate) fn open_changed(&self, path: &Path) -> Result<std::fs::File, std::io::Error> {
        if let Some(overlay) = self.overlay() {
            return overlay.upper.file(path);
        }
        let content = self.top().file(path).ok_or(Errno::NOENT)?;
        content.reader()
    }

    /// Visits every entry with its path and depth, a directory before its content.
    pub(crate) fn each<E>(&self, visit: &mut dyn FnMut(&Path, u32, &Node) -> Result<(), E>) -> Result<(), E> {
        self.top().each(visit)
    }

    /// Returns true if the stage's own folder was created.
    pub(crate) fn has_folder(&self) -> bool {
        self.store.has_folder()
    }

    /// Removes the stage's own folder if it was created.
    ///
    /// # Errors
    /// [`StageError::Io`] if the system refuses.
    pub(crate) fn remove_folder(&self) -> Result<(), StageError> {
        if !self.has_folder() {
            return Ok(());
        }
        tree::remove_all(&self.at).map_err(|source| StageError::io(&self.at, source))
    }
}

/// Returns the entries of a layer without changes.
fn empty(mount_points: &[ScopePath]) -> Folder {
    let mut top = Folder::over_lower();
    mount_points.iter().for_each(|path| top.make_mount_point(path));
    top
}
