//! Files of the workspace, for plugins that use no file system.
//!
//! Paths are relative and separated by `/`. What the stage may not see does not exist.

use crate::imports::files;

pub use crate::bindings::glovebox::plugin::files::{Error, Node};

/// Bytes that one call reads.
const CHUNK_BYTES: u32 = 256 * 1024;

/// Reads a whole file.
///
/// # Errors
/// `not-found`, `not-permitted`, `is-a-directory` and the like in [`Error::code`].
pub fn read(path: impl AsRef<str>) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    loop {
        let chunk = files::read(path.as_ref(), bytes.len() as u64, CHUNK_BYTES)?;
        if chunk.is_empty() {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&chunk);
    }
}

/// Reads a whole text file of at most this many bytes. Nothing more of a longer file is read.
///
/// # Errors
/// As [`read`]; `too-large` for a longer file, `invalid` for one that is not UTF-8.
pub fn read_text(path: impl AsRef<str>, bytes_max: usize) -> Result<String, Error> {
    let (path, mut bytes) = (path.as_ref(), Vec::new());
    loop {
        let chunk = files::read(path, bytes.len() as u64, CHUNK_BYTES)?;
        if chunk.is_empty() {
            break;
        }
        bytes.extend_from_slice(&chunk);
        if bytes.len() > bytes_max {
            let message = format!("`{path}` has over {bytes_max} bytes");
            return Err(Error { code: "too-large".to_owned(), message });
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| Error { code: "invalid".to_owned(), message: format!("`{path}` is not valid UTF-8") })
}

/// Writes a whole file, and makes missing directories inside the write scope.
///
/// # Errors
/// `not-permitted`, `quota` and the like in [`Error::code`].
pub fn write(path: impl AsRef<str>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    files::write(path.as_ref(), bytes.as_ref())
}

/// Lists a directory in the order of names. The empty path is the root.
///
/// # Errors
/// `not-found`, `not-a-directory` and the like in [`Error::code`].
pub fn list(path: impl AsRef<str>) -> Result<Vec<Node>, Error> {
    files::list(path.as_ref())
}

/// Describes a file or directory.
///
/// # Errors
/// `not-found` and the like in [`Error::code`].
pub fn stat(path: impl AsRef<str>) -> Result<Node, Error> {
    files::stat(path.as_ref())
}

/// Removes a file or an empty directory.
///
/// # Errors
/// `not-found`, `not-permitted`, `not-empty` and the like in [`Error::code`].
pub fn remove(path: impl AsRef<str>) -> Result<(), Error> {
    files::remove(path.as_ref())
}
