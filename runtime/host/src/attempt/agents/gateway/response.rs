//! A response to a program. Until the provider has answered, a keep-alive comment is sent into the stream at intervals, because
//! clients time out if nothing arrives.

use glovebox_jail::port::Connection;
use glovebox_models::error::ModelError;
use glovebox_models::gateway::refusal;
use serde_json::Value;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// Interval between two keep-alive comments in a stream.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// Head of a stream that begins before the answer is complete.
const STREAM_HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";

/// A response that is not complete yet.
pub(super) struct GatewayResponse<'a> {
    connection: Connection<'a>,
    is_streamed: bool,
    is_begun: bool,
    last: Instant,
}

impl<'a> GatewayResponse<'a> {
    pub(super) fn new(connection: Connection<'a>, is_streamed: bool) -> Self {
        Self { connection, is_streamed, is_begun: false, last: Instant::now() }
    }

    /// Sends a keep-alive comment if one is due. Returns false if the client has disconnected.
    pub(super) fn stays(&mut self) -> bool {
        if self.connection.is_closed() {
            return false;
        }
        if !self.is_streamed || self.last.elapsed() < KEEP_ALIVE {
            return true;
        }
        self.last = Instant::now();
        self.send_comment().is_ok()
    }

    fn send_comment(&mut self) -> io::Result<()> {
        if !self.is_begun {
            self.is_begun = true;
            self.connection.write_all(STREAM_HEAD)?;
        }
        self.chunk(b": wait\n\n")
    }

    fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        write!(self.connection, "{:x}\r\n", bytes.len())?;
        self.connection.write_all(bytes)?;
        self.connection.write_all(b"\r\n")
    }

    /// Sends the complete answer.
    pub(super) fn finish(mut self, answer: &[u8]) {
        let sent = if self.is_begun && !answer.is_empty() {
            self.chunk(answer).and_then(|()| self.connection.write_all(b"0\r\n\r\n"))
        } else {
            let kind = if self.is_streamed { "text/event-stream" } else { "application/json" };
            self.whole(200, kind, "", answer)
        };
        gone(sent);
    }

    /// Sends a JSON body.
    pub(super) fn json(mut self, status: u16, body: &Value) {
        gone(self.whole(status, "application/json", "", body.to_string().as_bytes()));
    }

    /// Sends an error. If the stream has already begun, sends nothing: the connection closes without the last chunk,
    /// which no client mistakes for the end of the stream.
    pub(super) fn refuse(mut self, error: &ModelError, retry_after: Option<Duration>) {
        if self.is_begun {
            return;
        }
        let (status, body) = refusal(error);
        let wait = retry_after.map(|wait| format!("retry-after: {}\r\n", wait.as_secs())).unwrap_or_default();
        gone(self.whole(status, "application/json", &wait, body.to_string().as_bytes()));
    }

    fn whole(&mut self, status: u16, kind: &str, header: &str, body: &[u8]) -> io::Result<()> {
        let length = body.len();
        write!(
            self.connection,
            "HTTP/1.1 {status} Gateway\r\ncontent-type: {kind}\r\n{header}connection: close\r\ncontent-length: {length}\r\n\r\n"
        )?;
        self.connection.write_all(body)
    }
}

/// Logs a send that failed. A client that disconnects before its answer is not an error of the gateway.
fn gone(sent: io::Result<()>) {
    if let Err(error) = sent {
        tracing::debug!(%error, "a program closed its connection before it got the answer");
    }
}
