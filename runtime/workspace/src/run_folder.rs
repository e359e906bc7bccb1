//! Detects the folders of Glovebox runs, at any path and under any name, and places them in separate block groups on disk.
//!
//! A run's folder contains sealed hold-outs, so it is never copied with a project. It is identified by its journal: an
//! SQLite database with Glovebox's application id. During a run, the id may be only in the write-ahead log, so a
//! database next to a Glovebox lock or a write-ahead log is also accepted as a journal. In doubt, a folder is treated
//! as the folder of a run: it is not copied, and its path is reported.

use crate::regular_file::{self, Links};
use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use std::io::{self, Read};
use std::path::Path;

/// File name of the journal. A folder with a journal is the folder of a run.
pub const JOURNAL_FILE: &str = "journal.sqlite";
/// Files that exist next to a journal during a run, and may exist after it.
const BESIDE: [&str; 2] = ["owner.sqlite", "journal.sqlite-wal"];

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Offset of the application id in an SQLite database, and Glovebox's application id: "GBXJ".
const MARK_AT: usize = 68;
const MARK: &[u8; 4] = b"GBXJ";

/// Returns true if the folder contains a journal of Glovebox. A link to a journal is ignored.
pub fn is_run(folder: &Path) -> bool {
    let journal = folder.join(JOURNAL_FILE);
    let is_file = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    if !is_file(&journal) {
        return false;
    }
    let mut head = [0; MARK_AT + MARK.len()];
    let is_read =
        regular_file::open(&journal, Links::Within(folder)).and_then(|mut file| file.read_exact(&mut head)).is_ok();
    let is_marked = is_read && head.starts_with(MAGIC) && head.ends_with(MARK);
    is_marked || BESIDE.iter().any(|name| is_file(&folder.join(name)))
}

/// Checks the files that SQLite would open for a database of a run, because they may come from an untrusted project.
/// Only regular files are accepted: SQLite would block on a FIFO, and a link can lead anywhere.
///
/// # Errors
/// [`io::ErrorKind::InvalidInput`] with the file, or the system's error.
pub fn check_database(database: &Path) -> io::Result<()> {
    for suffix in ["", "-wal", "-shm", "-journal"] {
        let mut file = database.as_os_str().to_owned();
        file.push(suffix);
        match std::fs::symlink_metadata(&file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
            Ok(found) if found.is_file() => {}
            Ok(_) => {
                let name = Path::new(&file).file_name().unwrap_or_default().to_string_lossy();
                return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("`{name}` is not a regular file")));
            }
        }
    }
    Ok(())
}

/// Tells the file system that the folders in this one are unrelated, as `chattr +T` does.
///
/// ext4 then puts each of them into a separate block group. Otherwise all runs share one, and ext4 checks every inode
/// that was freed there in the last minutes before it allocates a new one. A run that starts after an old run was
/// removed would take several times as long.
///
/// # Errors
/// The system's error, including the case that the file system has no such flag. Only speed depends on the flag.
pub fn keep_apart(folder: &Path) -> io::Result<()> {
    let folder = regular_file::open_folder(folder)?;
    let flags = ioctl_getflags(&folder)?;
    if flags.contains(IFlags::TOPDIR) { Ok(()) } else { Ok(ioctl_setflags(&folder, flags | IFlags::TOPDIR)?) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    fn folders_are_kept_apart_where_the_file_system_can() {
        let place = tempfile::tempdir().unwrap();
        let is_set =
            || ioctl_getflags(File::open(place.path()).unwrap()).is_ok_and(|flags| flags.contains(IFlags::TOPDIR));
        assert!(!is_set());
        assert_eq!(keep_apart(place.path()).is_ok(), is_set());
        assert_eq!(keep_apart(place.path()).is_ok(), is_set(), "again is the same as once");
        const EXT: u64 = 0xef53;
        let kind = rustix::fs::statfs(place.path()).unwrap().f_type;
        assert!(is_set() || kind as u64 != EXT, "ext4 has the mark");
    }

    #[test]
    fn a_run_is_known_by_its_journal_and_nothing_else_is_one() {
        let place = tempfile::tempdir().unwrap();
        let marked = [&MAGIC[..], &[0; MARK_AT - MAGIC.len()], MARK, &[0; 100]].concat();
        let foreign = [&MAGIC[..], &[0; 200]].concat();
        let check = |name: &str, files: &[(&str, &[u8])], expected: bool| {
            let folder = place.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            for (file, bytes) in files {
                std::fs::write(folder.join(file), bytes).unwrap();
            }
            assert_eq!(is_run(&folder), expected, "{name}");
        };
        check("empty", &[], false);
        check("finished", &[(JOURNAL_FILE, &marked)], true);
        check("killed", &[(JOURNAL_FILE, b""), ("owner.sqlite", b"")], true);
        check("logged", &[(JOURNAL_FILE, &foreign), ("journal.sqlite-wal", b"")], true);
        check("another-program", &[(JOURNAL_FILE, &foreign)], false);
        check("text", &[(JOURNAL_FILE, b"GBXJ")], false);
        let linked = place.path().join("linked");
        std::fs::create_dir(&linked).unwrap();
        std::os::unix::fs::symlink("../finished/journal.sqlite", linked.join(JOURNAL_FILE)).unwrap();
        assert!(!is_run(&linked));
    }
}
