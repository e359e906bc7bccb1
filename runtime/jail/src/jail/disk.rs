//! Measures the disk space that commands use while they run.
//!
//! The kernel cannot limit the size of a folder, so the host walks the folder repeatedly, by file descriptor, without
//! following symbolic links. Every entry is counted with at least [`ENTRY_BYTES`], so a walk ends at the limit even
//! with many empty files. Folders that cannot be entered, or are deeper than a path can name, are not measured. If
//! there are such folders, the free space of the file system must not shrink by more than the measured bytes plus the
//! limit. Unlinked files are found through the processes that hold them open, see [`super::processes`].

use super::watchdog::Watchdog;
use glovebox_record::LimitName;
use glovebox_workspace::tree::{self, PATH_BYTES_MAX, Tree};
use rustix::fs::{Dir, FileType};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Minimum size that is counted for an entry, bytes: an inode and a name.
const ENTRY_BYTES: u64 = 1024;
/// Minimum time between two measurements. A command that ends earlier is measured after its end.
pub(super) const LOOK_MIN: Duration = Duration::from_millis(250);
/// Maximum time without a measurement, in addition to the pause after a walk. The free space does not reveal every
/// write: other programs may free space at the same time.
const LOOK_MAX: Duration = Duration::from_secs(5);
/// The pause between two walks is this many times the duration of a walk.
const PAUSE_FACTOR: u32 = 20;
/// Divisor of the limit. If a walk takes long compared with the command, the folders are walked at its end only if the
/// free space has shrunk by more than the limit divided by this number.
const FREE_PART: u64 = 4;

/// The folders that commands of a jail may write, and their limit.
#[derive(Debug)]
pub(super) struct Disk {
    folders: Vec<PathBuf>,
    bytes_max: u64,
    /// Size before the first command, bytes: 0 for an upper layer, the size of all files for a copy.
    before: u64,
    /// Length of the largest file before the first command, bytes.
    largest_before: u64,
    /// The largest free space so far, plus the jail's usage at that time, bytes. The jail must not use space that other
    /// programs free.
    free_most: AtomicU64,
    peak: AtomicU64,
    largest: AtomicU64,
    /// Duration of the last walk, microseconds.
    walk_us: AtomicU64,
    /// True if the last walk was after the last command.
    is_final: AtomicBool,
}

/// Disk usage of the commands' unlinked files at the time of a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct UnlinkedSample {
    pub(super) bytes: u64,
    /// True if there may be unlinked files that were not measured.
    pub(super) hides: bool,
}

/// Totals of one walk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct WalkTotals {
    bytes: u64,
    largest: u64,
    unmeasured: bool,
}

impl Disk {
    /// Creates the measurement of folders. `filled` is true if they contain files that no command wrote.
    pub(super) fn new(folders: Vec<PathBuf>, bytes_max: u64, filled: bool) -> Self {
        let mut disk = Self {
            folders,
            bytes_max: u64::MAX,
            before: 0,
            largest_before: 0,
            free_most: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            largest: AtomicU64::new(0),
            walk_us: AtomicU64::new(0),
            is_final: AtomicBool::new(false),
        };
        let found = if filled { disk.walk() } else { WalkTotals::default() };
        (disk.before, disk.largest_before) = (found.bytes, found.largest);
        disk.free_most = AtomicU64::new(disk.free());
        disk.bytes_max = bytes_max;
        disk
    }

    /// Notes the start of a command, after which another final measurement is needed.
    pub(super) fn note_begin(&self) {
        self.is_final.store(false, Ordering::Relaxed);
    }

    /// Measures whenever something may have changed, until the limit is exceeded or the command has ended.
    pub(super) fn watch(&self, watching: &Watchdog) {
        while !watching.has_ended() {
            let (begin, seen) = (Instant::now(), watching.disk_changes());
            // Read before the walk: a file that is unlinked in between is missed this time, instead of counted twice.
            let nameless = UnlinkedSample {
                bytes: watching.held_disk_bytes.load(Ordering::Relaxed),
                hides: watching.hides_disk.load(Ordering::Relaxed),
            };
            if self.is_over(nameless) {
                return watching.report(LimitName::DiskBytes);
            }
            watching.pause((begin.elapsed() * PAUSE_FACTOR).max(LOOK_MIN));
            watching.await_disk_change(seen, LOOK_MAX);
        }
    }

    /// Returns true if a command of this duration left more than the limit. If a walk takes long compared with the
    /// command, the folders are walked only if much of the free space was used.
    pub(super) fn is_over_at_end(&self, took: Duration) -> bool {
        let is_cheap = Duration::from_micros(self.walk_us.load(Ordering::Relaxed)) * PAUSE_FACTOR <= took;
        let fallen = || self.free_most.load(Ordering::Relaxed).saturating_sub(self.free());
        let walks = is_cheap || fallen() > self.bytes_max / FREE_PART;
        self.is_final.store(walks, Ordering::Relaxed);
        walks && self.is_over(UnlinkedSample::default())
    }

    /// Measures a last time unless that has happened, and returns the maximum size that was measured, bytes.
    pub(super) fn finish(&self) -> u64 {
        if !self.is_final.load(Ordering::Relaxed) {
            self.is_over(UnlinkedSample::default());
        }
        self.peak.load(Ordering::Relaxed)
    }

    /// Returns the length of the largest file that a command wrote, as far as it was measured, bytes.
    pub(super) fn largest(&self) -> u64 {
        Some(self.largest.load(Ordering::Relaxed)).filter(|bytes| *bytes > self.largest_before).unwrap_or(0)
    }

    /// Returns true if a command created a file of at least this length. Measures again.
    pub(super) fn has_file_of(&self, bytes: u64) -> bool {
        self.is_over(UnlinkedSample::default());
        self.largest() >= bytes
    }

    fn is_over(&self, nameless: UnlinkedSample) -> bool {
        let walked = self.walk();
        let added = walked.bytes.saturating_sub(self.before).saturating_add(nameless.bytes);
        self.peak.fetch_max(added, Ordering::Relaxed);
        self.largest.fetch_max(walked.largest, Ordering::Relaxed);
        let explained = self.free().saturating_add(added);
        let unexplained = self.free_most.fetch_max(explained, Ordering::Relaxed).saturating_sub(explained);
        let is_hidden = walked.unmeasured || nameless.hides;
        added > self.bytes_max || is_hidden && unexplained > self.bytes_max
    }

    /// Returns the space on the file system that an ordinary user can still use, bytes.
    pub(super) fn free(&self) -> u64 {
        let stat = self.folders.first().and_then(|folder| rustix::fs::statvfs(folder).ok());
        stat.map_or(0, |stat| stat.f_bavail.saturating_mul(stat.f_frsize))
    }

    fn walk(&self) -> WalkTotals {
        let begin = Instant::now();
        let walked = self.walk_all();
        self.walk_us.store(u64::try_from(begin.elapsed().as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        walked
    }

    fn walk_all(&self) -> WalkTotals {
        let mut walked = WalkTotals::default();
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

fn list(tree: &Tree, path: &Path, walked: &mut WalkTotals, pending: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut directory = Dir::new(tree.directory(path)?)?;
    while let Some(entry) = directory.read() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name == "." || name == ".." {
            continue;
        }
        let Some(stat) = tree::stat_at(directory.fd()?, name)? else { continue };
        let blocks = u64::try_from(stat.st_blocks).unwrap_or(0);
        walked.bytes = walked.bytes.saturating_add((blocks * 512).max(ENTRY_BYTES));
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => pending.push(path.join(name)),
            FileType::RegularFile => walked.largest = walked.largest.max(tree::length(&stat)),
            _ => {}
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
        assert!(!disk.is_over(UnlinkedSample::default()), "{disk:?}");
        fs::write(at("copy/deep/new"), vec![1; 2 << 20]).unwrap();
        assert!(disk.is_over(UnlinkedSample::default()) && disk.finish() >= 2 << 20, "{disk:?}");
        assert_eq!(disk.largest(), 2 << 20);
        assert!(disk.has_file_of(2 << 20) && !disk.has_file_of(3 << 20));
    }

    #[test]
    fn what_has_no_name_counts_with_what_has_one() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(vec![dir.path().to_owned()], 4 << 20, false);
        fs::write(dir.path().join("named"), vec![1; 3 << 20]).unwrap();
        assert!(!disk.is_over(UnlinkedSample::default()));
        assert!(disk.is_over(UnlinkedSample { bytes: 2 << 20, hides: false }));
    }

    #[test]
    fn a_change_that_nobody_noticed_is_found_by_the_next_look() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(vec![dir.path().to_owned()], 1 << 20, false);
        let watchdog = Watchdog::new().unwrap();
        std::thread::scope(|scope| {
            let watch = scope.spawn(|| disk.watch(&watchdog));
            std::thread::sleep(LOOK_MIN * 2);
            fs::write(dir.path().join("late"), vec![1; 2 << 20]).unwrap();
            let deadline = Instant::now() + LOOK_MAX * 4;
            while !watch.is_finished() && Instant::now() < deadline {
                std::thread::sleep(LOOK_MIN);
            }
            watchdog.end();
        });
        assert_eq!(watchdog.over(), Some(LimitName::DiskBytes));
    }

    #[test]
    fn many_empty_files_reach_the_bound() {
        let dir = tempfile::tempdir().unwrap();
        let disk = Disk::new(vec![dir.path().to_owned()], 100 * ENTRY_BYTES, false);
        (0..100).for_each(|number| fs::write(dir.path().join(format!("{number}")), "").unwrap());
        assert!(!disk.is_over(UnlinkedSample::default()));
        fs::write(dir.path().join("more"), "").unwrap();
        assert!(disk.is_over(UnlinkedSample::default()));
    }
}
