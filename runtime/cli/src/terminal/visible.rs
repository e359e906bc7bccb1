//! Foreign text made safe for a terminal.
//!
//! Node ids, notes, paths, command output: a stage or a file controls them, and a terminal obeys what it is sent. Every control
//! character, and every character that reorders or hides its neighbours, is shown instead of sent. Invariant: what [`line()`]
//! returns has no byte below 0x20, no 0x7f, no C1 control and no bidirectional control.

use std::borrow::Cow;
use std::fmt::Write;

/// True for a character that a terminal would obey instead of show.
pub fn is_hostile(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
                | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// One line of foreign text; line breaks and tabs are shown as escapes too.
pub fn line(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_hostile) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(escape(text, |_| false))
}

/// Foreign text of several lines; only `\n` and `\t` pass.
pub fn block(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|character| is_hostile(character) && !matches!(character, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(escape(&text.replace("\r\n", "\n"), |character| matches!(character, '\n' | '\t')))
}

/// The first line of foreign text, shortened to `characters_max` with a mark.
pub fn summary(text: &str, characters_max: usize) -> String {
    let first = text.trim_start().lines().next().unwrap_or("");
    let safe = line(first);
    if safe.chars().count() <= characters_max {
        return safe.into_owned();
    }
    let mut short: String = safe.chars().take(characters_max.saturating_sub(1)).collect();
    short.push('…');
    short
}

fn escape(text: &str, passes: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_hostile(character) && !passes(character) {
            push_escaped(&mut shown, character);
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Appends a character as it is written in source code: `\n`, `\x1b`, `\u{202e}`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_obeys_nothing() {
        for (text, shown) in [
            ("plain", "plain"),
            ("täglich → 日本", "täglich → 日本"),
            ("\u{1b}[2J\u{1b}]0;owned\u{7}", "\\x1b[2J\\x1b]0;owned\\x07"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{202e}gpj.exe", "\\u{202e}gpj.exe"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ] {
            assert_eq!(line(text), shown);
            assert!(!line(text).chars().any(is_hostile));
        }
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(block("a\r\nb\tc\u{1b}[0m\n"), "a\nb\tc\\x1b[0m\n");
    }

    #[test]
    fn a_summary_is_one_short_line() {
        assert_eq!(summary("\n  first\u{7} line\nsecond", 40), "first\\x07 line");
        assert_eq!(summary("abcdef", 4), "abc…");
    }
}
