//! Unlinked files that processes hold: open, mapped, or in transit in a socket.
//!
//! Each file is counted once, even if several processes hold it. Files in memory are counted as memory, all other files
//! as disk space. Only root on the host can read the size of a mapping without a descriptor. Descriptors in transit in
//! a socket can be detected but not measured.

use glovebox_jail_helper::process::ProcessStat;
use glovebox_workspace::regular_file;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, fstatfs, open, openat, statat};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// Magic numbers of file systems whose files are in memory: tmpfs, ramfs, hugetlbfs.
const IN_MEMORY: [i64; 3] = [0x0102_1994, 0x8584_58f6, 0x9584_58f6];
/// Prefixes of the names that the kernel gives to mappings of files in memory that never had a path.
const MEMORY_NAMES: [&str; 4] = ["/memfd:", "/dev/zero", "/SYSV", "/anon_hugepage"];
/// System V segments, which are counted from their list.
const LISTED: &str = "/SYSV";
const DELETED: &str = " (deleted)";

/// Memory and disk space of unlinked files.
#[derive(Debug, Default)]
pub(in crate::jail) struct UnlinkedUsage {
    /// Size of files on disk, bytes.
    pub(in crate::jail) disk_bytes: u64,
    /// Size of files in memory, bytes.
    pub(in crate::jail) memory_bytes: u64,
    /// True if processes may hold files on disk that were not measured.
    pub(in crate::jail) hides_disk: bool,
    /// True if processes may hold files in memory that were not measured.
    pub(in crate::jail) hides_memory: bool,
    /// Maximum number of descriptors of one process.
    pub(in crate::jail) descriptors: u64,
    /// Length of the largest regular file that is open for writing, bytes.
    pub(in crate::jail) file_bytes: u64,
    /// Device and inode of files that are already counted, here or through their folder.
    counted: HashSet<(u64, u64)>,
    /// Devices of folders that are counted as a whole.
    devices: Vec<u64>,
}

/// Examines one process after the other.
#[derive(Debug)]
pub(super) struct UnlinkedFileScan {
    held: UnlinkedUsage,
    /// For each device, true if its files are in memory.
    kinds: HashMap<u64, bool>,
    /// Mappings of unlinked files, by device and inode, with the path in `/proc` and the name. A process that is
    /// examined later may have such a file open.
    mapped: HashMap<(u64, u64), (PathBuf, String)>,
}

impl UnlinkedFileScan {
    /// Creates an empty scan. Files on `devices` are counted elsewhere.
    pub(super) fn new(devices: Vec<u64>) -> Self {
        Self {
            held: UnlinkedUsage { devices, ..UnlinkedUsage::default() },
            kinds: HashMap::new(),
            mapped: HashMap::new(),
        }
    }

    /// Examines one process. A process that has ended holds nothing. A process that cannot be examined may hold
    /// anything.
    pub(super) fn examine(&mut self, process: &ProcessStat) {
        let Some(folder) = ProcessFolder::new(process) else { return };
        let is_seen = self.descriptors(&folder).is_some() && self.mappings(&folder).is_some();
        if !is_seen
            && glovebox_jail_helper::process::stat(process.pid).is_some_and(|now| now.started == process.started)
        {
            (self.held.hides_disk, self.held.hides_memory) = (true, true);
        }
    }

    fn descriptors(&mut self, process: &ProcessFolder) -> Option<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = open(process.0.join("fd"), flags, Mode::empty()).ok()?;
        let mut count = 0;
        for entry in Dir::read_from(&folder).ok()? {
            let entry = entry.ok()?;
            let Ok(number) = entry.file_name().to_str() else { continue };
            if number.starts_with('.') {
                continue;
            }
            count += 1;
            // The descriptor was closed in the meantime.
            let Ok(stat) = statat(&folder, number, AtFlags::empty()) else { continue };
            self.descriptor(&Descriptor { process, folder: &folder, number }, &stat);
        }
        self.held.descriptors = self.held.descriptors.max(count);
        Some(())
    }

    fn descriptor(&mut self, descriptor: &Descriptor<'_>, stat: &Stat) {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Socket if descriptor.has_descriptors_inside() => {
                (self.held.hides_disk, self.held.hides_memory) = (true, true);
            }
            FileType::RegularFile => {
                let bytes = u64::try_from(stat.st_size).unwrap_or(0);
                if bytes > self.held.file_bytes && descriptor.is_written() {
                    self.held.file_bytes = bytes;
                }
                if stat.st_nlink == 0 {
                    let in_memory = self.is_in_memory(stat.st_dev, || descriptor.file_system());
                    self.count(stat, in_memory);
                }
            }
            _ => {}
        }
    }

    fn is_in_memory(&mut self, device: u64, kind: impl FnOnce() -> Option<i64>) -> bool {
        let known = self.kinds.get(&device).copied();
        known.unwrap_or_else(|| {
            let Some(kind) = kind() else { return false };
            let in_memory = IN_MEMORY.contains(&kind);
            self.kinds.insert(device, in_memory);
            in_memory
        })
    }

    fn count(&mut self, stat: &Stat, in_memory: bool) {
        if self.held.devices.contains(&stat.st_dev) || !self.held.counted.insert((stat.st_dev, stat.st_ino)) {
            return;
        }
        let bytes = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
        let sum = if in_memory { &mut self.held.memory_bytes } else { &mut self.held.disk_bytes };
        *sum = sum.saturating_add(bytes);
    }

    /// Records mappings of unlinked files.
    fn mappings(&mut self, process: &ProcessFolder) -> Option<()> {
        let maps = regular_file::kernel_bytes(process.0.join("maps")).ok()?;
        for line in String::from_utf8_lossy(&maps).lines().filter(|line| line.ends_with(DELETED)) {
            let Some(mapping) = Mapping::parse(line) else { continue };
            if mapping.name.starts_with(LISTED) || self.held.devices.contains(&mapping.file.0) {
                continue;
            }
            let path = process.0.join("map_files").join(mapping.range);
            self.mapped.entry(mapping.file).or_insert_with(|| (path, mapping.name.to_owned()));
        }
        Some(())
    }

    /// Adds the mappings of files that no process has open, and returns the usage.
    pub(super) fn finish(mut self) -> UnlinkedUsage {
        for (file, (path, name)) in std::mem::take(&mut self.mapped) {
            if self.held.counted.contains(&file) {
                continue;
            }
            let in_memory = MEMORY_NAMES.iter().any(|start| name.starts_with(start));
            match rustix::fs::stat(&path) {
                Ok(stat) if stat.st_nlink == 0 => {
                    let kind = || Some(rustix::fs::statfs(&path).ok()?.f_type as i64);
                    let in_memory = in_memory || self.is_in_memory(stat.st_dev, kind);
                    self.count(&stat, in_memory);
                }
                Ok(_) => {}
                Err(_) if in_memory => self.held.hides_memory = true,
                Err(_) => self.held.hides_disk = true,
            }
        }
        self.held
    }
}

impl UnlinkedUsage {
    /// Returns the memory of a process that is not counted yet: its share of resident memory, bytes.
    pub(super) fn own_bytes(&self, process: &ProcessStat) -> u64 {
        let smaps =
            ProcessFolder::new(process).and_then(|folder| regular_file::kernel_bytes(folder.0.join("smaps")).ok());
        smaps.map_or(process.resident_bytes, |text| self.own_bytes_of(&String::from_utf8_lossy(&text)))
    }

    fn own_bytes_of(&self, smaps: &str) -> u64 {
        let mut sum = 0_u64;
        let mut mapping: Option<Mapping<'_>> = None;
        let (mut share, mut anonymous) = (0, 0);
        let amount = |line: &str| line.trim().trim_end_matches(" kB").parse::<u64>().unwrap_or(0).saturating_mul(1024);
        let add = |mapping: &Option<Mapping<'_>>, share: u64, anonymous: u64| match mapping {
            None => 0,
            Some(mapping) if self.is_counted(mapping) => 0,
            // Unmodified pages of a file on disk can be read again, so only modified pages are counted as memory.
            Some(mapping) if mapping.file.1 != 0 && !mapping.is_in_memory() => share.min(anonymous),
            Some(_) => share,
        };
        for line in smaps.lines() {
            if let Some(rest) = line.strip_prefix("Pss:") {
                share = amount(rest);
            } else if let Some(rest) = line.strip_prefix("SwapPss:") {
                share += amount(rest);
            } else if let Some(rest) = line.strip_prefix("Anonymous:") {
                anonymous = amount(rest);
            } else if let Some(next) = Mapping::parse(line) {
                sum = u64::saturating_add(sum, add(&mapping, share, anonymous));
                (mapping, share, anonymous) = (Some(next), 0, 0);
            }
        }
        sum.saturating_add(add(&mapping, share, anonymous))
    }

    fn is_counted(&self, mapping: &Mapping<'_>) -> bool {
        mapping.name.starts_with(LISTED)
            || self.devices.contains(&mapping.file.0)
            || self.counted.contains(&mapping.file)
    }
}

/// One line of a process's mappings.
#[derive(Debug)]
struct Mapping<'t> {
    /// The address range, as in the names of `map_files`.
    range: String,
    /// Device and inode of the file; 0 if the mapping has no file.
    file: (u64, u64),
    name: &'t str,
}

impl<'t> Mapping<'t> {
    /// Parses `from-to rights offset device inode name`. Returns `None` for any other line.
    fn parse(line: &'t str) -> Option<Self> {
        let mut rest = line;
        let mut next = || {
            rest = rest.trim_start_matches(' ');
            let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = after;
            word
        };
        let (range, _rights, _offset, device, number) = (next(), next(), next(), next(), next());
        let name = rest.trim_start_matches(' ');
        let (from, to) = range.split_once('-')?;
        let address = |text: &str| u64::from_str_radix(text, 16).ok();
        let (major, minor) = device.split_once(':')?;
        let part = |text: &str| u32::from_str_radix(text, 16).ok();
        Some(Self {
            range: format!("{:x}-{:x}", address(from)?, address(to)?),
            file: (rustix::fs::makedev(part(major)?, part(minor)?), number.parse().ok()?),
            name,
        })
    }

    fn is_in_memory(&self) -> bool {
        MEMORY_NAMES.iter().any(|start| self.name.starts_with(start))
    }
}

/// The folder in `/proc` that shows a process.
struct ProcessFolder(PathBuf);

impl ProcessFolder {
    /// Returns the folder of the first thread. If that thread has ended, returns the folder of another thread.
    fn new(process: &ProcessStat) -> Option<Self> {
        let own = PathBuf::from(format!("/proc/{}", process.pid));
        if !process.is_headless {
            return Some(Self(own));
        }
        let threads = own.join("task");
        let ids = fs::read_dir(&threads).ok()?.flatten();
        let ids = ids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let other = ids.filter(|id| *id != process.pid).max()?;
        Some(Self(threads.join(other.to_string())))
    }
}

/// A descriptor of a process.
struct Descriptor<'p> {
    process: &'p ProcessFolder,
    /// The folder in `/proc` that contains the descriptor.
    folder: &'p OwnedFd,
    number: &'p str,
}

impl Descriptor<'_> {
    /// Returns true if descriptors are in transit through this socket.
    fn has_descriptors_inside(&self) -> bool {
        let text = self.info();
        let count = text.lines().find_map(|line| line.strip_prefix("scm_fds:"));
        count.is_some_and(|count| count.trim() != "0")
    }

    /// Returns true if the descriptor is open for writing.
    fn is_written(&self) -> bool {
        let text = self.info();
        let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
        let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).unwrap_or(0);
        flags & (OFlags::WRONLY | OFlags::RDWR).bits() != 0
    }

    fn info(&self) -> String {
        regular_file::kernel_text(self.process.0.join("fdinfo").join(self.number)).unwrap_or_default()
    }

    /// Returns the magic number of the file system that contains the file.
    fn file_system(&self) -> Option<i64> {
        let file = openat(self.folder, self.number, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
        Some(fstatfs(file).ok()?.f_type as i64)
    }
}

#[cfg(test)]
mod tests;
