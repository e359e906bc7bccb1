//! Standard output of a guest: kept up to a bound, and cut with a marker beyond it.
//!
//! wasmtime's own pipe traps a guest that writes too much. A handler that writes a lot has done nothing wrong, so here the rest is
//! dropped and only counted. Several handles of a guest share one output.

use bytes::Bytes;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use tokio::io::AsyncWrite;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

/// Maximum number of bytes that a guest may write in one call.
const CHUNK_BYTES_MAX: usize = 64 << 10;

/// One captured stream.
#[derive(Clone)]
pub(crate) struct GuestOutput {
    kept_max: usize,
    inner: Arc<Mutex<OutputBuffer>>,
}

#[derive(Default)]
struct OutputBuffer {
    bytes: Vec<u8>,
    total: u64,
}

impl GuestOutput {
    pub(crate) fn new(kept_bytes_max: u64) -> Self {
        GuestOutput { kept_max: usize::try_from(kept_bytes_max).unwrap_or(usize::MAX), inner: Arc::default() }
    }

    /// Returns the number of bytes that the guest wrote, including dropped ones.
    pub(crate) fn total_bytes(&self) -> u64 {
        self.lock().total
    }

    /// Returns the kept output, with a marker if bytes were dropped.
    pub(crate) fn kept(&self) -> Vec<u8> {
        let kept = self.lock();
        let mut bytes = kept.bytes.clone();
        let dropped = kept.total - kept.bytes.len() as u64;
        if dropped > 0 {
            bytes.extend_from_slice(format!("\n[cut: {dropped} more bytes; limit `output_bytes`]\n").as_bytes());
        }
        bytes
    }

    /// Returns the last bytes of the kept output as text, for the report of a trap.
    pub(crate) fn tail(&self, bytes_max: usize) -> String {
        let kept = self.lock();
        let from = kept.bytes.len().saturating_sub(bytes_max);
        String::from_utf8_lossy(&kept.bytes[from..]).trim().to_owned()
    }

    fn push(&self, bytes: &[u8]) {
        let mut kept = self.lock();
        kept.total += bytes.len() as u64;
        let room = self.kept_max.saturating_sub(kept.bytes.len());
        kept.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn lock(&self) -> MutexGuard<'_, OutputBuffer> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl IsTerminal for GuestOutput {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for GuestOutput {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        Box::new(self.clone())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(self.clone())
    }
}

impl OutputStream for GuestOutput {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        self.push(&bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(CHUNK_BYTES_MAX)
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for GuestOutput {
    async fn ready(&mut self) {}
}

impl AsyncWrite for GuestOutput {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        self.push(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_is_cut_with_a_marker_and_counted() {
        let output = GuestOutput::new(4);
        output.push(b"abc");
        output.push(b"defg");
        assert_eq!(output.total_bytes(), 7);
        assert_eq!(output.kept(), b"abcd\n[cut: 3 more bytes; limit `output_bytes`]\n");
        assert_eq!(output.tail(2), "cd");
    }
}
