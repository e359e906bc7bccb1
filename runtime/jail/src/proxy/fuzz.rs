//! Readers of untrusted bytes in the proxy, each with the properties that must hold for any bytes.
//!
//! The targets in `fuzz/` call these functions, and the tests below call them with a stored corpus. This module is
//! built only for them.

use super::client_hello::{self, HELLO_BYTES_MAX, HelloResult};
use super::refused_request::RefusedRequest;
use super::request_head::{self, HEAD_BYTES_MAX, ProxyRequest, RequestKind};
use glovebox_record::network::{Host, PORT_HTTP};
use httparse::Header;

/// Reads the first bytes of a TLS connection.
///
/// # Panics
/// Panics if a server name is not ASCII text, if the reader waits beyond its limit, or if the result depends on how
/// many bytes arrive at a time.
pub fn client_hello(bytes: &[u8]) {
    let whole = client_hello::read(bytes);
    match &whole {
        HelloResult::Incomplete => {
            assert!(bytes.len() < HELLO_BYTES_MAX, "it waits for more than {HELLO_BYTES_MAX} bytes")
        }
        HelloResult::Names(name) => {
            assert!(!name.is_empty() && name.is_ascii() && name.len() < bytes.len(), "{name:?}")
        }
        HelloResult::Refused(_) => {}
    }
    for end in [5, bytes.len() / 4, bytes.len() / 2, bytes.len().saturating_sub(1)] {
        let Some(early) = bytes.get(..end).filter(|early| early.len() < HELLO_BYTES_MAX) else { continue };
        let early = client_hello::read(early);
        assert!(
            early == whole || early == HelloResult::Incomplete,
            "{end} bytes give {early:?}, and all of them {whole:?}"
        );
    }
}

/// Reads the head of a request to the proxy.
///
/// # Panics
/// Panics if an accepted request has no valid host, or if the forwarded bytes are not exactly one request to that host.
pub fn request_head(bytes: &[u8]) {
    let bytes = request_head::end_of_head(bytes).map_or(bytes, |end| &bytes[..end]);
    let request = match request_head::parse(bytes) {
        Ok(request) => request,
        Err(refused) => return check_answer(&refused),
    };
    assert!(bytes.len() <= HEAD_BYTES_MAX && bytes.ends_with(b"\r\n\r\n"), "it reads {} bytes", bytes.len());
    assert_eq!(Host::parse(request.host.as_str()).as_ref(), Ok(&request.host));
    assert_ne!(request.port, 0);
    if let RequestKind::Single { head, body_bytes } = &request.kind {
        assert!(head.len() <= bytes.len() + 256, "{} bytes become {}", bytes.len(), head.len());
        check_forwarded(head, &request, *body_bytes);
    }
}

/// Checks that the answer to a refused request is one response, for any request.
fn check_answer(refused: &RefusedRequest) {
    let answer = refused.answer();
    let end = request_head::end_of_head(&answer).unwrap_or_else(|| panic!("{}", answer.escape_ascii()));
    let body = &answer[end..];
    let is_line =
        body.split_last().is_some_and(|(last, line)| *last == b'\n' && !line.iter().any(u8::is_ascii_control));
    assert!(is_line && body.is_ascii() && body.len() < 1024, "{}", answer.escape_ascii());
}

/// Checks that the server reads one request: one host, one length, no hop-by-hop field, and no byte after the empty
/// line.
fn check_forwarded(head: &[u8], request: &ProxyRequest, body_bytes: u64) {
    let shown = head.escape_ascii();
    assert_eq!(request_head::end_of_head(head), Some(head.len()), "{shown}");
    let mut fields = [httparse::EMPTY_HEADER; 128];
    let mut read = httparse::Request::new(&mut fields);
    assert_eq!(read.parse(head), Ok(httparse::Status::Complete(head.len())), "{shown}");
    let values = |name: &str| -> Vec<&[u8]> {
        let named = |field: &&Header<'_>| field.name.eq_ignore_ascii_case(name);
        read.headers.iter().filter(named).map(|field| field.value).collect()
    };
    let host = match request.port {
        PORT_HTTP => request.host.to_string(),
        port => format!("{}:{port}", request.host),
    };
    assert_eq!(values("host"), [host.as_bytes()], "{shown}");
    assert_eq!(values("connection"), [&b"close"[..]], "{shown}");
    for name in
        ["transfer-encoding", "upgrade", "te", "trailer", "keep-alive", "proxy-connection", "proxy-authorization"]
    {
        assert!(values(name).is_empty(), "{shown}");
    }
    let length = values("content-length");
    let expected = body_bytes.to_string();
    assert!(length.is_empty() && body_bytes == 0 || length == [expected.as_bytes()], "{shown}");
    let path = read.path.unwrap_or_default();
    assert!(path.starts_with('/') && !path.contains('#'), "{shown}");
}

#[cfg(test)]
mod tests {
    use glovebox_short_run::{Counting, run_within};

    #[global_allocator]
    static COUNTING: Counting = Counting;

    /// The message is joined from its records, and its body is copied once.
    #[test]
    fn client_hello() {
        run_within("client_hello", |length| 1024 + 4 * length, super::client_hello);
    }

    /// The fields of a head are on the stack. The head is written once, and read again by the check.
    #[test]
    fn request_head() {
        run_within("request_head", |length| 4096 + 6 * length, super::request_head);
    }
}
