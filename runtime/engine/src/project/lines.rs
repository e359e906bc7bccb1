//! A file that grows by whole lines: `progress.ndjson` and `trace.jsonl`.
//!
//! Lines are collected and written together. While a journal is read again, they are written to a temporary file in the
//! same folder. This file finally replaces the old one, in which a crash may have left a partial line.

use cap_std::fs::{Dir, OpenOptions};
use glovebox_journal::event::{Record, write_canonical};
use serde::Serialize;
use std::io::{self, Write};

/// Maximum number of collected bytes while a journal is read again.
const GATHERED_BYTES_MAX: usize = 1024 * 1024;

/// Lines of one file that are not written yet.
pub(super) struct Lines {
    /// The name of the file in the run directory.
    pub(super) name: &'static str,
    gathered: Vec<u8>,
    /// The offset of the last line in `gathered`.
    last: usize,
    /// Number of bytes in the temporary file.
    beside: u64,
}

impl Lines {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, gathered: Vec::new(), last: 0, beside: 0 }
    }

    /// Adds a line.
    pub(super) fn push<T: Serialize>(&mut self, line: &T) -> serde_json::Result<()> {
        self.push_written(|bytes| write_canonical(bytes, line))
    }

    /// Adds a record as a line.
    pub(super) fn push_record(&mut self, record: &Record) -> serde_json::Result<()> {
        self.push_written(|bytes| record.write(bytes))
    }

    fn push_written(&mut self, write: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>) -> serde_json::Result<()> {
        self.last = self.gathered.len();
        if let Err(error) = write(&mut self.gathered) {
            self.gathered.truncate(self.last);
            return Err(error);
        }
        self.gathered.push(b'\n');
        Ok(())
    }

    /// Returns the last line that was added since the last write.
    pub(super) fn last(&self) -> &[u8] {
        self.gathered.get(self.last..).unwrap_or_default()
    }

    /// Returns the number of collected bytes.
    pub(super) fn bytes(&self) -> usize {
        self.gathered.len()
    }

    /// Appends the collected lines. Returns the number of bytes. If that fails, for example because the disk is full, the
    /// file is as before, so that the next call appends the same lines once.
    pub(super) fn append(&mut self, dir: &Dir) -> io::Result<u64> {
        if self.gathered.is_empty() {
            return Ok(0);
        }
        let mut file = dir.open_with(self.name, OpenOptions::new().append(true).create(true))?;
        let before = file.metadata()?.len();
        if let Err(error) = file.write_all(&self.gathered) {
            file.set_len(before)?;
            return Err(error);
        }
        let bytes = self.gathered.len() as u64;
        self.clear();
        Ok(bytes)
    }

    /// Moves all but the last line into the temporary file if many bytes are collected, so that memory is bounded.
    pub(super) fn spill(&mut self, dir: &Dir) -> io::Result<()> {
        if self.last < GATHERED_BYTES_MAX {
            return Ok(());
        }
        self.write_beside(dir, self.last)
    }

    /// Replaces the file with all lines. Returns the number of bytes.
    pub(super) fn replace(&mut self, dir: &Dir) -> io::Result<u64> {
        self.write_beside(dir, self.gathered.len())?;
        dir.rename(self.name_beside(), dir, self.name)?;
        self.clear();
        Ok(std::mem::take(&mut self.beside))
    }

    fn write_beside(&mut self, dir: &Dir, bytes: usize) -> io::Result<()> {
        let mut options = OpenOptions::new();
        match self.beside {
            0 => options.write(true).create(true).truncate(true),
            _ => options.append(true),
        };
        dir.open_with(self.name_beside(), &options)?.write_all(&self.gathered[..bytes])?;
        self.beside += bytes as u64;
        self.gathered.drain(..bytes);
        self.last = 0;
        Ok(())
    }

    fn name_beside(&self) -> String {
        format!(".{}.new", self.name)
    }

    fn clear(&mut self) {
        self.gathered.clear();
        self.last = 0;
    }
}
