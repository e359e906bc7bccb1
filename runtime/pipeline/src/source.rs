//! The text of a pipeline file, borrowed from the caller. Every [`Span`] of a parsed file is a range of this text.

use crate::span::Span;

/// The text of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Source<'a>(&'a str);

impl<'a> Source<'a> {
    /// Creates the source with this text.
    pub const fn new(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the whole text.
    pub const fn text(self) -> &'a str {
        self.0
    }

    /// Returns the number of the line on which a span begins, counted from 1.
    pub fn line(self, span: Span) -> usize {
        let before = self.0.as_bytes().get(..span.start).unwrap_or_default();
        1 + before.iter().filter(|byte| **byte == b'\n').count()
    }

    /// Returns the text that a span covers. Empty if the span is outside of the text.
    pub fn at(self, span: Span) -> &'a str {
        self.0.get(span.start..span.end).unwrap_or_default()
    }
}
