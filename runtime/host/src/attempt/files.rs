//! The `files` interface: single operations on paths, over the same view as the `posix` tier.
//!
//! The interface has no descriptors and no streams, so nothing stays open between two calls. A file is replaced in place: a stage
//! writes to its own copy, and an attempt that is killed during a write commits nothing.

use crate::attempt::Attempt;
use crate::attempt::wasi_files::FilesView;
use crate::bindings::files::{Error, Host, Node};
use crate::grants::FileTier;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::Scope;
use glovebox_record::{Limits, Refusal};
use glovebox_workspace::layer::Layer;
use glovebox_workspace::protect::Protected;
use glovebox_workspace::refusal::RefusalLog;
use glovebox_workspace::view::{DirectoryEntry, Kind, OpenViewError, Operation, View, ViewError};
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum number of bytes that one `read` returns. If the caller asks for more and the file is longer, `read` fails; it never returns
/// less than asked for.
pub const READ_BYTES_MAX: u32 = 16 << 20;

/// A path as a guest wrote it: neither checked nor resolved.
#[derive(Clone, Copy)]
pub(crate) struct GuestPath<'a>(pub(crate) &'a str);

/// Where the files of a call are stored.
#[derive(Debug, Clone)]
pub enum FileSource {
    /// A folder of the host. The call changes it directly.
    Folder(PathBuf),
    /// A layer over the workspace, which receives the call's changes.
    Layer(Arc<Layer>),
}

/// The files that a call works on.
#[derive(Debug, Clone)]
pub struct FileSetting {
    /// Storage of the files.
    pub source: FileSource,
    /// Readable and writable paths. All other paths are hidden.
    pub scope: Scope,
    /// Paths that no grant can allow. A refusal says so.
    pub protected: Protected,
    /// Absolute paths that stand for the root, such as the path at which commands see it. Any other absolute path is refused.
    pub known_as: Vec<String>,
    /// True if the component is a plugin. A plugin needs grants in addition to the attributes of its node.
    pub is_of_plugin: bool,
}

/// The state of `files` and of the file system of `wasi`.
#[derive(Debug)]
pub(crate) struct FileState {
    /// The component's access to files.
    pub(crate) tier: FileTier,
    /// The files themselves; `None` if the call was given none.
    pub(crate) view: Option<Arc<View>>,
}

impl FileState {
    /// Opens the files of a call, if it has any.
    ///
    /// # Errors
    /// Why the files cannot be opened, as text.
    pub(crate) fn open(
        tier: FileTier,
        files: Option<FileSetting>,
        limits: Limits,
        refusals: &Arc<RefusalLog>,
    ) -> Result<Self, String> {
        let open = |files: FileSetting| {
            let FileSetting { source, scope, protected, known_as, is_of_plugin } = files;
            let view = match source {
                FileSource::Folder(root) => View::open(&root, scope, limits, Arc::clone(refusals))?,
                FileSource::Layer(layer) => View::over(&layer, scope, limits, Arc::clone(refusals))?,
            };
            Ok::<_, OpenViewError>(view.protecting(protected).known_as(known_as).for_plugin(is_of_plugin))
        };
        let view = files.map(open).transpose().map_err(|problem| problem.to_string())?;
        Ok(Self { tier, view: view.map(Arc::new) })
    }
}

type Answer<T> = wasmtime::Result<Result<T, Error>>;

impl Host for Attempt {
    fn read(&mut self, path: String, offset: u64, max: u32) -> Answer<Vec<u8>> {
        self.call.observer.called("files.read", |call| call.path(&path).number(offset).number(u64::from(max)));
        let content = self.on_path(Operation::Read, GuestPath(&path), |view, at| {
            if max > READ_BYTES_MAX && view.stat(at)?.size.saturating_sub(offset) > u64::from(READ_BYTES_MAX) {
                return Err(ViewError::TooLarge);
            }
            view.read_file(at, offset, max.min(READ_BYTES_MAX) as usize)
        });
        self.call.meter.record_bytes(content.as_ref().map_or(0, Vec::len));
        Ok(content)
    }

    fn write(&mut self, path: String, data: Vec<u8>) -> Answer<()> {
        self.call.observer.called("files.write", |call| call.path(&path).bytes(&data));
        self.call.meter.record_bytes(data.len());
        Ok(self.on_path(Operation::Write, GuestPath(&path), |view, at| view.write_file(at, &data)))
    }

    fn list(&mut self, path: String) -> Answer<Vec<Node>> {
        self.call.observer.called("files.list", |call| call.path(&path));
        let entries = self.on_path(Operation::List, GuestPath(&path), |view, at| view.list(at));
        Ok(entries.map(|entries| entries.into_iter().filter_map(node_of).collect()))
    }

    fn stat(&mut self, path: String) -> Answer<Node> {
        self.call.observer.called("files.stat", |call| call.path(&path));
        Ok(self.on_path(Operation::Stat, GuestPath(&path), |view, at| {
            let metadata = view.stat(at)?;
            let kind = kind_text(metadata.kind).ok_or_else(|| view.refuse_following(Operation::Stat, at))?;
            Ok(Node { name: at.name().unwrap_or_default().to_owned(), kind: kind.to_owned(), size: metadata.size })
        }))
    }

    fn remove(&mut self, path: String) -> Answer<()> {
        self.call.observer.called("files.remove", |call| call.path(&path));
        Ok(self.on_path(Operation::Remove, GuestPath(&path), |view, at| match view.unlink(at) {
            Err(ViewError::IsADirectory) => view.remove_directory(at),
            removed => removed,
        }))
    }
}

impl Attempt {
    /// Returns the files of a call in the `posix` tier. In any other tier, there are none.
    pub(crate) fn posix_files(&mut self) -> FilesView<'_> {
        let view = if self.files.tier == FileTier::Posix { self.files.view.as_ref() } else { None };
        FilesView { table: &mut self.wasi.table, view, observer: &self.call.observer }
    }

    /// Executes an operation on a path. A denied operation returns an error of the `files` interface.
    fn on_path<T>(
        &mut self,
        operation: Operation,
        path: GuestPath<'_>,
        work: impl FnOnce(&Arc<View>, &ScopePath) -> Result<T, ViewError>,
    ) -> Result<T, Error> {
        let view = match &self.files.view {
            Some(view) if self.files.tier != FileTier::None => view,
            _ => {
                let help =
                    "`grants = { filesystem = \"workspace\", read = [\"./\"] }` for the plugin in `glovebox.toml`";
                self.call.refuse(Refusal::new(operation.as_str(), path.0, "no files are granted", help));
                return Err(error_of(ViewError::NotPermitted, "no files are granted"));
            }
        };
        let done = match ScopePath::parse(view.relative(path.0).unwrap_or(path.0)) {
            Ok(at) => work(view, &at),
            Err(problem) => {
                return Err(error_of(view.refuse_path(operation, path.0, problem), problem));
            }
        };
        done.map_err(|denied| error_of(denied, DeniedOperation { denied, path, view }))
    }
}

/// Returns the name of a kind in the `files` interface, which has only files and directories.
fn kind_text(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::File => Some("file"),
        Kind::Directory => Some("directory"),
        Kind::Symlink | Kind::Special => None,
    }
}

fn node_of(entry: DirectoryEntry) -> Option<Node> {
    Some(Node { kind: kind_text(entry.kind)?.to_owned(), name: entry.name, size: entry.size })
}

/// An operation on a path that the view has denied.
struct DeniedOperation<'a> {
    denied: ViewError,
    path: GuestPath<'a>,
    view: &'a View,
}

impl fmt::Display for DeniedOperation<'_> {
    /// Writes the path and the problem. For a write outside of the scope, also writes the scope.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { denied, path, view } = self;
        write!(f, "`{}`: {denied}", path.0)?;
        if *denied != ViewError::NotPermitted {
            return Ok(());
        }
        let granted: Vec<String> = view.scope().write.iter().map(|entry| format!("`{entry}`")).collect();
        let granted = if granted.is_empty() { "nothing".to_owned() } else { granted.join(", ") };
        write!(f, "; this stage may write {granted}")
    }
}

fn error_of(denied: ViewError, message: impl fmt::Display) -> Error {
    let code = match denied {
        ViewError::NotFound => "not-found",
        ViewError::NotPermitted | ViewError::Loop => "not-permitted",
        ViewError::Exists => "exists",
        ViewError::NotADirectory => "not-a-directory",
        ViewError::IsADirectory => "is-a-directory",
        ViewError::NotEmpty => "not-empty",
        ViewError::Invalid => "invalid",
        ViewError::TooLarge => "too-large",
        ViewError::Quota => "quota",
        ViewError::Io(_) => "io",
    };
    Error { code: code.to_owned(), message: message.to_string() }
}
