//! The output of running commands, for people who watch a run: a file for each attempt, which other processes follow, and a
//! function for this process. `draft` is the same for the unfinished answers of models.
//!
//! The output of a stage that can read hold-outs is never passed on. The file is only a hint for people: it is not part of the
//! record, and it is removed when the attempt ends. It is a sequence of frames: a byte for the kind, the length as 4 bytes in
//! little-endian order, and that many bytes. When the file is longer than 4 MiB, a new file replaces it, so that a
//! command with much output needs little space. A follower that is too slow is told how many bytes it missed.

pub(crate) mod draft;
mod follower;

pub use draft::{DraftChange, DraftFollower};
pub use follower::{LiveFollower, LiveFrame};

use crate::run_dir::{LIVE_DIR, RunDir};
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use glovebox_host::call::{LiveOutput, LivePiece, OutputStream};
use glovebox_journal::event::AttemptId;
use glovebox_pipeline::ir::NodeId;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Maximum length of a file, in bytes. A frame that begins below this length is written completely.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Maximum length of a frame's content, in bytes.
const FRAME_BYTES_MAX: usize = 64 << 10;
/// Length of a frame's kind and length, in bytes.
const HEAD_BYTES: usize = 5;

/// The kinds of frames.
mod kind {
    /// The first frame of a file: the number of content bytes in the files before it.
    pub(super) const BEFORE: u8 = b'b';
    pub(super) const COMMAND: u8 = b'c';
    pub(super) const STDOUT: u8 = b'o';
    pub(super) const STDERR: u8 = b'e';
    /// A new file continues this one.
    pub(super) const NEXT: u8 = b'n';
    pub(super) const END: u8 = b'z';
}

/// A function of this process that gets the output of running commands, with the node that runs them.
pub type OutputWatch = Arc<dyn Fn(&NodeId, OutputStream, &[u8]) + Send + Sync>;

/// Creates the watcher of an attempt's commands.
pub(crate) fn watcher(run: Arc<RunDir>, attempt: AttemptId, node: NodeId, watch: Option<OutputWatch>) -> LiveOutput {
    let file = Mutex::new(LiveFile { run, attempt, file: None, file_bytes: 0, content_bytes: 0, has_failed: false });
    LiveOutput::new(move |piece| {
        file.lock().unwrap_or_else(PoisonError::into_inner).write(piece);
        if let (Some(watch), LivePiece::Output(stream, bytes)) = (&watch, piece) {
            watch(&node, stream, bytes);
        }
    })
}

/// The file with the output of an attempt's commands. It is created for the first command, and removed when it is dropped.
struct LiveFile {
    run: Arc<RunDir>,
    attempt: AttemptId,
    file: Option<File>,
    file_bytes: u64,
    /// Number of bytes of output in all files of the attempt.
    content_bytes: u64,
    has_failed: bool,
}

impl LiveFile {
    /// Appends a piece. If this fails, nobody can follow the attempt, but the attempt continues.
    fn write(&mut self, piece: LivePiece<'_>) {
        if self.has_failed {
            return;
        }
        if let Err(error) = self.append(piece) {
            tracing::warn!(%error, "the output of a running command cannot be followed");
            self.has_failed = true;
            self.remove();
        }
    }

    fn append(&mut self, piece: LivePiece<'_>) -> io::Result<()> {
        if self.file_bytes >= FILE_BYTES_MAX {
            self.frame(kind::NEXT, &[])?;
            self.remove();
        }
        if self.file.is_none() {
            (self.file, self.file_bytes) = (Some(create_in(&self.run.dir, &name(&self.attempt))?), 0);
            self.frame(kind::BEFORE, &self.content_bytes.to_le_bytes())?;
        }
        match piece {
            LivePiece::Begin(text) => {
                let cut = text.floor_char_boundary(text.len().min(FRAME_BYTES_MAX));
                self.frame(kind::COMMAND, &text.as_bytes()[..cut])
            }
            LivePiece::Output(stream, bytes) => {
                let kind = if stream == OutputStream::Stdout { kind::STDOUT } else { kind::STDERR };
                self.content_bytes += bytes.len() as u64;
                bytes.chunks(FRAME_BYTES_MAX).try_for_each(|chunk| self.frame(kind, chunk))
            }
        }
    }

    /// Writes a frame with one call, so that a follower seldom sees a part of it.
    fn frame(&mut self, kind: u8, content: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let length = u32::try_from(content.len()).map_err(io::Error::other)?;
        let mut frame = Vec::with_capacity(HEAD_BYTES + content.len());
        frame.push(kind);
        frame.extend_from_slice(&length.to_le_bytes());
        frame.extend_from_slice(content);
        self.file_bytes += frame.len() as u64;
        file.write_all(&frame)
    }

    /// Removes the file. A follower that has it open can still read it.
    fn remove(&mut self) {
        if self.file.take().is_some() {
            // A file that could not be removed is removed when the run is resumed. It is never read as the output of
            // another attempt.
            let _not_there = self.run.dir.remove_file(name(&self.attempt));
        }
    }
}

impl Drop for LiveFile {
    fn drop(&mut self) {
        // A follower that does not get this frame looks at the journal.
        let _not_told = self.frame(kind::END, &[]);
        let was_open = self.file.is_some();
        self.remove();
        if was_open {
            remove_folder(&self.run.dir);
        }
    }
}

/// Creates a file in the folder, which only the user can read. Another attempt that ends may remove the empty folder in between,
/// so this is tried again.
fn create_in(run: &Dir, path: &str) -> io::Result<File> {
    let create = || {
        run.create_dir_all(LIVE_DIR)?;
        run.open_with(path, OpenOptions::new().write(true).create(true).truncate(true).mode(0o600))
    };
    create().or_else(|_| create())
}

/// Removes the folder, unless another attempt has a file in it.
fn remove_folder(run: &Dir) {
    let _in_use = run.remove_dir(LIVE_DIR);
}

fn name(attempt: &AttemptId) -> String {
    format!("{LIVE_DIR}/{attempt}")
}

#[cfg(test)]
mod tests;
