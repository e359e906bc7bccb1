//! The root of a jail: an empty file system in memory. Every visible path is added to it.
//!
//! It is mounted over the host's root, filled through descriptors, and made the root at the end; then the host's root is detached.
//! Binds of the host are read-only unless the policy allows writes. Set-user-id bits and devices have no effect in it. A link in the
//! path of a source is an error and not followed.
#![forbid(unsafe_code)]

mod etc;
mod prepared;
mod proc;
mod workspace;

pub(crate) use etc::{ETC, ETC_OWN};
pub(crate) use prepared::PreparedRoot;

use crate::device::{self, Nature};
use crate::fault::At;
use crate::raw;
use crate::stage::Base;
use glovebox_jail_helper::policy::{Bind, Policy};
use glovebox_jail_helper::wire::{Enforcement, Failure};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2, readlinkat, symlinkat};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags, fsconfig_create, fsconfig_set_string, fsmount, fsopen, mount, mount_change, move_mount, open_tree,
    unmount,
};
use rustix::process::{chdir, fchdir, pivot_root};
use std::ffi::CString;
use std::path::{Component, Path, PathBuf};

/// Where the system's programs are. On most systems all but the first are links into it.
pub(crate) const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Bytes of the root itself: names, links and the small files of `/etc`.
const ROOT_BYTES: u64 = 8 << 20;

/// The new root while it is filled. The current folder is the same.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

/// A root that is complete but for its being closed to changes.
#[derive(Debug)]
pub(crate) struct Built {
    root: Root,
    workspace: OwnedFd,
    /// `/proc`, which can still be written.
    pub(crate) proc: OwnedFd,
}

/// Makes the new root, fills it, and leaves the host's for it.
pub(crate) fn build(policy: &Policy, base: &Base<'_>, enforcement: &mut Enforcement) -> Result<Built, Failure> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).at("make mounts private")?;
    let root = Root::new()?;
    let prepared = base.prepared.map(|prepared| &prepared.root);
    match prepared {
        Some(prepared) => prepared.show(&root)?,
        None => root.fill(policy)?,
    }
    device::mount_own(&root, policy.bounds.tmp_bytes)?;
    root.memory(&policy.tmp, Mode::from_raw_mode(0o1777), policy.bounds.tmp_bytes)?;
    root.memory(&policy.home, Mode::from_raw_mode(0o700), policy.bounds.tmp_bytes)?;
    let proc = root.processes(enforcement, || match prepared {
        Some(prepared) => prepared.cover(&root),
        None => proc::cover(&root, base.is_root_outside, policy.network),
    })?;
    for bind in policy.binds.iter().filter(|bind| prepared.is_none() || !bind.is_configuration()) {
        bind_at(&root, bind, Nature::Files)?;
    }
    let workspace = workspace::mount(&root, &policy.workspace)?;
    root.become_root()?;
    Ok(Built { root, workspace, proc })
}

/// Closes the root and `/proc` to changes. The workspace's root stays.
pub(crate) fn seal(built: Built) -> Result<OwnedFd, Failure> {
    let closed = u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits());
    raw::set_mount_attributes(&built.proc, closed, false).at("make /proc read-only")?;
    raw::set_mount_attributes(&built.root, closed, false).at("make the root read-only")?;
    Ok(built.workspace)
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Root {
    fn new() -> Result<Self, Failure> {
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let memory = fsopen("tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).at("make the new root")?;
        fsconfig_set_string(&memory, "mode", "0755").at("make the new root")?;
        fsconfig_set_string(&memory, "size", ROOT_BYTES.to_string()).at("make the new root")?;
        fsconfig_create(&memory).at("make the new root")?;
        let root = fsmount(&memory, FsMountFlags::FSMOUNT_CLOEXEC, attributes).at("make the new root")?;
        let from_itself = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
        move_mount(&root, "", CWD, "/", from_itself).at("make the new root")?;
        fchdir(&root).at("make the new root")?;
        Ok(Self(root))
    }

    /// Fills what a template would have prepared.
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

    /// Opens a folder of the new root, making what is missing on the way. Links are an error.
    pub(crate) fn folder(&self, path: &Path) -> Result<OwnedFd, Failure> {
        let step = || format!("make folder {}", path.display());
        let mut made = PathBuf::new();
        match self.find(path, OFlags::DIRECTORY) {
            Err(Errno::NOENT) => {}
            found => return found.at(step()),
        }
        for part in path.components().filter(|part| matches!(part, Component::Normal(_))) {
            made.push(part);
            match mkdirat(self, &made, Mode::from_raw_mode(0o755)) {
                // An existing folder in a read-only mount is sufficient.
                Ok(()) | Err(Errno::EXIST | Errno::ROFS) => {}
                Err(error) => return Err(error).at(step()),
            }
        }
        self.find(path, OFlags::DIRECTORY).at(step())
    }

    fn find(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
        openat2(self, below_root(path), flags, Mode::empty(), resolve)
    }

    /// Writes a small file that every user may read.
    pub(crate) fn file(&self, path: &Path, content: &[u8]) -> Result<(), Failure> {
        let step = || format!("make file {}", path.display());
        let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(self.folder(folder)?, name, flags, Mode::from_raw_mode(0o644)).at(step())?;
        std::io::Write::write_all(&mut std::fs::File::from(file), content).at(step())
    }

    /// Mounts an empty file system in memory.
    pub(crate) fn memory(&self, path: &Path, mode: Mode, bytes: u64) -> Result<(), Failure> {
        self.folder(path)?;
        // For both, 0 would mean unlimited.
        let (bytes, files) = (bytes.max(4096), (bytes / 4096).clamp(64, 1 << 18));
        let options = format!("mode={:o},size={bytes},nr_inodes={files}", mode.as_raw_mode());
        let options = CString::new(options).at("format mount options")?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let step = || format!("mount {}", path.display());
        mount("tmpfs", below_root(path), "tmpfs", flags, options.as_c_str()).at(step())
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
                bind_at(self, &Bind::read_only("/proc".into(), "/proc".into()), Nature::Files)?;
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
            Err(_) => bind_at(self, &Bind::read_only(path.to_owned(), path.to_owned()), Nature::Files),
        }
    }
}

/// Binds something of the host into the new root.
pub(crate) fn bind_at(root: &Root, bind: &Bind, nature: Nature) -> Result<(), Failure> {
    let source = match open_source(&bind.source) {
        Err(Errno::NOENT | Errno::NOTDIR) if bind.optional => return Ok(()),
        opened => opened.at(format!("open {}", bind.source.display()))?,
    };
    let step = || format!("bind {}", bind.at.display());
    let target = if FileType::from_raw_mode(fstat(&source).at(step())?.st_mode) == FileType::Directory {
        root.folder(&bind.at)?
    } else {
        match root.find(&bind.at, OFlags::empty()) {
            Err(Errno::NOENT) => {
                root.file(&bind.at, b"")?;
                root.find(&bind.at, OFlags::empty()).at(step())?
            }
            found => found.at(step())?,
        }
    };
    attach(&source, &target, bind.writable, nature).at(step())
}

/// Returns a path relative to the root; the root itself is `.`.
pub(crate) fn below_root(path: &Path) -> &Path {
    let path = path.strip_prefix("/").unwrap_or(path);
    if path.as_os_str().is_empty() { Path::new(".") } else { path }
}

/// Opens a source without following a link.
fn open_source(path: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Puts a copy of what is mounted at `source`, with everything mounted below, at `target`.
fn attach(source: &OwnedFd, target: &OwnedFd, writable: bool, nature: Nature) -> Result<(), Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let copy = open_tree(source, "", flags)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID;
    attributes |= match nature {
        Nature::Files => MountAttrFlags::MOUNT_ATTR_NODEV,
        Nature::Device => MountAttrFlags::MOUNT_ATTR_NOEXEC,
    };
    if !writable {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    raw::set_mount_attributes(&copy, u64::from(attributes.bits()), true)?;
    let empty_paths = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&copy, "", target, "", empty_paths)
}
