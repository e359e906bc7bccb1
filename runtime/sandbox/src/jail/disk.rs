//! How much commands have put on disk, looked at while they run.
//!
//! The kernel has no bound for a folder, so it is walked again and again, by descriptor, following nothing. Every entry
//! counts at least [`ENTRY_BYTES`], so a walk ends at the bound however many empty files there are. What cannot be entered, or
//! is deeper than a path can name, is not measured: then the free space of the file system must not fall by more than the bound.

use crate::tree::{self, PATH_BYTES_MAX, Tree};
use rustix::fs::{Dir, FileType};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What an entry takes at least: an inode and a name.
const ENTRY_BYTES: u64 = 1024;
/// Shortest time between two looks; a command that ends earlier is not looked at.
pub(super) const LOOK_MIN: Duration = Duration::from_millis(250);
/// Between two walks lies this many times what one took.
const PAUSE_FACTOR: u32 = 20;
/// How fast the end of a command ends the watching.
const NAP: Duration = Duration::from_millis(5);

/// The folders commands of a jail may write, and their bound.
#[derive(Debug)]
pub(super) struct Disk {
    folders: Vec<PathBuf>,
    bytes_max: u64,
    /// What was there before the first command: nothing in an upper layer, everything in a copy.
    before: u64,
    free_before: u64,
    pub(super) peak: AtomicU64,
}

/// What one walk found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Walked {
    bytes: u64,
    unmeasured: bool,
}

impl Disk {
    /// Watches folders; `filled` when something is in them that no command wrote.
    pub(super) fn new(folders: Vec<PathBuf>, bytes_max: u64, filled: bool) -> Self {
        let mut disk = Self { folders, bytes_max: u64::MAX, before: 0, free_before: 0, peak: AtomicU64::new(0) };
        disk.before = if filled { disk.walk().bytes } else { 0 };
        disk.free_before = disk.free();
        disk.bytes_max = bytes_max;
        disk
    }

    /// Looks again and again until `over` is set here, or `ended` elsewhere.
    pub(super) fn watch(&self, ended: &AtomicBool, over: &AtomicBool) {
        while !ended.load(Ordering::Relaxed) {
            let begin = Instant::now();
            if self.is_over() {
                over.store(true, Ordering::Relaxed);
                return;
            }
            let next = Instant::now() + (begin.elapsed() * PAUSE_FACTOR).max(LOOK_MIN);
            while Instant::now() < next && !ended.load(Ordering::Relaxed) {
                std::thread::sleep(NAP);
            }
        }
    }

    fn is_over(&self) -> bool {
        let walked = self.walk();
        let added = walked.bytes.saturating_sub(self.before);
        self.peak.fetch_max(added, Ordering::Relaxed);
        added > self.bytes_max || walked.unmeasured && self.free_before.saturating_sub(self.free()) > self.bytes_max
    }

    /// Bytes an ordinary user can still use on the file system.
    fn free(&self) -> u64 {
        let stat = self.folders.first().and_then(|folder| rustix::fs::statvfs(folder).ok());
        stat.map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn walk(&self) -> Walked {
        let mut walked = Walked::default();
        let stop = self.before.saturating_add(self.bytes_max);
        for folder in &self.folders {
            let Ok(tree) = Tree::open(folder) else { continue };
            let mut pending = vec![PathBuf::new()];
            while let Some(path) = pending.pop() {
                if walked.bytes > stop {
                    return walked;
                }
                if path.as_os_str().len() as u64 > PATH_BYTES_MAX {
                    walked.unmeasured = true;
                } else if let Err(error) = list(&tree, &path, &mut walked, &mut pending) {
                    walked.unmeasured |= !tree::is_absent(&error);
                }
            }
        }
        walked
    }
}

fn list(tree: &Tree, path: &Path, walked: &mut Walked, pending: &mut Vec<PathBuf>) -> io::Result<()> {
    let directory = tree.directory(path)?;
    for entry in Dir::read_from(&directory)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let Some(stat) = tree::stat_at(&directory, name)? else { continue };
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        walked.bytes = walked.bytes.saturating_add((blocks * 512).max(ENTRY_BYTES));
        if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
            pending.push(path.join(name));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_was_added_counts_and_links_lead_nowhere() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("copy/deep")).unwrap();
        fs::create_dir(at("out")).unwrap();
        fs::write(at("out/large"), vec![1; 4 << 20]).unwrap();
        fs::write(at("copy/deep/old"), vec![1; 1 << 20]).unwrap();
        let disk = Disk::new(vec![at("copy")], 1 << 20, true);
        symlink("../out", at("copy/way")).unwrap();
        assert!(!disk.is_over(), "{disk:?}");
        fs::write(at("copy/deep/new"), vec![1; 2 << 20]).unwrap();
        assert!(disk.is_over() && disk.peak.load(Ordering::Relaxed) >= 2 << 20, "{disk:?}");
    }

    #[test]
    fn many_empty_files_reach_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(vec![dir.path().to_owned()], 100 * ENTRY_BYTES, false);
        (0..100).for_each(|number| fs::write(dir.path().join(format!("{number}")), "").unwrap());
        assert!(!disk.is_over());
        fs::write(dir.path().join("more"), "").unwrap();
        assert!(disk.is_over());
    }
}
