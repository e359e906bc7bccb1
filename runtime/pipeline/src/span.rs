//! Spans of the source text.
//!
//! A span is a half-open range of byte offsets. It knows nothing of lines; the printer has the text.

use schemars::JsonSchema;
use serde::Serialize;

/// A half-open byte range of the source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// Makes a span of `start..end`.
    pub fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Covers both spans and the text between them.
    pub fn to(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end.max(other.end))
    }

    /// The empty span at its end, for an insertion.
    pub fn after(self) -> Span {
        Span::new(self.end, self.end)
    }
}
