//! Tests that measure this process, and parse lines of mappings in the kernel's format.
#![cfg(test)]

use super::*;
use glovebox_jail_helper::process::stat;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::{File, OpenOptions};
use std::io::Write;

fn own() -> UnlinkedUsage {
    let mut looking = UnlinkedFileScan::new(Vec::new());
    looking.examine(&stat(std::process::id() as i32).unwrap());
    looking.finish()
}

#[test]
fn files_without_a_name_count_by_where_they_are() {
    const BYTES: usize = 3 << 20;
    let before = own();
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = dir.path().join("gone");
    let mut file = OpenOptions::new().create(true).truncate(true).read(true).write(true).open(&path).unwrap();
    file.write_all(&vec![1; BYTES]).unwrap();
    file.sync_all().unwrap();
    fs::remove_file(&path).unwrap();
    let second = file.try_clone().unwrap();
    let mut memory = File::from(memfd_create("held", MemfdFlags::CLOEXEC).unwrap());
    memory.write_all(&vec![1; BYTES]).unwrap();
    let now = own();
    let more = |now: u64, before: u64| now.saturating_sub(before) as usize;
    // Each file is counted once, although two descriptors refer to it.
    assert!((BYTES..2 * BYTES).contains(&more(now.disk_bytes, before.disk_bytes)), "{now:?} {before:?}");
    assert!((BYTES..2 * BYTES).contains(&more(now.memory_bytes, before.memory_bytes)), "{now:?} {before:?}");
    assert!(now.file_bytes >= BYTES as u64 && now.descriptors >= 6, "{now:?}");
    drop((second, memory));
}

#[test]
fn mappings_are_read_as_the_kernel_writes_them() {
    let line = "7f1c3000000-7f1c3001000 rw-s 00000000 00:01 1026                       /memfd:a b (deleted)";
    let mapping = Mapping::parse(line).unwrap();
    assert_eq!((mapping.range.as_str(), mapping.name), ("7f1c3000000-7f1c3001000", "/memfd:a b (deleted)"));
    assert_eq!(mapping.file, (rustix::fs::makedev(0, 1), 1026));
    assert_eq!(Mapping::parse("00400000-00452000 r-xp 00000000 08:02 173521 /usr/x").unwrap().range, "400000-452000");
    assert!(Mapping::parse("Pss:                  12 kB").is_none());
    assert!(Mapping::parse("VmFlags: rd wr mr mw me sd").is_none());
}

#[test]
fn a_share_counts_unless_it_is_counted_elsewhere() {
    let held = UnlinkedUsage { counted: HashSet::from([(rustix::fs::makedev(0, 1), 7)]), ..UnlinkedUsage::default() };
    let mapping = |device: &str, number: u32, name: &str, share: u32, anonymous: u32| {
        format!(
            "1000-2000 rw-s 0 {device} {number} {name}\nRss: 999 kB\nPss: {share} kB\nPss_Dirty: 5 kB\n\
             Anonymous: {anonymous} kB\nSwapPss: 0 kB\nVmFlags: rd\n"
        )
    };
    let check = |text: String, expected: u64| assert_eq!(held.own_bytes_of(&text), expected << 10, "{text}");
    check(mapping("00:00", 0, "[heap]", 12, 12), 12);
    check(mapping("08:02", 9, "/usr/lib/x", 12, 3), 3);
    check(mapping("00:01", 8, "/memfd:x (deleted)", 12, 0), 12);
    check(mapping("00:01", 7, "/memfd:x (deleted)", 12, 0), 0);
    check(mapping("00:01", 9, "/SYSV00000000 (deleted)", 12, 0), 0);
    check(mapping("00:00", 0, "", 1, 1) + &mapping("00:01", 8, "/dev/zero (deleted)", 2, 0), 3);
}
