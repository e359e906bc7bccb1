//! Fuzz target of the readers of a project's repository, with the properties that must hold for any bytes.
//!
//! Used only by the target in `fuzz/` and by the test below, which reads the stored corpus.

use super::last_commit;
use super::objects::WorkLimit;
use super::packed_objects::{BaseCache, PackedObjects, applied};
use crate::ignored;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Write;

/// Maximum length of an object.
const BYTES_MAX: usize = 64 << 10;
/// The base of a delta.
const BASE: &[u8] = b"the base of a delta\n";

/// Reads bytes as a packfile, a delta, the content of a tree object, and an index. The first two bytes are the offset
/// of the object in the packfile.
///
/// # Panics
/// Panics if an object exceeds its bound.
pub fn git_object(bytes: &[u8]) {
    let Some((offset, bytes)) = bytes.split_first_chunk() else { return };
    let mut limit = WorkLimit::new();
    if let Some(pack) = pack(bytes) {
        let read = pack.read(u16::from_be_bytes(*offset).into(), BYTES_MAX, &mut BaseCache::default(), &mut limit);
        if let Ok((_, content)) = read {
            assert!(content.len() <= BYTES_MAX);
        }
    }
    if let Ok(made) = applied(BASE, bytes, BYTES_MAX, &mut limit) {
        assert!(made.len() <= BYTES_MAX);
    }
    let mut list = bytes;
    while let Some((_, rest)) = last_commit::next(list) {
        assert!(rest.len() < list.len());
        list = rest;
    }
    let entries = ignored::index_entries(bytes).unwrap_or_default();
    assert!(entries.len() <= bytes.len());
}

fn pack(bytes: &[u8]) -> Option<PackedObjects> {
    let mut file = File::from(memfd_create("pack", MemfdFlags::CLOEXEC).ok()?);
    file.write_all(bytes).ok()?;
    PackedObjects::without_index(file).ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn git_object() {
        glovebox_short_run::run("git_object", super::git_object);
    }
}
