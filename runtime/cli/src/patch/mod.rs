//! The changes of a run as a patch in git's format. Applied with `git apply`, it changes a project as `glovebox apply`
//! does, except for empty directories.
//!
//! This module knows versions of files and their bytes, not where they are stored. The output for programs is exact to
//! the byte. In the output for a terminal, control characters are escaped and binary files are named instead of
//! printed.

mod binary;
mod delta;
mod hunks;
mod name;
mod rename;
mod render;
mod stat;

pub use delta::{Delta, Mode, Version, deltas, lost_directories};
pub use rename::pair;
pub use render::{Reader, render};
pub use stat::{Counts, render as render_stat};

/// The bytes of both versions of a file; `None` for a version that does not exist.
#[derive(Debug, Default)]
pub struct Bytes {
    /// The bytes before the run.
    pub old: Option<Vec<u8>>,
    /// The bytes after the run.
    pub new: Option<Vec<u8>>,
}

impl Bytes {
    /// Returns true if one of the versions cannot be shown line by line.
    fn is_binary(&self) -> bool {
        [&self.old, &self.new].into_iter().flatten().any(|bytes| !hunks::is_text(bytes))
    }

    fn are_equal(&self) -> bool {
        self.old == self.new
    }
}
