//! The files of one commit, as tree objects and as the index of the work tree (git's `gitformat-index`, version 2).
//!
//! The index contains the length and the time of each file, so `git status` does not read files that have not changed.

use super::digest::{ObjectId, ObjectKind};
use super::pack::Pack;
use crate::tree;
use rustix::fs::Stat;
use sha1_smol::Sha1;
use std::collections::BTreeMap;
use std::io;

/// Git's mode of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    File,
    Executable,
    Link,
    /// A commit of another repository.
    Submodule,
}

impl Mode {
    fn number(self) -> u32 {
        match self {
            Self::File => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Link => 0o120_000,
            Self::Submodule => 0o160_000,
        }
    }
}

/// One file, link or submodule of the commit.
pub(super) struct TrackedFile {
    pub(super) id: ObjectId,
    pub(super) mode: Mode,
    /// The status of the file if it is unchanged. Without it, git compares the content.
    pub(super) stat: Option<Stat>,
}

/// All files and links of the commit by path, in the order of the index.
pub(super) type Files = BTreeMap<Vec<u8>, TrackedFile>;

/// A directory of the commit.
#[derive(Default)]
struct TreeFolder<'f> {
    files: Vec<(&'f [u8], &'f TrackedFile)>,
    folders: BTreeMap<&'f [u8], TreeFolder<'f>>,
}

impl<'f> TreeFolder<'f> {
    fn add(&mut self, path: &'f [u8], file: &'f TrackedFile) {
        let mut folder = self;
        let mut names: Vec<&[u8]> = path.split(|byte| *byte == b'/').collect();
        let Some(name) = names.pop() else { return };
        for name in names {
            folder = folder.folders.entry(name).or_default();
        }
        folder.files.push((name, file));
    }

    /// Adds the tree objects of this folder and of all folders below it. The recursion depth is bounded by the longest path.
    fn write(&self, pack: &mut Pack) -> io::Result<ObjectId> {
        // Git sorts a folder as if its name ended with a slash.
        let mut entries: BTreeMap<Vec<u8>, (String, &[u8], ObjectId)> = BTreeMap::new();
        for (name, file) in &self.files {
            entries.insert(name.to_vec(), (format!("{:o}", file.mode.number()), name, file.id));
        }
        for (name, folder) in &self.folders {
            entries.insert([name, &b"/"[..]].concat(), ("40000".to_owned(), name, folder.write(pack)?));
        }
        let mut content = Vec::new();
        for (mode, name, id) in entries.values() {
            content.extend(mode.as_bytes());
            content.push(b' ');
            content.extend(*name);
            content.push(0);
            content.extend(id.0);
        }
        pack.add(ObjectKind::Tree, &content)
    }
}

/// Adds the tree objects and returns the id of the root.
pub(super) fn trees(files: &Files, pack: &mut Pack) -> io::Result<ObjectId> {
    let mut root = TreeFolder::default();
    files.iter().for_each(|(path, file)| root.add(path, file));
    root.write(pack)
}

/// Returns the index with exactly these files.
pub(super) fn index(files: &Files) -> Vec<u8> {
    let mut index = b"DIRC\0\0\0\x02".to_vec();
    index.extend(u32::try_from(files.len()).unwrap_or(u32::MAX).to_be_bytes());
    for (path, file) in files {
        let start = index.len();
        for number in numbers(file) {
            index.extend(number.to_be_bytes());
        }
        index.extend(file.id.0);
        index.extend(u16::try_from(path.len().min(0xfff)).unwrap_or(0xfff).to_be_bytes());
        index.extend(path);
        // The entry is padded with at least one NUL to a multiple of eight bytes.
        let padded = (index.len() - start + 8) / 8 * 8;
        index.resize(start + padded, 0);
    }
    let checksum = Sha1::from(&index).digest().bytes();
    index.extend(checksum);
    index
}

/// Returns the times, device, inode, mode, owners and length, each truncated to 32 bits as git does.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "git truncates them too")]
fn numbers(file: &TrackedFile) -> [u32; 10] {
    let Some(stat) = &file.stat else { return [0, 0, 0, 0, 0, 0, file.mode.number(), 0, 0, 0] };
    [
        stat.st_ctime as u32,
        stat.st_ctime_nsec as u32,
        stat.st_mtime as u32,
        stat.st_mtime_nsec as u32,
        stat.st_dev as u32,
        stat.st_ino as u32,
        file.mode.number(),
        stat.st_uid,
        stat.st_gid,
        tree::length(stat) as u32,
    ]
}
