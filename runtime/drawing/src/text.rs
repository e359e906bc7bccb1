//! Cleans untrusted text, measures it, and breaks it into lines.
//!
//! The author of a pipeline chooses its labels. [`clean`] removes control characters, characters that hide or reorder
//! other characters, and characters that an XML document may not contain, so later code never sees them. Widths come
//! from a table, because a picture must not depend on the fonts of the machine that draws it.

use glovebox_names::visible::is_deceptive;

/// Widths of ` ` to `~` in thousandths of the font size, for common sans-serif fonts.
#[rustfmt::skip]
const WIDTHS: [u16; 95] = [
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278,
    556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556,
    1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778,
    667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556,
    333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556,
    556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584,
];

/// Maximum number of characters of a text that are read. No label shows more.
const CHARACTERS_MAX: usize = 2_000;

/// Returns the width of a character at font size 1.
pub(crate) fn advance(character: char) -> f64 {
    let code = u32::from(character);
    if let Some(width) = code.checked_sub(0x20).and_then(|index| WIDTHS.get(index as usize)) {
        return f64::from(*width) / 1000.0;
    }
    match cells(character) {
        0 => 0.0,
        1 => 0.61,
        _ => 1.0,
    }
}

/// Returns the number of columns of a character in a terminal: 0 for combining marks, 2 for wide scripts and emoji,
/// otherwise 1.
pub(crate) fn cells(character: char) -> usize {
    match u32::from(character) {
        0x300..=0x36f | 0x483..=0x489 | 0x591..=0x5bd | 0x610..=0x61a | 0x64b..=0x65f | 0x1ab0..=0x1aff => 0,
        0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe00..=0xfe0f | 0xfe20..=0xfe2f | 0xe0100..=0xe01ef => 0,
        0x1100..=0x115f | 0x231a..=0x231b | 0x2329..=0x232a | 0x23e9..=0x23ec | 0x23f0 | 0x23f3 => 2,
        0x25fd..=0x25fe | 0x2614..=0x2615 | 0x2648..=0x2653 | 0x267f | 0x2693 | 0x26a1 | 0x26aa..=0x26ab => 2,
        0x26bd..=0x26be | 0x26c4..=0x26c5 | 0x26ce | 0x26d4 | 0x26ea | 0x26f2..=0x26f3 | 0x26f5 | 0x26fa | 0x26fd => 2,
        0x2705 | 0x270a..=0x270b | 0x2728 | 0x274c | 0x274e | 0x2753..=0x2755 | 0x2757 | 0x2795..=0x2797 | 0x27b0 => 2,
        0x27bf | 0x2b1b..=0x2b1c | 0x2b50 | 0x2b55 | 0x2e80..=0x303e | 0x3041..=0xa4cf | 0xa960..=0xa97f => 2,
        0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f | 0xff00..=0xff60 | 0xffe0..=0xffe6 => 2,
        0x16fe0..=0x18cff | 0x1b000..=0x1b2ff | 0x1f004 | 0x1f0cf | 0x1f18e | 0x1f191..=0x1f19a => 2,
        0x1f200..=0x1f64f | 0x1f680..=0x1f6ff | 0x1f7e0..=0x1f7eb | 0x1f90c..=0x1f9ff | 0x1fa70..=0x1faff => 2,
        0x20000..=0x3fffd => 2,
        _ => 1,
    }
}

/// Returns the width of a line at a font size.
pub(crate) fn width(line: &str, size: f64) -> f64 {
    line.chars().map(advance).sum::<f64>() * size
}

/// Removes control characters and hidden characters. Tabs and carriage returns become spaces. Line feeds stay.
pub(crate) fn clean(text: &str) -> String {
    let kept = text.chars().map(|character| if matches!(character, '\t' | '\r') { ' ' } else { character });
    kept.filter(|character| *character == '\n' || !is_hidden(*character)).collect()
}

/// Returns the beginning of a text on one line, cleaned with [`clean`].
pub(crate) fn one_line(text: &str) -> String {
    let start: String = text.chars().take(CHARACTERS_MAX).collect();
    clean(&start).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of a text on one line. Text after `characters_max` characters is replaced by `…`.
pub(crate) fn excerpt(text: &str, characters_max: usize) -> String {
    let line = one_line(text);
    match line.char_indices().nth(characters_max) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

/// Returns a number with its noun: `1 node`, `2 nodes`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Returns true for a character that could deceive a reader or that XML forbids.
fn is_hidden(character: char) -> bool {
    is_deceptive(character) || u32::from(character) & 0xfffe == 0xfffe
}

/// Breaks text into at most `lines_max` lines that are not wider than `most`. The last line ends with `…` if text is
/// left out. `measure` returns the width of a piece of text. Line breaks of the text are kept, and Graphviz's `\l` and
/// `\r` count as line breaks.
pub(crate) fn wrap(text: &str, most: f64, lines_max: usize, measure: impl Fn(&str) -> f64) -> Vec<String> {
    let start: String = text.chars().take(CHARACTERS_MAX).collect();
    let text = clean(&start.replace("\\l", "\n").replace("\\r", "\n"));
    let mut lines: Vec<String> = Vec::new();
    'all: for part in text.split('\n') {
        let mut line = String::new();
        for word in part.split_whitespace().flat_map(|word| pieces(word, most, &measure)) {
            let wider = if line.is_empty() { word.clone() } else { format!("{line} {word}") };
            if measure(&wider) <= most || line.is_empty() {
                line = wider;
                continue;
            }
            lines.push(std::mem::replace(&mut line, word));
            if lines.len() > lines_max {
                break 'all;
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            shorten(last, most, &measure);
        }
    }
    lines
}

/// Appends `…` to a line, and removes as many characters as necessary to fit.
fn shorten(line: &mut String, most: f64, measure: &impl Fn(&str) -> f64) {
    while !line.is_empty() && measure(&format!("{line}…")) > most {
        line.pop();
    }
    line.push('…');
}

/// Splits a word into pieces that fit: after `_ - / . = & , :` or between lower and upper case if possible, otherwise
/// anywhere.
fn pieces(word: &str, most: f64, measure: &impl Fn(&str) -> f64) -> Vec<String> {
    if measure(word) <= most {
        return vec![word.to_owned()];
    }
    let mut pieces = Vec::new();
    let mut rest = word;
    while measure(rest) > most {
        let ends = rest.char_indices().skip(1).map(|(index, _)| index);
        let fitting: Vec<usize> = ends.take_while(|end| measure(&rest[..*end]) <= most).collect();
        let last = fitting.last().copied().unwrap_or_else(|| rest.chars().next().map_or(0, char::len_utf8));
        let softly = fitting.iter().rev().find(|end| **end * 3 > last && is_soft(&rest[..**end], &rest[**end..]));
        let (head, tail) = rest.split_at(*softly.unwrap_or(&last));
        pieces.push(head.to_owned());
        rest = tail;
    }
    if !rest.is_empty() {
        pieces.push(rest.to_owned());
    }
    pieces
}

fn is_soft(head: &str, tail: &str) -> bool {
    let hump = head.ends_with(|last: char| last.is_lowercase()) && tail.starts_with(|next: char| next.is_uppercase());
    hump || head.ends_with(['_', '-', '/', '.', '=', '&', ',', ':'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(line: &str) -> usize {
        line.chars().map(cells).sum()
    }

    #[track_caller]
    fn check(text: &str, lines: &[&str]) {
        assert_eq!(wrap(text, 10.0, 3, |line| columns(line) as f64), lines, "{text:?}");
    }

    #[test]
    fn lines_break_at_spaces_then_at_marks_then_anywhere() {
        check("one two three", &["one two", "three"]);
        check("a\nb\\lc", &["a", "b", "c"]);
        check("tool_stdout=ready", &["tool_", "stdout=", "ready"]);
        check("DetermineSprintId", &["Determine", "SprintId"]);
        check("abcdefghijklmno", &["abcdefghij", "klmno"]);
        check("eins zwei drei vier fünf sechs sieben", &["eins zwei", "drei vier", "fünf sech…"]);
        check("日本語日本語", &["日本語日本", "語"]);
        check(" \u{7}\t ", &[]);
    }

    #[test]
    fn nothing_acts_or_hides() {
        assert_eq!(clean("a\u{1b}[2J\u{202e}b\u{0}\u{fffe}\u{feff}\tc\nd"), "a[2Jb c\nd");
        assert_eq!(one_line(" a \n b\u{200b} "), "a b");
    }

    #[test]
    fn widths_are_of_the_table() {
        assert_eq!(width("Wi", 10.0), 9.44 + 2.22);
        assert_eq!((columns("e\u{301}x"), columns("日本"), columns("→")), (2, 4, 1));
    }
}
