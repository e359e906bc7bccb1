//! Headers of requests to a collector, such as a token of the user.
//!
//! The value of a header is in a file or in the variable of the OpenTelemetry specification, never in an argument, which
//! every user of the machine can read. No message contains a value.

use crate::exit::{Exit, Stop};
use glovebox_workspace::regular_file::{self, Links};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use std::path::PathBuf;

/// The variable of the OpenTelemetry specification: `name=value` pairs with commas between them, percent-encoded.
const VARIABLE: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// Maximum size of a file with a value, in bytes.
const VALUE_BYTES_MAX: u64 = 16 << 10;
/// Headers that the connection and the encoding decide.
const RESERVED: &[&str] =
    &["content-type", "content-length", "content-encoding", "connection", "host", "transfer-encoding"];

/// Reads the headers: those of the variable, and those of the arguments, which replace them.
pub fn read(files: &[(String, PathBuf)]) -> Result<HeaderMap, Stop> {
    let mut headers = match std::env::var(VARIABLE) {
        Ok(text) => of_variable(&text).map_err(|why| Stop::new(Exit::Usage, format!("`{VARIABLE}`: {why}")))?,
        Err(std::env::VarError::NotPresent) => HeaderMap::new(),
        Err(_) => return Err(Stop::new(Exit::Usage, format!("`{VARIABLE}` is not UTF-8"))),
    };
    for (name, file) in files {
        let bad = |why: String| Stop::new(Exit::Usage, format!("`--otlp-header {name}=…`: {why}"));
        let text = regular_file::read_text(file, Links::Follow, VALUE_BYTES_MAX)
            .map_err(|error| bad(format!("read `{}`: {error}", file.display())))?;
        let (name, value) = header(name, text.trim_end_matches(['\r', '\n'])).map_err(bad)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

fn of_variable(text: &str) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    for pair in text.split(',').map(str::trim).filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').ok_or("a pair has no `=`")?;
        let value = decoded(value.trim()).ok_or("a value is not percent-encoded UTF-8")?;
        let (name, value) = header(name.trim(), &value)?;
        headers.insert(name, value);
    }
    Ok(headers)
}

/// Returns a header whose value is never printed.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed: HeaderName = name.parse().map_err(|_| "this is not the name of a header".to_owned())?;
    if RESERVED.contains(&parsed.as_str()) {
        return Err(format!("the header `{parsed}` is set by the export"));
    }
    let mut value: HeaderValue = value
        .parse()
        .map_err(|_| format!("the value of the header `{parsed}` has a character that no header may have"))?;
    value.set_sensitive(true);
    Ok((parsed, value))
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        bytes.push(u8::try_from(high * 16 + low).ok()?);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_has_pairs() {
        let headers = of_variable("Authorization=Bearer%20a%3Db, x-tenant = one,,x-tenant=two").unwrap();
        let of = |name: &str| headers[name].to_str().unwrap();
        assert_eq!((headers.len(), of("authorization"), of("x-tenant")), (2, "Bearer a=b", "two"));
        assert!(!format!("{headers:?}").contains("Bearer"), "{headers:?}");
        assert!(of_variable("").unwrap().is_empty());
        for wrong in [
            "a",
            "=secret",
            "a b=secret",
            "a=%zz-secret",
            "a=%ff",
            "a=secret%0d%0ab",
            "Host=secret",
            "content-type=secret",
        ] {
            let why = of_variable(wrong).unwrap_err();
            assert!(!why.contains("secret"), "{wrong}: {why}");
        }
    }
}
