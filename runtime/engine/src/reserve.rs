//! Space on the disk that a run keeps for its end. If the disk becomes full, the run gives it back, so that the end can
//! still be recorded and `final.json` be written.

use crate::run_dir::RunDir;
use cap_std::fs::{Dir, File, OpenOptions};
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use std::io::{self, Write};
use std::os::fd::AsFd;

/// The name of the file that holds the space. No node's folder has it, because no id contains a dot.
pub const RESERVE_FILE: &str = "disk.reserve";

/// Size of the reserved space, in bytes.
const RESERVE_BYTES: u64 = 256 << 10;

/// Minimum free space in bytes; with less, the file system counts as full. A step of a run may need that much.
const SPACE_MIN: u64 = 1 << 20;

/// Reserved space. It is given back when the value is dropped, on whichever path a process stops driving the run.
pub(crate) struct Reserve(Dir);

impl Reserve {
    /// Reserves the space.
    ///
    /// # Errors
    ///
    /// Returns the system's error, for example if there is not enough space.
    pub(crate) fn keep(run: &RunDir) -> io::Result<Self> {
        let reserve = Self(run.dir.try_clone()?);
        // A file of a killed run, or whatever else has the name.
        reserve.release();
        fill(&mut reserve.0.open_with(RESERVE_FILE, OpenOptions::new().write(true).create_new(true))?)?;
        Ok(reserve)
    }

    fn release(&self) {
        if let Err(error) = self.0.remove_file(RESERVE_FILE)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::warn!(%error, "`{RESERVE_FILE}` was not removed");
        }
    }
}

impl Drop for Reserve {
    fn drop(&mut self) {
        self.release();
    }
}

fn fill(file: &mut File) -> io::Result<()> {
    match fallocate(&*file, FallocateFlags::empty(), 0, RESERVE_BYTES) {
        Ok(()) => Ok(()),
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
            let zeros = [0; 4096];
            (0..RESERVE_BYTES / zeros.len() as u64).try_for_each(|_| file.write_all(&zeros))
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns true if the file system of a folder is out of space or inodes. The error of a failed write may not say so.
pub fn is_full(folder: impl AsFd) -> bool {
    fstatvfs(folder).is_ok_and(|found| {
        let is_out_of_files = found.f_files > 0 && found.f_favail == 0;
        is_out_of_files || found.f_bavail.saturating_mul(found.f_frsize) < SPACE_MIN
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cap_std::ambient_authority;

    #[test]
    fn the_space_is_kept_until_it_is_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let dir = Dir::open_ambient_dir(folder.path(), ambient_authority()).unwrap();
        let run = RunDir { path: folder.path().to_owned(), dir, key: None };
        let blocks = || {
            use std::os::unix::fs::MetadataExt;
            folder.path().join(RESERVE_FILE).metadata().map(|found| found.blocks() * 512)
        };
        std::os::unix::fs::symlink("elsewhere", folder.path().join(RESERVE_FILE)).unwrap();
        for _ in 0..2 {
            let reserve = Reserve::keep(&run).unwrap();
            assert!(!folder.path().join("elsewhere").exists(), "a link is replaced");
            assert!(blocks().unwrap() >= RESERVE_BYTES, "the blocks are allocated");
            drop(reserve);
            assert!(blocks().is_err());
            // A killed process leaves the file.
            std::fs::write(folder.path().join(RESERVE_FILE), "").unwrap();
        }
        assert!(!is_full(&run.dir));
    }
}
