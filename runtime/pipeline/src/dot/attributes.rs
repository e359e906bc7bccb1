//! Parses attribute blocks and values: `[key=value, …]`.
//!
//! Commas, semicolons and white space separate attributes. An unclosed block ends at the first line that looks like a new
//! statement, so that the mistake causes only one diagnostic.

use super::lexer::{Token, TokenKind, is_bare, is_name, is_odd};
use super::names::reads_bare;
use super::parser::{Parser, Spelling};
use super::{Attr, Value, quote};
use crate::attributes::{self, ValueKind};
use crate::diagnostic::Diagnostic;
use crate::key::Key;
use crate::span::Span;
use std::borrow::Cow;

/// Where an attribute is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttributePosition {
    /// In square brackets.
    List,
    /// Between the statements of a graph or subgraph.
    Body,
}

impl<'a> Parser<'a> {
    /// Reads all blocks that follow. Returns the attributes, and the end of the last block, or `end` if there is no block.
    pub(super) fn attribute_blocks(&mut self, mut end: Span) -> (Vec<Attr<'a>>, Span) {
        while self.at(TokenKind::LeftBracket) {
            end = self.block();
        }
        (self.attributes.drain(..).collect(), end)
    }

    fn block(&mut self) -> Span {
        let open = self.advance().span;
        let mut separable = false;
        loop {
            match self.token.kind {
                TokenKind::RightBracket => return self.advance().span,
                TokenKind::Comma | TokenKind::Semicolon if separable => {
                    separable = false;
                    self.advance();
                }
                TokenKind::Comma | TokenKind::Semicolon => {
                    let span = self.advance().span;
                    let error = Diagnostic::error("dot_syntax", "expected an attribute before this separator", span);
                    self.error(error.with_fix(span, ""));
                }
                TokenKind::Word | TokenKind::Number | TokenKind::String => {
                    if self.statement_begins() {
                        return self.unclosed(open);
                    }
                    if let Some(attribute) = self.attribute() {
                        self.attributes.push(attribute);
                    }
                    separable = true;
                }
                TokenKind::End
                | TokenKind::LeftBrace
                | TokenKind::RightBrace
                | TokenKind::Arrow
                | TokenKind::LeftBracket => {
                    return self.unclosed(open);
                }
                _ => {
                    let message = format!("expected an attribute or `]`, found {}", self.found());
                    self.syntax(message, self.token.span);
                    self.advance();
                }
            }
        }
    }

    /// Returns true if the current token is the first of its line and looks like the start of a node or an edge, not of
    /// an attribute.
    fn statement_begins(&self) -> bool {
        if !self.token.first || !self.at(TokenKind::Word) {
            return false;
        }
        let mut ahead = self.lexer.source.text()[self.lexer.at..].trim_start_matches([' ', '\t']);
        if self.text(self.token.span) == "subgraph" {
            return true;
        }
        if let Some(rest) = ahead.strip_prefix("->") {
            ahead = rest;
            return !ahead.is_empty();
        }
        ahead.starts_with('[')
    }

    fn unclosed(&mut self, open: Span) -> Span {
        let error = Diagnostic::error("dot_syntax", "this `[` has no matching `]`", open);
        self.error(error.with_label(self.token.span, "expected `]` before this"));
        if self.at(TokenKind::Arrow) {
            self.recover(self.token.span.start);
        }
        open
    }

    fn attribute(&mut self) -> Option<Attr<'a>> {
        let quoted = self.at(TokenKind::String);
        let (key, span) = self.key();
        if self.at(TokenKind::Equal) {
            return self.attribute_value(AttributePosition::List, key, span, quoted);
        }
        if self.at(TokenKind::Colon) && self.lexer.source.text()[self.token.span.end..].starts_with([' ', '"']) {
            let colon = self.token.span;
            self.error(
                Diagnostic::error("dot_syntax", "expected `=` between key and value, found `:`", colon)
                    .with_fix(colon, "="),
            );
            self.advance();
            self.advance();
            return None;
        }
        if matches!(self.token.kind, TokenKind::Arrow) {
            // This is an edge: the caller reports the unclosed block.
            return None;
        }
        let message = format!("expected `=` after the attribute `{key}`, found {}", self.found());
        let follows_quote = self.lexer.source.text()[..span.start].ends_with('"');
        let help = match quoted || follows_quote || !super::is_identifier(&key) {
            true => "write `key=value`; write a quote inside a string as `\\\"`".to_owned(),
            false => {
                format!("write `{key}=true`, or another value; put a value of several words in double quotes")
            }
        };
        self.error(Diagnostic::error("dot_syntax", message, span).with_help(help));
        None
    }

    fn key(&mut self) -> (Cow<'a, str>, Span) {
        if self.at(TokenKind::String) {
            let token = self.advance();
            return (self.string_value_of(token), token.span);
        }
        self.extend(self.lexer.run(self.token.span.end, is_name));
        let span = self.advance().span;
        (Cow::Borrowed(self.text(span)), span)
    }

    /// Reads `= value`. The current token is the `=`.
    pub(super) fn attribute_value(
        &mut self,
        position: AttributePosition,
        key: Cow<'a, str>,
        key_span: Span,
        quoted: bool,
    ) -> Option<Attr<'a>> {
        if !quoted && !reads_bare(&key) {
            self.remark(Spelling::BareDottedKey, key_span, || quote(&key));
        }
        let value = self.value(position, Key::new(&key))?;
        Some(Attr { key, key_span, value })
    }

    fn value(&mut self, position: AttributePosition, key: Key<'_>) -> Option<Value<'a>> {
        let equal = self.token.span;
        let blank = self.lexer.run(equal.end, |byte| byte == b' ' || byte == b'\t');
        if self.lexer.source.text().as_bytes().get(blank) == Some(&b'#') {
            self.lexer.at = self.lexer.run(blank + 1, is_bare);
            let span = Span::new(blank, self.lexer.at);
            self.advance();
            return self.wants_quotes(span);
        }
        self.advance();
        match self.token.kind {
            TokenKind::String => self.string_value(),
            TokenKind::Word | TokenKind::Number => match self.end_of_words(position, key) {
                Some(end) => {
                    self.extend(end);
                    let span = self.advance().span;
                    self.wants_quotes(span)
                }
                None => self.bare_value(),
            },
            TokenKind::Other => self.odd_value(position, key),
            _ => {
                let message = format!("expected a value for `{key}`, found {}", self.found());
                self.syntax(message, equal.after());
                None
            }
        }
    }

    fn string_value(&mut self) -> Option<Value<'a>> {
        let token = self.advance();
        let span = token.span;
        if let Some(nul) = self.nul(token) {
            self.syntax("a string must not contain a NUL character", Span::new(nul, nul + 1));
        }
        if self.at(TokenKind::Other) && self.text(self.token.span) == "+" {
            let plus = self.token.span;
            let error = Diagnostic::error("dot_syntax", "`+` does not join strings", plus);
            self.error(error.with_help("write one string, with `\\n` for a new line"));
            self.advance();
            if self.at(TokenKind::String) {
                self.advance();
            }
        }
        Some(Value { text: self.string_value_of(token), span, quoted: true })
    }

    /// Returns the offset of a NUL character in a string. `None` if there is none.
    fn nul(&self, string: Token) -> Option<usize> {
        if string.plain { None } else { self.text(string.span).find('\0').map(|at| string.span.start + at) }
    }

    fn bare_value(&mut self) -> Option<Value<'a>> {
        let start = self.token.span.start;
        let end = self.lexer.run(start, is_bare);
        self.extend(self.lexer.run(end, is_odd));
        let span = self.advance().span;
        if span.end != end {
            return self.wants_quotes(span);
        }
        let text = self.text(span);
        if !reads_bare(text) {
            self.remark(Spelling::BareValue, span, || quote(text));
        }
        Some(Value { text: Cow::Borrowed(text), span, quoted: false })
    }

    /// Returns the end of a value of several words without quotes ([`words_without_quotes`]). `None` for a value of one
    /// word, for a key that does not take text, and outside of a list, where the next word begins a statement.
    fn end_of_words(&self, position: AttributePosition, key: Key<'_>) -> Option<usize> {
        let takes_text =
            attributes::known(key).is_none_or(|known| matches!(known.value, ValueKind::Text | ValueKind::Commands));
        if position == AttributePosition::Body || !takes_text {
            return None;
        }
        let start = self.token.span.start;
        let text = words_without_quotes(&self.lexer.source.text()[start..])?;
        text.contains([' ', '\t']).then_some(start + text.len())
    }

    fn wants_quotes(&mut self, span: Span) -> Option<Value<'a>> {
        let text = self.text(span);
        let error = Diagnostic::error("dot_syntax", format!("the value `{text}` needs quotes"), span);
        self.error(error.with_help(format!("write `{}`", quote(text))).with_fix(span, quote(text)));
        Some(Value { text: Cow::Borrowed(text), span, quoted: false })
    }

    fn odd_value(&mut self, position: AttributePosition, key: Key<'_>) -> Option<Value<'a>> {
        let start = self.token.span.start;
        let source = self.lexer.source.text();
        match source.as_bytes()[start] {
            b'<' => self.html_value(start),
            b'\'' => {
                let rest = &source[start + 1..];
                let length = rest.find(['\'', '\n']).unwrap_or(rest.len());
                self.extend(start + 1 + length + usize::from(rest[length..].starts_with('\'')));
                let span = self.advance().span;
                let inner = &rest[..length];
                let error = Diagnostic::error("dot_syntax", "a string needs double quotes", span);
                self.error(error.with_fix(span, quote(inner)));
                None
            }
            byte if b"/$@%*+~!?\\&|^(.".contains(&byte) => {
                let end = self.end_of_words(position, key).unwrap_or_else(|| self.lexer.run(start, is_odd));
                self.extend(end);
                let span = self.advance().span;
                self.wants_quotes(span)
            }
            _ => {
                let message = format!("expected a value for `{key}`, found {}", self.found());
                self.syntax(message, self.token.span);
                None
            }
        }
    }

    /// Returns the length of the `<...>` that begins at `start`. `None` if it is unclosed.
    fn html_end(&self, start: usize) -> Option<usize> {
        let mut open = 0_usize;
        for (offset, byte) in self.lexer.source.text()[start..].bytes().enumerate() {
            match byte {
                b'<' => open += 1,
                b'>' if open == 1 => return Some(offset + 1),
                b'>' => open -= 1,
                _ => {}
            }
        }
        None
    }

    /// Skips `<...>` with an error. If there is no closing `>`, skips the rest of the line.
    fn html_value(&mut self, start: usize) -> Option<Value<'a>> {
        let closed = if self.html_open { None } else { self.html_end(start) };
        self.html_open |= closed.is_none();
        // Also skip the text after the closing bracket, as in `<b>x</b>` without outer brackets.
        let end = closed.map_or_else(|| self.lexer.rest_of_line(start).end, |length| start + length);
        self.extend(self.lexer.run(end, |byte| !b",;[]{}\"\n".contains(&byte)));
        let span = self.advance().span;
        let error = Diagnostic::error("dot_syntax", "HTML labels are not supported", span);
        self.error(error.with_help("write the text in double quotes"));
        None
    }
}

/// Returns the words at the start of `text` that should be in quotes. They end at a separator, at the end of the line,
/// or at a quote that is not closed. They also end before a word that precedes a `=`, because that word is the next
/// key. The words may include a quoted part. `None` if a comment or an arrow follows.
fn words_without_quotes(text: &str) -> Option<&str> {
    let bytes = text.as_bytes();
    let (mut at, mut last_word) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match (byte, bytes.get(at + 1)) {
            (b'/', Some(b'/' | b'*')) | (b'-', Some(b'>')) => return None,
            (b',' | b';' | b']' | b'[' | b'{' | b'}' | b'#' | b'\n', _) => break,
            (b'=', _) => {
                at = last_word;
                break;
            }
            (b'"', _) => match closing_quote(&bytes[at + 1..]) {
                Some(length) => at += length + 1,
                None => break,
            },
            (b' ' | b'\t', Some(next)) if !matches!(next, b' ' | b'\t' | b'=') => last_word = at + 1,
            _ => {}
        }
        at += 1;
    }
    Some(text[..at].trim_end())
}

/// Returns the offset of the quote that closes a string on the same line. `None` if there is none.
fn closing_quote(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\n' => return None,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}
