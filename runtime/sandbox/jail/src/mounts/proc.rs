//! `/proc` of a jail: the processes that a command may examine, and a short list of other files.
//!
//! The first process is not among them. Everything that is not listed is covered by an empty file or folder, including new names of
//! new kernels, because root's files there stay root's inside. `subset=pid` is no alternative: it removes files that programs need,
//! and nothing can be added to it.
#![forbid(unsafe_code)]

use super::{Root, attach};
use crate::credentials;
use crate::device::Nature;
use crate::fault::At;
use glovebox_jail::policy::Network;
use glovebox_jail::wire::Failure;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Files about the machine that programs need (processors, memory, load, versions), and files of the jail itself.
const SHOWN: &[&str] = &[
    "cgroups",
    "cpuinfo",
    "filesystems",
    "loadavg",
    "meminfo",
    "mounts",
    "net",
    "self",
    "stat",
    "sys",
    "sysvipc",
    "thread-self",
    "uptime",
    "version",
];
/// Folders of settings in which what only root may read is covered; those of the network only where it is the machine's.
const SETTINGS: &[&str] = &["sys/kernel", "sys/vm", "sys/fs", "sys/debug", "sys/dev"];
const NETWORK_SETTINGS: &str = "sys/net";
const FOR_OTHERS: u32 = 0o004;
const EMPTY_FILE: &str = ".empty-file";
const EMPTY_FOLDER: &str = ".empty-folder";

/// Mounts a `/proc` that shows only processes which the caller may trace. `PERM` if the system hides parts of its own `/proc`.
pub(super) fn mount_own() -> Result<(), Errno> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "proc", "proc", flags, c"hidepid=ptraceable")
}

/// Covers everything that is not listed.
pub(super) fn cover(root: &Root, network: Network) -> Result<(), Failure> {
    let empty = Empty::new(root)?;
    let proc = open_proc(root)?;
    for name in names(&proc)? {
        let is_process = name.as_bytes().iter().all(u8::is_ascii_digit);
        if !is_process && !SHOWN.iter().any(|shown| name == *shown) {
            empty.put_over(&proc, &name)?;
        }
    }
    if credentials::is_root_outside() {
        let net = (network == Network::Full).then_some(NETWORK_SETTINGS);
        SETTINGS.iter().copied().chain(net).try_for_each(|folder| cover_private(&empty, &proc, Path::new(folder)))?;
    }
    empty.remove(root)
}

/// Covers the files below a folder of settings that others may not read.
fn cover_private(empty: &Empty, proc: &OwnedFd, folder: &Path) -> Result<(), Failure> {
    let opened = match openat(proc, folder, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened.at(format!("open /proc/{}", folder.display()))?,
    };
    for name in names(&opened)? {
        let status = statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW).at("examine a setting")?;
        match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => cover_private(empty, proc, &folder.join(&name))?,
            _ if status.st_mode & FOR_OTHERS == 0 => empty.put_over(&opened, &name)?,
            _ => {}
        }
    }
    Ok(())
}

/// An empty file and an empty folder that no process may open.
struct Empty {
    file: OwnedFd,
    folder: OwnedFd,
}

impl Empty {
    fn new(root: &Root) -> Result<Self, Failure> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(root, EMPTY_FILE, flags, Mode::empty()).at("make an empty file")?;
        mkdirat(root, EMPTY_FOLDER, Mode::empty()).at("make an empty folder")?;
        let open = |name| openat(root, name, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).at("open the empty cover");
        Ok(Self { file: open(EMPTY_FILE)?, folder: open(EMPTY_FOLDER)? })
    }

    fn put_over(&self, folder: &OwnedFd, name: &OsStr) -> Result<(), Failure> {
        let step = || format!("cover {} of /proc", name.display());
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let target = openat(folder, name, flags, Mode::empty()).at(step())?;
        let status = rustix::fs::fstat(&target).at(step())?;
        let source = match FileType::from_raw_mode(status.st_mode) {
            FileType::Directory => &self.folder,
            // The target of a link is in `/proc` and is covered or listed itself.
            FileType::Symlink => return Ok(()),
            _ => &self.file,
        };
        attach(source, &target, false, Nature::Files).at(step())
    }

    /// Removes their names; the covers stay.
    fn remove(self, root: &Root) -> Result<(), Failure> {
        unlinkat(root, EMPTY_FILE, AtFlags::empty()).at("remove the empty file")?;
        unlinkat(root, EMPTY_FOLDER, AtFlags::REMOVEDIR).at("remove the empty folder")
    }
}

fn open_proc(root: &Root) -> Result<OwnedFd, Failure> {
    openat(root, "proc", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).at("open /proc")
}

fn names(folder: &OwnedFd) -> Result<Vec<OsString>, Failure> {
    let mut names = Vec::new();
    for entry in Dir::read_from(folder).at("list /proc")? {
        let entry = entry.at("list /proc")?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}
