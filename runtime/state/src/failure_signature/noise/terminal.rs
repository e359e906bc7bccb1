//! What a terminal would not show any more: escape sequences, and text that a later output overwrote.

use std::borrow::Cow;

/// Returns a text without ANSI escape sequences and without text that was overwritten after a carriage return or a
/// backspace.
pub(super) fn shown(text: &str) -> Cow<'_, str> {
    // The first byte of `\u{9b}` is 0xc2.
    match text.bytes().any(|byte| matches!(byte, 0x1b | b'\r' | 0x08 | 0xc2)) {
        true => Cow::Owned(printed(text)),
        false => Cow::Borrowed(text),
    }
}

fn printed(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut line = 0;
    let mut rest = text;
    while let Some(at) = rest.find(['\x1b', '\u{9b}', '\r', '\u{8}', '\n']) {
        shown.push_str(&rest[..at]);
        let control = rest[at..].chars().next().unwrap_or_default();
        rest = &rest[at + control.len_utf8()..];
        match control {
            '\x1b' => rest = after_escape(rest),
            '\u{9b}' => rest = after_csi(rest),
            '\u{8}' if shown.len() > line => drop(shown.pop()),
            '\u{8}' => {}
            '\r' => {
                rest = rest.trim_start_matches('\r');
                if !rest.starts_with('\n') && !rest.is_empty() {
                    shown.truncate(line);
                }
            }
            _ => {
                shown.push('\n');
                line = shown.len();
            }
        }
    }
    shown.push_str(rest);
    shown
}

/// Returns the text after an escape sequence whose escape character was already read.
fn after_escape(rest: &str) -> &str {
    match rest.chars().next() {
        Some('[') => after_csi(&rest[1..]),
        // Operating system commands, and other strings with an end.
        Some(']' | 'P' | 'X' | '^' | '_') => match rest.find(['\u{7}', '\x1b']) {
            Some(end) if rest[end..].starts_with("\x1b\\") => &rest[end + 2..],
            Some(end) if rest[end..].starts_with('\u{7}') => &rest[end + 1..],
            Some(end) => &rest[end..],
            None => "",
        },
        // `ESC ( B` and others with intermediate characters.
        Some(' '..='/') => rest.trim_start_matches(|c| matches!(c, ' '..='/')).get(1..).unwrap_or(""),
        Some(first) => &rest[first.len_utf8()..],
        None => "",
    }
}

/// Returns the text after the parameters and the final character of a control sequence.
fn after_csi(rest: &str) -> &str {
    let end = rest.find(|c| !matches!(c, ' '..='?')).unwrap_or(rest.len());
    match rest[end..].chars().next() {
        Some('@'..='~') => &rest[end + 1..],
        _ => &rest[end..],
    }
}
