//! The root of a jail: an empty file system in memory. Every visible path is added to it.
//!
//! It is mounted over the host's root, filled through descriptors, and made the root at the end; then the host's root is detached.
//! Binds of the host are read-only unless the policy allows writes. Set-user-id bits and devices have no effect in it. A link in the
//! path of a source is an error and not followed.
#![forbid(unsafe_code)]

mod etc;
mod prepared_root;
mod proc;
mod workspace;

pub(crate) use etc::{ETC, ETC_OWN};
pub(crate) use prepared_root::PreparedRoot;

use crate::device;
use crate::fault::At;
use crate::raw;
use crate::root::{BindKind, Root, below_root, bind_at};
use glovebox_jail_helper::policy::{Bind, Policy};
use glovebox_jail_helper::wire::{Enforcement, Failure};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, Mode, OFlags, openat, readlinkat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MountPropagationFlags, UnmountFlags, mount_change, unmount};
use rustix::process::{chdir, fchdir, pivot_root};
use std::path::Path;

/// Folders of the system's programs. On most systems all but the first are links into it.
pub(crate) const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// A root that is complete but for its being closed to changes.
#[derive(Debug)]
pub(crate) struct UnsealedRoot {
    root: Root,
    workspace: OwnedFd,
    /// `/proc`, which can still be written.
    pub(crate) proc: OwnedFd,
}

/// Makes the new root, fills it, and leaves the host's for it. `is_root_outside`: the user outside of all namespaces is root.
pub(crate) fn build(
    policy: &Policy,
    prepared: Option<&PreparedRoot>,
    is_root_outside: bool,
    enforcement: &mut Enforcement,
) -> Result<UnsealedRoot, Failure> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).at("make mounts private")?;
    let root = Root::new()?;
    match prepared {
        Some(prepared) => prepared.show(&root)?,
        None => root.fill(policy)?,
    }
    device::mount_own(&root, policy.bounds.tmp_bytes)?;
    root.memory(&policy.tmp, Mode::from_raw_mode(0o1777), policy.bounds.tmp_bytes)?;
    root.memory(&policy.home, Mode::from_raw_mode(0o700), policy.bounds.tmp_bytes)?;
    let proc = root.processes(enforcement, || match prepared {
        Some(prepared) => prepared.cover(&root),
        None => proc::cover(&root, is_root_outside, policy.network),
    })?;
    for bind in policy.binds.iter().filter(|bind| prepared.is_none() || !bind.is_configuration()) {
        bind_at(&root, bind, BindKind::Files)?;
    }
    let workspace = workspace::mount(&root, &policy.workspace)?;
    root.become_root()?;
    Ok(UnsealedRoot { root, workspace, proc })
}

/// Closes the root and `/proc` to changes. The workspace's root stays.
pub(crate) fn seal(built: UnsealedRoot) -> Result<OwnedFd, Failure> {
    let closed = u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits());
    raw::set_mount_attributes(&built.proc, closed, false).at("make /proc read-only")?;
    raw::set_mount_attributes(&built.root, closed, false).at("make the root read-only")?;
    Ok(built.workspace)
}

impl Root {
    /// Creates the parts that a template would have prepared.
    fn fill(&self, policy: &Policy) -> Result<(), Failure> {
        for path in SYSTEM {
            self.system(Path::new(path))?;
        }
        self.folder(Path::new("/dev"))?;
        device::fill_fixed(self)?;
        etc::fill(self, policy.network)?;
        policy.files.iter().try_for_each(|(path, content)| self.file(path, content.as_bytes()))
    }

    /// Makes this the root of the namespace and gets rid of the host's.
    fn become_root(&self) -> Result<(), Failure> {
        fchdir(self).at("change root")?;
        // Both the same: the old root ends up on top of the new one, where it is taken off.
        pivot_root(".", ".").at("change root")?;
        unmount(".", UnmountFlags::DETACH).at("detach the host's root")?;
        chdir("/").at("change root")
    }

    /// A fresh `/proc`, covered; the host's own, where the system hides parts of it and so allows no other.
    fn processes(
        &self,
        enforcement: &mut Enforcement,
        cover: impl FnOnce() -> Result<(), Failure>,
    ) -> Result<OwnedFd, Failure> {
        self.folder(Path::new("/proc"))?;
        match proc::mount_own() {
            Ok(()) => cover()?,
            Err(Errno::PERM) => {
                enforcement.degradations.push("proc=shared".to_owned());
                bind_at(self, &Bind::read_only("/proc".into(), "/proc".into()), BindKind::Files)?;
            }
            Err(error) => return Err(error).at("mount /proc"),
        }
        openat(self, "proc", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).at("open /proc")
    }

    /// One of the system's own folders: bound, or the same link as on the host.
    fn system(&self, path: &Path) -> Result<(), Failure> {
        match readlinkat(CWD, path, Vec::new()) {
            Ok(to) => symlinkat(to.as_c_str(), self, below_root(path)).at(format!("link {}", path.display())),
            Err(Errno::NOENT) => Ok(()),
            Err(_) => bind_at(self, &Bind::read_only(path.to_owned(), path.to_owned()), BindKind::Files),
        }
    }
}
