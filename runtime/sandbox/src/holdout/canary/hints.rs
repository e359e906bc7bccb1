//! Hints that a scenario makes public: fixed texts behind `hint:` in a sealed file.
//!
//! A text ends where its string ends, else with its line. What a script fills in is not a fixed text: a hint with `$` or a backquote
//! in it is not public, and neither is one with an escape whose meaning depends on the language.

use std::collections::BTreeMap;

/// What marks a line as public, in a scenario and in what it prints (design §7).
const HINT: &str = "hint:";
/// Most hints of all sealed files, and most characters of each.
const HINTS_MAX: usize = 100;
const HINT_CHARS_MAX: usize = 500;

/// Public texts by their place: the order of the sealed files.
#[derive(Debug, Default)]
pub(super) struct Hints(BTreeMap<String, usize>);

impl Hints {
    /// Adds the hint of a line. Returns the part of the line that is not public.
    pub(super) fn add<'l>(&mut self, line: &'l str) -> &'l str {
        let Some((before, text)) = parted(line) else { return line };
        let next = self.0.len();
        if next < HINTS_MAX || self.0.contains_key(&text) {
            self.0.entry(text).or_insert(next);
            return before;
        }
        line
    }

    /// The part of a line that is not public.
    pub(super) fn secret<'l>(&self, line: &'l str) -> &'l str {
        parted(line).filter(|(_, text)| self.0.contains_key(text)).map_or(line, |(before, _)| before)
    }

    /// The texts.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The hints that were printed, once each, in the order of the sealed files.
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

/// Parts a sealed line with a public hint into what stands before it and the hint's text.
fn parted(line: &str) -> Option<(&str, String)> {
    let (before, rest) = line.split_once(HINT)?;
    let text = fixed(rest, quote_around(before))?;
    let is_public = !text.is_empty() && text.chars().count() <= HINT_CHARS_MAX;
    is_public.then_some((before, text))
}

/// The quote that is open where the hint begins.
fn quote_around(before: &str) -> Option<char> {
    if let Some(quote) = before.chars().next_back().filter(|last| matches!(last, '"' | '\'')) {
        return Some(quote);
    }
    let (mut open, mut letters) = (None, before.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => drop(letters.next()),
            '"' | '\'' if open.is_none() => open = Some(letter),
            _ if open == Some(letter) => open = None,
            _ => {}
        }
    }
    open
}

/// The text that is printed for the rest of a line: up to the quote that ends its string or to an escaped end of line. None when
/// something is filled in, or when the string does not end on the line.
fn fixed(rest: &str, quote: Option<char>) -> Option<String> {
    let Some(quote) = quote else {
        return (!rest.contains(['$', '`'])).then(|| rest.trim().to_owned());
    };
    let (mut text, mut letters) = (String::new(), rest.chars());
    while let Some(letter) = letters.next() {
        match letter {
            '$' | '`' => return None,
            '\\' => match letters.next()? {
                'n' => return Some(text.trim().to_owned()),
                escaped @ ('"' | '\'' | '\\') => text.push(escaped),
                _ => return None,
            },
            letter if letter == quote => return Some(text.trim().to_owned()),
            letter => text.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_is_the_fixed_text_of_a_string_or_the_rest_of_a_line() {
        let check = |line: &str, expected: Option<&str>| {
            assert_eq!(parted(line).map(|(_, text)| text).as_deref(), expected, "{line}");
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
