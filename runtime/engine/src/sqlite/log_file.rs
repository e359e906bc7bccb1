//! The database's write-ahead log as a file: made as long as it gets before the first append.
//!
//! A file that grows makes the file system record its new length and blocks at each flush; one that is written in place does not. SQLite
//! overwrites the zeros in order and reads none of them back: a frame of zeros has no valid checksum.

use super::connection::LOG_PAGES;
use cap_std::fs::{Dir, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};

/// The log of `glovebox_sandbox::run::JOURNAL_FILE`.
pub(crate) const LOG_FILE: &str = "journal.sqlite-wal";

/// Pages that the last append before a checkpoint may add; a larger one lengthens the file once more.
const APPEND_PAGES: u32 = 32;
/// Header of the file, and each page with its own header (SQLite file format §4.1).
pub(crate) const LOG_BYTES: u64 = 32 + (LOG_PAGES + APPEND_PAGES) as u64 * (24 + 4096);
static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];

/// Adds zeros to the log of a run up to its usual length. Only while nothing is appended.
pub(super) fn lengthen(run: &Dir) -> io::Result<()> {
    let mut file = run.open_with(LOG_FILE, OpenOptions::new().write(true))?;
    let mut length = file.seek(SeekFrom::End(0))?;
    while length < LOG_BYTES {
        let count = (LOG_BYTES - length).min(ZEROS.len() as u64);
        file.write_all(&ZEROS[..usize::try_from(count).unwrap_or(ZEROS.len())])?;
        length += count;
    }
    Ok(())
}
