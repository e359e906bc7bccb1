//! Hints that a scenario makes public: fixed texts after `hint:` in a sealed file.
//!
//! A hint in a string literal ends with the literal; any other hint ends with the line. A text with variable parts is
//! not fixed: a hint that contains `$`, a backquote, or an escape whose meaning depends on the language is not public.

use std::collections::BTreeMap;

/// Marks a hint as public, in a scenario and in the output of a stage (decision verdict-and-hints-only).
const HINT: &str = "hint:";
/// Maximum number of hints of all sealed files, and maximum number of characters of each.
const HINTS_MAX: usize = 100;
const HINT_CHARS_MAX: usize = 500;

/// Public hints with their positions in the order of the sealed files.
#[derive(Debug, Default)]
pub(super) struct Hints(BTreeMap<String, usize>);

impl Hints {
    /// Adds the hint of a line. Returns the part of the line that is not public.
    pub(super) fn add<'l>(&mut self, line: &'l str) -> &'l str {
        let Some((before, text)) = HintLine::split(line) else { return line };
        let next = self.0.len();
        if next < HINTS_MAX || self.0.contains_key(&text) {
            self.0.entry(text).or_insert(next);
            return before;
        }
        line
    }

    /// Returns the part of a line that is not public.
    pub(super) fn secret<'l>(&self, line: &'l str) -> &'l str {
        HintLine::split(line).filter(|(_, text)| self.0.contains_key(text)).map_or(line, |(before, _)| before)
    }

    /// Returns the texts of the hints.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the hints that were printed, each once, in the order of the sealed files.
    pub(super) fn printed<'o>(&self, outputs: impl IntoIterator<Item = &'o str>) -> Vec<String> {
        let mut printed_hints = BTreeMap::new();
        for line in outputs.into_iter().flat_map(str::lines) {
            let printed = line.trim().strip_prefix(HINT).map(str::trim);
            if let Some((text, place)) = printed.and_then(|text| self.0.get_key_value(text)) {
                printed_hints.insert(*place, format!("{HINT} {}", crate::refusal::escaped(text)));
            }
        }
        printed_hints.into_values().collect()
    }
}

/// A sealed line that contains `hint:`.
struct HintLine<'l> {
    before: &'l str,
    rest: &'l str,
}

impl<'l> HintLine<'l> {
    /// Splits a line at its hint. Returns the part before the hint and the text of the hint, or `None` if the line has
    /// no public hint.
    fn split(line: &'l str) -> Option<(&'l str, String)> {
        let (before, rest) = line.split_once(HINT)?;
        let text = Self { before, rest }.text()?;
        let is_public = !text.is_empty() && text.chars().count() <= HINT_CHARS_MAX;
        is_public.then_some((before, text))
    }

    /// Returns the quote character of the string literal in which the hint begins.
    fn quote(&self) -> Option<char> {
        if let Some(quote) = self.before.chars().next_back().filter(|last| matches!(last, '"' | '\'')) {
            return Some(quote);
        }
        let (mut open, mut characters) = (None, self.before.chars());
        while let Some(character) = characters.next() {
            match character {
                '\\' => drop(characters.next()),
                '"' | '\'' if open.is_none() => open = Some(character),
                _ if open == Some(character) => open = None,
                _ => {}
            }
        }
        open
    }

    /// Returns the text that is printed for the rest of the line: up to the quote that ends the string literal, or to
    /// an escaped line break. Returns `None` if the text has a variable part, or if the literal does not end on the
    /// line.
    fn text(&self) -> Option<String> {
        let Some(quote) = self.quote() else {
            return (!self.rest.contains(['$', '`'])).then(|| self.rest.trim().to_owned());
        };
        let (mut text, mut characters) = (String::new(), self.rest.chars());
        while let Some(character) = characters.next() {
            match character {
                '$' | '`' => return None,
                '\\' => match characters.next()? {
                    'n' => return Some(text.trim().to_owned()),
                    escaped @ ('"' | '\'' | '\\') => text.push(escaped),
                    _ => return None,
                },
                character if character == quote => return Some(text.trim().to_owned()),
                character => text.push(character),
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_the_fixed_text_of_a_string_or_the_rest_of_a_line() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(HintLine::split(line).map(|(_, text)| text).as_deref(), expected, "{line}");
        };
        check("echo \"hint: look again\" >&2", Some("look again"));
        check("printf 'hint: look again\\n'", Some("look again"));
        check("  hint: look again ", Some("look again"));
        check("# hint: look again", Some("look again"));
        check("print(f'FAIL'); print(\"hint: it's \\\"x\\\"\", file=err)", Some("it's \"x\""));
        check("echo \"FAIL hint: look again\" >&2", Some("look again"));
        check("# don't; echo \"hint: look again\"", Some("look again"));
        for filled in ["echo \"hint: got $x\"", "echo \"hint: `cat x`\"", "hint: $(cat x)", "echo \"hint: a\\x41\""] {
            check(filled, None);
        }
        check("echo \"hint: goes on", None);
        check("echo \"hint: \"", None);
        check("no such word", None);
    }

    #[test]
    fn what_is_printed_only_chooses_among_the_sealed_texts() {
        let mut hints = Hints::default();
        for line in ["echo 'hint: one' # secret", "echo \"hint: two\"", "again 'hint: one'"] {
            hints.add(line);
        }
        let check = |outputs: &[&str], expected: &[&str]| assert_eq!(hints.printed(outputs.iter().copied()), expected);
        check(&["hint: two\nhint: one\n", "hint: two"], &["hint: one", "hint: two"]);
        check(&[" \thint:   two \r\n"], &["hint: two"]);
        check(&["hint: tw\nhint: t'wo\nhint: two!\nhint:\nno hint: two\nHINT: two\n"], &[]);
        assert_eq!(hints.secret("echo 'hint: one' # secret"), "echo '");
        assert_eq!(hints.secret("echo 'hint: three'"), "echo 'hint: three'");
    }
}
