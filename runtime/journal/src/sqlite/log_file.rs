//! The database's write-ahead log as a file: made as long as it gets before appends need the space.
//!
//! A file that grows makes the file system record its new length and blocks at each flush; one that is written in place does not. SQLite
//! overwrites the zeros in order and reads none of them back: a frame of zeros has no valid checksum.

use super::connection::LOG_PAGES;
use cap_std::fs::{Dir, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};

/// The log of `glovebox_workspace::run_folder::JOURNAL_FILE`.
pub const LOG_FILE: &str = "journal.sqlite-wal";

/// Pages that the last append before a checkpoint may add; a larger one lengthens the file once more.
const APPEND_PAGES: u32 = 32;
/// Pages that the log has for the first appends. A short run needs no more, and begins sooner.
const FIRST_PAGES: u32 = 64;
/// Appends for which the first pages suffice, if each is as large as that of a usual stage.
const FIRST_APPENDS: u32 = 6;
/// Header of the file, and each page with its own header (SQLite file format §4.1).
pub const LOG_BYTES: u64 = bytes_of(LOG_PAGES + APPEND_PAGES);
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// The log of a journal that is written. The writer holds it: no append may run while it gets longer.
pub(super) struct LogFile {
    run: Dir,
    /// Up to the first one that the first pages may be too few for.
    appends: u32,
}

impl LogFile {
    /// Makes it long enough for the first appends.
    pub(super) fn begin(run: &Dir) -> io::Result<Self> {
        lengthen(run, bytes_of(FIRST_PAGES))?;
        Ok(Self { run: run.try_clone()?, appends: 0 })
    }

    /// Makes it as long as it gets, if this append is the first that may need that.
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

/// Adds zeros to the log of a run up to a length.
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
