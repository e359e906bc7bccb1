//! Files of the user: opened only if they are regular files, and replaced as a whole or not at all.

use crate::exit::{Exit, Stop};
use rustix::fs::{Gid, OFlags, Uid, fchown};
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File, FileType, Metadata, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a file for reading. Does not wait for a pipe and does not use a device, because a project may choose the path. Checks the
/// opened file itself, not the path. The error for another kind names the kind.
pub fn open(file: &Path) -> io::Result<File> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(file).map_err(|error| {
        // A socket cannot even be opened.
        let is_socket = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
        if is_socket { NotFile(Kind::Socket).into() } else { error }
    })?;
    let kind = opened.metadata()?.file_type();
    if kind.is_file() { Ok(opened) } else { Err(NotFile(Kind::of(kind)).into()) }
}

/// Something else is at the path of a file.
#[derive(Debug, thiserror::Error)]
#[error("expected a file, found {0}")]
pub struct NotFile(pub Kind);

/// What is at a path instead of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device, or something unknown.
    Device,
}

impl Kind {
    fn of(found: FileType) -> Self {
        match found {
            found if found.is_dir() => Self::Folder,
            found if found.is_fifo() => Self::Pipe,
            found if found.is_socket() => Self::Socket,
            _ => Self::Device,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Folder => "a folder",
            Self::Pipe => "a pipe",
            Self::Socket => "a socket",
            Self::Device => "a device",
        })
    }
}

impl From<NotFile> for io::Error {
    fn from(found: NotFile) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, found)
    }
}

/// What is at the path instead of a file, if that is the reason of the error.
pub fn not_file(error: &io::Error) -> Option<Kind> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<NotFile>()).map(|found| found.0)
}

/// Replaces the content of a file. Keeps its mode and, if possible, its owner. Follows a link and replaces its target. Refuses a file that
/// is not writable, even if its folder is.
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
    let before = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(&file)
        .and_then(|old| old.metadata())
        .map_err(failed)?;
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let fresh = file.with_file_name(format!(".{name}.glovebox-{}", std::process::id()));
    let written = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh).and_then(|mut opened| {
        opened.write_all(content.as_ref())?;
        become_like(&opened, &before)?;
        opened.sync_all()
    });
    written.and_then(|()| fs::rename(&fresh, &file)).map_err(|error| {
        // The first error is the one to report.
        let _ = fs::remove_file(&fresh);
        failed(error)
    })
}

fn become_like(fresh: &File, before: &Metadata) -> io::Result<()> {
    if fresh.metadata()?.uid() != before.uid() || fresh.metadata()?.gid() != before.gid() {
        // Only root can give a file to another user; without that right the file belongs to the current user, as with every editor.
        let _ = fchown(fresh, Some(Uid::from_raw(before.uid())), Some(Gid::from_raw(before.gid())));
    }
    fresh.set_permissions(before.permissions())
}
