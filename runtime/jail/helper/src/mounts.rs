//! The root of a jail: an empty file system in memory. Every visible path is added to it.
//!
//! The new root is mounted over the host's root, filled through descriptors, and then made the root. At the end, the
//! host's root is detached. Binds of the host are read-only unless the policy allows writes. Set-user-id bits and
//! devices have no effect in the new root. A symbolic link in the path of a source is an error and is not followed.
#![forbid(unsafe_code)]

mod etc;
mod prepared_root;
mod proc;
mod sys;
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

/// Folders with the programs of the system. On most systems, all except the first are links into `/usr`.
pub(crate) const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// A complete root that can still be changed.
#[derive(Debug)]
pub(crate) struct UnsealedRoot {
    root: Root,
    workspace: OwnedFd,
    /// The `/proc` of the jail, which can still be written.
    pub(crate) proc: OwnedFd,
}

/// Creates the new root, fills it, and replaces the host's root with it. `is_root_outside` is true if the user outside
/// of all namespaces is root.
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

/// Makes the root and `/proc` read-only. Returns the root of the workspace.
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
        sys::fill(self)?;
        policy.files.iter().try_for_each(|(path, content)| self.file(path, content.as_bytes()))
    }

    /// Makes this the root of the namespace and detaches the host's root.
    fn become_root(&self) -> Result<(), Failure> {
        fchdir(self).at("change root")?;
        // With the same path for both, the old root is mounted on top of the new root, from where it is detached.
        pivot_root(".", ".").at("change root")?;
        unmount(".", UnmountFlags::DETACH).at("detach the host's root")?;
        chdir("/").at("change root")
    }

    /// Mounts a fresh `/proc` and covers parts of it. If the system hides parts of its own `/proc` and therefore
    /// refuses a fresh one, binds that of the host.
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

    /// Shows one of the system's folders: a bind, or the same link as on the host.
    fn system(&self, path: &Path) -> Result<(), Failure> {
        match readlinkat(CWD, path, Vec::new()) {
            Ok(to) => symlinkat(to.as_c_str(), self, below_root(path)).at(format!("link {}", path.display())),
            Err(Errno::NOENT) => Ok(()),
            Err(_) => bind_at(self, &Bind::read_only(path.to_owned(), path.to_owned()), BindKind::Files),
        }
    }
}
