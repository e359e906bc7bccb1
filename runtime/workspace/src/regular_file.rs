//! The reader for files from a project, a run folder or a home folder. It reads only regular files, and at most a
//! bounded number of bytes.
//!
//! A project may contain a FIFO, a device, or a symbolic link to one, at any path that the host reads. `clippy.toml`
//! forbids the functions of `std` that would block on it or read it without end.

use cap_std::fs::{Dir, OpenOptionsExt as _};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::fmt;
use std::fs::{self, File, FileType, OpenOptions};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Rule for links in a path.
#[derive(Debug, Clone, Copy)]
pub enum Links<'f> {
    /// Links may lead anywhere, because the user named the path or the file belongs to the user.
    Follow,
    /// Links may only lead to a file in this folder, because the path comes from a project or a run folder.
    Within(&'f Path),
}

/// Opens a file for reading. Because a project may choose the path, it does not block on a FIFO and does not open a
/// device. The opened file itself is checked, not the path.
///
/// # Errors
/// [`NotFile`] for another kind of file, [`EscapingLink`] for a link that may not be followed, or the system's error.
pub fn open(file: &Path, links: Links<'_>) -> io::Result<File> {
    let opened = OpenOptions::new().read(true).custom_flags(flags()).open(file).map_err(socket)?;
    let kind = opened.metadata()?.file_type();
    if !kind.is_file() {
        return Err(NotFile(NonFileKind::from_type(kind)).into());
    }
    if let Links::Within(folder) = links {
        // The path comes from the kernel for the opened file, so a concurrent change of a link has no effect.
        let real = fs::read_link(format!("/proc/self/fd/{}", opened.as_raw_fd()))?;
        if !real.starts_with(fs::canonicalize(folder)?) {
            return Err(EscapingLink(folder.to_owned()).into());
        }
    }
    Ok(opened)
}

/// Opens a file below a directory for reading. Links cannot lead out of the directory.
///
/// # Errors
/// [`NotFile`] for another kind of file, or the system's error.
pub fn open_in(dir: &Dir, file: impl AsRef<Path>) -> io::Result<cap_std::fs::File> {
    let mut options = cap_std::fs::OpenOptions::new();
    let opened = dir.open_with(file, options.read(true).custom_flags(flags())).map_err(socket)?;
    match opened.metadata()?.is_file() {
        true => Ok(opened),
        false => Err(NotFile(NonFileKind::from_type(opened.try_clone()?.into_std().metadata()?.file_type())).into()),
    }
}

/// Reads a whole file.
///
/// # Errors
/// Those of [`open`], and [`FileTooLong`].
pub fn read(file: &Path, links: Links<'_>, bytes_max: u64) -> io::Result<Vec<u8>> {
    let opened = open(file, links)?;
    let mut bytes = Vec::new();
    opened.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max { Err(FileTooLong(bytes_max).into()) } else { Ok(bytes) }
}

/// Reads a whole text file.
///
/// # Errors
/// Those of [`read`], and [`io::ErrorKind::InvalidData`] for a file that is not UTF-8.
pub fn read_text(file: &Path, links: Links<'_>, bytes_max: u64) -> io::Result<String> {
    let bytes = read(file, links, bytes_max)?;
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// Reads a text file that the kernel generates, in `/proc` or `/sys`. No project can create a file there.
///
/// # Errors
/// The system's error.
#[expect(clippy::disallowed_methods, reason = "the kernel's files are short, and have no length to check")]
pub fn kernel_text(file: impl AsRef<Path>) -> io::Result<String> {
    fs::read_to_string(file)
}

/// Reads a file of `/proc` or `/sys` that need not be text.
///
/// # Errors
/// The system's error.
#[expect(clippy::disallowed_methods, reason = "the kernel's files are short, and have no length to check")]
pub fn kernel_bytes(file: impl AsRef<Path>) -> io::Result<Vec<u8>> {
    fs::read(file)
}

/// Flushes a folder, which makes the names in it durable.
///
/// # Errors
/// The system's error.
pub fn flush_folder(folder: &Path) -> io::Result<()> {
    open_folder(folder)?.sync_all()
}

/// As [`flush_folder`], but for an open folder.
///
/// # Errors
/// The system's error.
#[expect(
    clippy::disallowed_methods,
    reason = "opens the folder itself to flush it, which neither waits nor reads data"
)]
pub fn flush_dir(dir: &Dir) -> io::Result<()> {
    dir.open(".")?.sync_all()
}

/// Opens a file or a folder that was just listed, to flush it. A link at its path is `ELOOP`.
pub(crate) fn open_unlinked(path: &Path) -> io::Result<File> {
    let flags = flags() | OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(path)
}

/// Opens a folder, to flush it or to set its flags.
pub fn open_folder(folder: &Path) -> io::Result<File> {
    let flags = (OFlags::DIRECTORY | OFlags::NOCTTY).bits().cast_signed();
    OpenOptions::new().read(true).custom_flags(flags).open(folder)
}

fn flags() -> i32 {
    (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed()
}

/// Converts the error of opening a socket, which always fails, to [`NotFile`].
fn socket(error: io::Error) -> io::Error {
    let is_socket = error.raw_os_error() == Some(Errno::NXIO.raw_os_error());
    if is_socket { NotFile(NonFileKind::Socket).into() } else { error }
}

/// The entry at a path is not a file.
#[derive(Debug, thiserror::Error)]
#[error("expected a file, found {0}")]
pub struct NotFile(pub NonFileKind);

/// A link leads out of the folder that may be read.
#[derive(Debug, thiserror::Error)]
#[error("a link leads out of `{}`", .0.display())]
pub struct EscapingLink(PathBuf);

/// A file is longer than its limit, in bytes.
#[derive(Debug, thiserror::Error)]
#[error("it has more than {0} bytes")]
pub struct FileTooLong(pub u64);

/// The kind of an entry that is not a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NonFileKind {
    /// A folder.
    Folder,
    /// A named pipe.
    Pipe,
    /// A socket.
    Socket,
    /// A device, or an entry of an unknown kind.
    Device,
}

impl NonFileKind {
    fn from_type(found: FileType) -> Self {
        match found {
            found if found.is_dir() => Self::Folder,
            found if found.is_fifo() => Self::Pipe,
            found if found.is_socket() => Self::Socket,
            _ => Self::Device,
        }
    }
}

impl fmt::Display for NonFileKind {
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

impl From<EscapingLink> for io::Error {
    fn from(found: EscapingLink) -> Self {
        io::Error::new(io::ErrorKind::InvalidInput, found)
    }
}

impl From<FileTooLong> for io::Error {
    fn from(found: FileTooLong) -> Self {
        io::Error::new(io::ErrorKind::FileTooLarge, found)
    }
}

/// Returns the kind of the entry at the path if the error is a [`NotFile`].
pub fn not_file(error: &io::Error) -> Option<NonFileKind> {
    error.get_ref().and_then(|inner| inner.downcast_ref::<NotFile>()).map(|found| found.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn pipes_devices_sockets_and_folders_are_named_and_never_waited_for() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink("pipe", at("linked")).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        let dir = Dir::open_ambient_dir(place.path(), ambient_authority()).unwrap();
        for (name, kind) in [
            ("pipe", NonFileKind::Pipe),
            ("zero", NonFileKind::Device),
            ("linked", NonFileKind::Pipe),
            ("socket", NonFileKind::Socket),
            (".", NonFileKind::Folder),
        ] {
            for links in [Links::Follow, Links::Within(place.path())] {
                let error = read(&at(name), links, 10).unwrap_err();
                assert_eq!(not_file(&error), Some(kind), "{name}: {error}");
            }
            let error = open_in(&dir, name).unwrap_err();
            assert!(name == "zero" || not_file(&error) == Some(kind), "{name}: {error}");
        }
    }

    #[test]
    fn a_link_leads_as_far_as_its_reader_allows() {
        let place = tempfile::tempdir().unwrap();
        let (project, at) = (place.path().join("project"), |name: &str| place.path().join(name));
        fs::create_dir_all(project.join("below")).unwrap();
        fs::write(at("secret"), "x").unwrap();
        fs::write(project.join("below/own"), "y").unwrap();
        symlink("below/own", project.join("inside")).unwrap();
        symlink("../secret", project.join("outside")).unwrap();
        symlink("..", project.join("above")).unwrap();
        let text = |name: &str, links| read_text(&project.join(name), links, 10).map_err(|error| error.to_string());
        for name in ["inside", "above/project/below/own"] {
            assert_eq!(text(name, Links::Within(&project)).unwrap(), "y");
        }
        for name in ["outside", "above/secret"] {
            let error = text(name, Links::Within(&project)).unwrap_err();
            assert!(error.starts_with("a link leads out of"), "{name}: {error}");
            assert_eq!(text(name, Links::Follow).unwrap(), "x");
        }
    }

    #[test]
    fn a_long_file_is_refused_and_not_cut() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("a");
        fs::write(&file, "12345").unwrap();
        assert_eq!(read_text(&file, Links::Follow, 5).unwrap(), "12345");
        assert_eq!(read(&file, Links::Follow, 4).unwrap_err().to_string(), "it has more than 4 bytes");
    }
}
