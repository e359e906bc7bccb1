//! HTTP/1.1 client: one request on each connection, and the answer as it arrives.
//!
//! Redirects, compression and connection reuse are not supported. Every wait checks for cancellation ten times a second, and every
//! length is limited. A body that ends too early is an error and never a shorter answer.

mod body;
mod connect;

pub(crate) use body::Body;

use crate::deadline::CallDeadline;
use crate::error::{ErrorKind, ModelError};
use crate::provider::Header;
use crate::quota::QuotaHeaders;
use crate::target::{Authorities, Endpoint};
use body::BodyFraming;
use connect::Connection;
use jiff::Timestamp;
use std::io::{ErrorKind as IoKind, Read, Write};
use std::time::{Duration, Instant};

/// Maximum time for connecting.
const CONNECT: Duration = Duration::from_secs(30);
/// Maximum length of the head of an answer, in bytes.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum number of headers of an answer.
const HEADERS_MAX: usize = 128;

/// A request with a JSON body.
pub(crate) struct Post<'a> {
    pub(crate) endpoint: &'a Endpoint,
    pub(crate) authorities: &'a Authorities,
    /// Path that is appended to the path of the endpoint's URL.
    pub(crate) path: String,
    pub(crate) headers: Vec<Header>,
    pub(crate) body: &'a [u8],
}

/// The head of an answer, and a reader of its body.
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) quotas: QuotaHeaders,
    pub(crate) body: Body<'a>,
}

impl Post<'_> {
    /// Sends the request and reads the head of the answer.
    pub(crate) fn send<'p>(&self, deadline: CallDeadline<'p>) -> Result<Reply<'p>, ModelError> {
        let line = connect::connect(self.endpoint, self.authorities, deadline)?;
        let mut stream = Stream { line, deadline, last: Instant::now(), buffer: Vec::new(), at: 0 };
        let mut head = format!("POST {}{} HTTP/1.1\r\n", self.endpoint.path, self.path);
        let length = self.body.len().to_string();
        let authority = self.endpoint.authority();
        let fixed = [
            ("host", authority.as_str()),
            ("user-agent", concat!("glovebox/", env!("CARGO_PKG_VERSION"))),
            ("accept", "text/event-stream, application/x-ndjson, application/json"),
            ("accept-encoding", "identity"),
            ("connection", "close"),
            ("content-type", "application/json"),
            ("content-length", length.as_str()),
        ];
        let own = self.headers.iter().map(|header| (header.name, header.value.as_str()));
        for (name, value) in fixed.into_iter().chain(own) {
            head.extend([name, ": ", value, "\r\n"]);
        }
        head.push_str("\r\n");
        stream.write_all(head.as_bytes())?;
        stream.write_all(self.body)?;
        stream.flush()?;
        stream.reply()
    }
}

/// A connection, and the received bytes that were not read yet.
pub(crate) struct Stream<'a> {
    line: Connection,
    deadline: CallDeadline<'a>,
    last: Instant,
    buffer: Vec<u8>,
    at: usize,
}

impl<'a> Stream<'a> {
    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), ModelError> {
        while !bytes.is_empty() {
            self.deadline.check(self.last)?;
            match self.line.write(bytes) {
                Ok(0) => return Err(cut("while the request was sent")),
                Ok(written) => (bytes, self.last) = (&bytes[written..], Instant::now()),
                Err(error) if is_pause(&error) => {}
                // A provider that refuses early closes the connection before the whole request was sent. The answer contains the reason.
                Err(error) if is_closed(&error) => return Ok(()),
                Err(error) => return Err(lost(&error)),
            }
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), ModelError> {
        loop {
            self.deadline.check(self.last)?;
            match self.line.flush() {
                Err(error) if is_pause(&error) => {}
                Err(error) if !is_closed(&error) => return Err(lost(&error)),
                _ => return Ok(()),
            }
        }
    }

    /// Returns the received bytes that were not read yet.
    fn unread(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    fn consume(&mut self, bytes: usize) {
        self.at += bytes;
    }

    /// Receives more bytes. Returns false at the end of the connection.
    fn fill(&mut self) -> Result<bool, ModelError> {
        loop {
            if let Some(is_more) = self.receive()? {
                return Ok(is_more);
            }
        }
    }

    /// Receives more bytes, and waits for them for at most a tick. Returns false at the end of the connection, and `None` if
    /// nothing has arrived.
    fn receive(&mut self) -> Result<Option<bool>, ModelError> {
        let mut piece = [0; 16 << 10];
        self.buffer.drain(..self.at);
        self.at = 0;
        self.deadline.check(self.last)?;
        match self.line.read(&mut piece) {
            Ok(0) => Ok(Some(false)),
            Ok(received) => {
                self.buffer.extend_from_slice(&piece[..received]);
                self.last = Instant::now();
                Ok(Some(true))
            }
            Err(error) if is_pause(&error) => Ok(None),
            // The framing of the body shows whether the answer is complete.
            Err(error) if is_closed(&error) => Ok(Some(false)),
            Err(error) => Err(lost(&error)),
        }
    }

    /// Reads the head. Interim responses (1xx) have no body and are skipped.
    fn reply(mut self) -> Result<Reply<'a>, ModelError> {
        loop {
            if let Some((bytes, head)) = ResponseHead::parse(self.unread())? {
                self.consume(bytes);
                if !(100..200).contains(&head.status) {
                    let ResponseHead { status, retry_after, quotas, framing } = head;
                    return Ok(Reply { status, retry_after, quotas, body: Body::new(self, framing) });
                }
            } else if self.unread().len() > HEAD_BYTES_MAX {
                return Err(ModelError::new(ErrorKind::Stream, "the head of the answer is too long"));
            } else if !self.fill()? {
                return Err(cut("before the provider answered"));
            }
        }
    }
}

/// The head of an answer.
struct ResponseHead {
    status: u16,
    retry_after: Option<Duration>,
    quotas: QuotaHeaders,
    framing: BodyFraming,
}

impl ResponseHead {
    /// Parses the head and returns it with its length, or `None` if the head is incomplete.
    fn parse(bytes: &[u8]) -> Result<Option<(usize, Self)>, ModelError> {
        let malformed = || ModelError::new(ErrorKind::Stream, "the provider does not answer in HTTP/1.1");
        let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
        let mut response = httparse::Response::new(&mut headers);
        let httparse::Status::Complete(length) = response.parse(bytes).map_err(|_| malformed())? else {
            return Ok(None);
        };
        let (mut retry_after, mut framing) = (None, BodyFraming::UntilClose);
        let (mut quotas, now) = (QuotaHeaders::default(), Timestamp::now());
        for header in response.headers.iter() {
            let value = std::str::from_utf8(header.value).map_err(|_| malformed())?.trim();
            quotas.note(header.name, value, now);
            if header.name.eq_ignore_ascii_case("transfer-encoding") {
                if !value.eq_ignore_ascii_case("chunked") {
                    return Err(malformed());
                }
                framing = BodyFraming::chunked();
            } else if header.name.eq_ignore_ascii_case("content-length")
                && !matches!(framing, BodyFraming::Chunked { .. })
            {
                framing = BodyFraming::Length(digits(value, 10).ok_or_else(malformed)?);
            } else if header.name.eq_ignore_ascii_case("retry-after") {
                retry_after = value.parse().ok().filter(|seconds: &f64| *seconds >= 0.0).map(bounded_seconds);
            }
        }
        let status = response.code.ok_or_else(malformed)?;
        Ok(Some((length, Self { status, retry_after, quotas, framing })))
    }
}

/// Parses a number that has only digits. The parser of the standard library also accepts a plus sign, and two programs that
/// disagree about the length of a body take a part of it for another answer.
fn digits(text: &str, radix: u32) -> Option<u64> {
    let has_only_digits = text.chars().all(|one| one.is_digit(radix));
    has_only_digits.then(|| u64::from_str_radix(text, radix).ok())?
}

/// Converts seconds to a duration. The value is limited, because a provider may send any number.
fn bounded_seconds(seconds: f64) -> Duration {
    Duration::from_secs_f64(seconds.min(86_400.0))
}

/// Returns true if the error only means that nothing was sent or received during a tick.
fn is_pause(error: &std::io::Error) -> bool {
    matches!(error.kind(), IoKind::WouldBlock | IoKind::TimedOut | IoKind::Interrupted)
}

/// Returns true if the error means that the other side closed the connection.
fn is_closed(error: &std::io::Error) -> bool {
    matches!(error.kind(), IoKind::UnexpectedEof | IoKind::ConnectionReset | IoKind::BrokenPipe)
}

fn cut(place: &'static str) -> ModelError {
    ModelError::new(ErrorKind::Network, format_args!("the connection was closed {place}"))
}

fn lost(error: &std::io::Error) -> ModelError {
    ModelError::new(ErrorKind::Network, format_args!("the connection failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_has_only_digits() {
        let parsed = |value: &str| {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {value}\r\n\r\n");
            ResponseHead::parse(head.as_bytes()).map(|parsed| parsed.unwrap().1.framing)
        };
        assert!(matches!(parsed("4"), Ok(BodyFraming::Length(4))));
        for value in ["+4", "-4", "4,4", "0x4", "", "18446744073709551616"] {
            assert!(parsed(value).is_err(), "{value}");
        }
        assert_eq!(["1f", "+1f", "1g", ""].map(|size| digits(size, 16)), [Some(31), None, None, None]);
    }
}
