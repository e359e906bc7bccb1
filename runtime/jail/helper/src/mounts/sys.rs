//! `/sys` of a jail: copies of a few files about processors, memory nodes and huge pages.
//!
//! Runtimes read them to choose the size of pools and the layout of memory. Nothing of the kernel's own `/sys` is
//! mounted: as root outside, a jail would be the owner of its files, and their counters show what others do. The copies
//! do not change while a jail lives.
#![forbid(unsafe_code)]

use crate::fault::At;
use crate::root::{Root, write_file};
use glovebox_jail_helper::wire::Failure;
use rustix::fd::AsFd;
use rustix::fs::{CWD, Mode, OFlags, fstat, openat};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

const SYS: &str = "/sys";
const PROCESSORS: &str = "devices/system/cpu";
const NODES: &str = "devices/system/node";
/// Folders that exist once, with the copied files.
const SINGLE: &[(&str, &[&str])] = &[
    (PROCESSORS, &["isolated", "kernel_max", "offline", "online", "possible", "present"]),
    (NODES, &["has_cpu", "has_memory", "online", "possible"]),
    ("kernel/mm/transparent_hugepage", &["defrag", "enabled", "hpage_pmd_size", "shmem_enabled"]),
];
/// Folders of each processor.
const OF_PROCESSOR: &[(&str, &[&str])] = &[
    (
        "topology",
        &[
            "core_cpus",
            "core_cpus_list",
            "core_id",
            "core_siblings",
            "core_siblings_list",
            "die_id",
            "package_cpus_list",
            "physical_package_id",
            "thread_siblings",
            "thread_siblings_list",
        ],
    ),
    ("cpufreq", &["cpuinfo_max_freq", "cpuinfo_min_freq"]),
];
/// Maximum number of caches of a processor.
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
/// Files of each memory node.
const OF_NODE: &[&str] = &["cpulist", "cpumap", "distance"];
/// Maximum number of copied files. On a machine with more, the last processors have no folder.
const FILES_MAX: usize = 4096;
/// Maximum size of a copied file, bytes: what the kernel returns at most.
const FILE_BYTES_MAX: usize = 4096;
const FOR_OTHERS: u32 = 0o004;

/// Fills `/sys` of the new root. A file that the kernel does not have is left out.
pub(super) fn fill(root: &Root) -> Result<(), Failure> {
    root.folder(Path::new(SYS))?;
    let single = SINGLE.iter().map(|(folder, names)| (PathBuf::from(folder), *names));
    let nodes = numbered(NODES, "node").map(|node| (node, OF_NODE));
    let processors = numbered(PROCESSORS, "cpu").flat_map(|processor| {
        let caches = (0..CACHES_MAX).map(|index| (format!("cache/index{index}"), OF_CACHE));
        let folders = OF_PROCESSOR.iter().map(|(folder, names)| ((*folder).to_owned(), *names));
        folders.chain(caches).map(move |(folder, names)| (processor.join(folder), names))
    });
    let mut copied = 0;
    for (folder, names) in single.chain(nodes).chain(processors) {
        copied += copy(root, &Path::new(SYS).join(folder), names, FILES_MAX - copied)?;
        if copied >= FILES_MAX {
            break;
        }
    }
    Ok(())
}

/// Copies the existing files of one folder, at most `files_max`, and returns their number.
fn copy(root: &Root, folder: &Path, names: &[&str], files_max: usize) -> Result<usize, Failure> {
    let Ok(source) = openat(CWD, folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return Ok(0);
    };
    let existing = names.iter().filter_map(|name| Some((name, content(&source, Path::new(name))?)));
    let existing: Vec<_> = existing.take(files_max).collect();
    if existing.is_empty() {
        return Ok(0);
    }
    let copies = root.folder(folder)?;
    for (name, content) in &existing {
        write_file(&copies, OsStr::new(name), content).at(format!("make file {}/{name}", folder.display()))?;
    }
    Ok(existing.len())
}

/// Returns the folders of the online processors or memory nodes, in the order of their numbers.
fn numbered(folder: &'static str, prefix: &'static str) -> impl Iterator<Item = PathBuf> {
    let online = content(CWD, &Path::new(SYS).join(folder).join("online"));
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
fn content(folder: impl AsFd, path: &Path) -> Option<Vec<u8>> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat(folder, path, flags, Mode::empty()).ok()?;
    if fstat(&opened).ok()?.st_mode & FOR_OTHERS == 0 {
        return None;
    }
    // The kernel returns the whole content with the first read.
    let mut content = vec![0; FILE_BYTES_MAX];
    let length = rustix::io::read(&opened, &mut content).ok()?;
    content.truncate(length);
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
