//! The file of the database's write-ahead log, which is lengthened to its full size before appends need the space.
//!
//! When a file grows, the file system must record the new length and blocks at each flush; a file that is written in
//! place avoids that. SQLite overwrites the zeros in order and never reads them as frames, because a frame of zeros has
//! no valid checksum.

use super::connection::LOG_PAGES;
use cap_std::fs::{Dir, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};

/// Name of the write-ahead log of `glovebox_workspace::run_folder::JOURNAL_FILE`.
pub const LOG_FILE: &str = "journal.sqlite-wal";

/// Maximum number of pages that the last append before a checkpoint is expected to add. A larger append lengthens the file again.
const APPEND_PAGES: u32 = 32;
/// Number of pages of the log for the first appends. A short run needs no more and starts sooner.
const FIRST_PAGES: u32 = 64;
/// Number of appends for which [`FIRST_PAGES`] suffice, if each is as large as that of a typical stage.
const FIRST_APPENDS: u32 = 6;
/// Full length of the log in bytes: the header of the file, and each page with its frame header (SQLite file format §4.1).
pub const LOG_BYTES: u64 = bytes_of(LOG_PAGES + APPEND_PAGES);
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// The write-ahead log of an open journal. The writer owns it, because no append may run while the file is lengthened.
pub(super) struct LogFile {
    run: Dir,
    /// Number of appends so far. It stops counting once the log has its full length.
    appends: u32,
}

impl LogFile {
    /// Lengthens the log for the first appends.
    pub(super) fn begin(run: &Dir) -> io::Result<Self> {
        lengthen(run, bytes_of(FIRST_PAGES))?;
        Ok(Self { run: run.try_clone()?, appends: 0 })
    }

    /// Lengthens the log to its full length before the first append that may need it.
    pub(super) fn before_append(&mut self) -> io::Result<()> {
        match self.appends {
            0..FIRST_APPENDS => {}
            FIRST_APPENDS => lengthen(&self.run, LOG_BYTES)?,
            _ => return Ok(()),
        }
        self.appends += 1;
        Ok(())
    }
}

const fn bytes_of(pages: u32) -> u64 {
    32 + pages as u64 * (24 + 4096)
}

/// Appends zeros to the log of a run until it has the given length.
fn lengthen(run: &Dir, bytes: u64) -> io::Result<()> {
    let mut file = run.open_with(LOG_FILE, OpenOptions::new().write(true))?;
    let mut length = file.seek(SeekFrom::End(0))?;
    while length < bytes {
        let count = (bytes - length).min(ZEROS.len() as u64);
        file.write_all(&ZEROS[..usize::try_from(count).unwrap_or(ZEROS.len())])?;
        length += count;
    }
    Ok(())
}
