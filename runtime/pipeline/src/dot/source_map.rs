//! Maps offsets in a decoded value (escapes resolved) to the source text.
//!
//! So a diagnostic points at the mistake inside a condition or a style sheet.

use super::text::decode;
use crate::source::Source;
use crate::span::Span;
use std::ops::Range;

/// Maps offsets in a decoded value back to the source text.
#[derive(Debug, Clone)]
pub struct SourceMap {
    whole: Span,
    /// The source offset of the value's first byte; none if the value is not in the text.
    start: Option<usize>,
    /// (decoded offset, source offset) at each change of their distance; empty for a value without escapes.
    shifts: Vec<(usize, usize)>,
}

impl SourceMap {
    /// Decodes the value at `span` of the source again and records each shift by an escape. Linear in the span.
    pub fn new(source: Source<'_>, span: Span) -> Self {
        let raw = source.at(span);
        let mut start = span.start;
        let mut shifts = Vec::new();
        if let Some(inner) = raw.strip_prefix('"') {
            start += 1;
            decode(inner.strip_suffix('"').unwrap_or(inner), |decoded, offset| {
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
