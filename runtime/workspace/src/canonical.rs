//! The canonical path of a file, by one lookup instead of one for each name in the path.

use rustix::fs::{CWD, Mode, OFlags, openat};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Suffix that the kernel appends to the path of a removed file.
const REMOVED: &[u8] = b" (deleted)";

/// Returns the absolute path of an existing file, without links, as [`Path::canonicalize`] does.
pub fn canonical(path: &Path) -> io::Result<PathBuf> {
    let held = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let named = std::fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd()));
    match named {
        Ok(named) if named.is_absolute() && !named.as_os_str().as_bytes().ends_with(REMOVED) => Ok(named),
        // The name of the file ends with this suffix, or `/proc` is not mounted.
        _ => path.canonicalize(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn it_is_what_the_standard_library_says() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::create_dir(at("folder")).unwrap();
        fs::create_dir(at("it (deleted)")).unwrap();
        fs::write(at("folder/file"), "").unwrap();
        std::os::unix::fs::symlink("folder/../folder", at("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
        for name in ["folder", "folder/file", "link", "link/file", "link/..", "it (deleted)", ".", ".//folder"] {
            assert_eq!(canonical(&at(name)).unwrap(), at(name).canonicalize().unwrap(), "{name}");
        }
        for name in ["missing", "dangling", "folder/file/x", "folder/file/.."] {
            assert_eq!(canonical(&at(name)).unwrap_err().kind(), at(name).canonicalize().unwrap_err().kind(), "{name}");
        }
    }
}
