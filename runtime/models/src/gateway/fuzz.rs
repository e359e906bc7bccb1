//! Fuzz target of the reader of a program's requests, with the properties that must hold for any bytes.
//!
//! Used only by the target in `fuzz/` and by the test below, which reads the stored corpus.

use super::in_flight::{BODIES_BYTES_MAX, InFlight, Reservation};
use super::incoming::{HEAD_BYTES_MAX, IncomingRequest, ReadError};
use std::io::{self, Read, Write};
use std::mem::discriminant;

/// A connection that returns its bytes in pieces and collects the bytes that are written.
struct Pieces<'b> {
    unread: &'b [u8],
    bytes_max: usize,
    written: Vec<u8>,
}

impl Read for Pieces<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let most = into.len().min(self.bytes_max);
        self.unread.read(&mut into[..most])
    }
}

impl Write for Pieces<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.written.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn read<'p>(
    bytes: &[u8],
    bytes_max: usize,
    pools: &'p InFlight,
) -> Result<(IncomingRequest, Reservation<'p>), ReadError> {
    let mut connection = Pieces { unread: bytes, bytes_max, written: Vec::new() };
    let found = IncomingRequest::read(&mut connection, pools);
    let written = connection.written.escape_ascii().to_string();
    assert!(["", r"HTTP/1.1 100 Continue\r\n\r\n"].contains(&written.as_str()), "it writes {written}");
    found
}

/// Reads a request as a whole and in small pieces.
///
/// # Panics
/// Panics if a request is longer than the bytes from which it was read, contains text with a line end, or differs when
/// it is read in pieces, or if the reserved memory does not have the size of the body.
pub fn incoming(bytes: &[u8]) {
    let pools = InFlight::default();
    let whole = read(bytes, usize::MAX, &pools);
    match &whole {
        Ok((incoming, _room)) => {
            check(incoming, bytes.len());
            let rest = BODIES_BYTES_MAX - incoming.body.len();
            assert!(pools.reserve(rest).is_some(), "a body of {} bytes holds more", incoming.body.len());
        }
        Err(ReadError::Busy(reason)) => panic!("refused for others, of which there are none: {reason}"),
        Err(ReadError::Gone(_) | ReadError::Malformed(_)) => {}
    }
    let whole = whole.map(|(incoming, _)| incoming);
    assert!(pools.reserve(BODIES_BYTES_MAX).is_some(), "a request that is over holds room");
    // A longer head may end in the same piece in which it exceeds the limit.
    if bytes.len() <= HEAD_BYTES_MAX {
        let pieces = read(bytes, 1 + bytes.len() / 32, &pools).map(|(incoming, _)| incoming);
        let same = match (&whole, &pieces) {
            (Ok(whole), Ok(pieces)) => whole == pieces,
            (Err(whole), Err(pieces)) => discriminant(whole) == discriminant(pieces),
            _ => false,
        };
        assert!(same, "at once {whole:?}, in pieces {pieces:?}");
    }
}

fn check(incoming: &IncomingRequest, bytes: usize) {
    let IncomingRequest { method, path, query, credentials, features, body } = incoming;
    assert!(body.len() < bytes, "a body of {} bytes out of {bytes}", body.len());
    assert_eq!(body.capacity(), body.len(), "memory that nobody counts");
    let is_word = |text: &str| !text.contains(|character: char| character.is_ascii_control() || character == ' ');
    assert!(!method.is_empty() && path.starts_with('/') && !path.contains('?'), "{incoming:?}");
    assert!(is_word(method) && is_word(path) && is_word(query), "{incoming:?}");
    let mut values = credentials.iter().chain(features);
    assert!(values.all(|value| !value.contains(['\r', '\n', '\0']) && value.len() < bytes), "{incoming:?}");
}

#[cfg(test)]
mod tests {
    use glovebox_short_run::{Counting, run_within};

    #[global_allocator]
    static COUNTING: Counting = Counting;

    /// The memory of a body is bounded by the received bytes and not by the length stated in the head: the head, one piece, and the
    /// received bytes.
    #[test]
    fn incoming() {
        run_within("incoming", |length| (192 << 10) + 8 * length, super::incoming);
    }
}
