//! The head of a proxy request: `CONNECT host:port`, or one absolute-form request over plain HTTP.
//!
//! `httparse` reads the lines. Request smuggling works only against a lenient parser, so this parser is stricter: CRLF
//! only, no folded lines, one `Host`, one `Content-Length`, no transfer coding. The proxy writes a new head, so the
//! server reads exactly what was checked.

use super::refused_request::RefusedRequest;
use glovebox_record::network::Host;
use glovebox_record::network::{PORT_HTTP, parse_port};
use httparse::Header;

/// Maximum size of a head, bytes.
pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;
const FIELDS_MAX: usize = 100;

/// A client's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ProxyRequest {
    /// The requested host.
    pub(super) host: Host,
    /// The requested port.
    pub(super) port: u16,
    /// How the bytes are forwarded.
    pub(super) kind: RequestKind,
}

/// How the bytes of a request are forwarded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RequestKind {
    /// As a tunnel.
    Tunnel,
    /// As one request: the head to forward, and the length of the body after it, bytes.
    Single { head: Vec<u8>, body_bytes: u64 },
}

/// Returns the length of a head including the empty line, bytes. Returns `None` while the empty line is missing.
pub(super) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Parses a complete head, including the empty line.
pub(super) fn parse(bytes: &[u8]) -> Result<ProxyRequest, RefusedRequest> {
    if bytes.len() > HEAD_BYTES_MAX {
        return Err(RefusedRequest::TooLarge(HEAD_BYTES_MAX));
    }
    check_line_ends(bytes)?;
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Request::new(&mut fields);
    match head.parse(bytes).map_err(refused)? {
        httparse::Status::Complete(read) if read == bytes.len() => {}
        _ => return Err(RefusedRequest::Malformed("the request head must end with one empty line")),
    }
    let (method, target) = request_line(head.method, head.path)?;
    if method == "CONNECT" { tunnel(target, head.headers) } else { single(method, target, head.headers) }
}

/// Refuses what `httparse` accepts: bare line feeds, empty lines before the request, control characters.
fn check_line_ends(bytes: &[u8]) -> Result<(), RefusedRequest> {
    if bytes.starts_with(b"\r\n") {
        return Err(REQUEST_LINE);
    }
    let mut rest = bytes;
    while let Some(at) = rest.iter().position(|byte| *byte != b'\t' && byte.is_ascii_control()) {
        let control = &rest[at..];
        rest = control
            .strip_prefix(b"\r\n")
            .ok_or(RefusedRequest::Malformed("the request head has control characters"))?;
    }
    Ok(())
}

const REQUEST_LINE: RefusedRequest = RefusedRequest::Malformed("expected `METHOD target HTTP/1.1`");

fn refused(error: httparse::Error) -> RefusedRequest {
    match error {
        httparse::Error::TooManyHeaders => RefusedRequest::TooLarge(HEAD_BYTES_MAX),
        httparse::Error::Version => RefusedRequest::Malformed("expected HTTP/1.1"),
        httparse::Error::HeaderName => RefusedRequest::Malformed("a field must have a name and `:`"),
        httparse::Error::HeaderValue => RefusedRequest::Malformed("a field has a malformed value"),
        httparse::Error::NewLine | httparse::Error::Status | httparse::Error::Token => REQUEST_LINE,
    }
}

fn request_line<'a>(method: Option<&'a str>, target: Option<&'a str>) -> Result<(&'a str, &'a str), RefusedRequest> {
    let (Some(method), Some(target)) = (method, target) else { return Err(REQUEST_LINE) };
    let is_method =
        method.len() <= 20 && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-') && target.is_ascii();
    if is_method { Ok((method, target)) } else { Err(REQUEST_LINE) }
}

fn is_named(field: &Header<'_>, name: &str) -> bool {
    field.name.eq_ignore_ascii_case(name)
}

/// Returns the value of a field that may occur at most once.
fn once<'a>(fields: &[Header<'a>], name: &str) -> Result<Option<&'a str>, RefusedRequest> {
    let mut found = fields.iter().filter(|field| is_named(field, name));
    let first = found.next().map(|field| std::str::from_utf8(field.value.trim_ascii()));
    match (first, found.next()) {
        (_, Some(_)) | (Some(Err(_)), _) => {
            Err(RefusedRequest::Malformed("`Host` and `Content-Length` must occur once and be text"))
        }
        (Some(Ok(text)), None) => Ok(Some(text)),
        (None, None) => Ok(None),
    }
}

/// Parses `host[:port]`.
fn authority(text: &str, default: Option<u16>) -> Result<(Host, u16), RefusedRequest> {
    let bracketed = text.starts_with('[');
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !bracketed => (name, parse_port(port)),
        _ => (text, default),
    };
    let host = Host::parse(name)?;
    Ok((host, port.ok_or(RefusedRequest::Malformed("the target has no port"))?))
}

fn tunnel(target: &str, fields: &[Header<'_>]) -> Result<ProxyRequest, RefusedRequest> {
    let (host, port) = authority(target, None)?;
    check_host(fields, &host, port, port)?;
    if fields.iter().any(|field| is_named(field, "content-length") || is_named(field, "transfer-encoding")) {
        return Err(RefusedRequest::Malformed("a CONNECT request must not have a body"));
    }
    Ok(ProxyRequest { host, port, kind: RequestKind::Tunnel })
}

fn check_host(fields: &[Header<'_>], host: &Host, port: u16, default: u16) -> Result<(), RefusedRequest> {
    let Some(text) = once(fields, "host")? else { return Ok(()) };
    match authority(text, Some(default)) {
        Ok((named, its_port)) if named == *host && its_port == port => Ok(()),
        _ => Err(RefusedRequest::OtherHost(host.clone())),
    }
}

fn single(method: &str, target: &str, fields: &[Header<'_>]) -> Result<ProxyRequest, RefusedRequest> {
    const SCHEME: &str = "http://";
    let scheme = target.get(..SCHEME.len()).filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
    let rest = scheme
        .map(|_| &target[SCHEME.len()..])
        .ok_or(RefusedRequest::Malformed("expected `http://host/path` or CONNECT"))?;
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (named, path) = rest.split_at(at);
    if path.contains('#') {
        return Err(RefusedRequest::Malformed("the target has a fragment"));
    }
    let (host, port) = authority(named, Some(PORT_HTTP))?;
    if once(fields, "host")?.is_none() {
        return Err(RefusedRequest::Malformed("the `Host` field is missing"));
    }
    check_host(fields, &host, port, PORT_HTTP)?;
    if fields.iter().any(|field| is_named(field, "transfer-encoding")) {
        return Err(RefusedRequest::NoLength);
    }
    let length = once(fields, "content-length")?.map(content_length).transpose()?;
    let head = forwarded(method, &host, port, path, fields, length);
    Ok(ProxyRequest { host, port, kind: RequestKind::Single { head, body_bytes: length.unwrap_or(0) } })
}

fn content_length(text: &str) -> Result<u64, RefusedRequest> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().ok_or(RefusedRequest::Malformed("`Content-Length` must be a number"))
}

/// Fields that concern only this connection, or that the proxy writes itself.
const HOP_BY_HOP: [&str; 12] = [
    "connection",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "http2-settings",
    "host",
    "content-length",
];

/// Returns the head for the server. With `Connection: close`, the connection ends after the response, so every request
/// is checked.
fn forwarded(method: &str, host: &Host, port: u16, path: &str, fields: &[Header<'_>], length: Option<u64>) -> Vec<u8> {
    let slash = if path.starts_with('/') { "" } else { "/" };
    let port = if port == PORT_HTTP { String::new() } else { format!(":{port}") };
    let mut head =
        format!("{method} {slash}{path} HTTP/1.1\r\nHost: {host}{port}\r\nConnection: close\r\n").into_bytes();
    if let Some(length) = length {
        head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    let connection = fields.iter().filter(|field| is_named(field, "connection"));
    let listed: Vec<&[u8]> = connection.flat_map(|field| field.value.split(|byte| *byte == b',')).collect();
    let is_listed = |name: &str| listed.iter().any(|listed| listed.trim_ascii().eq_ignore_ascii_case(name.as_bytes()));
    for field in fields {
        let name = field.name.to_ascii_lowercase();
        if !HOP_BY_HOP.contains(&name.as_str()) && !is_listed(&name) {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(field.value.trim_ascii());
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests;
