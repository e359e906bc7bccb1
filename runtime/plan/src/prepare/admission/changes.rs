//! Tells when files may have changed, so that nothing needs to look at them again and again.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::inotify::{CreateFlags, WatchFlags, add_watch, init};
use rustix::io::{Errno, read};
use std::io;
use std::path::{Path, PathBuf};

/// What may give a file other content: it is replaced, written or removed, or a folder of its path is.
const EVENTS: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MOVED_TO)
    .union(WatchFlags::MOVED_FROM)
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::DELETE)
    .union(GONE);
/// A watched folder itself is removed or renamed.
const GONE: WatchFlags = WatchFlags::DELETE_SELF.union(WatchFlags::MOVE_SELF);
/// Size of a buffer for events, in bytes. Their content is not used.
const EVENT_BYTES: usize = 4 << 10;

/// Waits until one of the files may have changed.
#[derive(Debug)]
pub struct FileChanges {
    inotify: OwnedFd,
    files: Vec<PathBuf>,
}

impl FileChanges {
    /// Begins to watch files. A file and the folders of its path need not exist.
    ///
    /// # Errors
    ///
    /// The kernel gives no more watches, or no folder of a path can be watched.
    pub fn watch(files: Vec<PathBuf>) -> io::Result<Self> {
        let changes = Self { inotify: init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?, files };
        changes.rearm()?;
        Ok(changes)
    }

    /// Waits for the next event, and for `end`, which ends the wait when it can be read or is closed. Returns false if it ended. The
    /// caller looks at the files afterwards.
    ///
    /// # Errors
    ///
    /// As [`FileChanges::watch`].
    pub fn wait(&self, end: &impl AsFd) -> io::Result<bool> {
        let mut descriptors = [PollFd::new(end, PollFlags::IN), PollFd::new(&self.inotify, PollFlags::IN)];
        while let Err(error) = poll(&mut descriptors, None) {
            if error != Errno::INTR {
                return Err(error.into());
            }
        }
        if !descriptors[0].revents().is_empty() {
            return Ok(false);
        }
        self.rearm().map(|()| true)
    }

    /// Takes the events that have arrived, and watches folders that are new.
    fn rearm(&self) -> io::Result<()> {
        let mut events = [0; EVENT_BYTES];
        loop {
            match read(&self.inotify, &mut events) {
                Ok(_) => {}
                Err(Errno::AGAIN) => break,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        for file in &self.files {
            self.watch_folder(file)?;
            // The file may be a link, whose target changes elsewhere.
            if let Ok(target) = std::fs::canonicalize(file) {
                self.watch_folder(&target)?;
            }
        }
        Ok(())
    }

    /// Watches the folder of a file, or the nearest folder above it that exists. Of the folders above, only their own removal is
    /// watched.
    fn watch_folder(&self, file: &Path) -> io::Result<()> {
        let mut events = EVENTS;
        for folder in file.ancestors().skip(1) {
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            match add_watch(&self.inotify, folder, events | WatchFlags::ONLYDIR | WatchFlags::MASK_ADD) {
                Ok(_) => events = GONE,
                Err(Errno::NOENT | Errno::NOTDIR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::Timespec;

    fn is_readable(changes: &FileChanges, milliseconds: i64) -> bool {
        let time = Timespec { tv_sec: 0, tv_nsec: milliseconds * 1_000_000 };
        poll(&mut [PollFd::new(&changes.inotify, PollFlags::IN)], Some(&time)).unwrap() > 0
    }

    #[test]
    fn every_way_to_change_a_file_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("data/glovebox/list.json");
        let changes = FileChanges::watch(vec![file.clone()]).unwrap();
        let noticed = |what: &str| {
            assert!(is_readable(&changes, 900), "{what}");
            changes.rearm().unwrap();
        };
        assert!(!is_readable(&changes, 20));
        std::fs::create_dir(folder.path().join("data")).unwrap();
        noticed("a folder of its path is created");
        std::fs::create_dir(folder.path().join("data/glovebox")).unwrap();
        noticed("its folder is created");
        std::fs::write(file.with_extension("new"), "1").unwrap();
        std::fs::rename(file.with_extension("new"), &file).unwrap();
        noticed("it is created");
        std::fs::write(&file, "2").unwrap();
        noticed("it is written");
        let target = folder.path().join("elsewhere");
        std::fs::create_dir(&target).unwrap();
        std::fs::write(target.join("list.json"), "3").unwrap();
        std::fs::remove_file(&file).unwrap();
        std::os::unix::fs::symlink(target.join("list.json"), &file).unwrap();
        noticed("it becomes a link");
        std::fs::write(target.join("list.json"), "4").unwrap();
        noticed("the target of the link is written");
        std::fs::rename(folder.path().join("data"), folder.path().join("gone")).unwrap();
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, "5").unwrap();
        noticed("a folder of its path is replaced");
    }
}
