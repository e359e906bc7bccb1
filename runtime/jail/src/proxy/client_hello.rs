//! The server name in the first bytes of a TLS connection.
//!
//! This module reads a ClientHello across records and returns its server name, which must be the only one (RFC 8446
//! §4.1.2, RFC 6066 §3). Any other message, or one without a name, is refused. The module reads no encrypted data.

/// Maximum size of a message, bytes. Real messages are below 4 KiB.
const MESSAGE_BYTES_MAX: usize = 16 << 10;
/// Maximum number of bytes to wait for: a message and the headers of its records.
pub(super) const HELLO_BYTES_MAX: usize = MESSAGE_BYTES_MAX + (2 << 10);

const RECORD_HANDSHAKE: u8 = 22;
const RECORD_BYTES_MAX: usize = 1 << 14;
const MESSAGE_CLIENT_HELLO: u8 = 1;
const EXTENSION_SERVER_NAME: u16 = 0;
const NAME_TYPE_HOST: u8 = 0;

const SECOND_MESSAGE: &str = "a second message follows the ClientHello";

/// The result of reading the bytes so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum HelloResult {
    /// The message is not complete.
    Incomplete,
    /// The server name, as it was written.
    Names(String),
    /// The message is malformed or has no valid name.
    Refused(&'static str),
}

/// Reads the first bytes of a connection.
pub(super) fn read(bytes: &[u8]) -> HelloResult {
    match message(bytes) {
        Ok(Some(body)) => server_name(&body).map_or_else(HelloResult::Refused, HelloResult::Names),
        Ok(None) if bytes.len() >= HELLO_BYTES_MAX => HelloResult::Refused("the ClientHello is too long"),
        Ok(None) => HelloResult::Incomplete,
        Err(reason) => HelloResult::Refused(reason),
    }
}

/// Returns the body of the first handshake message, joined from its records. Returns `None` while parts are missing.
fn message(bytes: &[u8]) -> Result<Option<Vec<u8>>, &'static str> {
    let mut joined = Vec::new();
    let mut rest = bytes;
    while let Some((kind, tail)) = rest.split_first() {
        if *kind != RECORD_HANDSHAKE {
            return Err("not a TLS handshake");
        }
        let [major, _, high, low, payload @ ..] = tail else {
            return Ok(None);
        };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *major != 3 || length == 0 || length > RECORD_BYTES_MAX {
            return Err("a malformed TLS record");
        }
        let arrived = &payload[..length.min(payload.len())];
        joined.extend_from_slice(arrived);
        let is_whole = arrived.len() == length;
        match body(&joined)? {
            Some(body) if is_whole => return Ok(Some(body.to_vec())),
            // The rest of the record may not have arrived yet, and the result must not depend on when it arrives.
            Some(_) => return Err(SECOND_MESSAGE),
            None if is_whole => {}
            None => return Ok(None),
        }
        rest = &payload[length..];
    }
    Ok(None)
}

/// Returns the body of a ClientHello, or `None` if it is not complete. A second message after it in the same records is
/// refused.
fn body(joined: &[u8]) -> Result<Option<&[u8]>, &'static str> {
    let Some((kind, tail)) = joined.split_first() else { return Ok(None) };
    if *kind != MESSAGE_CLIENT_HELLO {
        return Err("not a ClientHello");
    }
    let [high, middle, low, rest @ ..] = tail else { return Ok(None) };
    let length = usize::from(*high) << 16 | usize::from(*middle) << 8 | usize::from(*low);
    if length > MESSAGE_BYTES_MAX {
        return Err("the ClientHello is too long");
    }
    match rest.len().cmp(&length) {
        std::cmp::Ordering::Less => Ok(None),
        std::cmp::Ordering::Equal => Ok(Some(rest)),
        std::cmp::Ordering::Greater => Err(SECOND_MESSAGE),
    }
}

/// A reader that takes bytes from the front.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], &'static str> {
        let (front, rest) = self.0.split_at_checked(count).ok_or("a malformed ClientHello")?;
        self.0 = rest;
        Ok(front)
    }

    fn short(&mut self) -> Result<u16, &'static str> {
        Ok(self.bytes(2)?.iter().fold(0, |number, byte| number << 8 | u16::from(*byte)))
    }

    /// Reads a vector with a length prefix of one byte.
    fn vector8(&mut self) -> Result<Reader<'a>, &'static str> {
        let length = usize::from(self.bytes(1)?[0]);
        self.bytes(length).map(Reader)
    }

    /// Reads a vector with a length prefix of two bytes.
    fn vector16(&mut self) -> Result<Reader<'a>, &'static str> {
        let length = usize::from(self.short()?);
        self.bytes(length).map(Reader)
    }

    fn ended(&self) -> Result<(), &'static str> {
        if self.0.is_empty() { Ok(()) } else { Err("a malformed ClientHello") }
    }
}

fn server_name(body: &[u8]) -> Result<String, &'static str> {
    let mut hello = Reader(body);
    hello.bytes(2 + 32)?;
    hello.vector8()?;
    hello.vector16()?;
    hello.vector8()?;
    if hello.0.is_empty() {
        return Err("the ClientHello has no server name");
    }
    let mut extensions = hello.vector16()?;
    hello.ended()?;
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.short()?;
        let value = extensions.vector16()?;
        if kind == EXTENSION_SERVER_NAME && found.replace(listed_name(value)?).is_some() {
            return Err("the ClientHello has two server names");
        }
    }
    found.ok_or("the ClientHello has no server name")
}

/// Returns the only name of a `server_name` extension.
fn listed_name(mut value: Reader<'_>) -> Result<String, &'static str> {
    let mut list = value.vector16()?;
    value.ended()?;
    let kind = list.bytes(1)?[0];
    let name = list.vector16()?;
    list.ended().map_err(|_| "the ClientHello has two server names")?;
    let text = std::str::from_utf8(name.0).ok().filter(|text| text.is_ascii() && !text.is_empty());
    if kind == NAME_TYPE_HOST {
        text.map(str::to_owned).ok_or("the server name is not ASCII text")
    } else {
        Err("the server name is not a host name")
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn vector16(content: &[u8]) -> Vec<u8> {
        [&(content.len() as u16).to_be_bytes()[..], content].concat()
    }

    fn extension(kind: u16, content: &[u8]) -> Vec<u8> {
        [&kind.to_be_bytes()[..], &vector16(content)].concat()
    }

    fn name(name: &str) -> Vec<u8> {
        extension(0, &vector16(&[&[0][..], &vector16(name.as_bytes())].concat()))
    }

    fn hello(extensions: &[u8]) -> Vec<u8> {
        let body =
            [&[3, 3][..], &[7; 32], &[32], &[9; 32], &vector16(&[0x13, 1]), &[1, 0], &vector16(extensions)].concat();
        let length = (body.len() as u32).to_be_bytes();
        [&[1][..], &length[1..], &body].concat()
    }

    fn records(message: &[u8], size: usize) -> Vec<u8> {
        message.chunks(size).flat_map(|part| [&[22, 3, 1][..], &vector16(part)].concat()).collect()
    }

    /// Returns a ClientHello for this name, split into records of this size.
    pub(in crate::proxy) fn hello_for(host: &str, size: usize) -> Vec<u8> {
        records(&hello(&[extension(10, &[0, 2, 0, 29]), name(host), extension(43, &[2, 3, 4])].concat()), size)
    }

    #[test]
    fn the_name_is_found_in_one_record_and_in_many() {
        for size in [1, 5, 100, 5000] {
            let bytes = hello_for("api.example.com", size);
            assert_eq!(read(&bytes), HelloResult::Names("api.example.com".to_owned()));
            for end in 0..bytes.len() {
                assert_eq!(read(&bytes[..end]), HelloResult::Incomplete, "{end} of {}", bytes.len());
            }
            let early = [&bytes[..], &[23, 3, 3, 0, 1, 0]].concat();
            assert_eq!(
                read(&early),
                HelloResult::Names("api.example.com".to_owned()),
                "early records are not ours to read"
            );
        }
    }

    #[test]
    fn what_names_nobody_or_two_is_refused() {
        let check = |bytes: &[u8], reason: &'static str| assert_eq!(read(bytes), HelloResult::Refused(reason));
        check(b"SSH-2.0-x\r\n", "not a TLS handshake");
        check(b"GET / HTTP/1.1\r\n", "not a TLS handshake");
        check(&[22, 2, 0, 0, 4], "a malformed TLS record");
        check(&[22, 3, 1, 0, 0], "a malformed TLS record");
        check(&[22, 3, 1, 0x40, 1], "a malformed TLS record");
        check(&[22, 3, 1, 0, 1, 2], "not a ClientHello");
        check(&[22, 3, 1, 0, 4, 1, 1, 0, 0], "the ClientHello is too long");
        check(&records(&hello(&[]), 5000), "the ClientHello has no server name");
        check(&records(&hello(&extension(43, &[2, 3, 4])), 5000), "the ClientHello has no server name");
        check(&records(&hello(&[name("a.b"), name("c.d")].concat()), 5000), "the ClientHello has two server names");
        let both = [&[0][..], &vector16(b"a.b"), &[0], &vector16(b"c.d")].concat();
        check(&records(&hello(&extension(0, &vector16(&both))), 5000), "the ClientHello has two server names");
        check(&records(&hello(&name("")), 5000), "the server name is not ASCII text");
        check(&records(&hello(&name("bücher.de")), 5000), "the server name is not ASCII text");
        check(&records(&hello(&extension(0, &vector16(&[1, 0, 1, 97]))), 5000), "the server name is not a host name");
        check(
            &records(&[hello(&name("a.b")), hello(&name("c.d"))].concat(), 5000),
            "a second message follows the ClientHello",
        );
        let two = records(&[hello(&name("a.b")), hello(&name("c.d"))].concat(), 5000);
        for end in 0..two.len() {
            assert!(!matches!(read(&two[..end]), HelloResult::Names(_)), "{end} bytes of two messages in one record");
        }
        let mut short = hello(&name("a.b"));
        short[3] -= 1;
        short.pop();
        check(&records(&short, 5000), "a malformed ClientHello");
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..600), cut in 1_usize..64) {
            let _ = read(&bytes);
            let _ = read(&records(&bytes, cut));
            let _ = read(&records(&hello(&bytes), cut));
            let _ = read(&records(&hello(&extension(0, &bytes)), 5000));
        }

        #[test]
        fn more_bytes_than_a_hello_may_have_are_never_waited_for(size in 1_usize..64, fill: u8) {
            let message = [&[1, 0, 0x3f, 0xff][..], &vec![fill; HELLO_BYTES_MAX]].concat();
            let bytes = records(&message, size);
            prop_assert!(!matches!(read(&bytes[..HELLO_BYTES_MAX]), HelloResult::Incomplete));
        }
    }
}
