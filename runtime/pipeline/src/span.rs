//! Where something stands in the source text.
//!
//! A span is a half-open range of byte offsets. It knows nothing of lines: whoever prints it has the text. [`Places`] carries
//! offsets of a decoded string value (escapes resolved) back to the text, so that a mistake inside a condition or a style
//! sheet is shown where it stands.

use serde::Serialize;
use std::ops::Range;

/// A half-open byte range of the source text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
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

    /// Covers both spans and what lies between them.
    pub fn to(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end.max(other.end))
    }

    /// The empty span at its end, where something is inserted.
    pub fn after(self) -> Span {
        Span::new(self.end, self.end)
    }

    /// The text it covers; empty when it does not fit the text.
    pub fn of(self, source: &str) -> &str {
        source.get(self.start..self.end).unwrap_or_default()
    }
}

/// Carries offsets inside a decoded value back to the source text.
#[derive(Debug, Clone)]
pub struct Places {
    whole: Span,
    /// (decoded offset, source offset) where the distance between the two changes; empty when the value is not in the text.
    shifts: Vec<(usize, usize)>,
}

impl Places {
    /// Reads the value at `span` of the source again and notes where escapes shift offsets. Linear in the span.
    pub fn of(source: &str, span: Span) -> Self {
        let raw = span.of(source);
        let mut shifts = vec![(0, span.start)];
        if let Some(inner) = raw.strip_prefix('"') {
            shifts[0].1 += 1;
            crate::dot::text::decode(inner.strip_suffix('"').unwrap_or(inner), |decoded, offset| {
                shifts.push((decoded, span.start + 1 + offset));
            });
        }
        Self { whole: span, shifts }
    }

    /// Answers with `span` for every question: the value was not written there letter by letter.
    pub fn opaque(span: Span) -> Self {
        Self { whole: span, shifts: Vec::new() }
    }

    /// The source range of a range of the decoded value.
    pub fn span(&self, range: Range<usize>) -> Span {
        if self.shifts.is_empty() {
            return self.whole;
        }
        let start = self.offset(range.start);
        Span::new(start, self.offset(range.end).max(start))
    }

    /// The span of the whole value, quotes included.
    pub fn whole(&self) -> Span {
        self.whole
    }

    /// True when the spans it gives are exact, so that a fix may replace them.
    pub fn exact(&self) -> bool {
        !self.shifts.is_empty()
    }

    fn offset(&self, decoded: usize) -> usize {
        let index = self.shifts.partition_point(|(at, _)| *at <= decoded).saturating_sub(1);
        let (at, source) = self.shifts[index];
        (source + (decoded - at)).min(self.whole.end)
    }
}
