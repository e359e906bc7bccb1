//! The files of a run's folder that are its record, each with its digest.
//!
//! Other files are not included: files that stages work on, locks, and sealed hold-outs, whose names and digests only
//! the owner may know. The folder may be untrusted: no symbolic link is followed, and only regular files are opened.

use crate::commit::digest_of;
use crate::exposure::Exposure;
use crate::tree::{self, Owner, Tree, WalkEntry, WalkError};
use glovebox_record::DigestedFile;
use rustix::fs::FileType;
use std::io;
use std::path::Path;

/// Entries of a run's folder that are not part of the record.
const WORKING: [&str; 10] = [
    "workspace",
    "repository",
    "cache",
    "exchanges",
    "stage",
    "holdouts",
    "inbox",
    "owner.sqlite",
    "journal.sqlite-wal",
    "journal.sqlite-shm",
];
/// The folder that has a subfolder for each branch. A subfolder has the layout of a run's folder.
const BRANCHES: &str = "branches";
/// Maximum number of files in a record.
const FILES_MAX: usize = 1_000_000;

/// A file of a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RecordFile {
    /// The path and the digest of the content.
    pub file: DigestedFile,
    /// True if the owner may execute the file. Glovebox makes no file of a record executable.
    pub executable: bool,
}

/// All files of a record.
#[derive(Debug, Clone, Default)]
pub struct RecordFiles {
    /// The files, sorted by path.
    pub files: Vec<RecordFile>,
    /// Counts of the files that can be changed from outside.
    pub exposure: Exposure,
}

/// Returns all files of a run's record with their digests.
///
/// # Errors
/// The system's error with the path. `InvalidInput` for a link, a FIFO or a device, for a name that is not UTF-8, and
/// for more than a million files.
pub fn list(run: &Path) -> io::Result<RecordFiles> {
    let tree = Tree::open(run)?;
    let mut record = RecordFiles::default();
    let visit = &mut |entry: &WalkEntry<'_>| visit(entry, &mut record).map_err(|source| at(entry.path, source));
    tree::walk(&tree, visit).map_err(named)?;
    record.files.sort();
    Ok(record)
}

/// Returns the total size of the record's files in bytes without reading them, because a file of an untrusted run may
/// be as large as a disk.
///
/// # Errors
/// The system's error with the path.
pub fn bytes(run: &Path) -> io::Result<u64> {
    let tree = Tree::open(run)?;
    let mut bytes = 0_u64;
    let visit = &mut |entry: &WalkEntry<'_>| {
        let is_record = !is_working(entry.path, entry.depth);
        if is_record && entry.kind() == FileType::RegularFile {
            bytes = bytes.saturating_add(u64::try_from(entry.stat.st_size).unwrap_or(u64::MAX));
        }
        Ok(is_record && entry.kind() == FileType::Directory)
    };
    tree::walk(&tree, visit).map_err(named)?;
    Ok(bytes)
}

fn named(error: WalkError) -> io::Error {
    io::Error::new(error.source.kind(), format!("`{}`: {}", tree::shown(&error.path), error.source))
}

fn at(path: &Path, source: io::Error) -> WalkError {
    WalkError { path: path.to_owned(), source }
}

fn visit(entry: &WalkEntry<'_>, record: &mut RecordFiles) -> io::Result<bool> {
    let refused = |problem: &str| io::Error::new(io::ErrorKind::InvalidInput, problem);
    let path = entry.path.to_str().ok_or_else(|| refused("its name is not UTF-8"))?;
    if is_working(entry.path, entry.depth) {
        return Ok(false);
    }
    match entry.kind() {
        FileType::Directory => return Ok(true),
        FileType::RegularFile if record.files.len() < FILES_MAX => {}
        FileType::RegularFile => return Err(refused("the record has more than a million files")),
        _ => return Err(refused("it is not a regular file")),
    }
    let file = tree::open_regular(entry.directory, entry.name, Owner::Other)?;
    let (path, bytes) = (path.to_owned(), file.metadata()?.len());
    let file = DigestedFile { path, bytes, digest: digest_of(file)? };
    record.files.push(RecordFile { file, executable: tree::is_executable(&entry.stat) });
    record.exposure.add(&entry.stat);
    Ok(false)
}

/// Returns true for an entry that is not part of a record, in the run's own folder or in the folder of a branch.
fn is_working(path: &Path, depth: u32) -> bool {
    let is_named = || path.file_name().and_then(|name| name.to_str()).is_some_and(|name| WORKING.contains(&name));
    match depth {
        1 => is_named(),
        3 => path.starts_with(BRANCHES) && is_named(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_record::Digest;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_record_is_every_file_but_those_that_stages_work_on() {
        let place = tempfile::tempdir().unwrap();
        let write = |path: &str| {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        };
        let kept = ["a/cache/x", "a/status.json", "blobs/12", "branches/b/a/status.json", "journal.sqlite"];
        let left =
            ["workspace/a", "holdouts/seal.json", "branches/b/workspace/x", "owner.sqlite", "journal.sqlite-wal"];
        kept.iter().chain(&left).for_each(|path| write(path));
        let found = list(place.path()).unwrap().files;
        assert_eq!(found.iter().map(|found| &*found.file.path).collect::<Vec<_>>(), kept);
        assert!(found.iter().all(|found| found.file.digest == Digest::hash(b"x") && found.file.bytes == 1));
        assert_eq!(bytes(place.path()).unwrap(), kept.len() as u64);
    }

    #[test]
    fn nothing_but_files_is_opened() {
        let place = tempfile::tempdir().unwrap();
        symlink("/etc/passwd", place.path().join("final.json")).unwrap();
        let error = list(place.path()).unwrap_err();
        assert!(error.to_string().contains("`final.json`: it is not a regular file"), "{error}");
        fs::remove_file(place.path().join("final.json")).unwrap();
        let pipe = rustix::fs::CWD;
        rustix::fs::mknodat(pipe, place.path().join("pipe"), FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(list(place.path()).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
