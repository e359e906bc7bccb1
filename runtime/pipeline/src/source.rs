//! The text of a pipeline file, borrowed from the caller. Every [`Span`] of a parsed file is a range of its source.

use crate::span::Span;

/// The text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Source<'a>(&'a str);

impl<'a> Source<'a> {
    /// The source with this text.
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// The whole text.
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// The line on which a span begins; the first is 1.
    pub fn line(self, span: Span) -> usize {
        let before = self.0.as_bytes().get(..span.start).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// The text that a span covers; empty if the span is outside the text.
    pub fn at(self, span: Span) -> &'a str {
        self.0.get(span.start..span.end).unwrap_or_default()
    }
}
