//! Installed dependencies of the project in the sandbox of an attempt. They are mounted at their paths and never copied.
//!
//! If the write scope of a stage covers a dependency, what its commands write there goes to a layer of the attempt, which
//! is removed with it: no other stage and no user ever sees it. Otherwise dependencies are read-only: code that a checking
//! stage runs must not be able to change the tools of its next command without a trace.
//!
//! A folder that exists in the workspace is not replaced. Caches that tools keep inside a dependency are hidden,
//! because they could contain parts of a hold-out. In their place, the attempt gets empty writable folders, which are
//! removed with the attempt. Only a tier with a private root can mount.

use glovebox_jail_helper::policy::{Bind, BindLayer};
use glovebox_record::path::ScopePath;
use glovebox_record::scope::{Entry, Scope};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Folders in a dependency that tools write: caches of bundlers and test runners.
const WRITTEN: [&str; 5] = [".cache", ".vite", ".vite-temp", ".vitest", ".tmp"];
/// Those of [`WRITTEN`] that `node_modules` gets even if no tool has created them yet, because most tools create theirs
/// with the first run.
const WRITTEN_FIRST: [&str; 4] = [".cache", ".vite", ".vite-temp", ".vitest"];
/// Name of the folders that get [`WRITTEN_FIRST`].
const PACKAGES: &str = "node_modules";
/// Maximum number of folders that get [`WRITTEN_FIRST`]. Each takes several mounts.
const PACKAGES_MAX: usize = 16;
/// As [`WRITTEN`], but only in a Python virtual environment, where `tox` and `nox` write them. In other dependencies
/// these can be names of packages.
const WRITTEN_BY_TESTS: [&str; 2] = ["log", "tmp"];
/// Name of the folder, in the attempt's folder, that takes the writes.
const WRITTEN_DIR: &str = "dependencies";
/// Name of the folder, in the attempt's folder, with the layers over dependencies.
const LAYERS_DIR: &str = "dependency-layers";

/// Whether the commands of an attempt may write to dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DependencyAccess {
    /// Commands only read them, except for folders of caches that exist in them.
    ReadOnly,
    /// As [`DependencyAccess::ReadOnly`], and folders of caches that do not exist are created in a layer of the attempt. Only
    /// a tier that can mount an overlay has layers.
    CachesLayered,
    /// As [`DependencyAccess::CachesLayered`], and writes to dependencies in the write scope go to a layer of the attempt.
    Layered,
}

/// The folders of one attempt.
#[derive(Debug, Clone, Copy)]
pub struct Places<'p> {
    /// The user's project.
    pub project: &'p Path,
    /// The run's workspace.
    pub workspace: &'p Path,
    /// The attempt's own folder.
    pub attempt: &'p Path,
}

/// The dependencies that an attempt sees. The default is none.
#[derive(Debug, Default)]
pub struct Dependencies<'d> {
    shown: Vec<Shown<'d>>,
    /// Writable folders in the dependencies, each with the folder that takes the writes.
    written: Vec<(ScopePath, PathBuf)>,
}

/// A dependency that an attempt sees.
#[derive(Debug)]
struct Shown<'d> {
    path: &'d ScopePath,
    /// The folder in the user's project.
    source: PathBuf,
    layer: Option<BindLayer>,
    is_writable: bool,
}

impl<'d> Dependencies<'d> {
    /// Selects those of `folders` that the commands of an attempt with this scope may see. A folder that contains a
    /// hidden path is not included.
    ///
    /// # Errors
    /// The system's error if the folder for writes cannot be created.
    pub fn for_scope(
        folders: &'d [Entry],
        scope: &Scope,
        places: Places<'_>,
        access: DependencyAccess,
    ) -> io::Result<Self> {
        let mut found = Self::default();
        let is_folder = |at: &Path| fs::symlink_metadata(at).is_ok_and(|found| found.is_dir());
        for path in folders.iter().map(Entry::path) {
            let (at, source) = (places.workspace.join(path.as_str()), places.project.join(path.as_str()));
            let is_hidden = scope.is_hidden(path) || scope.hides_below(path);
            if is_hidden || fs::symlink_metadata(&at).is_ok() || !is_folder(&source) {
                continue;
            }
            let is_environment = source.join("pyvenv.cfg").is_file();
            let by_tests = WRITTEN_BY_TESTS.iter().filter(|_| is_environment);
            let there = WRITTEN.iter().chain(by_tests).filter(|name| is_folder(&source.join(name)));
            let is_writable = access == DependencyAccess::Layered && scope.commits(path);
            let is_first = access != DependencyAccess::ReadOnly && !is_writable && path.name() == Some(PACKAGES);
            let is_absent = |name: &&&str| fs::symlink_metadata(source.join(name)).is_err();
            let absent: Vec<&&str> = match is_first && found.layered() < PACKAGES_MAX {
                true => WRITTEN_FIRST.iter().filter(is_absent).collect(),
                false => Vec::new(),
            };
            for name in there.chain(absent.iter().copied()) {
                let takes = places.attempt.join(WRITTEN_DIR).join(found.written.len().to_string());
                let inside = path.join(name).map_err(io::Error::other)?;
                fs::create_dir_all(&takes)?;
                found.written.push((inside, takes));
            }
            let needs_layer = is_writable || !absent.is_empty();
            let layer = needs_layer.then(|| make_layer(places.attempt, found.shown.len())).transpose()?;
            if let Some(layer) = &layer {
                absent.iter().try_for_each(|name| fs::create_dir(layer.upper.join(name)))?;
            }
            found.shown.push(Shown { path, source, layer, is_writable });
        }
        Ok(found)
    }

    fn layered(&self) -> usize {
        self.shown.iter().filter(|shown| shown.layer.is_some()).count()
    }

    /// Returns the paths at which the dependencies are mounted, for [`crate::stage::ViewOverrides`].
    pub fn mount_points(&self) -> impl Iterator<Item = ScopePath> {
        self.shown.iter().map(|shown| shown.path.clone())
    }

    /// Returns the mounts for a jail whose workspace is at `inside`, outer ones first.
    pub fn binds(&self, inside: &Path) -> Vec<Bind> {
        let shown = self.shown.iter().map(|shown| Bind {
            writable: shown.is_writable,
            layer: shown.layer.clone(),
            ..Bind::read_only(shown.source.clone(), inside.join(shown.path.as_str()))
        });
        let written = self.written.iter();
        shown.chain(written.map(|(path, source)| Bind::writable(source.clone(), inside.join(path.as_str())))).collect()
    }

    /// Returns true if a folder is one of the dependencies.
    pub fn has(&self, folder: &Entry) -> bool {
        self.shown.iter().any(|shown| shown.path == folder.path())
    }
}

/// Creates the folders of the layer over the dependency with this number.
fn make_layer(attempt: &Path, number: usize) -> io::Result<BindLayer> {
    let folder = attempt.join(LAYERS_DIR).join(number.to_string());
    let layer = BindLayer { upper: folder.join("upper"), work: folder.join("work") };
    fs::create_dir_all(&layer.upper)?;
    fs::create_dir_all(&layer.work)?;
    Ok(layer)
}
