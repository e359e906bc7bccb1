//! Characters that could deceive a reader, and how they are escaped.
//!
//! Stages and files control node ids, labels, notes, paths and command output, and a terminal obeys control characters in them.
//! This module is the only definition of the characters to escape: all that a terminal obeys, and all that are invisible or
//! reorder the text around them. The terminal output, the drawings, messages, JSON for people and the check of file names before
//! a commit use it.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns true for a character that is not drawn as a glyph but affects text or a terminal: control characters (C0,
/// DEL, C1), line and paragraph separators, and direction controls. Also returns true for characters without width or
/// ink, which make two different texts look alike.
///
/// Variation selectors (U+FE00 to U+FE0F) are not deceptive: they choose between two glyphs for the character before them.
pub fn is_deceptive(character: char) -> bool {
    character.is_control()
        || matches!(
            u32::from(character),
            // Soft hyphen, grapheme joiner, Arabic letter mark, Hangul fillers, Khmer inherent vowels, Mongolian
            // variation selectors.
            0xad | 0x34f | 0x61c | 0x115f..=0x1160 | 0x17b4..=0x17b5 | 0x180b..=0x180f | 0x3164 | 0xffa0
                // Zero-width characters, separators, direction controls, invisible operators, byte order mark.
                | 0x200b..=0x200f | 0x2028..=0x202e | 0x2060..=0x206f | 0xfeff
                // Specials, controls of shorthand and music, tags and the variation selectors after them.
                | 0xfff0..=0xfffb | 0x1bca0..=0x1bca3 | 0x1d173..=0x1d17a | 0xe0000..=0xe0fff
        )
}

/// Escapes one line of untrusted text, line breaks and tabs included.
pub fn line(text: &str) -> Cow<'_, str> {
    match text.chars().any(is_deceptive) {
        true => Cow::Owned(escaped(text, |_| false)),
        false => Cow::Borrowed(text),
    }
}

/// Escapes untrusted text of several lines. Only `\n` and `\t` are kept, and `\r\n` becomes `\n`. The first character of a line
/// that a CI service would read as a command, such as `::error::`, is escaped.
pub fn block(text: &str) -> Cow<'_, str> {
    let passes = |character| matches!(character, '\n' | '\t');
    let shown = match text.chars().any(|character| is_deceptive(character) && !passes(character)) {
        true => Cow::Owned(escaped(&text.replace("\r\n", "\n"), passes)),
        false => Cow::Borrowed(text),
    };
    match shown.lines().any(|line| commanding(line).is_some()) {
        true => Cow::Owned(shown.split('\n').map(obeyed_by_none).collect::<Vec<_>>().join("\n")),
        false => shown,
    }
}

/// Returns the offset of a command that a CI service obeys in a log: GitHub's `::name::` and `##[name]`, Azure's
/// `##vso[name]`. Both services ignore whitespace before a command.
fn commanding(line: &str) -> Option<usize> {
    let text = line.trim_start();
    ["::", "##[", "##vso["].iter().any(|mark| text.starts_with(mark)).then(|| line.len() - text.len())
}

fn obeyed_by_none(line: &str) -> Cow<'_, str> {
    let Some(at) = commanding(line) else { return Cow::Borrowed(line) };
    let mut shown = line[..at].to_owned();
    line[at..].chars().next().into_iter().for_each(|first| push_escaped(&mut shown, first));
    Cow::Owned(shown + &line[at + 1..])
}

/// Escapes the deceptive characters of canonical DOT, which contains them only inside quotes. The backslash of each
/// escape is doubled, so that Graphviz displays the escape.
pub fn dot(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|character| is_deceptive(character) && character != '\n') {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_deceptive(character) && character != '\n' {
            shown.push('\\');
            push_escaped(&mut shown, character);
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// Writes the deceptive characters of a JSON document in the form `\u202e`. The document still parses to the same
/// value: apart from line breaks between tokens, deceptive characters occur only inside strings.
pub fn json(document: &str) -> Cow<'_, str> {
    if !document.chars().any(|character| is_deceptive(character) && character != '\n') {
        return Cow::Borrowed(document);
    }
    let mut shown = String::with_capacity(document.len() + 16);
    for character in document.chars() {
        if !is_deceptive(character) || character == '\n' {
            shown.push(character);
            continue;
        }
        for half in character.encode_utf16(&mut [0; 2]) {
            let written = write!(shown, "\\u{half:04x}");
            debug_assert!(written.is_ok(), "writing to a string cannot fail");
        }
    }
    Cow::Owned(shown)
}

/// Appends a character as an escape of source code: `\n`, `\x1b`, `\u{202e}`.
pub fn push_escaped(shown: &mut String, character: char) {
    let written = match character {
        '\n' => return shown.push_str("\\n"),
        '\r' => return shown.push_str("\\r"),
        '\t' => return shown.push_str("\\t"),
        ascii if ascii.is_ascii() => write!(shown, "\\x{:02x}", u32::from(ascii)),
        other => write!(shown, "\\u{{{:x}}}", u32::from(other)),
    };
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

fn escaped(text: &str, passes: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_deceptive(character) && !passes(character) {
            push_escaped(&mut shown, character);
        } else {
            shown.push(character);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_gives_no_command_to_a_ci_service() {
        for (text, shown) in [
            ("a\n  ::error file=x::no", "a\n  \\x3a:error file=x::no"),
            ("##[command]rm", "\\x23#[command]rm"),
            ("\t##vso[task.setvariable]x\nb", "\t\\x23#vso[task.setvariable]x\nb"),
            ("std::fs\n# heading\n:: \n", "std::fs\n# heading\n\\x3a: \n"),
            ("plain\n", "plain\n"),
        ] {
            assert_eq!(block(text), shown);
        }
    }

    #[test]
    fn a_line_obeys_nothing() {
        for (text, shown) in [
            ("plain", "plain"),
            ("täglich → 日本 ⚠\u{fe0f}", "täglich → 日本 ⚠\u{fe0f}"),
            ("\u{1b}[2J\u{1b}]0;owned\u{7}", "\\x1b[2J\\x1b]0;owned\\x07"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("\u{9b}31m", "\\u{9b}31m"),
            ("a\u{2028}b\u{ad}c\u{3164}d\u{e0041}", "a\\u{2028}b\\u{ad}c\\u{3164}d\\u{e0041}"),
        ] {
            assert_eq!(line(text), shown);
            assert!(!line(text).chars().any(is_deceptive));
        }
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(block("a\r\nb\tc\u{1b}[0m\n"), "a\nb\tc\\x1b[0m\n");
        assert_eq!(block("a\rb"), "a\\rb");
    }

    #[test]
    fn what_needs_no_escape_is_not_copied() {
        let is_borrowed = |text: Cow<'_, str>| matches!(text, Cow::Borrowed(_));
        assert!(is_borrowed(line("plain")) && is_borrowed(block("a\n\tb\n")) && is_borrowed(dot("a\nb")));
        assert!(is_borrowed(json("{\n  \"a\": 1\n}")));
        assert_eq!(dot("a\tb\n"), "a\\\\tb\n");
    }

    #[test]
    fn dot_is_shown_by_graphviz_as_by_a_terminal() {
        assert_eq!(dot("\"a\u{1b}[2J\" -> \"b\\n\";\n"), "\"a\\\\x1b[2J\" -> \"b\\n\";\n");
    }

    #[test]
    fn a_json_document_means_the_same() {
        assert_eq!(json("{\n  \"a\": \"\u{9b}\u{202e}\u{7f}\"\n}"), "{\n  \"a\": \"\\u009b\\u202e\\u007f\"\n}");
        assert_eq!(json("\"\u{e0041}\""), "\"\\udb40\\udc41\"");
    }

    #[test]
    fn the_ranges_of_deceptive_characters_end_where_unicode_ends_them() {
        let ranges: &[(u32, u32)] = &[
            (0, 0x1f),
            (0x7f, 0x9f),
            (0xad, 0xad),
            (0x34f, 0x34f),
            (0x61c, 0x61c),
            (0x115f, 0x1160),
            (0x17b4, 0x17b5),
            (0x180b, 0x180f),
            (0x200b, 0x200f),
            (0x2028, 0x202e),
            (0x2060, 0x206f),
            (0x3164, 0x3164),
            (0xfeff, 0xfeff),
            (0xffa0, 0xffa0),
            (0xfff0, 0xfffb),
            (0x1bca0, 0x1bca3),
            (0x1d173, 0x1d17a),
            (0xe0000, 0xe0fff),
        ];
        let mut counted = 0;
        for (first, last) in ranges {
            counted += last - first + 1;
            for (code, expected) in [(first.wrapping_sub(1), false), (*first, true), (*last, true), (last + 1, false)] {
                let Some(character) = char::from_u32(code) else { continue };
                assert_eq!(is_deceptive(character), expected, "U+{code:04X}");
            }
        }
        let all = (0..=u32::from(char::MAX)).filter_map(char::from_u32).filter(|character| is_deceptive(*character));
        assert_eq!(all.count(), counted as usize, "no other character");
    }

    #[test]
    fn every_control_separator_and_direction_is_deceptive() {
        let always =
            ('\0'..'\u{20}').chain('\u{7f}'..='\u{9f}').chain('\u{202a}'..='\u{202e}').chain('\u{2066}'..='\u{2069}');
        always
            .chain(['\u{2028}', '\u{2029}', '\u{200b}', '\u{feff}'])
            .for_each(|character| assert!(is_deceptive(character)));
        (' '..='~').chain("äß日本→…✓".chars()).for_each(|character| assert!(!is_deceptive(character), "{character}"));
    }
}
