//! A directory as a stage may see it: a root and a scope. Every operation is checked separately.
//!
//! A [`View`] works on a folder, or on a [`Layer`] over a workspace. The checks are the same, but a workspace below a
//! layer is only read. A view never follows a symbolic link and never leaves its root. A path that the stage may not
//! see is "not found", never "not permitted". Each operation walks from the root to the parent directory, and compares
//! the device and inode of each directory with those of the hidden objects. Then it opens or changes the last component
//! without following it. A refusal is recorded with the grant that would allow the operation. This module does not know
//! components or guests.

mod directory;
mod error;
mod file;
mod hidden;
mod layer_files;
mod layer_listing;
mod layer_rename;
mod layer_stack;
mod metadata;
mod open;
mod place;
mod refuse;
mod rename;
mod whole;

pub use directory::{DirectoryEntry, LIST_ENTRIES_MAX};
pub use error::ViewError;
pub use file::FileHandle;
pub use hidden::HIDDEN_OBJECTS_MAX;
pub use metadata::{Identity, Kind, Metadata, NewTime};
pub use open::{Create, OpenOptions};
pub use refuse::Operation;

use crate::layer::Layer;
use crate::protect::Protected;
use crate::refusal::RefusalLog;
use crate::root::Root;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_record::{LimitName, Limits};
use hidden::HiddenObjects;
use layer_stack::LayerStack;
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Why a view could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenViewError {
    /// The root cannot be opened as a directory.
    #[error("failed to open `{root}` as the root of a view: {source}")]
    Root {
        /// The root as given.
        root: String,
        /// The system's error.
        source: Errno,
    },
    /// A hidden path contains a symbolic link, so another name could reach its target.
    #[error("hidden path `{path}` contains a symbolic link; expected plain directories and files")]
    HiddenLink {
        /// The hidden entry.
        path: ScopePath,
    },
    /// There are more than [`HIDDEN_OBJECTS_MAX`] objects at or below the hidden entries.
    #[error("more than {HIDDEN_OBJECTS_MAX} files and directories are hidden")]
    TooManyHidden,
    /// A hidden path cannot be examined.
    #[error("failed to examine hidden path `{path}`: {source}")]
    Hidden {
        /// The hidden entry.
        path: ScopePath,
        /// The system's error.
        source: Errno,
    },
}

impl OpenViewError {
    fn hidden(path: &ScopePath, source: Errno) -> Self {
        Self::Hidden { path: path.clone(), source }
    }

    fn hidden_link(path: &ScopePath) -> Self {
        Self::HiddenLink { path: path.clone() }
    }
}

/// A root directory with its scope, its limits and its recorded refusals.
#[derive(Debug)]
pub struct View {
    files: Files,
    scope: Scope,
    protected: Protected,
    known_as: Vec<String>,
    is_of_plugin: bool,
    hidden: HiddenObjects,
    limits: Limits,
    written_bytes: AtomicU64,
    written_entries: AtomicU64,
    touched: AtomicBool,
    refusals: Arc<RefusalLog>,
}

/// The storage behind a view.
#[derive(Debug)]
enum Files {
    /// A folder, which the view changes.
    Root(Root),
    /// A layer, and the folders below it, which the view only reads.
    Layer(LayerStack),
}

impl View {
    /// Opens `root`, which the caller trusts, and indexes the objects at and below the hidden entries.
    ///
    /// The view denies: everything outside the scope, following a symbolic link, creating or reading a link, using a
    /// special file, writing to a file that has several hard links, and exceeding `write_bytes` or `write_entries`.
    pub fn open(root: &Path, scope: Scope, limits: Limits, refusals: Arc<RefusalLog>) -> Result<Self, OpenViewError> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(CWD, root, flags, Mode::empty())
            .map_err(|source| OpenViewError::Root { root: root.display().to_string(), source })?;
        let root = Root::new(fd);
        let hidden = HiddenObjects::index([&root], &scope.hidden)?;
        Ok(Self::new(Files::Root(root), scope, hidden, limits, refusals))
    }

    /// Opens a layer, and indexes the objects at and below the hidden entries of its lower folders. The view denies the
    /// same operations as one from [`View::open`]. The lower folders are never changed.
    pub fn over(
        layer: &Arc<Layer>,
        scope: Scope,
        limits: Limits,
        refusals: Arc<RefusalLog>,
    ) -> Result<Self, OpenViewError> {
        let layered = LayerStack::open(layer)?;
        let hidden = HiddenObjects::index(layered.lower(), &scope.hidden)?;
        Ok(Self::new(Files::Layer(layered), scope, hidden, limits, refusals))
    }

    fn new(files: Files, scope: Scope, hidden: HiddenObjects, limits: Limits, refusals: Arc<RefusalLog>) -> Self {
        Self {
            files,
            scope,
            protected: Protected::default(),
            known_as: Vec::new(),
            is_of_plugin: false,
            hidden,
            limits,
            written_bytes: AtomicU64::new(0),
            written_entries: AtomicU64::new(0),
            touched: AtomicBool::new(false),
            refusals,
        }
    }

    /// Sets the paths that no grant can allow, in addition to the fixed list. Refusals of these paths name no grant.
    pub fn protecting(self, protected: Protected) -> Self {
        Self { protected, ..self }
    }

    /// Sets whether a plugin uses the view. If so, refusals also name the plugin's grants.
    pub fn for_plugin(self, is_of_plugin: bool) -> Self {
        Self { is_of_plugin, ..self }
    }

    /// Adds absolute paths that mean the root, such as the path at which commands see it (decision project-path-is-the-workspace).
    pub fn known_as(self, paths: Vec<String>) -> Self {
        let is_usable = |path: &String| path.len() > 1 && path.starts_with('/');
        let paths = paths.into_iter().map(|path| path.trim_end_matches('/').to_owned());
        Self { known_as: paths.filter(is_usable).collect(), ..self }
    }

    /// Returns the absolute paths that mean the root.
    pub fn names(&self) -> &[String] {
        &self.known_as
    }

    /// Strips a name of the root from an absolute path. Returns `None` for any other text.
    pub fn relative<'t>(&self, text: &'t str) -> Option<&'t str> {
        let below = |name: &String| text.strip_prefix(name.as_str());
        let below = |name: &String| below(name).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        self.known_as.iter().find_map(below).map(|rest| rest.trim_matches('/'))
    }

    /// Resolves a guest's path relative to a directory, or as an absolute path below a name of the root. Any other path
    /// is recorded and denied.
    pub fn resolve(&self, operation: Operation, base: &ScopePath, text: &str) -> Result<ScopePath, ViewError> {
        let resolved = match self.relative(text) {
            Some(below) => ScopePath::root().resolve(below),
            None => base.resolve(text),
        };
        resolved.map_err(|problem| self.refuse_path(operation, text, problem))
    }

    /// Returns the scope.
    pub fn scope(&self) -> &Scope {
        &self.scope
    }

    /// Returns the log of refusals.
    pub fn refusals(&self) -> &Arc<RefusalLog> {
        &self.refusals
    }

    /// Returns the number of bytes charged so far.
    pub fn written_bytes(&self) -> u64 {
        self.written_bytes.load(Ordering::Relaxed)
    }

    /// Returns the number of entries charged so far.
    pub fn written_entries(&self) -> u64 {
        self.written_entries.load(Ordering::Relaxed)
    }

    /// Returns true if anything below the root may have changed through this view.
    pub fn touched(&self) -> bool {
        self.touched.load(Ordering::Relaxed)
    }

    /// Makes the view behave as on a kernel without `openat2`, to test the fallback.
    #[doc(hidden)]
    pub fn without_openat2(self) -> Self {
        match &self.files {
            Files::Root(root) => root.forget_openat2(),
            Files::Layer(layered) => layered.lower().for_each(Root::forget_openat2),
        }
        self
    }

    fn touch(&self) {
        self.touched.store(true, Ordering::Relaxed);
    }

    /// Charges bytes before they are written.
    fn charge_bytes(&self, path: &ScopePath, bytes: u64) -> Result<(), ViewError> {
        if charge(&self.written_bytes, bytes, self.limits.write_bytes) {
            return Ok(());
        }
        Err(self.refuse_quota(path, LimitName::WriteBytes))
    }

    /// Charges one changed entry and makes the change. If the change fails, the charge is reversed.
    fn charged_entry<T>(&self, path: &ScopePath, change: impl FnOnce() -> Result<T, Errno>) -> Result<T, ViewError> {
        if !charge(&self.written_entries, 1, self.limits.write_entries) {
            return Err(self.refuse_quota(path, LimitName::WriteEntries));
        }
        match change() {
            Ok(changed) => {
                self.touch();
                Ok(changed)
            }
            Err(errno) => {
                self.written_entries.fetch_sub(1, Ordering::Relaxed);
                Err(errno.into())
            }
        }
    }
}

/// Adds to a counter, unless that would exceed the limit. Returns whether it was added.
fn charge(counter: &AtomicU64, amount: u64, limit: u64) -> bool {
    let within = |used: u64| used.checked_add(amount).filter(|sum| *sum <= limit);
    counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
}
