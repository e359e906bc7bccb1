//! The changes of a run as a patch in git's format, such that `git apply` makes of a project what `glovebox apply` makes of it.
//!
//! It knows versions of files and their bytes, not where they are kept. What a program reads is exact to the byte; only for a
//! terminal are control characters escaped and binary files named in place of their bytes.

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

/// The bytes of both versions of a file; none where there is no such version.
#[derive(Debug, Default)]
pub struct Bytes {
    /// Before the run.
    pub old: Option<Vec<u8>>,
    /// After it.
    pub new: Option<Vec<u8>>,
}

impl Bytes {
    /// Whether no line of either version can be shown.
    fn is_binary(&self) -> bool {
        [&self.old, &self.new].into_iter().flatten().any(|bytes| !hunks::is_text(bytes))
    }

    fn are_equal(&self) -> bool {
        self.old == self.new
    }
}
