//! System calls by number, and the names of their errors.
//!
//! This is the only unsafe code of the hostile program. It makes any call with any arguments on purpose, because the
//! sandbox must withstand all of them. A wrong call can only damage this short-lived process.

use std::fmt;
use std::io;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The number of an error. It is displayed as the error's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    pub(crate) const PERM: Self = Self(libc::EPERM);
    pub(crate) const NOSYS: Self = Self(libc::ENOSYS);

    /// Returns true if the call was refused or does not exist, so that it had no effect.
    pub(crate) fn is_refusal(self) -> bool {
        matches!(self.0, libc::EPERM | libc::EACCES | libc::ENOSYS)
    }
}

impl From<io::Error> for Errno {
    fn from(error: io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

#[rustfmt::skip]
const NAMES: &[(i32, &str)] = &[
    (libc::EPERM, "EPERM"), (libc::ENOENT, "ENOENT"), (libc::ESRCH, "ESRCH"), (libc::EINTR, "EINTR"), (libc::EIO, "EIO"),
    (libc::ENXIO, "ENXIO"), (libc::E2BIG, "E2BIG"), (libc::EBADF, "EBADF"), (libc::ECHILD, "ECHILD"), (libc::EAGAIN, "EAGAIN"),
    (libc::ENOMEM, "ENOMEM"), (libc::EACCES, "EACCES"), (libc::EFAULT, "EFAULT"), (libc::ENOTBLK, "ENOTBLK"),
    (libc::EBUSY, "EBUSY"), (libc::EEXIST, "EEXIST"), (libc::EXDEV, "EXDEV"), (libc::ENODEV, "ENODEV"),
    (libc::ENOTDIR, "ENOTDIR"), (libc::EISDIR, "EISDIR"), (libc::EINVAL, "EINVAL"), (libc::ENFILE, "ENFILE"),
    (libc::EMFILE, "EMFILE"), (libc::ENOTTY, "ENOTTY"), (libc::ETXTBSY, "ETXTBSY"), (libc::EFBIG, "EFBIG"),
    (libc::ENOSPC, "ENOSPC"), (libc::ESPIPE, "ESPIPE"), (libc::EROFS, "EROFS"), (libc::EMLINK, "EMLINK"),
    (libc::EPIPE, "EPIPE"), (libc::ERANGE, "ERANGE"), (libc::ENAMETOOLONG, "ENAMETOOLONG"), (libc::ENOSYS, "ENOSYS"),
    (libc::ENOTEMPTY, "ENOTEMPTY"), (libc::ELOOP, "ELOOP"), (libc::ENODATA, "ENODATA"), (libc::EOVERFLOW, "EOVERFLOW"),
    (libc::EILSEQ, "EILSEQ"), (libc::ENOTSOCK, "ENOTSOCK"), (libc::EPROTONOSUPPORT, "EPROTONOSUPPORT"),
    (libc::ESOCKTNOSUPPORT, "ESOCKTNOSUPPORT"), (libc::EOPNOTSUPP, "EOPNOTSUPP"), (libc::EAFNOSUPPORT, "EAFNOSUPPORT"),
    (libc::EADDRINUSE, "EADDRINUSE"), (libc::EADDRNOTAVAIL, "EADDRNOTAVAIL"), (libc::ENETUNREACH, "ENETUNREACH"),
    (libc::ECONNREFUSED, "ECONNREFUSED"), (libc::EHOSTUNREACH, "EHOSTUNREACH"), (libc::ETIMEDOUT, "ETIMEDOUT"),
    (libc::EDQUOT, "EDQUOT"), (libc::ENOKEY, "ENOKEY"),
];

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "errno {}", self.0),
        }
    }
}

/// Makes a system call. Missing arguments are 0.
pub(crate) fn raw(number: libc::c_long, arguments: &[usize]) -> Result<usize, Errno> {
    let at = |index: usize| arguments.get(index).copied().unwrap_or(0);
    // SAFETY: the kernel checks every address. Callers pass addresses of buffers that outlive the call, or numbers that are not
    // addresses. A call that wrote elsewhere could only damage this process, which exists for one attack.
    let answer = unsafe { libc::syscall(number, at(0), at(1), at(2), at(3), at(4), at(5)) };
    usize::try_from(answer).map_err(|_| Errno::from(io::Error::last_os_error()))
}

/// A text for the kernel: the bytes of the text and a NUL.
pub(crate) struct Text(Vec<u8>);

impl Text {
    pub(crate) fn new(text: &str) -> Self {
        Self(text.bytes().chain([0]).collect())
    }

    pub(crate) fn of_path(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().iter().copied().chain([0]).collect())
    }

    /// Returns the address of the text, as an argument.
    pub(crate) fn at(&self) -> usize {
        self.0.as_ptr() as usize
    }
}

impl Deref for Text {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

/// Copies bytes from an address in the memory of this process, through a pipe.
pub(crate) fn peek(address: usize, bytes: usize) -> Result<Vec<u8>, Errno> {
    let (reader, writer) = pipe()?;
    let length = raw(libc::SYS_write, &[writer, address, bytes])?;
    let found = read(reader, length);
    close(reader);
    close(writer);
    found
}

/// Copies bytes to an address in the memory of this process, through a pipe.
pub(crate) fn poke(address: usize, bytes: &[u8]) -> Result<(), Errno> {
    let (reader, writer) = pipe()?;
    raw(libc::SYS_write, &[writer, bytes.as_ptr() as usize, bytes.len()])?;
    let done = raw(libc::SYS_read, &[reader, address, bytes.len()]);
    close(reader);
    close(writer);
    done.map(|_| ())
}

/// Reads at most `bytes_max` bytes from a descriptor.
pub(crate) fn read(descriptor: usize, bytes_max: usize) -> Result<Vec<u8>, Errno> {
    let mut buffer = vec![0_u8; bytes_max];
    let got = raw(libc::SYS_read, &[descriptor, buffer.as_mut_ptr() as usize, bytes_max])?;
    buffer.truncate(got);
    Ok(buffer)
}

/// Creates a pipe. Returns its reading and its writing end.
pub(crate) fn pipe() -> Result<(usize, usize), Errno> {
    let mut ends = [0_i32; 2];
    raw(libc::SYS_pipe2, &[ends.as_mut_ptr() as usize, 0])?;
    Ok((ends[0] as usize, ends[1] as usize))
}

/// Opens a path with these flags.
pub(crate) fn open(path: &Path, flags: i32, mode: u32) -> Result<usize, Errno> {
    raw(libc::SYS_openat, &[AT_CWD, Text::of_path(path).at(), flags as usize, mode as usize])
}

pub(crate) fn close(descriptor: usize) {
    let _gone = raw(libc::SYS_close, &[descriptor]);
}

/// `AT_FDCWD` as an argument.
pub(crate) const AT_CWD: usize = libc::AT_FDCWD as usize;
