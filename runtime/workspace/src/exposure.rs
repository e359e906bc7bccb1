//! Counts files that can be changed from outside: through another hard link, or by another user.
//!
//! A file that can be changed from outside can still be correct, so the counts are used for a note and not for a
//! verdict. A run hard-links files of its record to each other; these links are not counted.

use rustix::fs::{FileType, Stat};
use std::collections::BTreeMap;

/// Counts of the files that can be changed from outside.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exposure {
    /// Number of files that every user may write.
    pub writable: usize,
    /// Files with several hard links, by device and inode: the number of links, and the number of links that were found.
    names: BTreeMap<(u64, u64), (u64, u64)>,
}

impl Exposure {
    /// Returns the number of files with a hard link that was not found.
    pub fn linked(&self) -> usize {
        self.names.values().filter(|(all, found)| all > found).count()
    }

    /// Adds a file to the counts.
    pub(crate) fn add(&mut self, stat: &Stat) {
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return;
        }
        self.writable += usize::from(stat.st_mode & 0o002 != 0);
        if stat.st_nlink > 1 {
            let names = self.names.entry((stat.st_dev, stat.st_ino)).or_default();
            *names = (stat.st_nlink, names.1 + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn names_that_were_found_are_no_second_names() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        for name in ["one", "two", "open"] {
            fs::write(at(name), "").unwrap();
        }
        fs::set_permissions(at("open"), PermissionsExt::from_mode(0o666)).unwrap();
        fs::hard_link(at("one"), at("one-again")).unwrap();
        fs::hard_link(at("two"), at("two-again")).unwrap();
        let mut found = Exposure::default();
        for name in ["one", "two", "two-again", "open", "."] {
            found.add(&rustix::fs::lstat(at(name)).unwrap());
        }
        assert_eq!((found.linked(), found.writable), (1, 1));
        found.add(&rustix::fs::lstat(at("one-again")).unwrap());
        assert_eq!(found.linked(), 0);
    }
}
