//! Colours in the output of commands: passed on to a terminal, and dropped everywhere else.
//!
//! Only SGR sequences that set a colour or a weight are colours. Every other control sequence is escaped like all untrusted
//! text, and so is an SGR sequence that hides text.

use super::paint::Paint;
use glovebox_names::visible::{is_deceptive, push_escaped};
use std::borrow::Cow;
use unicode_width::UnicodeWidthStr;

/// Maximum length of a sequence, in bytes.
const SEQUENCE_BYTES_MAX: usize = 40;
/// Maximum length of the sequences that are repeated after a break of a stream, in bytes.
const OPEN_BYTES_MAX: usize = 200;
/// Ends the colours of a text.
const RESET: &str = "\x1b[m";

/// The colours that a stream has set and not reset. They end with each part of the stream, so that no other text on the terminal gets
/// them, and begin again with the next part.
#[derive(Debug, Default)]
pub struct OpenColours(String);

impl OpenColours {
    /// Escapes the next part of a stream, as [`block`].
    pub fn block(&mut self, text: &str, paint: Paint) -> String {
        let shown = block(&format!("{}{text}", self.0), paint);
        each(text, |_, colour| colour.into_iter().for_each(|colour| self.set(colour)));
        shown
    }

    fn set(&mut self, colour: &str) {
        let numbers = colour.trim_start_matches("\x1b[").trim_end_matches('m');
        let is_reset = matches!(numbers.split([';', ':']).next(), None | Some("" | "0"));
        if is_reset || self.0.len() + colour.len() > OPEN_BYTES_MAX {
            self.0.clear();
        }
        if !matches!(numbers, "" | "0") {
            self.0.push_str(colour);
        }
    }
}

/// Removes colours from untrusted text, and leaves everything else.
pub fn dropped(text: &str) -> Cow<'_, str> {
    if !text.contains("\x1b[") {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    each(text, |part, _| plain.push_str(part));
    Cow::Owned(plain)
}

/// Escapes one line of untrusted text. Its colours are kept if the paint is on, and end with the line.
pub fn line(text: &str, paint: Paint) -> String {
    shown(text, paint, |_| false)
}

/// Escapes one line of untrusted text, and cuts it if it is longer than `characters_max`. Returns it with true if it was cut. A
/// line that is cut has no colours.
pub fn cut(text: &str, characters_max: usize, paint: Paint) -> (String, bool) {
    let plain = dropped(text);
    if plain.chars().count() <= characters_max {
        return (line(text, paint), false);
    }
    let cut: String = plain.chars().take(characters_max.saturating_sub(1)).collect();
    (format!("{}…", line(&cut, Paint::default())), true)
}

/// Escapes one line of untrusted text, and cuts it to a number of columns. Its colours are kept if the paint is on, and end with the
/// line.
pub fn fit(text: &str, columns_max: usize, paint: Paint) -> String {
    let whole = line(text, paint);
    if dropped(&whole).width() <= columns_max {
        return whole;
    }
    let (mut short, mut is_coloured) = (String::new(), false);
    // The number of free columns; `None` after the first character that does not fit.
    let mut left = Some(columns_max.saturating_sub(1));
    // The whole line has only colours and text that is escaped already.
    each(&whole, |part, colour| {
        for character in part.chars() {
            left = left.and_then(|left| left.checked_sub(character.to_string().width()));
            if left.is_none() {
                return;
            }
            short.push(character);
        }
        if let Some(colour) = colour.filter(|_| left.is_some()) {
            is_coloured = true;
            short.push_str(colour);
        }
    });
    format!("{short}…{}", if is_coloured { RESET } else { "" })
}

/// Escapes untrusted text of several lines. A carriage return begins a new line.
pub fn block(text: &str, paint: Paint) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    shown(&text, paint, |character| matches!(character, '\n' | '\t'))
}

fn shown(text: &str, paint: Paint, passes: impl Fn(char) -> bool) -> String {
    let (mut safe, mut is_coloured) = (String::with_capacity(text.len()), false);
    each(text, |part, colour| {
        for character in part.chars() {
            match is_deceptive(character) && !passes(character) {
                true => push_escaped(&mut safe, character),
                false => safe.push(character),
            }
        }
        if let Some(colour) = colour.filter(|_| paint.is_on()) {
            is_coloured = true;
            safe.push_str(colour);
        }
    });
    if is_coloured {
        let end = safe.trim_end_matches('\n').len();
        safe.insert_str(end, RESET);
    }
    safe
}

/// Calls `take` with each part of a text and the colour after it.
fn each<'t>(text: &'t str, mut take: impl FnMut(&'t str, Option<&'t str>)) {
    let (mut rest, mut from) = (text, 0);
    while let Some(at) = rest[from..].find("\x1b[").map(|at| from + at) {
        match sequence(&rest[at..]) {
            Some(length) => {
                take(&rest[..at], Some(&rest[at..at + length]));
                (rest, from) = (&rest[at + length..], 0);
            }
            None => from = at + 1,
        }
    }
    take(rest, None);
}

/// Returns the length of the colour sequence at the beginning of a text. Returns `None` if the text begins otherwise.
fn sequence(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\x1b[")?;
    let length = inner.find(|character: char| !character.is_ascii_digit() && !matches!(character, ';' | ':'))?;
    let is_short = length <= SEQUENCE_BYTES_MAX && inner[length..].starts_with('m');
    (is_short && is_colour(&inner[..length])).then_some(length + 3)
}

/// Returns true if every parameter sets or resets a colour or a weight.
fn is_colour(parameters: &str) -> bool {
    let mut parameters = parameters.split(';');
    while let Some(parameter) = parameters.next() {
        let is_allowed = match parameter.parse::<u8>() {
            Ok(kind @ (38 | 48 | 58)) => {
                let count = match parameters.next() {
                    Some("5") => 1,
                    Some("2") => 3,
                    _ => return false,
                };
                // A terminal that does not know 58 reads what follows as separate parameters, and 8 hides text.
                let is_value = |value: &str| value.parse::<u8>().is_ok_and(|value| kind != 58 || value != 8);
                (0..count).all(|_| parameters.next().is_some_and(is_value))
            }
            Ok(0..=4 | 7 | 9 | 21..=27 | 29..=37 | 39..=47 | 49 | 53 | 55 | 59 | 90..=97 | 100..=107) => true,
            _ => parameter.is_empty() || is_complete_group(parameter),
        };
        if !is_allowed {
            return false;
        }
    }
    true
}

/// Returns true for a parameter with subparameters that is a colour or an underline by itself. Of an incomplete one, a terminal may
/// ignore the part before the next `;` and read the values after it as parameters that hide text.
fn is_complete_group(parameter: &str) -> bool {
    let parts: Vec<&str> = parameter.split(':').collect();
    let values = match parts.as_slice() {
        ["4", style] => return matches!(style.parse::<u8>(), Ok(0..=5)),
        ["38" | "48" | "58", "5", index @ ..] if index.len() == 1 => index,
        // The field before the red value is the colour space, which is empty.
        ["38" | "48" | "58", "2", "", colour @ ..] | ["38" | "48" | "58", "2", colour @ ..] if colour.len() == 3 => {
            colour
        }
        _ => return false,
    };
    values.iter().all(|value| value.parse::<u8>().is_ok())
}

/// Returns the length of the part of a stream that can be shown: without a character, a line end or a sequence at its end
/// whose rest may follow.
pub fn complete(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(SEQUENCE_BYTES_MAX)..];
    let begins = last.iter().rposition(|byte| *byte == b'\x1b').filter(|at| {
        let after = last[at + 1..].strip_prefix(b"[").or_else(|| last[at + 1..].is_empty().then_some(&last[..0]));
        after.is_some_and(|after| after.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b';' | b':')))
    });
    let open = begins.map_or(0, |at| last.len() - at);
    let cut = if bytes.ends_with(b"\r") { 1 } else { open_character(bytes) };
    bytes.len() - open.max(cut)
}

/// Returns the number of bytes of a character at the end of which bytes are missing.
fn open_character(bytes: &[u8]) -> usize {
    let needed = |first: u8| match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    };
    let begins = (1..=3).find(|back| bytes.len() >= *back && bytes[bytes.len() - back] & 0xc0 != 0x80);
    begins.filter(|back| needed(bytes[bytes.len() - back]) > *back).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_passed_on_to_a_terminal_and_dropped_elsewhere() {
        let text = "\x1b[31mbad\x1b[39m \x1b[1;38;5;9mx\x1b[0m\x1b[2J\x1b]0;t\x07";
        assert_eq!(line(text, Paint::default()), "bad x\\x1b[2J\\x1b]0;t\\x07");
        assert_eq!(
            line(text, Paint::always()),
            "\x1b[31mbad\x1b[39m \x1b[1;38;5;9mx\x1b[0m\\x1b[2J\\x1b]0;t\\x07\x1b[m"
        );
        assert_eq!(dropped(text), "bad x\x1b[2J\x1b]0;t\x07");
        assert_eq!(dropped("plain"), "plain");
    }

    #[test]
    fn a_sequence_that_hides_text_is_no_colour() {
        for hidden in ["\x1b[8mx", "\x1b[1;8mx", "\x1b[38;9;1mx", "\x1b[38mx", "\x1b[1", "\x1b[1K", "\x1b[999m"] {
            assert!(line(hidden, Paint::always()).starts_with("\\x1b["), "{hidden:?}");
        }
        for hidden in [
            "38:5;8",
            "58:2;8;8;8",
            "38:2;8;8;8",
            "48:2::1;8;8",
            "38:5",
            "38:5:",
            "38:5:8:8",
            "38:2:1:2",
            "38:2:1:2:3:4:5",
            "38:2:0:1:2:3",
            "38:5:256",
            "38;5:8",
            "38;5;256",
            "38;5",
            "38;5;",
            "38;2;1;2",
            "38;2;1;2;3:8",
            "58;5;8",
            "58;2;1;8;1",
            "4:6",
            "4:",
            "4:3:8",
            "8:0",
            "1:8",
            "0:8",
            ":8",
            ":",
        ] {
            let text = format!("\x1b[{hidden}mx");
            assert_eq!(line(&text, Paint::always()), format!("\\x1b[{hidden}mx"));
            assert_eq!(dropped(&text), text, "{hidden}");
        }
        let long = format!("\x1b[{}m", "1;".repeat(50));
        assert!(line(&long, Paint::always()).starts_with("\\x1b["));
    }

    #[test]
    fn colours_with_subparameters_are_colours() {
        for colour in [
            "38:5:8",
            "48:5:255",
            "58:5:8",
            "38:2:8:8:8",
            "38:2::8:8:8",
            "48:2::0:0:255",
            "58:2::8:8:8",
            "4:0",
            "4:3;58:5:9;1",
            "38;5;8;48;2;8;8;8",
            "58;5;9",
            "1;;31",
        ] {
            let text = format!("\x1b[{colour}mx");
            assert_eq!(line(&text, Paint::always()), format!("{text}\x1b[m"));
            assert_eq!(dropped(&text), "x", "{colour}");
        }
    }

    #[test]
    fn a_long_line_is_cut() {
        assert_eq!(cut("\x1b[1mabc\x1b[0m", 3, Paint::default()), ("abc".to_owned(), false));
        assert_eq!(cut("\x1b[1mabcd\x1b[0m", 3, Paint::always()), ("ab…".to_owned(), true));
    }

    #[test]
    fn a_line_is_cut_to_columns_and_keeps_its_colours() {
        for (text, columns, expected) in [
            ("\x1b[31mred\x1b[m", 3, "\x1b[31mred\x1b[m\x1b[m"),
            ("\x1b[31mreddish\x1b[m", 5, "\x1b[31mredd…\x1b[m"),
            ("plain text", 5, "plai…"),
            ("\x1b[31m漢字漢字\x1b[m", 5, "\x1b[31m漢字…\x1b[m"),
            ("a\x1b[2Jbbbbbbbbbb", 8, "a\\x1b[2…"),
            ("abc", 0, "…"),
        ] {
            assert_eq!(fit(text, columns, Paint::always()), expected, "{text:?} {columns}");
        }
        assert_eq!(fit("\x1b[31mreddish\x1b[m", 5, Paint::default()), "redd…");
    }

    #[test]
    fn a_colour_goes_on_in_the_next_part_of_a_stream() {
        let mut open = OpenColours::default();
        let mut part = |text: &str| open.block(text, Paint::always());
        assert_eq!(part("\x1b[31mred\n"), "\x1b[31mred\x1b[m\n");
        assert_eq!(part("still\n"), "\x1b[31mstill\x1b[m\n");
        assert_eq!(part("\x1b[1mbold\x1b[0m\n"), "\x1b[31m\x1b[1mbold\x1b[0m\x1b[m\n");
        assert_eq!(part("plain\n"), "plain\n");
        assert_eq!(part("\x1b[0;32mgreen\n"), "\x1b[0;32mgreen\x1b[m\n");
        assert_eq!(part("\x1b[2J"), "\x1b[0;32m\\x1b[2J\x1b[m");
        for _ in 0..1_000 {
            part("\x1b[38;2;100;100;100m");
        }
        assert!(part("x").len() < 300);
        let mut plain = OpenColours::default();
        assert_eq!(plain.block("\x1b[31mred", Paint::default()) + &plain.block("x", Paint::default()), "redx");
    }

    #[test]
    fn a_block_keeps_its_lines() {
        assert_eq!(block("a\r\nb\tc\x1b[32m\nd\re\n", Paint::always()), "a\nb\tc\x1b[32m\nd\ne\x1b[m\n");
        assert_eq!(block("50 %\r100 %\n", Paint::default()), "50 %\n100 %\n");
    }

    #[test]
    fn what_may_continue_waits_for_its_rest() {
        for (bytes, waits) in [
            ("plain".as_bytes(), 0),
            ("ä".as_bytes(), 0),
            (b"a\xc3", 1),
            (b"a\xe6\xbc", 2),
            (b"a\xf0\x9f\xa6", 3),
            (b"a\x1b", 1),
            (b"a\x1b[31", 4),
            (b"a\x1b[31m", 0),
            (b"a\x1b]0", 0),
            (b"line\r", 1),
            (b"\xff", 0),
            (b"", 0),
        ] {
            assert_eq!(bytes.len() - complete(bytes), waits, "{bytes:?}");
        }
    }
}
