//! Converts the source text of a string to its value, and a value to source text.
//!
//! The escapes are those of the specification (`\" \n \t \\`, spec §2.2). A backslash before any other character is kept, so that
//! a prompt can contain `\d+`. A backslash at the end of a line joins it with the next line. CRLF is read as one line feed, so
//! that the line endings of a checkout do not change a prompt.

use std::borrow::Cow;

/// Resolves the escapes in a string without its quotes. Calls `shift(decoded, raw)` at each place where the difference of the two
/// offsets changes.
pub(crate) fn decode(inner: &str, mut shift: impl FnMut(usize, usize)) -> Cow<'_, str> {
    if !inner.bytes().any(|byte| byte == b'\\' || byte == b'\r') {
        return Cow::Borrowed(inner);
    }
    let mut text = String::with_capacity(inner.len());
    let mut rest = 0;
    let mut from = 0;
    while let Some(found) = inner[from..].find(['\\', '\r']) {
        let at = from + found;
        let Some((length, meaning)) = escape(&inner[at..]) else {
            from = at + 1;
            continue;
        };
        text.push_str(&inner[rest..at]);
        shift(text.len(), at);
        text.push_str(meaning);
        rest = at + length;
        from = rest;
        shift(text.len(), rest);
    }
    text.push_str(&inner[rest..]);
    Cow::Owned(text)
}

/// Returns the length and the value of the escape at the start of `raw`. `None` if there is no escape.
fn escape(raw: &str) -> Option<(usize, &'static str)> {
    const ESCAPES: &[(&str, &str)] =
        &[("\\\\", "\\"), ("\\\"", "\""), ("\\n", "\n"), ("\\t", "\t"), ("\\\r\n", ""), ("\\\n", ""), ("\r\n", "\n")];
    ESCAPES.iter().find(|(written, _)| raw.starts_with(written)).map(|(written, meaning)| (written.len(), *meaning))
}

/// Returns the value in quotes, in a form that this parser and Graphviz both accept.
pub fn quote(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for c in value.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            _ => text.push(c),
        }
    }
    text.push('"');
    text
}
