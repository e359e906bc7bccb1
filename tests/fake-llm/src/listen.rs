//! The server side of HTTP/1.1: one request and one answer per connection. An error is sent whole, any other answer in
//! chunks.

use super::parsed;
use glovebox_models::family::Family;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

/// Maximum length of a request body, in bytes.
const BODY_BYTES_MAX: u64 = 64 << 20;
/// Maximum length of a request head, in bytes.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// A request.
pub(super) struct Request {
    pub(super) path: String,
    pub(super) body: Vec<u8>,
    head: String,
}

impl Request {
    /// Reads a request. Returns `None` if the caller sends nothing.
    pub(super) fn read(stream: &TcpStream) -> io::Result<Option<Self>> {
        let mut reader = BufReader::new(stream);
        let mut head = String::new();
        let mut lines = (&mut reader).take(HEAD_BYTES_MAX);
        while lines.read_line(&mut head)? > 0 && !head.ends_with("\r\n\r\n") {}
        let Some(path) = head.split(' ').nth(1) else { return Ok(None) };
        let path = path.to_owned();
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<u64>().ok())?
        });
        let mut body = Vec::new();
        reader.take(length.unwrap_or_default().min(BODY_BYTES_MAX)).read_to_end(&mut body)?;
        Ok(Some(Self { path, body, head }))
    }

    /// Returns true if the value of any header is this key, with or without `Bearer `.
    pub(super) fn carries(&self, key: &str) -> bool {
        self.head
            .lines()
            .filter_map(|line| line.split_once(": "))
            .any(|(_, value)| value.strip_prefix("Bearer ").unwrap_or(value) == key)
    }

    /// Returns the requested model.
    pub(super) fn model(&self) -> Option<&str> {
        let in_path = self.path.split_once("/models/").and_then(|(_, rest)| rest.split_once(':'));
        in_path.map(|(model, _)| model).or_else(|| {
            let text = std::str::from_utf8(&self.body).ok()?;
            let (_, rest) = text.split_once("\"model\":\"")?;
            rest.split_once('"').map(|(model, _)| model)
        })
    }

    /// Returns true if the answer must be streamed. As with the real provider, this depends on the path or on a field
    /// of the request.
    pub(super) fn wants_stream(&self, family: Family) -> bool {
        match family {
            Family::Gemini => self.path.contains(":streamGenerateContent"),
            Family::Ollama => self.json()["stream"] != false,
            Family::Openai | Family::Anthropic | Family::OpenaiCompatible => self.json()["stream"] == true,
        }
    }

    /// Returns the body as JSON.
    pub(super) fn json(&self) -> Value {
        parsed(&self.body)
    }
}

/// The connection on which an answer is sent.
pub(super) struct ResponseStream(TcpStream);

impl ResponseStream {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self(stream)
    }

    /// Sends a complete answer.
    pub(super) fn whole<'h>(
        &mut self,
        status: u16,
        headers: impl Iterator<Item = (&'h str, String)>,
        body: &Value,
    ) -> io::Result<()> {
        let body = body.to_string();
        let headers: String = headers.map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        write!(
            self.0,
            "HTTP/1.1 {status} Written\r\ncontent-type: application/json\r\n{headers}connection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
    }

    /// Begins a chunked answer.
    pub(super) fn begin(&mut self, kind: &str) -> io::Result<()> {
        write!(
            self.0,
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n"
        )
    }

    /// Sends an event as a chunk.
    pub(super) fn event(&mut self, family: Family, frame: &str) -> io::Result<()> {
        let frame = match family {
            Family::Ollama => format!("{}\n", frame.strip_prefix("data: ").unwrap_or(frame).trim_end()),
            _ => format!("{}\n\n", frame.trim_end()),
        };
        self.piece(&frame)
    }

    /// Sends a chunk.
    pub(super) fn piece(&mut self, text: &str) -> io::Result<()> {
        write!(self.0, "{:x}\r\n{text}\r\n", text.len())
    }

    /// Ends a chunked answer.
    pub(super) fn end(&mut self) -> io::Result<()> {
        self.0.write_all(b"0\r\n\r\n")
    }

    /// Closes the connection before an answer.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.0.shutdown(Shutdown::Both)
    }

    /// Announces a chunk, sends only its beginning, and closes the connection.
    pub(super) fn break_off(&mut self) -> io::Result<()> {
        self.0.write_all(b"400\r\ndata: {\"")?;
        self.0.shutdown(Shutdown::Both)
    }
}
