//! Maps offsets in a decoded value, in which escapes are resolved, to the source text.
//!
//! With this map, a diagnostic can point to a mistake inside a condition or a style sheet.

use super::text::decode;
use crate::source::Source;
use crate::span::Span;
use std::ops::Range;

/// Maps offsets in a decoded value back to the source text.
#[derive(Debug, Clone)]
pub struct SourceMap {
    whole: Span,
    /// The source offset of the first byte of the value. `None` if the value is not in the source text.
    start: Option<usize>,
    /// Pairs of decoded offset and source offset, one for each change of their difference; empty for a value without escapes.
    shifts: Vec<(usize, usize)>,
}

impl SourceMap {
    /// Decodes the value at `span` of the source again, and records the shift of each escape. Linear in the length of the span.
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

    /// Creates the map of a value without escapes that begins after `quotes` bytes of its span.
    pub(crate) fn plain(span: Span, quotes: usize) -> Self {
        Self { whole: span, start: Some(span.start + quotes), shifts: Vec::new() }
    }

    /// Creates a map that returns `span` for every range. It is for a value that differs from the source text.
    pub fn opaque(span: Span) -> Self {
        Self { whole: span, start: None, shifts: Vec::new() }
    }

    /// Returns the source range of a range of the decoded value.
    pub fn span(&self, range: Range<usize>) -> Span {
        let Some(first) = self.start else { return self.whole };
        let start = self.offset(first, range.start);
        Span::new(start, self.offset(first, range.end).max(start))
    }

    /// Returns the span of the whole value, including quotes.
    pub fn whole(&self) -> Span {
        self.whole
    }

    /// Returns true if the spans are exact, so that a fix can replace them.
    pub fn exact(&self) -> bool {
        self.start.is_some()
    }

    fn offset(&self, first: usize, decoded: usize) -> usize {
        let before = self.shifts.partition_point(|(at, _)| *at <= decoded);
        let (at, source) = if before == 0 { (0, first) } else { self.shifts[before - 1] };
        (source + (decoded - at)).min(self.whole.end)
    }
}
