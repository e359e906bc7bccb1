//! Files of the workspace, for plugins that use no file system.
//!
//! Paths are relative and separated by `/`. For a stage, files outside of its view do not exist.

use crate::imports::files;

pub use crate::bindings::glovebox::plugin::files::{Error, Node};

/// Number of bytes that one call reads.
const CHUNK_BYTES: u32 = 256 * 1024;

/// Reads a whole file.
///
/// # Errors
/// A code such as `not-found`, `not-permitted` or `is-a-directory` in [`Error::code`].
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

/// Reads a whole text file of at most `bytes_max`. A longer file is not read to its end.
///
/// # Errors
/// As [`read`], and `too-large` for a longer file, or `invalid` for a file that is not UTF-8.
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

/// Writes a whole file, and creates missing directories inside the write scope.
///
/// # Errors
/// A code such as `not-permitted` or `quota` in [`Error::code`].
pub fn write(path: impl AsRef<str>, bytes: impl AsRef<[u8]>) -> Result<(), Error> {
    files::write(path.as_ref(), bytes.as_ref())
}

/// Lists a directory in the order of names. The empty path is the root of the workspace.
///
/// # Errors
/// A code such as `not-found` or `not-a-directory` in [`Error::code`].
pub fn list(path: impl AsRef<str>) -> Result<Vec<Node>, Error> {
    files::list(path.as_ref())
}

/// Returns name, kind and size of a file or directory.
///
/// # Errors
/// A code such as `not-found` in [`Error::code`].
pub fn stat(path: impl AsRef<str>) -> Result<Node, Error> {
    files::stat(path.as_ref())
}

/// Removes a file or an empty directory.
///
/// # Errors
/// A code such as `not-found`, `not-permitted` or `not-empty` in [`Error::code`].
pub fn remove(path: impl AsRef<str>) -> Result<(), Error> {
    files::remove(path.as_ref())
}
