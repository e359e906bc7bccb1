//! Text files: their encoding, their byte-order mark and their line ends.
//!
//! A model sees lines that end with `\n`, and writes such lines. This module finds them in a file with other line ends, and gives new
//! lines the line ends of the lines around them, so that no other byte of the file changes (decision edits-keep-bytes).

use std::ops::Range;

const BYTE_ORDER_MARK: char = '\u{feff}';
/// Control characters below a space that occur in text: tab, line feed, form feed, carriage return, escape.
const TEXT_CONTROLS: [u8; 5] = [b'\t', b'\n', 0x0c, b'\r', 0x1b];

/// How the characters of a file are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    /// One byte for each character. Windows-1252 differs in characters that no program writes by accident, so it is read as Latin-1
    /// too: unchanged characters keep their bytes.
    Latin1,
}

impl Encoding {
    /// Encodes a text. Returns the first character that the encoding does not have.
    pub(crate) fn encode(self, text: &str) -> Result<Vec<u8>, char> {
        match self {
            Self::Utf8 => Ok(text.as_bytes().to_vec()),
            Self::Latin1 => text.chars().map(|one| u8::try_from(one).map_err(|_| one)).collect(),
        }
    }
}

/// The content of a text file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TextFile {
    pub(crate) encoding: Encoding,
    /// All characters, including a byte-order mark and carriage returns.
    pub(crate) text: String,
}

impl TextFile {
    /// Decodes a file. `None` if it is not text in UTF-8 or Latin-1.
    pub(crate) fn decode(bytes: Vec<u8>) -> Option<Self> {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => return Some(Self { encoding: Encoding::Utf8, text }),
            Err(error) => error.into_bytes(),
        };
        // The marks of UTF-16.
        let is_wide = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
        let is_text = |byte: &u8| *byte >= b' ' || TEXT_CONTROLS.contains(byte);
        let text = (!is_wide && bytes.iter().all(is_text)).then(|| bytes.iter().copied().map(char::from).collect())?;
        Some(Self { encoding: Encoding::Latin1, text })
    }

    /// Returns the lines as a model sees them, without line ends and byte-order mark.
    pub(crate) fn lines(&self) -> impl Iterator<Item = &str> {
        self.text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&self.text).lines()
    }

    /// Returns new content for the whole file with the byte-order mark and, if all lines of the file end with CRLF, the line ends of the
    /// file. A model that writes back what it read did not see them.
    pub(crate) fn in_the_form_of(&self, content: &str) -> String {
        let breaks = self.text.matches('\n').count();
        let is_crlf = breaks > 0 && self.text.matches("\r\n").count() == breaks;
        let content = match is_crlf && !content.contains('\r') {
            true => content.replace('\n', "\r\n"),
            false => content.to_owned(),
        };
        match self.text.starts_with(BYTE_ORDER_MARK) && !content.starts_with(BYTE_ORDER_MARK) {
            true => format!("{BYTE_ORDER_MARK}{content}"),
            false => content,
        }
    }

    /// Returns the ranges of a text of a model, leftmost first and without overlaps. `\n` stands for any line end, unless the model
    /// wrote a carriage return itself. The text must not be empty.
    pub(crate) fn occurrences(&self, wanted: &str) -> Vec<Range<usize>> {
        let text = &self.text;
        if wanted.contains('\r') {
            return text.match_indices(wanted).map(|(at, found)| at..at + found.len()).collect();
        }
        let first = wanted.split('\n').next().unwrap_or_default();
        let (mut found, mut from) = (Vec::new(), 0);
        while let Some(at) = self.candidate(from, first) {
            match self.match_at(at, wanted) {
                Some(end) => {
                    found.push(at..end);
                    from = end;
                }
                None => from = at + text[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        found
    }

    /// Returns the next place at which a text with this first line can begin. An empty line means a line end.
    fn candidate(&self, from: usize, first: &str) -> Option<usize> {
        let rest = &self.text[from..];
        if !first.is_empty() {
            return rest.find(first).map(|at| from + at);
        }
        let at = rest.find('\n')?;
        Some(from + if rest[..at].ends_with('\r') { at - 1 } else { at })
    }

    /// Returns the end of a text that begins at a place, or `None` if it does not.
    fn match_at(&self, start: usize, wanted: &str) -> Option<usize> {
        let mut at = start;
        for (index, piece) in wanted.split('\n').enumerate() {
            if index > 0 {
                at += line_end(&self.text[at..])?.len();
            }
            at = self.text[at..].starts_with(piece).then_some(at + piece.len())?;
        }
        Some(at)
    }

    /// Returns the text after one text of a model was replaced by another at these ranges.
    pub(crate) fn replaced(&self, ranges: &[Range<usize>], old: &str, new: &str) -> String {
        let (mut changed, mut from) = (String::new(), 0);
        for range in ranges {
            changed.push_str(&self.text[from..range.start]);
            changed.push_str(&self.replacement(range, old, new));
            from = range.end;
        }
        changed + &self.text[from..]
    }

    /// Returns what stands for the new text at one range. A line that both texts have keeps its line end, and any other line gets the
    /// line end of the lines that it replaces.
    fn replacement(&self, range: &Range<usize>, old: &str, new: &str) -> String {
        if old.contains('\r') || new.contains('\r') {
            return new.to_owned();
        }
        let ends: Vec<&str> = line_ends(&self.text[range.clone()]).collect();
        let other = ends.first().copied().unwrap_or_else(|| self.line_end_near(range));
        let (old, new): (Vec<&str>, Vec<&str>) = (old.split('\n').collect(), new.split('\n').collect());
        let (old_breaks, new_breaks) = (old.len() - 1, new.len() - 1);
        let least = old_breaks.min(new_breaks);
        let same = |(one, other): &(&&str, &&str)| one == other;
        let before = match old_breaks == new_breaks {
            true => new_breaks,
            false => old.iter().zip(&new).take_while(same).count().min(least),
        };
        let after = old.iter().rev().zip(new.iter().rev()).take_while(same).count().min(least - before.min(least));
        let mut text = String::new();
        for (index, line) in new.iter().enumerate() {
            text.push_str(line);
            if index == new_breaks {
                break;
            }
            text.push_str(match index {
                _ if index < before => ends[index],
                _ if new_breaks - index <= after => ends[old_breaks - (new_breaks - index)],
                _ => other,
            });
        }
        text
    }

    /// Returns the end of the line in which a range ends. In the last line, the end of the line before it.
    fn line_end_near(&self, range: &Range<usize>) -> &str {
        let after = line_ends(&self.text[range.end..]).next();
        // A carriage return just before the range's end belongs to the range.
        after.or_else(|| line_ends(&self.text[..range.start]).last()).unwrap_or("\n")
    }
}

/// Returns the line end with which a text begins.
fn line_end(text: &str) -> Option<&str> {
    ["\r\n", "\n"].into_iter().find(|end| text.starts_with(end))
}

/// Returns the line ends of a text.
pub(crate) fn line_ends(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices('\n').map(|(at, _)| if text[..at].ends_with('\r') { &text[at - 1..=at] } else { &text[at..=at] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn file(text: &str) -> TextFile {
        TextFile { encoding: Encoding::Utf8, text: text.to_owned() }
    }

    #[track_caller]
    fn check(text: &str, old: &str, new: &str, expected: &str) {
        let file = file(text);
        let found = file.occurrences(old);
        assert_eq!(found.len(), 1, "{text:?} {old:?}");
        assert_eq!(file.replaced(&found, old, new), expected, "{text:?} {old:?} {new:?}");
    }

    #[test]
    fn new_lines_get_the_line_ends_around_them() {
        check("one\r\ntwo\r\n", "one\ntwo", "1\n2", "1\r\n2\r\n");
        check("one\r\ntwo\r\n", "two", "two\nthree", "one\r\ntwo\r\nthree\r\n");
        check("one\r\ntwo", "two", "two\nthree", "one\r\ntwo\r\nthree");
        check("a\r\nb\nc\r\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\r\n");
        check("a\r\nb\nc\r\n", "a\nb\nc", "a\nc", "a\r\nc\r\n");
        check("a\nb\r\nc\n", "b\n", "", "a\nc\n");
        check("a\nb\r\nc\n", "\nb", "\nb\nx", "a\nb\nx\r\nc\n");
        check("a\r\nb\r\n", "a\r\nb", "a\nb", "a\nb\r\n");
        check("a", "a", "a\nb", "a\nb");
        assert_eq!(file("x\ny\r\nx\r\ny").occurrences("x\ny").len(), 2);
        assert!(file("x\r\ny").occurrences("x\r\nz").is_empty());
    }

    #[test]
    fn a_whole_file_keeps_its_mark_and_its_line_ends() {
        assert_eq!(file("\u{feff}a\r\nb\r\n").in_the_form_of("x\ny\n"), "\u{feff}x\r\ny\r\n");
        assert_eq!(file("a\r\nb\n").in_the_form_of("x\ny\n"), "x\ny\n");
        assert_eq!(file("a\r\n").in_the_form_of("x\ny\r\n"), "x\ny\r\n");
        assert_eq!(file("").in_the_form_of("x\n"), "x\n");
    }

    #[test]
    fn text_is_told_from_other_files() {
        let latin = TextFile::decode(b"caf\xe9\r\n".to_vec()).unwrap();
        assert_eq!((latin.encoding, latin.text.as_str()), (Encoding::Latin1, "café\r\n"));
        assert_eq!(latin.encoding.encode("→"), Err('→'));
        for binary in [&b"\xff\xfea\0"[..], b"\xff\xfe", b"\xe9\0", b"\xe9\x01"] {
            assert_eq!(TextFile::decode(binary.to_vec()), None, "{binary:?}");
        }
    }

    /// Lines with their ends. Each line has a different text.
    fn lines() -> impl Strategy<Value = Vec<(String, &'static str)>> {
        let end = prop_oneof![Just("\n"), Just("\r\n")];
        proptest::collection::vec(("[a-zé ]{0,3}", end), 1..8).prop_map(|lines| {
            lines.into_iter().enumerate().map(|(at, (text, end))| (format!("<{at}>{text}"), end)).collect()
        })
    }

    fn joined(lines: &[(String, &str)]) -> String {
        lines.iter().map(|(text, end)| format!("{text}{end}")).collect()
    }

    proptest! {
        /// Replaces one line in the middle of lines that the model repeats, in each encoding and with a byte-order mark.
        #[test]
        fn only_the_line_that_was_asked_for_changes(
            lines in lines(), first in 0_usize..8, length in 1_usize..8, at in 0_usize..8, is_latin in any::<bool>(), new in "[a-zé]{0,5}",
        ) {
            let first = first % lines.len();
            let last = (first + length).min(lines.len());
            let at = first + at % (last - first);
            let shown = |lines: &[(String, &str)]| lines.iter().map(|(text, _)| text.clone()).collect::<Vec<_>>().join("\n");
            let mut expected = lines.clone();
            expected[at].0 = new;
            let (old, new) = (shown(&lines[first..last]), shown(&expected[first..last]));
            let encoding = if is_latin { Encoding::Latin1 } else { Encoding::Utf8 };
            let mark = if is_latin { "" } else { "\u{feff}" };
            let bytes = encoding.encode(&format!("{mark}é{}", joined(&lines))).unwrap();
            let file = TextFile::decode(bytes).unwrap();
            prop_assert_eq!(file.encoding, encoding);
            let changed = file.replaced(&file.occurrences(&old), &old, &new);
            prop_assert_eq!(file.encoding.encode(&changed).unwrap(), encoding.encode(&format!("{mark}é{}", joined(&expected))).unwrap());
        }

        /// Adds or removes a line between two lines.
        #[test]
        fn an_added_line_changes_no_other(lines in lines(), at in 0_usize..8) {
            let at = at % lines.len();
            let mut more = lines.clone();
            more.insert(at + 1, ("new".to_owned(), lines[at].1));
            let (old, new) = (&lines[at].0, format!("{}\nnew", lines[at].0));
            let file = file(&joined(&lines));
            let changed = TextFile { text: file.replaced(&file.occurrences(old), old, &new), ..file };
            prop_assert_eq!(&changed.text, &joined(&more));
            let restored = changed.replaced(&changed.occurrences(&new), &new, old);
            prop_assert_eq!(restored, joined(&lines));
        }

        /// No text and no wanted text breaks the search, and it finds what `str` finds if there is only one kind of line end.
        #[test]
        fn any_text_is_searched(text in "[ab\r\n]{0,30}", wanted in "[ab\n]{1,4}") {
            let found = file(&text).occurrences(&wanted);
            let unix = text.replace("\r\n", "\n");
            prop_assert_eq!(found.len(), unix.matches(&wanted).count());
        }
    }
}
