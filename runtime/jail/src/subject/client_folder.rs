//! The folder at [`glovebox_jail_helper::subject::FOLDER`] in a verifier's jail: the command `subject` and its socket.

use crate::jail::program_bytes;
use glovebox_jail_helper::subject::{PROGRAM, SOCKET};
use glovebox_workspace::regular_file;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, listen, socket_with};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Maximum number of callers in the listener's queue.
const WAITING_MAX: i32 = 128;

/// Creates the folder `at` with the command and the socket, and returns the listening socket.
pub(super) fn make(at: &Path) -> io::Result<OwnedFd> {
    DirBuilder::new().mode(0o700).create(at)?;
    let mut program = OpenOptions::new().write(true).create_new(true).mode(0o500).open(at.join(PROGRAM))?;
    program.write_all(program_bytes())?;
    drop(program);
    // The path in a socket address has at most 107 bytes, which the path of a run's folder may exceed. The path through
    // its descriptor is short.
    let folder = regular_file::open_folder(at)?;
    let near = PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()));
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    bind(&socket, &SocketAddrUnix::new(near)?)?;
    fs::set_permissions(at.join(SOCKET), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    listen(&socket, WAITING_MAX)?;
    Ok(socket)
}
