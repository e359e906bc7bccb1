//! Converts characters to tokens, one token at a time.
//!
//! The lexer does not know the grammar. It records and skips comments, and it never looks for tokens inside a string. Which
//! characters belong to a bare value depends on the context, so the parser reads bare values itself with [`Lexer::run`].

use super::Comment;
use crate::source::Source;
use crate::span::Span;

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenKind {
    /// `[A-Za-z_][A-Za-z0-9_]*`; all non-ASCII characters count as letters.
    Word,
    /// A token that begins with a digit, or with a minus and a digit or a dot.
    Number,
    /// A string in double quotes.
    String,
    /// A string without a closing quote.
    OpenString,
    /// A block comment without `*/`.
    OpenComment,
    LeftBrace,
    RightBrace,
    LeftBracket,
    RightBracket,
    Equal,
    Comma,
    Semicolon,
    Colon,
    /// `->`
    Arrow,
    /// `--`
    Line,
    /// Any other character.
    Other,
    /// The end of the file.
    End,
}

/// One token with its span.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: TokenKind,
    pub(super) span: Span,
    /// True if this is the first token of its line.
    pub(super) first: bool,
    /// True for a string whose source text equals its value: it has no escapes, no CRLF line endings and no NUL.
    pub(super) plain: bool,
}

/// Reads tokens from the text.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    pub(super) source: Source<'a>,
    pub(super) at: usize,
    pub(super) comments: Vec<Comment>,
    /// Span of the first `#` comment after other text on its line, which Graphviz does not accept.
    pub(super) late_hash: Option<Span>,
    /// Span of the first string that probably has no closing quote of its own: the opening quote of the next string
    /// closed it.
    pub(super) suspect: Option<Span>,
    /// [`Token::plain`] of the last string.
    plain: bool,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: Source<'a>) -> Self {
        let at = if source.text().starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { source, at, comments: Vec::new(), late_hash: None, suspect: None, plain: false }
    }

    fn byte(&self, offset: usize) -> u8 {
        self.source.text().as_bytes().get(self.at + offset).copied().unwrap_or(0)
    }

    /// Returns the next token. At the end of the text, returns [`TokenKind::End`] each time.
    pub(super) fn next(&mut self) -> Token {
        let mut first = self.at == 0 || self.source.text().as_bytes()[self.at - 1] == b'\n';
        loop {
            match self.byte(0) {
                b'\n' => {
                    first = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'#' => self.line_comment(first),
                b'/' if self.byte(1) == b'/' => self.line_comment(true),
                b'/' if self.byte(1) == b'*' => {
                    if let Some(open) = self.block_comment() {
                        return Token { kind: TokenKind::OpenComment, span: open, first, plain: false };
                    }
                }
                _ => break,
            }
        }
        let start = self.at;
        let kind = self.kind();
        Token { kind, span: Span::new(start, self.at), first, plain: self.plain }
    }

    fn line_comment(&mut self, graphviz: bool) {
        let span = self.rest_of_line(self.at);
        if !graphviz && self.late_hash.is_none() {
            self.late_hash = Some(span);
        }
        self.comments.push(Comment { span, line: true });
        self.at = span.end;
    }

    /// Skips a block comment. Returns the span of its `/*` if the comment is unclosed.
    fn block_comment(&mut self) -> Option<Span> {
        let start = self.at;
        match self.source.text()[start + 2..].find("*/") {
            Some(length) => {
                self.at = start + 2 + length + 2;
                self.comments.push(Comment { span: Span::new(start, self.at), line: false });
                None
            }
            None => {
                self.at = self.source.text().len();
                Some(Span::new(start, start + 2))
            }
        }
    }

    fn kind(&mut self) -> TokenKind {
        let Some(letter) = self.source.text().as_bytes().get(self.at).copied() else { return TokenKind::End };
        match letter {
            b'0'..=b'9' => self.number(),
            _ if is_word(letter) => {
                self.at = self.run(self.at + 1, is_word);
                TokenKind::Word
            }
            b'"' => self.string(),
            b'-' if self.byte(1) == b'>' => self.pair(TokenKind::Arrow),
            b'-' if self.byte(1) == b'-' => self.pair(TokenKind::Line),
            b'-' if self.byte(1).is_ascii_digit() || self.byte(1) == b'.' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            _ => {
                self.at += 1;
                mark(letter)
            }
        }
    }

    fn pair(&mut self, kind: TokenKind) -> TokenKind {
        self.at += 2;
        kind
    }

    fn number(&mut self) -> TokenKind {
        self.at = self.run(self.at + 1, |letter| is_word(letter) || letter == b'.');
        TokenKind::Number
    }

    fn string(&mut self) -> TokenKind {
        let start = self.at;
        let bytes = self.source.text().as_bytes();
        let (mut at, mut lines) = (start + 1, false);
        self.plain = true;
        while let Some(byte) = bytes.get(at) {
            at += 1;
            if !is(*byte, IN_STRING) {
                continue;
            }
            match byte {
                b'"' => {
                    self.at = at;
                    if lines || bytes.get(at).is_some_and(|next| *next == b'"' || next.is_ascii_alphanumeric()) {
                        self.suspect(start);
                    }
                    return TokenKind::String;
                }
                b'\n' => lines = true,
                b'\\' => {
                    self.plain = false;
                    lines |= bytes.get(at) == Some(&b'\n');
                    at += 1;
                }
                _ => self.plain = false,
            }
        }
        self.at = self.source.text().len();
        TokenKind::OpenString
    }

    /// Records a string that probably consists of the end of one string and the start of another: it ends with `key="`, or a word
    /// follows its closing quote.
    fn suspect(&mut self, start: usize) {
        if self.suspect.is_some() {
            return;
        }
        let inner = &self.source.text()[start + 1..self.at - 1];
        let is_long = inner.contains('\n') || inner.contains(['[', ';', ',']);
        let opens = inner.trim_end().ends_with('=')
            || is_long && self.source.text()[self.at..].starts_with(|c: char| c.is_ascii_alphanumeric());
        if opens {
            self.suspect = Some(self.rest_of_line(start));
        }
    }

    /// Returns the end of the accepted bytes that begin at `start`. Stops before `->`.
    pub(super) fn run(&self, start: usize, wanted: impl Fn(u8) -> bool) -> usize {
        let bytes = self.source.text().as_bytes();
        let mut at = start;
        while at < bytes.len() && wanted(bytes[at]) && !(bytes[at] == b'-' && bytes.get(at + 1) == Some(&b'>')) {
            at += 1;
        }
        at
    }

    /// Returns the span from an offset to the end of its line, without the line break.
    pub(super) fn rest_of_line(&self, start: usize) -> Span {
        let rest = &self.source.text()[start..];
        let length = rest.find('\n').unwrap_or(rest.len());
        Span::new(start, start + rest[..length].trim_end_matches('\r').len())
    }
}

fn mark(letter: u8) -> TokenKind {
    match letter {
        b'{' => TokenKind::LeftBrace,
        b'}' => TokenKind::RightBrace,
        b'[' => TokenKind::LeftBracket,
        b']' => TokenKind::RightBracket,
        b'=' => TokenKind::Equal,
        b',' => TokenKind::Comma,
        b';' => TokenKind::Semicolon,
        b':' => TokenKind::Colon,
        _ => TokenKind::Other,
    }
}

/// The classes of each byte, one bit for each class. This is a table, because the lexer spends most of its time on this test.
const CLASSES: [u8; 256] = classes();
const IN_WORD: u8 = 1;
const IN_NAME: u8 = 2;
const IN_BARE: u8 = 4;
/// The byte can occur in a value that needs quotes but has none.
const IN_ODD: u8 = 8;
/// The byte can occur in an identifier (spec §2.3).
const IN_IDENTIFIER: u8 = 16;
/// The byte has a special meaning in a string, or ends a line.
const IN_STRING: u8 = 32;

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut letter = 0;
    while letter < classes.len() {
        classes[letter] = match letter as u8 {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' => IN_WORD | IN_NAME | IN_BARE | IN_ODD | IN_IDENTIFIER,
            0x80.. => IN_WORD | IN_NAME | IN_BARE | IN_ODD,
            b'.' | b'-' => IN_NAME | IN_BARE | IN_ODD,
            b':' => IN_BARE | IN_ODD,
            b'\\' => IN_ODD | IN_STRING,
            b'/' | b'$' | b'@' | b'%' | b'*' | b'+' | b'~' | b'!' | b'?' | b'\'' | b'&' | b'|' | b'^' | b'(' | b')' => {
                IN_ODD
            }
            b'"' | b'\n' | b'\r' | 0 => IN_STRING,
            _ => 0,
        };
        letter += 1;
    }
    classes
}

const fn is(letter: u8, class: u8) -> bool {
    CLASSES[letter as usize] & class != 0
}

/// Returns true for a byte of a word. Every byte of a non-ASCII character is a byte of a word, so that a word ends at a
/// character boundary.
pub(super) fn is_word(letter: u8) -> bool {
    is(letter, IN_WORD)
}

/// Returns true for a byte of a dotted key, or of a name that should have been one word.
pub(super) fn is_name(letter: u8) -> bool {
    is(letter, IN_NAME)
}

/// Returns true for a byte of a bare value (spec §2.2).
pub(super) fn is_bare(letter: u8) -> bool {
    is(letter, IN_BARE)
}

/// Returns true for a byte of a bare value, or of a value that needs quotes but has none.
pub(super) fn is_odd(letter: u8) -> bool {
    is(letter, IN_ODD)
}

/// Returns true for `[A-Za-z0-9_]`.
pub(super) fn is_in_identifier(letter: u8) -> bool {
    is(letter, IN_IDENTIFIER)
}
