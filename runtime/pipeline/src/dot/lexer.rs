//! Letters to tokens, one at a time.
//!
//! Knows no grammar. Comments are stepped over and noted; nothing in a string is ever looked at as a token. What may stand in a
//! bare value depends on where it stands, so the parser asks for such runs itself ([`Lexer::run`]).

use super::Comment;
use crate::span::Span;

/// What a token is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `[A-Za-z_][A-Za-z0-9_]*`, letters beyond ASCII taken along.
    Word,
    /// Begins with a digit, or with a minus and a digit or a dot.
    Number,
    /// In double quotes.
    String,
    /// A string that the file ends in.
    OpenString,
    /// A block comment that the file ends in.
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
    /// Any other letter.
    Other,
    /// The end of the file.
    End,
}

/// One token and its place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    pub(super) kind: Kind,
    pub(super) span: Span,
    /// Nothing but space and comments stands before it on its line.
    pub(super) first: bool,
}

/// Reads tokens off the text.
#[derive(Debug, Clone)]
pub(super) struct Lexer<'a> {
    pub(super) source: &'a str,
    pub(super) at: usize,
    pub(super) comments: Vec<Comment>,
    /// A `#` comment that does not begin its line, which Graphviz would not read.
    pub(super) late_hash: Option<Span>,
    /// The first string that probably lacks its closing quote and took the next one's opening quote for it.
    pub(super) suspect: Option<Span>,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let at = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        Self { source, at, comments: Vec::new(), late_hash: None, suspect: None }
    }

    fn byte(&self, offset: usize) -> u8 {
        self.source.as_bytes().get(self.at + offset).copied().unwrap_or(0)
    }

    /// The next token. After the end, the end again.
    pub(super) fn next(&mut self) -> Token {
        let mut first = self.at == 0 || self.source.as_bytes()[self.at - 1] == b'\n';
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
                        return Token { kind: Kind::OpenComment, span: open, first };
                    }
                }
                _ => break,
            }
        }
        let start = self.at;
        let kind = self.kind();
        Token { kind, span: Span::new(start, self.at), first }
    }

    fn line_comment(&mut self, graphviz: bool) {
        let span = self.rest_of_line(self.at);
        if !graphviz && self.late_hash.is_none() {
            self.late_hash = Some(span);
        }
        self.comments.push(Comment { span, line: true });
        self.at = span.end;
    }

    /// Steps over a block comment; gives the mark that opens it when nothing closes it.
    fn block_comment(&mut self) -> Option<Span> {
        let start = self.at;
        match self.source[start + 2..].find("*/") {
            Some(length) => {
                self.at = start + 2 + length + 2;
                self.comments.push(Comment { span: Span::new(start, self.at), line: false });
                None
            }
            None => {
                self.at = self.source.len();
                Some(Span::new(start, start + 2))
            }
        }
    }

    fn kind(&mut self) -> Kind {
        if self.at >= self.source.len() {
            return Kind::End;
        }
        let two = match (self.byte(0), self.byte(1)) {
            (b'-', b'>') => Some(Kind::Arrow),
            (b'-', b'-') => Some(Kind::Line),
            _ => None,
        };
        if let Some(kind) = two {
            self.at += 2;
            return kind;
        }
        match self.byte(0) {
            b'"' => self.string(),
            letter if is_word(letter) && !letter.is_ascii_digit() => {
                self.at = self.run(self.at, is_word);
                Kind::Word
            }
            b'0'..=b'9' => self.number(),
            b'-' if self.byte(1).is_ascii_digit() || self.byte(1) == b'.' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            letter => {
                self.at += 1;
                mark(letter)
            }
        }
    }

    fn number(&mut self) -> Kind {
        self.at = self.run(self.at + 1, |letter| is_word(letter) || letter == b'.');
        Kind::Number
    }

    fn string(&mut self) -> Kind {
        let start = self.at;
        let bytes = self.source.as_bytes();
        let mut at = start + 1;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'\\' => at += 2,
                b'"' => {
                    self.at = at + 1;
                    self.suspect(start);
                    return Kind::String;
                }
                _ => at += 1,
            }
        }
        self.at = self.source.len();
        Kind::OpenString
    }

    /// Notes a closed string that looks like two halves of others: over several lines, and `key="` or `"word` at its end.
    fn suspect(&mut self, start: usize) {
        if self.suspect.is_some() {
            return;
        }
        let inner = &self.source[start + 1..self.at - 1];
        let opens =
            inner.trim_end().ends_with('=') || self.source[self.at..].starts_with(|c: char| c.is_ascii_alphanumeric());
        if opens && inner.contains('\n') {
            self.suspect = Some(self.rest_of_line(start));
        }
    }

    /// The end of the run of wanted letters that begins at `start`; stops before `->`.
    pub(super) fn run(&self, start: usize, wanted: impl Fn(u8) -> bool) -> usize {
        let bytes = self.source.as_bytes();
        let mut at = start;
        while at < bytes.len() && wanted(bytes[at]) && !(bytes[at] == b'-' && bytes.get(at + 1) == Some(&b'>')) {
            at += 1;
        }
        at
    }

    /// From an offset to the end of its line, the line break left out.
    pub(super) fn rest_of_line(&self, start: usize) -> Span {
        let rest = &self.source[start..];
        let length = rest.find('\n').unwrap_or(rest.len());
        Span::new(start, start + rest[..length].trim_end_matches('\r').len())
    }
}

fn mark(letter: u8) -> Kind {
    match letter {
        b'{' => Kind::LeftBrace,
        b'}' => Kind::RightBrace,
        b'[' => Kind::LeftBracket,
        b']' => Kind::RightBracket,
        b'=' => Kind::Equal,
        b',' => Kind::Comma,
        b';' => Kind::Semicolon,
        b':' => Kind::Colon,
        _ => Kind::Other,
    }
}

/// A letter of a word; every byte of a letter beyond ASCII is one, so that runs end on letters' borders.
pub(super) fn is_word(letter: u8) -> bool {
    letter.is_ascii_alphanumeric() || letter == b'_' || letter >= 0x80
}

/// A letter of a dotted key, or of a name that was meant to be one word.
pub(super) fn is_name(letter: u8) -> bool {
    is_word(letter) || letter == b'.' || letter == b'-'
}

/// A letter of a bare value (spec §2.2).
pub(super) fn is_bare(letter: u8) -> bool {
    is_name(letter) || letter == b':'
}
