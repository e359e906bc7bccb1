//! The paths of a waiting call, as its caller means them.
#![forbid(unsafe_code)]

use super::movable::FolderEntry;
use crate::raw::{self, WaitingCall};
use rustix::fd::OwnedFd;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Maximum length of a path, with its final zero.
const PATH_BYTES_MAX: u64 = 4096;
/// Memory is read up to the end of a page, because the next page may not exist.
const PAGE_BYTES: u64 = 4096;

/// A path in a call, and the folder to which it is relative.
#[derive(Debug)]
struct CallerPath {
    /// The folder, opened through the caller.
    base: OwnedFd,
    /// The path without final slashes.
    path: PathBuf,
}

/// Returns the folders on the device with this number that a call may move: the one at the old path and, if the call
/// exchanges two entries, the one at the new path. A path that cannot be read or opened is left out.
pub(super) fn renamed_folders(call: &WaitingCall, device: u64) -> Vec<FolderEntry> {
    let [first, second, third, fourth, fifth, _] = call.arguments;
    let (old, new, flags) = match call.number {
        #[cfg(target_arch = "x86_64")]
        libc::SYS_rename => ((here(), first), (here(), second), 0),
        libc::SYS_renameat => ((first as i32, second), (third as i32, fourth), 0),
        _ => ((first as i32, second), (third as i32, fourth), fifth as u32),
    };
    let is_exchange = flags & libc::RENAME_EXCHANGE != 0;
    let moved = [Some(old), is_exchange.then_some(new)].into_iter().flatten();
    moved
        .enumerate()
        .filter_map(|(index, (base, address))| {
            let (parent, name) = CallerPath::open(call.thread, base, address)?.folder_on(device)?;
            FolderEntry::new(parent, &name, call.id, index)
        })
        .collect()
}

#[cfg(target_arch = "x86_64")]
fn here() -> i32 {
    libc::AT_FDCWD
}

impl CallerPath {
    fn open(thread: i32, base: i32, address: u64) -> Option<Self> {
        let path = without_slashes(text(thread, address)?)?;
        let base = match base {
            _ if path.is_absolute() => "/".to_owned(),
            libc::AT_FDCWD => format!("/proc/{thread}/cwd"),
            descriptor => format!("/proc/{thread}/fd/{descriptor}"),
        };
        let base = openat(CWD, base, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        Some(Self { base, path })
    }

    /// Returns the parent folder and the name of the entry, if the entry is a folder on the device with this number.
    fn folder_on(&self, device: u64) -> Option<(OwnedFd, OsString)> {
        let (parent, name) = self.parent().ok()?;
        let opened = openat(&parent, name, OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let stat = fstat(opened).ok()?;
        let is_folder = stat.st_dev == device && FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        is_folder.then(|| (parent, name.to_owned()))
    }

    /// Opens the folder that contains the entry. Returns it with the name of the entry.
    fn parent(&self) -> Result<(OwnedFd, &OsStr), Errno> {
        let name = self.path.file_name().ok_or(Errno::INVAL)?;
        let above = self.path.parent().filter(|above| !above.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok((openat(&self.base, above, flags, Mode::empty())?, name))
    }
}

/// Returns a path without final slashes, or `None` if its last part is no name.
fn without_slashes(mut text: Vec<u8>) -> Option<PathBuf> {
    while text.len() > 1 && text.last() == Some(&b'/') {
        text.pop();
    }
    let last = text.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    let is_name = !matches!(last, b"" | b"." | b"..");
    is_name.then(|| PathBuf::from(OsString::from_vec(text)))
}

/// Returns the text at an address in the caller, without its final zero.
fn text(thread: i32, address: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let mut at = address;
    while (text.len() as u64) < PATH_BYTES_MAX {
        let left = PATH_BYTES_MAX - text.len() as u64;
        let mut piece = vec![0; (PAGE_BYTES - at % PAGE_BYTES).min(left) as usize];
        let bytes = raw::read_memory(thread, at, &mut piece).ok().filter(|bytes| *bytes > 0)?;
        let piece = &piece[..bytes];
        match piece.iter().position(|byte| *byte == 0) {
            Some(end) => {
                text.extend_from_slice(&piece[..end]);
                return Some(text);
            }
            None => text.extend_from_slice(piece),
        }
        at = at.checked_add(bytes as u64)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_an_entry_can_be_renamed() {
        for (text, expected) in [
            ("a", Some("a")),
            ("a/b//", Some("a/b")),
            ("/a/", Some("/a")),
            ("./a", Some("./a")),
            ("a/.", None),
            ("a/..", None),
            ("..", None),
            ("/", None),
            ("", None),
        ] {
            assert_eq!(without_slashes(text.as_bytes().to_vec()), expected.map(PathBuf::from), "{text:?}");
        }
    }

    #[test]
    fn a_text_is_read_up_to_its_zero_and_only_to_a_bound() {
        let own = std::process::id() as i32;
        let short = c"some/path".to_owned();
        assert_eq!(text(own, short.as_ptr() as u64), Some(b"some/path".to_vec()));
        let long = vec![b'a'; 3 * PATH_BYTES_MAX as usize];
        assert_eq!(text(own, long.as_ptr() as u64), None);
        assert_eq!(text(own, 0), None);
    }
}
