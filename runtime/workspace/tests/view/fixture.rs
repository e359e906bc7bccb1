//! The tree under attack, and a witness of its state.

use glovebox_record::Limits;
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use glovebox_workspace::refusal::RefusalLog;
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use glovebox_workspace::view::{DirectoryEntry, View};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Content of hidden files. A test that reads it has found an escape.
pub(crate) const SECRET: &[u8] = b"SECRET";

pub(crate) struct Fixture {
    pub(crate) dir: tempfile::TempDir,
    /// Folder for the contents of layers.
    aside: tempfile::TempDir,
    layers: AtomicU32,
}

impl Fixture {
    /// Creates the tree: a readable workspace with the writable paths `out/` and `src/main.rs`, the hidden folder
    /// `scenarios/holdout`, and traps that a real tree may contain.
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        for name in ["src", "ro", "out/d", "visible", "scenarios/holdout/deep"] {
            fs::create_dir_all(root.join(name)).unwrap();
        }
        for (name, content) in [
            ("Cargo.toml", "root"),
            ("src/main.rs", "main"),
            ("src/lib.rs", "lib"),
            ("src/secret.rs", "secret of src"),
            ("ro/a", "read only"),
            ("out/own", "own"),
            ("out/d/h.toml", "mine"),
            ("visible/v", "v"),
            ("scenarios/readme", "readme"),
        ] {
            fs::write(root.join(name), content).unwrap();
        }
        fs::write(root.join("scenarios/holdout/h.toml"), SECRET).unwrap();
        fs::write(root.join("scenarios/holdout/deep/x"), SECRET).unwrap();
        fs::hard_link(root.join("src/secret.rs"), root.join("out/hard")).unwrap();
        symlink("../scenarios/holdout", root.join("out/to_holdout")).unwrap();
        symlink("../src", root.join("out/to_src")).unwrap();
        symlink("/etc/passwd", root.join("out/to_passwd")).unwrap();
        Self { dir, aside: tempfile::tempdir().unwrap(), layers: AtomicU32::new(0) }
    }

    pub(crate) fn root(&self) -> &Path {
        self.dir.path()
    }

    /// Opens a view of the tree: everything is readable, `out/` and `src/main.rs` are writable, `scenarios/holdout/` is hidden.
    pub(crate) fn view(&self) -> View {
        self.view_with(scope(&["./"], &["out/", "src/main.rs"], &["scenarios/holdout/"]), Limits::default())
    }

    pub(crate) fn view_with(&self, scope: Scope, limits: Limits) -> View {
        let view = View::open(self.root(), scope, limits, Arc::new(RefusalLog::default())).unwrap();
        view.known_as(vec!["/home/me/proj".to_owned()])
    }

    /// As [`Fixture::view`], but with a layer over the tree. The tree must not change, whatever the view does.
    pub(crate) fn layered(&self) -> View {
        self.layered_with(scope(&["./"], &["out/", "src/main.rs"], &["scenarios/holdout/"]), Limits::default()).0
    }

    /// As [`Fixture::view_with`], but with a layer over the tree. Also returns the layer.
    pub(crate) fn layered_with(&self, scope: Scope, limits: Limits) -> (View, WorkspaceView) {
        let files = self.layer(&scope);
        let view = View::over(files.as_layer().unwrap(), scope, limits, Arc::new(RefusalLog::default())).unwrap();
        (view.known_as(vec!["/home/me/proj".to_owned()]), files)
    }

    /// Creates a new layer over the tree.
    pub(crate) fn layer(&self, scope: &Scope) -> WorkspaceView {
        let at = self.aside(&format!("layer-{}", self.layers.fetch_add(1, Ordering::Relaxed)));
        WorkspaceView::layer(self.root(), &at, scope, &ViewOverrides::default()).unwrap()
    }

    /// Returns a path outside of the tree.
    pub(crate) fn aside(&self, name: &str) -> PathBuf {
        self.aside.path().join(name)
    }

    /// Returns the state of everything except entries at or below the named paths: kind, content, names, mode and time.
    pub(crate) fn witness(&self, except: &[&str]) -> BTreeMap<String, String> {
        let mut seen = BTreeMap::new();
        remember(self.root(), "", except, &mut seen);
        seen
    }
}

fn remember(root: &Path, at: &str, except: &[&str], seen: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(root.join(at)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = if at.is_empty() { name } else { format!("{at}/{name}") };
        if except.contains(&path.as_str()) {
            continue;
        }
        let metadata = entry.path().symlink_metadata().unwrap();
        let kind = metadata.file_type();
        let content = match () {
            () if kind.is_symlink() => format!("{:?}", fs::read_link(entry.path()).unwrap()),
            () if kind.is_file() => format!("{:?}", fs::read(entry.path()).unwrap()),
            () => String::new(),
        };
        // The time of a directory changes with its entries, which are recorded one by one.
        let time = if kind.is_dir() { 0 } else { metadata.mtime_nsec() ^ metadata.mtime() };
        seen.insert(path.clone(), format!("{kind:?} {content} {:o} {} {time}", metadata.mode(), metadata.ino()));
        if kind.is_dir() {
            remember(root, &path, except, seen);
        }
    }
}

pub(crate) fn scope(read: &[&str], write: &[&str], hidden: &[&str]) -> Scope {
    let list = |texts: &[&str]| texts.iter().map(|text| Entry::parse(text).unwrap()).collect();
    Scope::new(list(read), list(write), list(hidden))
}

pub(crate) fn path(text: &str) -> ScopePath {
    ScopePath::parse(text).unwrap()
}

/// Lists a folder, and checks that the listing without sizes has the same entries.
pub(crate) fn listed(view: &View, at: &str) -> Vec<DirectoryEntry> {
    let listed = view.list(&path(at)).unwrap();
    let of =
        |entries: &[DirectoryEntry]| -> Vec<_> { entries.iter().map(|one| (one.name.clone(), one.kind)).collect() };
    assert_eq!(of(&view.kinds(&path(at)).unwrap()), of(&listed), "{at}: with sizes and without");
    listed
}
