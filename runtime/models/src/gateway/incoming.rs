//! A request as a program sent it: HTTP/1.1, one request on each connection, with all lengths limited.

use super::in_flight::{InFlight, Reservation};
use std::io::{self, Read, Write};
use std::time::{Duration, Instant};

/// Maximum length of a head, in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 64 << 10;
/// Maximum number of bytes that are read at a time.
const PIECE_BYTES: usize = 16 << 10;
/// Maximum number of headers.
const HEADERS_MAX: usize = 128;
/// Maximum length of a body, in bytes, which is enough for a conversation with pictures.
const BODY_BYTES_MAX: usize = 32 << 20;
/// Maximum time for receiving a body, because other requests may wait for its memory.
const BODY_TIME_MAX: Duration = Duration::from_secs(60);

/// A request of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IncomingRequest {
    /// HTTP method, such as `POST`.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// The query string, without `?`; empty if there is none.
    pub query: String,
    /// Every credential of the request.
    pub credentials: Vec<String>,
    /// Features of the API that the request asks for.
    pub features: Vec<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why a request was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The program closed the connection, or sent nothing in time.
    #[error(transparent)]
    Gone(#[from] io::Error),
    /// The bytes are not a request that this gateway understands.
    #[error("{0}")]
    Malformed(&'static str),
    /// Other requests use the available memory, or the body took too long to arrive. The program may send the request again.
    #[error("{0}")]
    Busy(&'static str),
}

/// The length of a body as stated in the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodyLength {
    Bytes(usize),
    Chunked,
}

struct RequestHead {
    incoming: IncomingRequest,
    length: BodyLength,
    expects_continue: bool,
}

impl IncomingRequest {
    /// Reads one request. The body waits for memory, which stays reserved until the returned reservation is dropped.
    ///
    /// # Errors
    /// [`ReadError`]. Nothing may be read from the connection afterwards.
    pub fn read<'a>(
        connection: &mut (impl Read + Write),
        in_flight: &'a InFlight,
    ) -> Result<(Self, Reservation<'a>), ReadError> {
        let mut bytes = Vec::new();
        let RequestHead { mut incoming, length, expects_continue } = loop {
            if let Some((end, head)) = parse(&bytes)? {
                bytes.drain(..end);
                break head;
            }
            if bytes.len() > HEAD_BYTES_MAX {
                return Err(ReadError::Malformed("the head of the request is too long"));
            }
            more(connection, &mut bytes, PIECE_BYTES)?;
        };
        // The length of a chunked body is not known in advance, so the maximum is reserved at once. If bodies reserved more while they
        // hold a reservation, two of them could wait for each other.
        let most = if let BodyLength::Bytes(length) = length { length } else { BODY_BYTES_MAX };
        let mut room = in_flight
            .reserve(most)
            .ok_or(ReadError::Busy("too many long requests at the same time; try again later"))?;
        if expects_continue {
            connection.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let mut timed = TimedConnection { connection, until: Instant::now() + BODY_TIME_MAX };
        incoming.body = match length {
            BodyLength::Bytes(length) => {
                let mut body = bytes;
                body.truncate(length);
                read_to(&mut timed, &mut body, length, length)?;
                body
            }
            BodyLength::Chunked => chunks(&mut timed, bytes)?,
        };
        // From here on the reservation has the size of the body.
        incoming.body.shrink_to_fit();
        room.shrink_to(incoming.body.len());
        Ok((incoming, room))
    }

    /// Returns true if the request has this credential. The time of the comparison does not depend on the position of
    /// the first difference.
    pub fn has_credential(&self, expected: &str) -> bool {
        let same = |given: &String| {
            let differing = given.bytes().zip(expected.bytes()).fold(0, |all, (one, other)| all | (one ^ other));
            given.len() == expected.len() && differing == 0
        };
        self.credentials.iter().any(same)
    }
}

/// Reads once, at most `most` bytes.
fn more(connection: &mut impl Read, bytes: &mut Vec<u8>, most: usize) -> Result<(), ReadError> {
    let mut piece = [0; PIECE_BYTES];
    match connection.read(&mut piece[..most.min(PIECE_BYTES)])? {
        0 => Err(ReadError::Gone(io::ErrorKind::UnexpectedEof.into())),
        count => {
            bytes.extend_from_slice(&piece[..count]);
            Ok(())
        }
    }
}

/// A connection on which the body must arrive before a deadline.
struct TimedConnection<'c, C> {
    connection: &'c mut C,
    until: Instant,
}

impl<C: Read> TimedConnection<'_, C> {
    fn more(&mut self, bytes: &mut Vec<u8>, most: usize) -> Result<(), ReadError> {
        if Instant::now() >= self.until {
            return Err(ReadError::Busy("the body of the request did not arrive in time"));
        }
        more(self.connection, bytes, most)
    }
}

/// Reads until the body has `length` bytes, and reads nothing after them. No body has more than `body_max` bytes.
fn read_to(
    timed: &mut TimedConnection<'_, impl Read>,
    body: &mut Vec<u8>,
    length: usize,
    body_max: usize,
) -> Result<(), ReadError> {
    while body.len() < length {
        let most = PIECE_BYTES.min(length - body.len());
        grow(body, most, body_max);
        timed.more(body, most)?;
    }
    Ok(())
}

/// Reserves capacity for `count` more bytes. The capacity doubles with the received bytes, but never exceeds `body_max`.
fn grow(body: &mut Vec<u8>, count: usize, body_max: usize) {
    if body.capacity() - body.len() < count {
        let doubled = body.len().max(HEAD_BYTES_MAX).min(body_max - body.len());
        body.reserve_exact(doubled.max(count));
    }
}

/// Parses the head and returns it with its length, or `None` if the head is incomplete.
fn parse(bytes: &[u8]) -> Result<Option<(usize, RequestHead)>, ReadError> {
    let malformed = || ReadError::Malformed("the request is not HTTP/1.1");
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut request = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(end) = request.parse(bytes).map_err(|_| malformed())? else { return Ok(None) };
    let target = request.path.filter(|target| target.starts_with('/')).ok_or_else(malformed)?;
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut incoming = IncomingRequest {
        method: request.method.unwrap_or_default().to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        ..IncomingRequest::default()
    };
    let (mut length, mut expects_continue) = (None, false);
    for header in request.headers.iter() {
        let value = std::str::from_utf8(header.value).map_err(|_| malformed())?.trim();
        let found = match header.name.to_ascii_lowercase().as_str() {
            "content-length" => Some(BodyLength::Bytes(bounded(value)?)),
            "transfer-encoding" if value.eq_ignore_ascii_case("chunked") => Some(BodyLength::Chunked),
            "transfer-encoding" => return Err(malformed()),
            "content-encoding" if !value.eq_ignore_ascii_case("identity") => {
                return Err(ReadError::Malformed("the body of the request is compressed"));
            }
            "authorization" => {
                incoming.credentials.push(value.strip_prefix("Bearer ").unwrap_or(value).to_owned());
                None
            }
            "x-api-key" | "x-goog-api-key" => {
                incoming.credentials.push(value.to_owned());
                None
            }
            "anthropic-beta" => {
                incoming.features.push(value.to_owned());
                None
            }
            "expect" => {
                expects_continue = true;
                None
            }
            _ => None,
        };
        if let Some(found) = found {
            // A second length would allow request smuggling.
            if length.replace(found).is_some() {
                return Err(malformed());
            }
        }
    }
    let in_query = query.split('&').filter_map(|pair| pair.strip_prefix("key="));
    incoming.credentials.extend(in_query.map(str::to_owned));
    Ok(Some((end, RequestHead { incoming, length: length.unwrap_or(BodyLength::Bytes(0)), expects_continue })))
}

fn bounded(length: &str) -> Result<usize, ReadError> {
    let length =
        number(length, 10).ok_or(ReadError::Malformed("the `content-length` of the request is not a number"))?;
    if length > BODY_BYTES_MAX { Err(TOO_LONG) } else { Ok(length) }
}

/// Parses a number that consists only of digits (RFC 9112 §6.3, §7.1). `from_str_radix` alone accepts a sign, which another parser may
/// refuse or read differently.
fn number(digits: &str, radix: u32) -> Option<usize> {
    let is_number = digits.chars().all(|digit| digit.is_digit(radix));
    is_number.then(|| usize::from_str_radix(digits, radix).ok()).flatten()
}

const TOO_LONG: ReadError = ReadError::Malformed("the body of the request is longer than 32 MiB");

/// Reads a chunked body. `bytes` is its beginning, which was already received.
fn chunks(timed: &mut TimedConnection<'_, impl Read>, mut bytes: Vec<u8>) -> Result<Vec<u8>, ReadError> {
    let malformed = ReadError::Malformed("the chunks of the request are malformed");
    let mut body = Vec::new();
    loop {
        let end = loop {
            if let Some(end) = bytes.windows(2).position(|pair| pair == b"\r\n") {
                break end;
            }
            if bytes.len() > HEAD_BYTES_MAX {
                return Err(malformed);
            }
            timed.more(&mut bytes, PIECE_BYTES)?;
        };
        let digits = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
        let digits = digits.split(';').next().unwrap_or_default().trim();
        let Some(size) = number(digits, 16) else { return Err(malformed) };
        if size > BODY_BYTES_MAX || body.len() + size > BODY_BYTES_MAX {
            return Err(TOO_LONG);
        }
        if size == 0 {
            return Ok(body);
        }
        bytes.drain(..end + 2);
        let early = bytes.len().min(size);
        grow(&mut body, early, BODY_BYTES_MAX);
        body.extend(bytes.drain(..early));
        let length = body.len() + size - early;
        read_to(timed, &mut body, length, BODY_BYTES_MAX)?;
        while bytes.len() < 2 {
            timed.more(&mut bytes, PIECE_BYTES)?;
        }
        if !bytes.starts_with(b"\r\n") {
            return Err(malformed);
        }
        bytes.drain(..2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    /// A connection that returns its bytes in small pieces and collects the bytes that are written.
    struct Pieces(Cursor<Vec<u8>>, Vec<u8>);

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let most = into.len().min(7);
            self.0.read(&mut into[..most])
        }
    }

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn read(text: &str) -> Result<IncomingRequest, ReadError> {
        let mut connection = Pieces(Cursor::new(text.as_bytes().to_vec()), Vec::new());
        IncomingRequest::read(&mut connection, &InFlight::default()).map(|(incoming, _)| incoming)
    }

    #[test]
    fn requests_are_read_with_a_length_and_in_chunks() {
        let head =
            "POST /v1/messages?beta=true HTTP/1.1\r\nAuthorization: Bearer t\r\nX-Api-Key: k\r\nanthropic-beta: a\r\n";
        let long = read(&format!("{head}Content-Length: 4\r\n\r\n{{\"\"}}more")).unwrap();
        assert_eq!(
            (long.path.as_str(), long.query.as_str(), long.body.as_slice()),
            ("/v1/messages", "beta=true", &b"{\"\"}"[..])
        );
        assert!(
            long.has_credential("t")
                && long.has_credential("k")
                && !long.has_credential("")
                && !long.has_credential("tt")
        );
        let chunked =
            read(&format!("{head}Transfer-Encoding: chunked\r\n\r\n2;x=1\r\n{{\"\r\n2\r\n\"}}\r\n0\r\n\r\n")).unwrap();
        assert_eq!((chunked.body, chunked.features), (long.body, vec!["a".to_owned()]));
        assert!(read("GET /models?key=abc HTTP/1.1\r\n\r\n").unwrap().has_credential("abc"));
    }

    #[test]
    fn the_longest_body_takes_no_more_memory_than_was_reserved() {
        for coding in ["Content-Length: 33554432\r\n\r\n", "Transfer-Encoding: chunked\r\n\r\n2000000\r\n"] {
            let request = [b"POST / HTTP/1.1\r\n", coding.as_bytes(), &vec![b'x'; BODY_BYTES_MAX], b"\r\n0\r\n\r\n"];
            let in_flight = InFlight::default();
            let (incoming, _room) = IncomingRequest::read(&mut Cursor::new(request.concat()), &in_flight).unwrap();
            assert_eq!((incoming.body.len(), incoming.body.capacity()), (BODY_BYTES_MAX, BODY_BYTES_MAX), "{coding}");
        }
    }

    #[test]
    fn what_could_hide_another_request_is_refused() {
        let refused = |headers: &str| {
            let found = read(&format!("POST / HTTP/1.1\r\n{headers}\r\n0\r\n\r\n"));
            assert!(matches!(found, Err(ReadError::Malformed(_))), "{headers}: {found:?}");
        };
        refused("Content-Length: 1\r\nContent-Length: 1\r\n");
        refused("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n");
        refused("Transfer-Encoding: gzip\r\n");
        refused("Content-Encoding: gzip\r\nContent-Length: 1\r\n");
        refused("Content-Length: 99999999999\r\n");
        refused("Content-Length: -1\r\n");
        refused("Content-Length: +1\r\n");
        refused("Content-Length:\r\n");
        refused("Content-Length: 0x1\r\n");
        for target in ["?key=k", "*", "http://api.example.com/"] {
            assert!(
                matches!(read(&format!("GET {target} HTTP/1.1\r\n\r\n")), Err(ReadError::Malformed(_))),
                "{target}"
            );
        }
        refused(&format!("X: {}\r\n", "x".repeat(HEAD_BYTES_MAX)));
        for chunks in [
            "ffffffff\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "-0\r\n\r\n",
            "\r\n\r\n",
            "5\r\nhello!!0\r\n\r\n",
            "5\r\nhello\n\r0\r\n\r\n",
        ] {
            let found = read(&format!("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"));
            assert!(matches!(found, Err(ReadError::Malformed(_))), "{chunks:?}: {found:?}");
        }
        assert!(matches!(read("POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\nx"), Err(ReadError::Gone(_))));
    }
}
