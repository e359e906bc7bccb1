//! The new root of a jail while it is filled: folders, small files, file systems in memory, and binds of the host.
//!
//! Everything is accessed through descriptors. A symbolic link in a path of the new root, or in the path of a source,
//! is an error.
#![forbid(unsafe_code)]

use crate::fault::At;
use crate::raw;
use glovebox_jail_helper::policy::Bind;
use glovebox_jail_helper::wire::Failure;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, fstat, mkdirat, openat, openat2};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MoveMountFlags, OpenTreeFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, mount, move_mount, open_tree,
};
use rustix::process::fchdir;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Size of the root file system, bytes: names, links and the small files of `/etc` and `/sys`.
const ROOT_BYTES: u64 = 32 << 20;

/// The new root while it is filled. It is also the current folder.
#[derive(Debug)]
pub(crate) struct Root(OwnedFd);

/// The kind of a bind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BindKind {
    /// Files and folders. Devices in them do not work.
    Files,
    /// A device. It cannot be executed.
    Device,
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Root {
    /// Creates an empty file system in memory over the current root, and enters it.
    pub(crate) fn new() -> Result<Self, Failure> {
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

    /// Opens a folder of the new root, and creates missing folders. A symbolic link in the path is an error.
    pub(crate) fn folder(&self, path: &Path) -> Result<OwnedFd, Failure> {
        let step = || format!("make folder {}", path.display());
        match self.find(path, OFlags::DIRECTORY) {
            Err(Errno::NOENT) => {}
            found => return found.at(step()),
        }
        if let Some(above) = path.parent() {
            self.folder(above)?;
        }
        match mkdirat(self, below_root(path), Mode::from_raw_mode(0o755)) {
            Ok(()) | Err(Errno::EXIST) => self.find(path, OFlags::DIRECTORY).at(step()),
            Err(error) => Err(error).at(step()),
        }
    }

    fn find(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
        openat2(self, below_root(path), flags, Mode::empty(), resolve)
    }

    /// Writes a small file that every user may read.
    pub(crate) fn file(&self, path: &Path, content: &[u8]) -> Result<(), Failure> {
        let (folder, name) = (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default());
        write_file(&self.folder(folder)?, name, content).at(format!("make file {}", path.display()))
    }

    /// Mounts an empty file system in memory.
    pub(crate) fn memory(&self, path: &Path, mode: Mode, bytes: u64) -> Result<(), Failure> {
        self.folder(path)?;
        // For both options, 0 would mean unlimited.
        let (bytes, files) = (bytes.max(4096), (bytes / 4096).clamp(64, 1 << 18));
        let options = format!("mode={:o},size={bytes},nr_inodes={files}", mode.as_raw_mode());
        let options = CString::new(options).at("format mount options")?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        let step = || format!("mount {}", path.display());
        mount("tmpfs", below_root(path), "tmpfs", flags, options.as_c_str()).at(step())
    }
}

/// Writes a small file that every user may read into a folder of the new root.
pub(crate) fn write_file(folder: &OwnedFd, name: &OsStr, content: &[u8]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, name, flags, Mode::from_raw_mode(0o644))?;
    File::from(file).write_all(content)
}

/// Binds a path of the host into the new root.
pub(crate) fn bind_at(root: &Root, bind: &Bind, nature: BindKind) -> Result<(), Failure> {
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

/// Opens a source without following symbolic links.
pub(crate) fn open_source(path: &Path) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

/// Mounts a copy of the mount at `source`, with all mounts below it, at `target`.
pub(crate) fn attach(source: &OwnedFd, target: &OwnedFd, writable: bool, nature: BindKind) -> Result<(), Errno> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_EMPTY_PATH
        | OpenTreeFlags::AT_RECURSIVE;
    let copy = open_tree(source, "", flags)?;
    let mut attributes = MountAttrFlags::MOUNT_ATTR_NOSUID;
    attributes |= match nature {
        BindKind::Files => MountAttrFlags::MOUNT_ATTR_NODEV,
        BindKind::Device => MountAttrFlags::MOUNT_ATTR_NOEXEC,
    };
    if !writable {
        attributes |= MountAttrFlags::MOUNT_ATTR_RDONLY;
    }
    raw::set_mount_attributes(&copy, u64::from(attributes.bits()), true)?;
    let empty_paths = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    move_mount(&copy, "", target, "", empty_paths)
}
