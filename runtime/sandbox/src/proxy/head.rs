//! The head of a proxy request: `CONNECT host:port`, or one absolute-form request over plain HTTP.
//!
//! Strict where leniency is how requests are smuggled: CRLF only, no folded lines, one `Host`, one `Content-Length`, no
//! transfer coding. A forwarded head is written anew, so the far side reads exactly what was checked here.

use super::host::Host;
use super::refused::Refused;
use super::rules::{PORT_HTTP, parse_port};

/// Most bytes of a head.
pub(super) const HEAD_BYTES_MAX: usize = 16 << 10;
const FIELDS_MAX: usize = 100;

/// What a client asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Request {
    /// The host it names.
    pub(super) host: Host,
    /// The port.
    pub(super) port: u16,
    /// How it wants to reach it.
    pub(super) kind: Kind,
}

/// How a host is to be reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// A tunnel of bytes.
    Tunnel,
    /// One request: the head to send on, and the length of the body behind it.
    Single { head: Vec<u8>, body_bytes: u64 },
}

struct Field<'a> {
    name: String,
    value: &'a [u8],
}

/// Where the head ends, if it does: the number of bytes up to and including the empty line.
pub(super) fn end(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Reads a whole head, the empty line included.
pub(super) fn parse(bytes: &[u8]) -> Result<Request, Refused> {
    if bytes.len() > HEAD_BYTES_MAX {
        return Err(Refused::TooLarge(HEAD_BYTES_MAX));
    }
    let text = bytes.strip_suffix(b"\r\n\r\n").ok_or(Refused::Malformed("the head has no end"))?;
    let mut lines = split_lines(text)?.into_iter();
    let (method, target) = request_line(lines.next().unwrap_or_default())?;
    let fields = lines.map(field).collect::<Result<Vec<_>, _>>()?;
    if fields.len() > FIELDS_MAX {
        return Err(Refused::TooLarge(HEAD_BYTES_MAX));
    }
    if method == "CONNECT" { tunnel(target, &fields) } else { single(method, target, &fields) }
}

fn split_lines(text: &[u8]) -> Result<Vec<&[u8]>, Refused> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.windows(2).position(|two| two == b"\r\n") {
        lines.push(&rest[..at]);
        rest = &rest[at + 2..];
    }
    lines.push(rest);
    let clean = |line: &&[u8]| line.iter().all(|byte| *byte == b'\t' || !byte.is_ascii_control());
    if lines.iter().all(clean) { Ok(lines) } else { Err(Refused::Malformed("control characters in the head")) }
}

fn request_line(line: &[u8]) -> Result<(&str, &str), Refused> {
    let line = std::str::from_utf8(line).ok().filter(|line| line.is_ascii());
    let words: Vec<&str> = line.unwrap_or_default().split(' ').collect();
    let [method, target, version] = words[..] else {
        return Err(Refused::Malformed("`METHOD target HTTP/1.1` is expected"));
    };
    let spelled = !method.is_empty()
        && method.len() <= 20
        && method.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
    if !spelled || target.is_empty() || target.contains('\t') {
        return Err(Refused::Malformed("`METHOD target HTTP/1.1` is expected"));
    }
    match version {
        "HTTP/1.1" | "HTTP/1.0" => Ok((method, target)),
        _ => Err(Refused::Malformed("HTTP/1.1 is expected")),
    }
}

fn field(line: &[u8]) -> Result<Field<'_>, Refused> {
    let colon = line.iter().position(|byte| *byte == b':').ok_or(Refused::Malformed("a field without `:`"))?;
    let name = &line[..colon];
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    if name.is_empty() || !name.iter().all(token) {
        return Err(Refused::Malformed("the name of a field"));
    }
    let name = String::from_utf8_lossy(name).to_ascii_lowercase();
    Ok(Field { name, value: line[colon + 1..].trim_ascii() })
}

/// The value of a field that may be there once.
fn once<'a>(fields: &[Field<'a>], name: &str) -> Result<Option<&'a str>, Refused> {
    let mut found = fields.iter().filter(|field| field.name == name);
    let first = found.next().map(|field| std::str::from_utf8(field.value));
    match (first, found.next()) {
        (_, Some(_)) | (Some(Err(_)), _) => Err(Refused::Malformed("a field that may be there once, as text")),
        (Some(Ok(text)), None) => Ok(Some(text)),
        (None, None) => Ok(None),
    }
}

/// Reads `host[:port]`.
fn authority(text: &str, default: Option<u16>) -> Result<(Host, u16), Refused> {
    let bracketed = text.starts_with('[');
    let (name, port) = match text.rsplit_once(':') {
        Some((name, port)) if !bracketed => (name, parse_port(port)),
        _ => (text, default),
    };
    let host = Host::parse(name)?;
    Ok((host, port.ok_or(Refused::Malformed("the target has no port"))?))
}

fn tunnel(target: &str, fields: &[Field<'_>]) -> Result<Request, Refused> {
    let (host, port) = authority(target, None)?;
    check_host(fields, &host, port, port)?;
    if fields.iter().any(|field| matches!(field.name.as_str(), "content-length" | "transfer-encoding")) {
        return Err(Refused::Malformed("a CONNECT with a body"));
    }
    Ok(Request { host, port, kind: Kind::Tunnel })
}

fn check_host(fields: &[Field<'_>], host: &Host, port: u16, default: u16) -> Result<(), Refused> {
    let Some(text) = once(fields, "host")? else { return Ok(()) };
    match authority(text, Some(default)) {
        Ok(named) if named == (host.clone(), port) => Ok(()),
        _ => Err(Refused::OtherHost(host.clone())),
    }
}

fn single(method: &str, target: &str, fields: &[Field<'_>]) -> Result<Request, Refused> {
    const SCHEME: &str = "http://";
    let scheme = target.get(..SCHEME.len()).filter(|scheme| scheme.eq_ignore_ascii_case(SCHEME));
    let rest = scheme
        .map(|_| &target[SCHEME.len()..])
        .ok_or(Refused::Malformed("`http://host/path` or CONNECT is expected"))?;
    let at = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (named, path) = rest.split_at(at);
    if path.contains('#') {
        return Err(Refused::Malformed("the target has a fragment"));
    }
    let (host, port) = authority(named, Some(PORT_HTTP))?;
    if once(fields, "host")?.is_none() {
        return Err(Refused::Malformed("no field `Host`"));
    }
    check_host(fields, &host, port, PORT_HTTP)?;
    if fields.iter().any(|field| field.name == "transfer-encoding") {
        return Err(Refused::NoLength);
    }
    let length = once(fields, "content-length")?.map(content_length).transpose()?;
    let head = forwarded(method, (&host, port, path), fields, length);
    Ok(Request { host, port, kind: Kind::Single { head, body_bytes: length.unwrap_or(0) } })
}

fn content_length(text: &str) -> Result<u64, Refused> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().ok_or(Refused::Malformed("`Content-Length` is no number"))
}

/// Fields that concern this connection only, or that are written anew.
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

/// Writes the head that is sent on. `Connection: close` makes the answer end with the connection: one request, one check.
fn forwarded(method: &str, target: (&Host, u16, &str), fields: &[Field<'_>], length: Option<u64>) -> Vec<u8> {
    let (host, port, path) = target;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let port = if port == PORT_HTTP { String::new() } else { format!(":{port}") };
    let mut head =
        format!("{method} {slash}{path} HTTP/1.1\r\nHost: {host}{port}\r\nConnection: close\r\n").into_bytes();
    if let Some(length) = length {
        head.extend_from_slice(format!("Content-Length: {length}\r\n").as_bytes());
    }
    let connection =
        fields.iter().filter(|field| field.name == "connection").flat_map(|field| field.value.split(|b| *b == b','));
    let listed: Vec<Vec<u8>> = connection.map(|name| name.trim_ascii().to_ascii_lowercase()).collect();
    for field in fields {
        if !HOP_BY_HOP.contains(&field.name.as_str()) && !listed.iter().any(|name| name == field.name.as_bytes()) {
            head.extend_from_slice(field.name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(field.value);
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests;
