//! Replaces files of the user atomically.

use crate::exit::{Exit, Stop};
use crate::terminal::visible;
use rustix::fd::OwnedFd;
use rustix::fs::{
    AtFlags, CWD, FileType, Gid, Mode, OFlags, Stat, Uid, fchmod, fchown, fstat, mkdirat, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Component, Path, PathBuf};

/// Writes a file that other users may read, and replaces an existing file. Refuses anything at the path that is not a
/// regular file, including a symbolic link: a project may have created the link, and it may lead to any file of the
/// user. For the same reason a link is refused as the folder, and as any folder below the current one.
pub fn put(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Stop> {
    put_below(Path::new("."), file, content)
}

/// As [`put`], but refuses a link as any folder below `root` too, wherever the command was started.
pub fn put_below(root: &Path, file: &Path, content: impl AsRef<[u8]>) -> Result<(), Stop> {
    let Place { folder, name, before } = Place::find(root, file)?;
    let failed = |error: io::Error| Stop::io(format!("write `{}`", file.display()), &error);
    folder.replace(name, content.as_ref(), before.as_ref(), FOR_OTHERS).map_err(failed)
}

/// Adds to the end of a file, which is created if it does not exist. Refuses the same paths as [`put`].
pub fn append(file: &Path, content: &[u8]) -> Result<(), Stop> {
    let Place { folder, name, .. } = Place::find(Path::new("."), file)?;
    let flags =
        OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let opened = openat(&folder.0, name, flags, FOR_OTHERS).map_err(io::Error::from);
    let written = opened.and_then(|opened| File::from(opened).write_all(content));
    written.map_err(|error| Stop::io(format!("write `{}`", file.display()), &error))
}

/// Refuses a path at which [`put_below`] would refuse to write. Writes nothing.
pub fn require_place(root: &Path, file: &Path) -> Result<(), Stop> {
    Place::find(root, file).map(drop)
}

/// Creates a folder below `root` and the folders above it. Refuses a link as any folder below `root`.
pub fn create_folder_below(root: &Path, folder: &Path) -> Result<(), Stop> {
    let failed = |error: Errno| Stop::io(format!("create `{}`", folder.display()), &error.into());
    let path = folder.strip_prefix(root).map_err(|_| refused(folder, "not in the project"))?;
    let mut here = openat(CWD, if root.as_os_str().is_empty() { Path::new(".") } else { root }, FOLDER, Mode::empty())
        .map_err(failed)?;
    for part in path.components() {
        let Component::Normal(name) = part else { return Err(refused(folder, "not in the project")) };
        match mkdirat(&here, name, FOLDER_FOR_OTHERS) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        here = openat(&here, name, FOLDER | OFlags::NOFOLLOW, Mode::empty()).map_err(|error| match error {
            Errno::NOTDIR | Errno::LOOP => refused(folder, "behind a link or a file"),
            error => failed(error),
        })?;
    }
    Ok(())
}

/// Where a file is written, and what is there.
struct Place<'f> {
    folder: Folder,
    name: &'f OsStr,
    before: Option<Ownership>,
}

impl<'f> Place<'f> {
    fn find(root: &Path, file: &'f Path) -> Result<Self, Stop> {
        let failed = |error: io::Error| Stop::io(format!("write `{}`", file.display()), &error);
        let name = file.file_name().ok_or_else(|| refused(file, "not a file"))?;
        let folder = match Folder::without_links(root, file.parent().unwrap_or(Path::new(""))) {
            Ok(folder) => folder,
            Err(FolderError::Link(link)) => return Err(refused(&link, "a link")),
            Err(FolderError::System(error)) => return Err(failed(error.into())),
        };
        let before = match statat(&folder.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => match FileType::from_raw_mode(found.st_mode) {
                FileType::RegularFile => Some(Ownership::from_stat(&found)),
                FileType::Symlink => return Err(refused(file, "a link")),
                _ => return Err(refused(file, "not a file")),
            },
            Err(Errno::NOENT) => None,
            Err(error) => return Err(failed(error.into())),
        };
        Ok(Self { folder, name, before })
    }
}

/// Removes a file, if it exists. Refuses a link as any folder below `root`, and removes a link instead of its target.
pub fn remove_below(root: &Path, file: &Path) -> Result<(), Stop> {
    let failed = |error: io::Error| Stop::io(format!("remove `{}`", file.display()), &error);
    let name = file.file_name().ok_or_else(|| refused(file, "not a file"))?;
    let removed = match Folder::without_links(root, file.parent().unwrap_or(Path::new(""))) {
        Ok(folder) => unlinkat(&folder.0, name, AtFlags::empty()),
        Err(FolderError::Link(link)) => return Err(refused(&link, "a link")),
        Err(FolderError::System(error)) => Err(error),
    };
    match removed {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(error) => Err(failed(error.into())),
    }
}

fn refused(path: &Path, what: &str) -> Stop {
    let path = path.to_string_lossy();
    let stop = Stop::new(Exit::Usage, format!("`{}` is {what}: nothing was written", visible::line(&path)));
    stop.with_help("name a new file in a folder whose path has no link, or remove what is at this path")
}

/// Replaces the content of a file. Keeps its mode and, if possible, its owner. Follows a symbolic link and replaces the
/// target. Refuses a file that is not writable, even if its folder is.
pub fn replace(file: &Path, content: impl AsRef<[u8]>) -> Result<(), Stop> {
    let failed = |error: io::Error| Stop::io(format!("write `{}`", file.display()), &error);
    let file = fs::canonicalize(file).map_err(failed)?;
    if !fs::metadata(&file).map_err(failed)?.is_file() {
        return Err(Stop::new(
            Exit::Usage,
            format!("`{}` is not a regular file: it cannot be replaced", file.display()),
        ));
    }
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let old = OpenOptions::new().write(true).custom_flags(flags).open(&file).map_err(failed)?;
    let before = Ownership::from_stat(&fstat(&old).map_err(|error| failed(error.into()))?);
    let (folder, name) = (file.parent().unwrap_or(Path::new("/")), file.file_name().unwrap_or_default());
    let folder = Folder(openat(CWD, folder, FOLDER, Mode::empty()).map_err(|error| failed(error.into()))?);
    folder.replace(name, content.as_ref(), Some(&before), OWN).map_err(failed)
}

/// Mode of a new file until it gets the mode of the old one.
const OWN: Mode = Mode::from_raw_mode(0o600);
/// Mode of a new file, before the user's umask is applied.
const FOR_OTHERS: Mode = Mode::from_raw_mode(0o666);
/// Mode of a new folder, before the user's umask is applied.
const FOLDER_FOR_OTHERS: Mode = Mode::from_raw_mode(0o777);
/// The permission bits of a mode.
const PERMISSIONS: u32 = 0o7777;
/// Flags to open a folder that is only used to open or rename entries in it.
const FOLDER: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// Owner, group and permissions of a file.
struct Ownership {
    user: u32,
    group: u32,
    mode: Mode,
}

impl Ownership {
    fn from_stat(stat: &Stat) -> Self {
        Self { user: stat.st_uid, group: stat.st_gid, mode: Mode::from_raw_mode(stat.st_mode & PERMISSIONS) }
    }
}

/// A folder in which a file is replaced.
struct Folder(OwnedFd);

/// Why a folder could not be opened.
enum FolderError {
    /// This folder of the path is a symbolic link.
    Link(PathBuf),
    System(Errno),
}

impl Folder {
    /// Opens a folder and refuses symbolic links that a project may have created: every folder of the path below the
    /// current folder or below `root`, and the last folder wherever it is. Links above them belong to the user and are
    /// followed.
    fn without_links(root: &Path, path: &Path) -> Result<Self, FolderError> {
        let here = openat(CWD, ".", FOLDER, Mode::empty()).map_err(FolderError::System)?;
        let root = openat(CWD, root, FOLDER, Mode::empty()).map_err(FolderError::System)?;
        let mut is_below = path.is_relative();
        let mut folder =
            openat(CWD, if is_below { "." } else { "/" }, FOLDER, Mode::empty()).map_err(FolderError::System)?;
        let mut passed = PathBuf::new();
        let mut names = path.components().peekable();
        while let Some(name) = names.next() {
            passed.push(name);
            if matches!(name, Component::RootDir | Component::CurDir) {
                continue;
            }
            let is_guarded = is_below || names.peek().is_none();
            let flags = if is_guarded { FOLDER | OFlags::NOFOLLOW } else { FOLDER };
            folder = openat(&folder, name.as_os_str(), flags, Mode::empty()).map_err(|error| {
                let is_link = statat(&folder, name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW)
                    .is_ok_and(|found| FileType::from_raw_mode(found.st_mode) == FileType::Symlink);
                if is_guarded && is_link { FolderError::Link(passed.clone()) } else { FolderError::System(error) }
            })?;
            let is_guard = |guard: &OwnedFd| is_same(&folder, guard).map_err(FolderError::System);
            is_below = is_below || is_guard(&here)? || is_guard(&root)?;
        }
        Ok(Self(folder))
    }

    /// Writes a new file in the same folder, with the ownership of the old file if there is one, and renames it to
    /// `name`.
    fn replace(&self, name: &OsStr, content: &[u8], before: Option<&Ownership>, mode: Mode) -> io::Result<()> {
        let fresh = format!(".{}.glovebox-{}", name.to_string_lossy(), std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let written = openat(&self.0, &fresh, flags, mode).map_err(io::Error::from).and_then(|opened| {
            let mut opened = File::from(opened);
            opened.write_all(content)?;
            before.map_or(Ok(()), |before| become_like(&opened, before))?;
            opened.sync_all()
        });
        let placed = written.and_then(|()| Ok(renameat(&self.0, &fresh, &self.0, name)?));
        placed.inspect_err(|_| {
            // An error of the removal is ignored, because the earlier error is reported.
            let _ = unlinkat(&self.0, &fresh, AtFlags::empty());
        })
    }
}

fn is_same(one: &OwnedFd, other: &OwnedFd) -> Result<bool, Errno> {
    let (one, other) = (fstat(one)?, fstat(other)?);
    Ok((one.st_dev, one.st_ino) == (other.st_dev, other.st_ino))
}

fn become_like(fresh: &File, before: &Ownership) -> io::Result<()> {
    let now = fresh.metadata()?;
    if (now.uid(), now.gid()) != (before.user, before.group) {
        // Only root can give a file to another user. Without that right the file belongs to the current user, as with
        // any editor.
        let _ = fchown(fresh, Some(Uid::from_raw(before.user)), Some(Gid::from_raw(before.group)));
    }
    Ok(fchmod(fresh, before.mode)?)
}
