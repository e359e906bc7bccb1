//! `/proc` of a jail: the processes that a command may examine, and a short list of other files.
//!
//! The first process is not visible there. Everything that is not listed is covered by an empty file or folder,
//! including names that new kernels add: if root runs Glovebox, commands own the files of root there. `subset=pid` is
//! not an alternative: it removes files that programs need, and nothing can be added to it.
#![forbid(unsafe_code)]

use crate::fault::At;
use crate::root::{BindKind, Root, attach, below_root};
use glovebox_jail_helper::policy::Network;
use glovebox_jail_helper::wire::Failure;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, mkdirat, openat, statat, unlinkat};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_bind, unmount};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Files about the machine that programs need (processors, memory, load, versions), and files about the jail itself.
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
/// Folders of settings in which files that only root may read are covered. The network settings are covered only if the
/// jail uses the host's network.
const SETTINGS: &[&str] = &["sys/kernel", "sys/vm", "sys/fs", "sys/debug", "sys/dev"];
const NETWORK_SETTINGS: &str = "sys/net";
const FOR_OTHERS: u32 = 0o004;
/// Temporary folder for the covers while a root without a template is built.
const COVERS: &str = "/.covers";
const COVERS_BELOW_ROOT: &str = ".covers";
const EMPTY_FILE: &str = ".empty-file";
const EMPTY_FOLDER: &str = ".empty-folder";

/// Mounts a `/proc` that shows only processes that the caller may trace. Fails with `PERM` if the system hides parts of
/// its own `/proc`.
pub(super) fn mount_own() -> Result<(), Errno> {
    let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount("proc", "proc", "proc", flags, c"hidepid=ptraceable")
}

/// Covers everything that is not listed. If the user outside is root, also covers settings that only root may read.
pub(super) fn cover(root: &Root, is_root_outside: bool, network: Network) -> Result<(), Failure> {
    let cover = Cover::make(root, Path::new(COVERS))?;
    cover_unlisted(root, &cover)?;
    if is_root_outside {
        cover_settings(&cover, &private_settings(Path::new("proc"), network)?)?;
    }
    cover.remove(root)
}

/// Covers every name that is not listed in the fresh `/proc` of the current folder.
pub(super) fn cover_unlisted(root: &Root, cover: &Cover) -> Result<(), Failure> {
    let proc = openat(root, "proc", OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).at("open /proc")?;
    for (name, kind) in entries(&proc)? {
        let is_process = name.as_bytes().iter().all(u8::is_ascii_digit);
        if !is_process && !SHOWN.iter().any(|shown| name == *shown) {
            cover.put_over(&Path::new("proc").join(&name), kind).at(format!("cover {} of /proc", name.display()))?;
        }
    }
    Ok(())
}

/// Covers settings in the fresh `/proc` of the current folder.
pub(super) fn cover_settings(cover: &Cover, settings: &[PathBuf]) -> Result<(), Failure> {
    for path in settings {
        match cover.put_over(&Path::new("proc").join(path), FileType::RegularFile) {
            // Some settings exist only outside of all namespaces.
            Err(Errno::NOENT) => {}
            answer => answer.at(format!("cover {} of /proc", path.display()))?,
        }
    }
    Ok(())
}

/// Returns the settings that other users may not read, as paths below `proc`.
pub(super) fn private_settings(proc: &Path, network: Network) -> Result<Vec<PathBuf>, Failure> {
    let mut found = Vec::new();
    let of_network = (network == Network::Full).then_some(NETWORK_SETTINGS);
    for folder in SETTINGS.iter().copied().chain(of_network) {
        add_private(proc, Path::new(folder), &mut found)?;
    }
    Ok(found)
}

fn add_private(proc: &Path, folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = match openat(CWD, proc.join(folder), flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened.at(format!("open /proc/{}", folder.display()))?,
    };
    for (name, kind) in entries(&opened)? {
        if kind == FileType::Directory {
            add_private(proc, &folder.join(&name), found)?;
            continue;
        }
        let status = statat(&opened, &name, AtFlags::SYMLINK_NOFOLLOW).at("examine a setting")?;
        if status.st_mode & FOR_OTHERS == 0 {
            found.push(folder.join(&name));
        }
    }
    Ok(())
}

/// An empty file and an empty folder that no process may open, in a mount that cannot be written.
#[derive(Debug)]
pub(super) struct Cover {
    file: PathBuf,
    folder: PathBuf,
}

impl Cover {
    /// Returns the file and folder with these names below `folder`, without creating them.
    pub(super) fn in_folder(folder: &Path) -> Self {
        Self { file: folder.join(EMPTY_FILE), folder: folder.join(EMPTY_FOLDER) }
    }

    /// Creates the file and the folder below `folder` in the root, which is the current folder. Makes `folder` a
    /// read-only mount, unless it is the root itself.
    pub(super) fn make(root: &Root, folder: &Path) -> Result<Self, Failure> {
        let opened = root.folder(folder)?;
        let cover = Self::in_folder(below_root(folder));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        openat(root, &cover.file, flags, Mode::empty()).at("make an empty file")?;
        mkdirat(root, &cover.folder, Mode::empty()).at("make an empty folder")?;
        if folder != Path::new("/") {
            attach(&opened, &opened, false, BindKind::Files).at("mount the covers")?;
        }
        Ok(cover)
    }

    fn put_over(&self, path: &Path, kind: FileType) -> Result<(), Errno> {
        match kind {
            FileType::Directory => mount_bind(&self.folder, path),
            // The target of the link is in `/proc` and is covered or listed itself.
            FileType::Symlink => Ok(()),
            _ => mount_bind(&self.file, path),
        }
    }

    /// Removes the mount and the names of the covers. The covered paths stay covered.
    fn remove(self, root: &Root) -> Result<(), Failure> {
        unmount(COVERS_BELOW_ROOT, UnmountFlags::DETACH).at("remove the covers")?;
        unlinkat(root, &self.file, AtFlags::empty()).at("remove the empty file")?;
        unlinkat(root, &self.folder, AtFlags::REMOVEDIR).at("remove the empty folder")?;
        unlinkat(root, COVERS_BELOW_ROOT, AtFlags::REMOVEDIR).at("remove the folder of covers")
    }
}

/// Returns the names in a folder with their kinds.
fn entries(folder: &OwnedFd) -> Result<Vec<(OsString, FileType)>, Failure> {
    let mut entries = Vec::new();
    for entry in Dir::read_from(folder).at("list /proc")? {
        let entry = entry.at("list /proc")?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let kind = match entry.file_type() {
            FileType::Unknown => {
                let status = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW).at("examine a file of /proc")?;
                FileType::from_raw_mode(status.st_mode)
            }
            kind => kind,
        };
        entries.push((name.to_owned(), kind));
    }
    Ok(entries)
}
