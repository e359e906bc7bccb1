//! Streams over an open file of a view.
//!
//! Regular files never block, so streams in both directions are always ready. Writes use [`FileHandle::write_at`] and
//! [`FileHandle::append`], so that they count against the same limits as all other writes.

use bytes::Bytes;
use glovebox_workspace::view::{FileHandle, ViewError};
use std::sync::Arc;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

/// Maximum number of bytes of one read or write.
pub(super) const CHUNK_BYTES_MAX: usize = 64 << 10;

/// Reads from an offset to the end of the file.
pub(super) struct Reader {
    file: Arc<FileHandle>,
    position: u64,
}

impl Reader {
    pub(super) fn new(file: Arc<FileHandle>, position: u64) -> Self {
        Self { file, position }
    }
}

#[async_trait]
impl Pollable for Reader {
    async fn ready(&mut self) {}
}

#[async_trait]
impl InputStream for Reader {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        let mut buffer = vec![0; size.min(CHUNK_BYTES_MAX)];
        let count = self.file.read_at(&mut buffer, self.position).map_err(failed)?;
        if count == 0 {
            return Err(StreamError::Closed);
        }
        buffer.truncate(count);
        self.position += count as u64;
        Ok(buffer.into())
    }
}

/// The offset at which a stream writes.
pub(super) enum Target {
    Position(u64),
    End,
}

/// Writes from an offset on, or at the end of the file.
pub(super) struct Writer {
    file: Arc<FileHandle>,
    target: Target,
    closed: bool,
}

impl Writer {
    pub(super) fn new(file: Arc<FileHandle>, target: Target) -> Self {
        Self { file, target, closed: false }
    }
}

#[async_trait]
impl Pollable for Writer {
    async fn ready(&mut self) {}
}

#[async_trait]
impl OutputStream for Writer {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if self.closed {
            return Err(StreamError::Closed);
        }
        let written = match &mut self.target {
            Target::End => self.file.append(&bytes),
            Target::Position(position) => {
                let written = self.file.write_at(&bytes, *position);
                *position = position.saturating_add(bytes.len() as u64);
                written
            }
        };
        self.closed = written.is_err();
        written.map_err(failed)
    }

    fn flush(&mut self) -> StreamResult<()> {
        if self.closed { Err(StreamError::Closed) } else { Ok(()) }
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        if self.closed { Err(StreamError::Closed) } else { Ok(CHUNK_BYTES_MAX) }
    }
}

fn failed(denied: ViewError) -> StreamError {
    StreamError::LastOperationFailed(wasmtime::Error::new(denied))
}
