//! Spans of the source text.
//!
//! A span is a half-open range of byte offsets. It knows nothing of lines; the printer has the text. [`Places`] maps offsets in a decoded
//! string value (escapes resolved) back to the source text, so that a diagnostic points at the mistake inside a condition or a style sheet.

use crate::source::Source;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Range;

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

/// Maps offsets in a decoded value back to the source text.
#[derive(Debug, Clone)]
pub struct Places {
    whole: Span,
    /// The source offset of the value's first byte; none if the value is not in the text.
    start: Option<usize>,
    /// (decoded offset, source offset) at each change of their distance; empty for a value without escapes.
    shifts: Vec<(usize, usize)>,
}

impl Places {
    /// Decodes the value at `span` of the source again and records each shift by an escape. Linear in the span.
    pub fn of(source: Source<'_>, span: Span) -> Self {
        let raw = source.at(span);
        let mut start = span.start;
        let mut shifts = Vec::new();
        if let Some(inner) = raw.strip_prefix('"') {
            start += 1;
            crate::dot::text::decode(inner.strip_suffix('"').unwrap_or(inner), |decoded, offset| {
                shifts.push((decoded, span.start + 1 + offset));
            });
        }
        Self { whole: span, start: Some(start), shifts }
    }

    /// For a value without escapes, which begins after `quotes` bytes of its span.
    pub(crate) fn plain(span: Span, quotes: usize) -> Self {
        Self { whole: span, start: Some(span.start + quotes), shifts: Vec::new() }
    }

    /// Returns `span` for every range, because the text there differs from the value.
    pub fn opaque(span: Span) -> Self {
        Self { whole: span, start: None, shifts: Vec::new() }
    }

    /// The source range of a range of the decoded value.
    pub fn span(&self, range: Range<usize>) -> Span {
        let Some(first) = self.start else { return self.whole };
        let start = self.offset(first, range.start);
        Span::new(start, self.offset(first, range.end).max(start))
    }

    /// The span of the whole value, quotes included.
    pub fn whole(&self) -> Span {
        self.whole
    }

    /// True if its spans are exact, so that a fix may replace them.
    pub fn exact(&self) -> bool {
        self.start.is_some()
    }

    fn offset(&self, first: usize, decoded: usize) -> usize {
        let before = self.shifts.partition_point(|(at, _)| *at <= decoded);
        let (at, source) = if before == 0 { (0, first) } else { self.shifts[before - 1] };
        (source + (decoded - at)).min(self.whole.end)
    }
}
