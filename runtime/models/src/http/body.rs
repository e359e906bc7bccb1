//! The body of an answer as it arrives, in the framing that the head specifies.

use super::{HEAD_BYTES_MAX, Stream, digits};
use crate::error::{ErrorKind, ModelError};

/// How the end of a body is recognized.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyFraming {
    /// `content-length`: the number of remaining bytes.
    Length(u64),
    /// Chunked: the remaining bytes of the current chunk, and whether the line end after the chunk must still be read.
    Chunked { left: u64, line_end_due: bool },
    /// The body ends when the connection closes.
    UntilClose,
    /// The whole body was read.
    Ended,
}

impl BodyFraming {
    pub(super) fn chunked() -> Self {
        Self::Chunked { left: 0, line_end_due: false }
    }
}

/// A body that is being received.
pub(crate) struct Body<'a> {
    stream: Stream<'a>,
    framing: BodyFraming,
}

impl<'a> Body<'a> {
    pub(super) fn new(stream: Stream<'a>, framing: BodyFraming) -> Self {
        Self { stream, framing }
    }

    /// Waits for at most a tick. Returns false if nothing has arrived, so that [`read`](Self::read) would wait longer.
    pub(crate) fn is_ready(&mut self) -> Result<bool, ModelError> {
        let has_ended = matches!(self.framing, BodyFraming::Ended | BodyFraming::Length(0));
        Ok(has_ended || !self.stream.unread().is_empty() || self.stream.receive()?.is_some())
    }

    /// Appends the next bytes. Returns false at the end of the body.
    pub(crate) fn read(&mut self, into: &mut Vec<u8>) -> Result<bool, ModelError> {
        match self.framing {
            BodyFraming::Ended => Ok(false),
            BodyFraming::UntilClose => {
                if self.stream.unread().is_empty() && !self.stream.fill()? {
                    self.framing = BodyFraming::Ended;
                    return Ok(false);
                }
                let all = self.stream.unread().len() as u64;
                self.take(all, into);
                Ok(true)
            }
            BodyFraming::Length(0) => Ok(false),
            BodyFraming::Length(left) => {
                self.await_bytes()?;
                self.framing = BodyFraming::Length(left - self.take(left, into));
                Ok(true)
            }
            BodyFraming::Chunked { left: 0, line_end_due } => self.next_chunk(line_end_due, into),
            BodyFraming::Chunked { left, .. } => {
                self.await_bytes()?;
                let taken = self.take(left, into);
                self.framing = BodyFraming::Chunked { left: left - taken, line_end_due: true };
                Ok(true)
            }
        }
    }

    /// Reads the whole body, cut to `bytes_max`. If the connection fails, returns the bytes received so far.
    pub(crate) fn read_cut(&mut self, bytes_max: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while all.len() < bytes_max && self.read(&mut all).unwrap_or(false) {}
        all.truncate(bytes_max);
        all
    }

    fn next_chunk(&mut self, line_end_due: bool, into: &mut Vec<u8>) -> Result<bool, ModelError> {
        if line_end_due && !self.line()?.is_empty() {
            return Err(malformed());
        }
        let line = self.line()?;
        let size = line.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let size = std::str::from_utf8(size).ok().filter(|size| (1..=15).contains(&size.len()));
        let size = size.and_then(|size| digits(size, 16)).ok_or_else(malformed)?;
        if size == 0 {
            self.framing = BodyFraming::Ended;
            return Ok(false);
        }
        self.framing = BodyFraming::Chunked { left: size, line_end_due: true };
        self.read(into)
    }

    /// Reads a line and returns it without its line end.
    fn line(&mut self) -> Result<Vec<u8>, ModelError> {
        loop {
            if let Some(at) = self.stream.unread().iter().position(|byte| *byte == b'\n') {
                let line = self.stream.unread()[..at].trim_ascii_end().to_vec();
                self.stream.consume(at + 1);
                return Ok(line);
            }
            if self.stream.unread().len() > HEAD_BYTES_MAX {
                return Err(malformed());
            }
            self.fill()?;
        }
    }

    fn await_bytes(&mut self) -> Result<(), ModelError> {
        if self.stream.unread().is_empty() { self.fill() } else { Ok(()) }
    }

    fn fill(&mut self) -> Result<(), ModelError> {
        if self.stream.fill()? {
            return Ok(());
        }
        Err(ModelError::new(ErrorKind::Stream, "the answer was cut off"))
    }

    /// Takes up to `most` received bytes and returns their number.
    fn take(&mut self, most: u64, into: &mut Vec<u8>) -> u64 {
        let unread = self.stream.unread();
        let count = usize::try_from(most).unwrap_or(usize::MAX).min(unread.len());
        into.extend_from_slice(&unread[..count]);
        self.stream.consume(count);
        count as u64
    }
}

fn malformed() -> ModelError {
    ModelError::new(ErrorKind::Stream, "the body of the answer is malformed")
}
