//! Spans of source text.
//!
//! A span is a half-open range of byte offsets. It does not know lines; code that prints a diagnostic computes them from the text.

use schemars::JsonSchema;
use serde::Serialize;

/// A half-open range of bytes in the source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema)]
pub struct Span {
    /// Offset of the first byte.
    pub start: usize,
    /// Offset after the last byte.
    pub end: usize,
}

impl Span {
    /// Creates the span `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the span that covers both spans and the text between them.
    pub fn to(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end.max(other.end))
    }

    /// Returns the empty span at the end of this span, for an insertion.
    pub fn after(self) -> Span {
        Span::new(self.end, self.end)
    }
}
