//! The part of a root that is the same for all jails of a template: programs, devices, `/etc`, and the covers for parts
//! of `/proc`.
//!
//! The template builds this part once in its own mount namespace and makes it read-only. Each jail gets a copy of that
//! namespace and binds the parts into its own root. The part contains nothing that a stage can write and nothing that a
//! policy names.
#![forbid(unsafe_code)]

use super::proc::{self, Cover};
use super::{SYSTEM, etc, sys};
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

/// Mount point of the prepared root in the template: a folder of the host that no jail needs.
const KEPT_AT: &str = "/dev/pts";

/// The part of a root that a template has prepared for its jails.
#[derive(Debug)]
pub(crate) struct PreparedRoot {
    /// The top-level entries.
    parts: Vec<Part>,
    /// Settings below `/proc` that only root may read. They must be covered if the files of root on the host belong to
    /// the jail's user.
    private_settings: Vec<PathBuf>,
}

/// A top-level entry of a root.
#[derive(Debug)]
enum Part {
    /// A folder, which is bound.
    Folder(&'static Path),
    /// A symbolic link with its target, which is created again.
    Link(&'static Path, CString),
}

impl PreparedRoot {
    /// Builds the prepared root in the mount namespace of this process.
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
        sys::fill(&root)?;
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

    /// Adds the prepared entries to the root of a jail.
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

    /// Covers the parts of a fresh `/proc` that must not be visible.
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

/// Returns the top-level entries of the root, which are the ones that a jail has to bind or link.
fn parts(root: &Root) -> Result<Vec<Part>, Failure> {
    let mut parts = Vec::from(["/dev", "/etc", "/sys"].map(|path| Part::Folder(Path::new(path))));
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

/// Makes the root read-only and moves it to the place where copies of this process find it. If it were mounted on top
/// of the root, the kernel would treat the copies as chrooted, and a chrooted process may not create a user namespace.
fn keep(root: &Root) -> Result<(), Failure> {
    let closed = u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits());
    raw::set_mount_attributes(root, closed, true).at("make the prepared root read-only")?;
    let at = open_source(Path::new(KEPT_AT)).at(format!("open {KEPT_AT}"))?;
    let empty_paths = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(root, "", at, "", empty_paths).at("keep the prepared root")?;
    chdir("/").at("change folder")
}
