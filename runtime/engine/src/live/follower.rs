//! Follows the file with the output of a running attempt, from another process or from this one.
//!
//! The file is untrusted: anything that is not a frame ends the following. At most one frame is in memory.

use super::{FRAME_BYTES_MAX, HEAD_BYTES, kind, name};
use cap_std::fs::{Dir, File};
use glovebox_host::call::OutputStream;
use glovebox_journal::event::AttemptId;
use glovebox_workspace::regular_file;
use std::io::{self, Read};

/// Maximum number of bytes that are read at once.
const PIECE_BYTES: usize = 64 << 10;

/// What a follower learns about the commands of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveFrame<'a> {
    /// A command begins: its text, which may be hostile.
    Command(&'a str),
    /// The next bytes of a stream.
    Output(OutputStream, &'a [u8]),
    /// The follower was too slow and missed this many bytes.
    Missed(u64),
}

/// Follows the output of one attempt.
#[derive(Debug)]
pub struct LiveFollower {
    attempt: AttemptId,
    file: File,
    waiting: Vec<u8>,
    content_bytes: u64,
    has_ended: bool,
}

impl LiveFollower {
    /// Opens the file of an attempt. `None` if the attempt runs no command, has ended, or can read hold-outs.
    pub fn open(run: &Dir, attempt: &AttemptId) -> Option<Self> {
        let file = open(run, attempt).ok()?;
        Some(Self { attempt: attempt.clone(), file, waiting: Vec::new(), content_bytes: 0, has_ended: false })
    }

    /// Returns true if the attempt has ended and everything was read.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Passes on everything that was written since the last call. Never waits.
    ///
    /// # Errors
    /// If the file cannot be read, or is not a file of frames.
    pub fn read(&mut self, run: &Dir, mut take: impl FnMut(LiveFrame<'_>)) -> io::Result<()> {
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            self.take_frames(run, &mut take)?;
            if self.has_ended {
                return Ok(());
            }
            match self.file.read(&mut piece) {
                Ok(0) => return Ok(()),
                Ok(count) => self.waiting.extend_from_slice(&piece[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Passes on the frames that were read completely.
    fn take_frames(&mut self, run: &Dir, take: &mut impl FnMut(LiveFrame<'_>)) -> io::Result<()> {
        let mut taken = 0;
        while let Some((kind, content)) = first_frame(&self.waiting[taken..])? {
            let length = HEAD_BYTES + content.len();
            match kind {
                kind::COMMAND => take(LiveFrame::Command(&String::from_utf8_lossy(content))),
                kind::STDOUT | kind::STDERR => {
                    let stream = if kind == kind::STDOUT { OutputStream::Stdout } else { OutputStream::Stderr };
                    self.content_bytes += content.len() as u64;
                    take(LiveFrame::Output(stream, content));
                }
                kind::BEFORE => {
                    let before = content.try_into().map(u64::from_le_bytes).map_err(io::Error::other)?;
                    let missed = before.saturating_sub(self.content_bytes);
                    self.content_bytes = self.content_bytes.max(before);
                    if missed > 0 {
                        take(LiveFrame::Missed(missed));
                    }
                }
                kind::NEXT => {
                    // The next file may not exist yet. Then the frame is read again by the next call.
                    let Ok(next) = open(run, &self.attempt) else { break };
                    self.file = next;
                }
                kind::END => self.has_ended = true,
                other => return Err(io::Error::other(format!("a frame of unknown kind {other}"))),
            }
            taken += length;
        }
        self.waiting.drain(..taken);
        Ok(())
    }
}

fn open(run: &Dir, attempt: &AttemptId) -> io::Result<File> {
    regular_file::open_in(run, name(attempt))
}

/// Returns the first frame: its kind and its content. `None` if it is not complete.
fn first_frame(bytes: &[u8]) -> io::Result<Option<(u8, &[u8])>> {
    let Some((head, rest)) = bytes.split_at_checked(HEAD_BYTES) else { return Ok(None) };
    let length = head[1..].try_into().map(u32::from_le_bytes).map_err(io::Error::other)? as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::other(format!("a frame of {length} bytes, at most {FRAME_BYTES_MAX}")));
    }
    Ok(rest.get(..length).map(|content| (head[0], content)))
}
