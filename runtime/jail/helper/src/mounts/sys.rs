//! `/sys` of a jail: copies of a few files about processors, memory nodes and huge pages.
//!
//! Runtimes read them to choose the size of pools and the layout of memory. Nothing of the kernel's own `/sys` is
//! mounted: as root outside, a jail would be the owner of its files, and their counters show what others do. The copies
//! do not change while a jail lives.
#![forbid(unsafe_code)]

use crate::root::Root;
use glovebox_jail_helper::wire::Failure;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

const SYS: &str = "/sys";
/// Files that exist once.
const SINGLE: &[&str] = &[
    "devices/system/cpu/isolated",
    "devices/system/cpu/kernel_max",
    "devices/system/cpu/offline",
    "devices/system/cpu/online",
    "devices/system/cpu/possible",
    "devices/system/cpu/present",
    "devices/system/node/has_cpu",
    "devices/system/node/has_memory",
    "devices/system/node/online",
    "devices/system/node/possible",
    "kernel/mm/transparent_hugepage/defrag",
    "kernel/mm/transparent_hugepage/enabled",
    "kernel/mm/transparent_hugepage/hpage_pmd_size",
    "kernel/mm/transparent_hugepage/shmem_enabled",
];
const PROCESSORS: &str = "devices/system/cpu";
/// Files of each processor.
const OF_PROCESSOR: &[&str] = &[
    "topology/core_cpus",
    "topology/core_cpus_list",
    "topology/core_id",
    "topology/core_siblings",
    "topology/core_siblings_list",
    "topology/die_id",
    "topology/package_cpus_list",
    "topology/physical_package_id",
    "topology/thread_siblings",
    "topology/thread_siblings_list",
    "cpufreq/cpuinfo_max_freq",
    "cpufreq/cpuinfo_min_freq",
];
/// Number of caches that a processor has at most.
const CACHES_MAX: u32 = 5;
/// Files of each cache of a processor.
const OF_CACHE: &[&str] = &[
    "coherency_line_size",
    "level",
    "number_of_sets",
    "shared_cpu_list",
    "shared_cpu_map",
    "size",
    "type",
    "ways_of_associativity",
];
const NODES: &str = "devices/system/node";
/// Files of each memory node.
const OF_NODE: &[&str] = &["cpulist", "cpumap", "distance"];
/// Maximum number of copied files. On a machine with more, the last processors have no folder.
const FILES_MAX: usize = 4096;
/// Maximum size of a copied file, bytes: what the kernel returns at most.
const FILE_BYTES_MAX: u64 = 4096;
const FOR_OTHERS: u32 = 0o004;

/// Fills `/sys` of the new root. A file that the kernel does not have is left out.
pub(super) fn fill(root: &Root) -> Result<(), Failure> {
    let sys = Path::new(SYS);
    root.folder(sys)?;
    let mut wanted: Vec<PathBuf> = SINGLE.iter().map(PathBuf::from).collect();
    wanted.extend(numbered(NODES, "node").flat_map(|node| OF_NODE.iter().map(move |name| node.join(name))));
    for processor in numbered(PROCESSORS, "cpu") {
        wanted.extend(OF_PROCESSOR.iter().map(|name| processor.join(name)));
        let caches = (0..CACHES_MAX).map(|index| processor.join(format!("cache/index{index}")));
        wanted.extend(caches.flat_map(|cache| OF_CACHE.iter().map(move |name| cache.join(name))));
        if wanted.len() > 2 * FILES_MAX {
            break;
        }
    }
    let existing = wanted.into_iter().filter_map(|path| Some((sys.join(&path), content(&sys.join(path))?)));
    existing.take(FILES_MAX).try_for_each(|(path, content)| root.file(&path, &content))
}

/// Returns the folders of the online processors or memory nodes, in the order of their numbers.
fn numbered(folder: &'static str, prefix: &'static str) -> impl Iterator<Item = PathBuf> {
    let online = content(&Path::new(SYS).join(folder).join("online"));
    let ranges = online.and_then(|text| String::from_utf8(text).ok()).map(|text| parse(&text)).unwrap_or_default();
    ranges
        .into_iter()
        .flat_map(|(first, last)| first..=last)
        .map(move |number| Path::new(folder).join(format!("{prefix}{number}")))
}

/// Parses a list such as `0-3,8`.
fn parse(text: &str) -> Vec<(u32, u32)> {
    let range = |text: &str| match text.split_once('-') {
        Some((first, last)) => Some((first.parse().ok()?, last.parse().ok()?)),
        None => text.parse().ok().map(|only| (only, only)),
    };
    text.trim().split(',').filter_map(range).collect()
}

/// Returns the content of a file that every user may read.
fn content(path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(CWD, path, flags, Mode::empty()).ok()?;
    if fstat(&opened).ok()?.st_mode & FOR_OTHERS == 0 {
        return None;
    }
    let mut content = Vec::new();
    File::from(opened).take(FILE_BYTES_MAX).read_to_end(&mut content).ok()?;
    Some(content)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_numbers_are_parsed() {
        for (text, expected) in [
            ("0-1\n", vec![(0, 1)]),
            ("0\n", vec![(0, 0)]),
            ("0-3,8,10-11\n", vec![(0, 3), (8, 8), (10, 11)]),
            ("\n", vec![]),
            ("x-1,2", vec![(2, 2)]),
        ] {
            assert_eq!(parse(text), expected, "{text:?}");
        }
    }
}
