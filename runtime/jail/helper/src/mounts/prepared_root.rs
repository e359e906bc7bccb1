//! The part of a root that is the same for all jails of a template: programs, devices, `/etc`, and what covers parts of `/proc`.
//!
//! The template builds it once in its own mount namespace and closes it to changes. Each jail gets a copy of that namespace and
//! binds the parts into its own root. Nothing that a stage can write, and nothing that a policy names, is among them.
#![forbid(unsafe_code)]

use super::proc::{self, Cover};
use super::{SYSTEM, etc};
use crate::device;
use crate::fault::At;
use crate::raw;
use crate::root::{BindKind, Root, below_root, bind_at, open_source};
use glovebox_jail_helper::policy::{Network, Preparation};
use glovebox_jail_helper::wire::Failure;
use rustix::fs::{Mode, mkdirat, readlinkat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{
    MountAttrFlags, MountPropagationFlags, MoveMountFlags, mount_bind_recursive, mount_change, move_mount,
};
use rustix::process::chdir;
use std::ffi::CString;
use std::path::{Path, PathBuf};

/// Mount point at which the template keeps it: over a folder of the host that no jail needs.
const KEPT_AT: &str = "/dev/pts";

/// The part of the root of its jails that a template has prepared.
#[derive(Debug)]
pub(crate) struct PreparedRoot {
    /// The top-level entries.
    parts: Vec<Part>,
    /// Files below `/proc` that only root may read, where root's files are the jail's.
    private_settings: Vec<PathBuf>,
}

/// Something at the top of a root.
#[derive(Debug)]
enum Part {
    /// It is bound.
    Folder(&'static Path),
    /// It is made anew.
    Link(&'static Path, CString),
}

impl PreparedRoot {
    /// Builds it in the mount namespace of this process.
    pub(crate) fn build(preparation: &Preparation, is_root_outside: bool) -> Result<Self, Failure> {
        mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).at("make mounts private")?;
        let private_settings =
            if is_root_outside { proc::private_settings(Path::new("/proc"), Network::None)? } else { Vec::new() };
        let root = Root::new()?;
        for path in SYSTEM {
            root.system(Path::new(path))?;
        }
        root.folder(Path::new("/dev"))?;
        device::fill_fixed(&root)?;
        etc::fill(&root, Network::None)?;
        for bind in &preparation.configuration {
            bind_at(&root, bind, BindKind::Files)?;
        }
        for (path, content) in &preparation.files {
            root.file(path, content.as_bytes())?;
        }
        Cover::make(&root, Path::new("/"))?;
        let parts = parts(&root)?;
        keep(&root)?;
        Ok(Self { parts, private_settings })
    }

    /// Shows it in the root of a jail.
    pub(super) fn show(&self, root: &Root) -> Result<(), Failure> {
        for part in &self.parts {
            match part {
                Part::Folder(path) => {
                    let step = || format!("bind {}", path.display());
                    mkdirat(root, below_root(path), Mode::from_raw_mode(0o755)).at(step())?;
                    mount_bind_recursive(kept(path), below_root(path)).at(step())?;
                }
                Part::Link(path, to) => {
                    symlinkat(to.as_c_str(), root, below_root(path)).at(format!("link {}", path.display()))?;
                }
            }
        }
        Ok(())
    }

    /// Covers what must not be seen of a fresh `/proc`.
    pub(super) fn cover(&self, root: &Root) -> Result<(), Failure> {
        let cover = Cover::in_folder(Path::new(KEPT_AT));
        proc::cover_unlisted(root, &cover)?;
        proc::cover_settings(&cover, &self.private_settings)
    }
}

/// Returns the path of a prepared part, as this process and its copies see it.
fn kept(path: &Path) -> PathBuf {
    Path::new(KEPT_AT).join(below_root(path))
}

/// Lists the top-level entries of the root: a jail has to bind or link only those.
fn parts(root: &Root) -> Result<Vec<Part>, Failure> {
    let mut parts = vec![Part::Folder(Path::new("/dev")), Part::Folder(Path::new("/etc"))];
    for path in SYSTEM.iter().map(Path::new) {
        match readlinkat(root, below_root(path), Vec::new()) {
            Ok(to) => parts.push(Part::Link(path, to)),
            Err(Errno::NOENT) => {}
            Err(Errno::INVAL) => parts.push(Part::Folder(path)),
            Err(error) => return Err(error).at("examine the prepared root"),
        }
    }
    Ok(parts)
}

/// Closes it to changes and puts it where the copies of this process find it. On top of the root it would make them look chrooted,
/// and such a process may make no user namespace.
fn keep(root: &Root) -> Result<(), Failure> {
    let closed = u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits());
    raw::set_mount_attributes(root, closed, true).at("make the prepared root read-only")?;
    let at = open_source(Path::new(KEPT_AT)).at(format!("open {KEPT_AT}"))?;
    let empty_paths = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(root, "", at, "", empty_paths).at("keep the prepared root")?;
    chdir("/").at("change folder")
}
