//! Detects folders that hold a run of this program, at any place and under any name.
//!
//! A run's folder contains sealed hold-outs, so it is never copied with a project. Its journal identifies it: an SQLite database with
//! our application id. During a run the id may be only in the database's log, so a journal with our lock or a log beside it counts
//! too. In doubt, a folder counts as a run: it is not copied, and its path is reported.

use std::fs::File;
use std::io::Read;
use std::path::Path;

/// The file that makes a folder a run.
pub const JOURNAL_FILE: &str = "journal.sqlite";
/// Files that stand beside a journal while, or after, a run is driven.
const BESIDE: [&str; 2] = ["owner.sqlite", "journal.sqlite-wal"];

const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// Where SQLite keeps a database's application id, and ours: "GBXJ".
const MARK_AT: usize = 68;
const MARK: &[u8; 4] = b"GBXJ";

/// True when the folder holds a journal of ours. A link to one is none.
pub fn is_run(folder: &Path) -> bool {
    let journal = folder.join(JOURNAL_FILE);
    let is_file = |path: &Path| std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
    if !is_file(&journal) {
        return false;
    }
    let mut head = [0; MARK_AT + MARK.len()];
    let is_read = File::open(&journal).and_then(|mut file| file.read_exact(&mut head)).is_ok();
    let is_marked = is_read && head.starts_with(MAGIC) && head.ends_with(MARK);
    is_marked || BESIDE.iter().any(|name| is_file(&folder.join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

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
