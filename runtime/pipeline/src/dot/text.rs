//! String values: from the letters in the file to the text they mean, and back.
//!
//! Escapes are the specification's (`\" \n \t \\`, spec §2.2); a backslash before anything else stays what it is, so that
//! `\d+` in a prompt survives. A backslash at the end of a line joins it with the next, and CRLF means one new line, so that a
//! checkout's line endings change no prompt.

use std::borrow::Cow;

/// Resolves the escapes of a string's inner text. Calls `shift(decoded, raw)` wherever offsets begin to differ by another amount.
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

/// The length and meaning of the escape at the start of `raw`, none when it stands for itself.
fn escape(raw: &str) -> Option<(usize, &'static str)> {
    const ESCAPES: &[(&str, &str)] =
        &[("\\\\", "\\"), ("\\\"", "\""), ("\\n", "\n"), ("\\t", "\t"), ("\\\r\n", ""), ("\\\n", ""), ("\r\n", "\n")];
    ESCAPES.iter().find(|(written, _)| raw.starts_with(written)).map(|(written, meaning)| (written.len(), *meaning))
}

/// Writes a value as a quoted string that this parser and Graphviz both read.
pub fn quote(value: &str) -> String {
    let mut text = String::with_capacity(value.len() + 2);
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            _ => text.push(letter),
        }
    }
    text.push('"');
    text
}
