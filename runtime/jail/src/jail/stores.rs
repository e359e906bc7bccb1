//! Measures a jail's memory outside of its processes: System V shared memory segments, message queues and semaphores,
//! and tmpfs folders.
//!
//! The descriptors come from the jail's first process before any command of a stage runs, and show the namespaces of
//! the jail at any time.

use rustix::fs::{fstat, fstatvfs};
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Minimum size that is counted for a semaphore, bytes.
const SEMAPHORE_BYTES: u64 = 64;
/// Maximum number of bytes that are read from a list. A namespace cannot have more entries than that.
const LIST_BYTES_MAX: usize = 8 << 20;
const PIECE_BYTES: usize = 64 << 10;

/// The stores of one jail.
#[derive(Debug)]
pub(super) struct Stores {
    segments: File,
    queues: File,
    semaphores: File,
    folders: Vec<OwnedFd>,
}

impl Stores {
    /// Takes the descriptors of a [`glovebox_jail_helper::wire::Reply::Stores`]. Returns `None` if they are not
    /// complete.
    pub(super) fn new(descriptors: Vec<OwnedFd>) -> Option<Self> {
        let mut descriptors = descriptors.into_iter();
        let mut list = || descriptors.next().map(File::from);
        let (segments, queues, semaphores) = (list()?, list()?, list()?);
        let folders: Vec<OwnedFd> = descriptors.collect();
        (!folders.is_empty()).then_some(Self { segments, queues, semaphores, folders })
    }

    /// Returns the size of all stores, bytes.
    pub(super) fn bytes(&self) -> u64 {
        let folders = self.folders.iter().map(used_bytes).fold(0, u64::saturating_add);
        folders.saturating_add(self.of_system_v())
    }

    /// Returns the used bytes of the fullest folder.
    pub(super) fn fullest_folder_bytes(&self) -> u64 {
        self.folders.iter().map(used_bytes).max().unwrap_or(0)
    }

    /// Returns the devices of the folders. Files on them are measured here.
    pub(super) fn devices(&self) -> Vec<u64> {
        self.folders.iter().filter_map(|folder| Some(fstat(folder).ok()?.st_dev)).collect()
    }

    fn of_system_v(&self) -> u64 {
        let sum = |list: &File, count: fn(&[&str]) -> Option<u64>| {
            let text = read(list);
            let rows = text.lines().skip(1).map(|row| row.split_ascii_whitespace().collect::<Vec<_>>());
            rows.filter_map(|row| count(&row)).fold(0, u64::saturating_add)
        };
        // For segments, the last two columns are the sizes in memory and in swap. For queues and semaphores, the fourth
        // column is the number of bytes or of semaphores.
        let segments = sum(&self.segments, |row| {
            let last: Vec<u64> = row.iter().rev().take(2).filter_map(|text| text.parse().ok()).collect();
            Some(last.into_iter().fold(0, u64::saturating_add))
        });
        let queues = sum(&self.queues, |row| row.get(3)?.parse().ok());
        let semaphores = sum(&self.semaphores, |row| row.get(3)?.parse().ok());
        segments.saturating_add(queues).saturating_add(semaphores.saturating_mul(SEMAPHORE_BYTES))
    }
}

/// Returns the used bytes of a tmpfs folder.
fn used_bytes(folder: &OwnedFd) -> u64 {
    let stat = fstatvfs(folder).ok();
    stat.map_or(0, |stat| stat.f_blocks.saturating_sub(stat.f_bfree).saturating_mul(stat.f_frsize))
}

/// Returns the current content of a list, from its beginning.
fn read(list: &File) -> String {
    let (mut bytes, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
    while bytes.len() < LIST_BYTES_MAX {
        match list.read_at(&mut piece, bytes.len() as u64) {
            Ok(0) | Err(_) => break,
            Ok(got) => bytes.extend_from_slice(&piece[..got]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_added_up_and_read_anew_each_time() {
        let dir = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(dir.path().join(name), text).unwrap();
            OwnedFd::from(File::open(dir.path().join(name)).unwrap())
        };
        let shm = "key shmid perms size cpid lpid nattch uid gid cuid cgid atime dtime ctime rss swap\n\
                   0 0 1600 99999 5 5 0 0 0 0 0 1 1 1 4096 8192\n0 1 1600 99999 5 5 0 0 0 0 0 1 1 1 100 0\n";
        let descriptors = vec![
            file("shm", shm),
            file("msg", "key msqid perms cbytes qnum\n0 0 644 500 3\n"),
            file("sem", "key semid perms nsems uid\n0 0 600 10 0\n"),
            OwnedFd::from(File::open("/proc").unwrap()),
        ];
        let stores = Stores::new(descriptors).unwrap();
        assert_eq!(stores.of_system_v(), 4096 + 8192 + 100 + 500 + 10 * SEMAPHORE_BYTES);
        std::fs::write(dir.path().join("shm"), "key\n").unwrap();
        assert_eq!(stores.of_system_v(), 500 + 10 * SEMAPHORE_BYTES);
        assert!(Stores::new(Vec::new()).is_none());
    }
}
