//! Removes a folder and everything below it, in any state that a hostile program can leave it in.

use super::{Owner, Tree, is_absent, make_readable, open_directory, stat_at};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, Dir, FileType, Mode};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Maximum depth of directories that are emptied in place. Each level needs an open descriptor.
const DEPTH_MAX: u32 = 16;

/// Removes a folder and everything below it. A missing folder is not an error. Safe for folders that hostile programs wrote.
///
/// # Errors
/// The system's error, for example if a directory belongs to another user.
pub fn remove_all(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    match Tree::open(parent) {
        Ok(parent) => remove(&parent.root, name),
        Err(error) if is_absent(&error) => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes everything in a folder, but not the folder itself, so that open handles of it stay valid. As safe as [`remove_all`].
///
/// # Errors
/// The system's error.
pub(crate) fn clear(folder: &Tree) -> io::Result<()> {
    rustix::fs::fchmod(folder, Mode::RWXU)?;
    let mut names = Dir::new(folder.directory(Path::new(""))?)?;
    loop {
        let mut is_empty = true;
        while let Some(entry) = names.read() {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name != "." && name != ".." {
                is_empty = false;
                remove(folder, name)?;
            }
        }
        if is_empty {
            return Ok(());
        }
        names.rewind();
    }
}

/// Removes a name and everything below it, at any depth. A missing name is not an error. Directories deeper than
/// [`DEPTH_MAX`] are first moved to the top, because neither descriptors nor path lengths suffice for thousands of
/// levels.
pub(crate) fn remove(parent: impl AsFd, name: &OsStr) -> io::Result<()> {
    let parent = parent.as_fd();
    // The name is opened first, because most names are directories, and this saves a call.
    let open = || open_directory(parent, name, Owner::ThisProgram);
    let opened = match open() {
        Err(error) if error.kind() != io::ErrorKind::NotFound && unlink(parent, name)? == Unlink::Directory => open(),
        Err(_) => return Ok(()),
        opened => opened,
    };
    let top = match opened {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        top => top?,
    };
    let walked = Dir::new(rustix::io::fcntl_dupfd_cloexec(&top, 0)?)?;
    Removal { top: &top, moved: 0 }.directory(parent, name, walked, 1)
}

/// A removal in progress, with the number of directories that were moved to its top.
struct Removal<'t> {
    top: &'t OwnedFd,
    moved: u64,
}

impl Removal<'_> {
    /// Empties a directory and removes it. Repeats this if directories were moved into it in the meantime.
    fn directory(&mut self, parent: BorrowedFd<'_>, name: &OsStr, mut directory: Dir, depth: u32) -> io::Result<()> {
        loop {
            let mut is_empty = true;
            while let Some(entry) = directory.read() {
                let entry = entry?;
                let name = OsStr::from_bytes(entry.file_name().to_bytes());
                if name != "." && name != ".." {
                    is_empty = false;
                    self.entry(directory.fd()?, name, entry.file_type(), depth)?;
                }
            }
            match remove_empty(parent, name) {
                Err(Errno::NOTEMPTY | Errno::EXIST) if !is_empty => directory.rewind(),
                removed => return Ok(removed?),
            }
        }
    }

    fn entry(&mut self, directory: BorrowedFd<'_>, name: &OsStr, kind: FileType, depth: u32) -> io::Result<()> {
        if kind != FileType::Directory && unlink(directory, name)? == Unlink::Yes {
            return Ok(());
        }
        let removed = if depth < DEPTH_MAX {
            open_directory(directory, name, Owner::ThisProgram)
                .and_then(|below| self.directory(directory, name, Dir::new(below)?, depth + 1))
        } else {
            self.move_up(directory, name)
        };
        match removed {
            // Another process removed it after it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed,
        }
    }

    fn move_up(&mut self, from: BorrowedFd<'_>, name: &OsStr) -> io::Result<()> {
        // A directory without write permission cannot be moved, because its `..` entry would have to change.
        if stat_at(from, name)?.is_some_and(|stat| stat.st_mode & 0o700 != 0o700) {
            make_readable(from, name, Mode::RWXU)?;
        }
        loop {
            self.moved += 1;
            let fresh = format!(".removed-{}", self.moved);
            match rustix::fs::renameat_with(from, name, self.top, &fresh, rustix::fs::RenameFlags::NOREPLACE) {
                Err(Errno::EXIST | Errno::NOTEMPTY) => {}
                other => return Ok(other?),
            }
        }
    }
}

#[derive(PartialEq, Eq)]
enum Unlink {
    Yes,
    Directory,
}

fn unlink(directory: impl AsFd, name: &OsStr) -> io::Result<Unlink> {
    match unlink_here(directory, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(Unlink::Yes),
        Err(Errno::ISDIR | Errno::PERM) => Ok(Unlink::Directory),
        Err(error) => Err(error.into()),
    }
}

fn remove_empty(parent: BorrowedFd<'_>, name: &OsStr) -> Result<(), Errno> {
    match unlink_here(parent, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

fn unlink_here(directory: impl AsFd, name: &OsStr, flags: AtFlags) -> Result<(), Errno> {
    let directory = directory.as_fd();
    match rustix::fs::unlinkat(directory, name, flags) {
        Err(Errno::ACCESS) => {
            // The directory itself has no write permission.
            rustix::fs::fchmod(directory, Mode::RWXU)?;
            rustix::fs::unlinkat(directory, name, flags)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    #[test]
    fn removing_takes_links_and_not_what_they_point_to() {
        let dir = tempfile::tempdir().unwrap();
        let at = |path: &str| dir.path().join(path);
        std::fs::create_dir_all(at("in/a/b/c")).unwrap();
        std::fs::create_dir(at("out")).unwrap();
        std::fs::write(at("out/canary"), "alive").unwrap();
        symlink("../../out", at("in/a/way")).unwrap();
        symlink("out", at("top")).unwrap();
        for path in ["in", "top", "missing", "missing/below"] {
            remove_all(&at(path)).unwrap();
            assert!(std::fs::symlink_metadata(at(path)).is_err());
        }
        assert_eq!(std::fs::read_to_string(at("out/canary")).unwrap(), "alive");
    }

    #[test]
    fn a_cleared_folder_stays_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let folder = Tree::create(&dir.path().join("in")).unwrap();
        let before = folder.inode().unwrap();
        std::fs::write(dir.path().join("canary"), "alive").unwrap();
        std::fs::create_dir_all(dir.path().join("in/a/b")).unwrap();
        symlink("..", dir.path().join("in/way")).unwrap();
        for number in 0..300 {
            std::fs::write(dir.path().join(format!("in/a/b/{number}")), "x").unwrap();
            std::fs::write(dir.path().join(format!("in/{number}")), "x").unwrap();
        }
        for closed in ["in/a/b", "in/a", "in"] {
            std::fs::set_permissions(dir.path().join(closed), std::fs::Permissions::from_mode(0o000)).unwrap();
        }
        clear(&folder).unwrap();
        assert_eq!(std::fs::read_dir(dir.path().join("in")).unwrap().count(), 0);
        assert_eq!(
            (folder.inode().unwrap(), Tree::open(&dir.path().join("in")).unwrap().inode().unwrap()),
            (before, before)
        );
        assert_eq!(std::fs::read_to_string(dir.path().join("canary")).unwrap(), "alive");
    }

    #[test]
    fn removing_takes_what_is_deep_and_what_nobody_may_read() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().join("top");
        let mut deep = top.clone();
        for level in 0..70 {
            deep.push(format!("d{level}"));
            std::fs::create_dir_all(deep.join("empty")).unwrap();
            std::fs::write(deep.join("file"), "x").unwrap();
        }
        // The deepest directory is closed first, because it cannot be reached through a closed one.
        for closed in deep.ancestors().take(70).step_by(3) {
            std::fs::set_permissions(closed, std::fs::Permissions::from_mode(0o000)).unwrap();
        }
        remove_all(&top).unwrap();
        assert!(std::fs::symlink_metadata(&top).is_err());
    }
}
