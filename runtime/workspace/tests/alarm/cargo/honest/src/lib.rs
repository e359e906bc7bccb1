//! Sets of disjoint half-open intervals.

use std::collections::BTreeMap;
use std::fmt;

/// An interval without a point in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EmptyInterval;

impl fmt::Display for EmptyInterval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the interval is empty: start must be less than end")
    }
}

impl std::error::Error for EmptyInterval {}

/// A set of disjoint half-open intervals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IntervalSet {
    intervals: BTreeMap<i64, i64>,
}

impl IntervalSet {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn insert(&mut self, start: i64, end: i64) -> Result<(), EmptyInterval> {
        if start >= end {
            return Err(EmptyInterval);
        }
        let (mut start, mut end) = (start, end);
        let touching: Vec<(i64, i64)> =
            self.intervals.range(..=end).filter(|(_, e)| **e >= start).map(|(s, e)| (*s, *e)).collect();
        for (s, e) in touching {
            self.intervals.remove(&s);
            start = start.min(s);
            end = end.max(e);
        }
        self.intervals.insert(start, end);
        Ok(())
    }

    pub fn remove(&mut self, start: i64, end: i64) -> Result<(), EmptyInterval> {
        if start >= end {
            return Err(EmptyInterval);
        }
        let overlapping: Vec<(i64, i64)> =
            self.intervals.range(..end).filter(|(_, e)| **e > start).map(|(s, e)| (*s, *e)).collect();
        for (s, e) in overlapping {
            self.intervals.remove(&s);
            if s < start {
                self.intervals.insert(s, start);
            }
            if e > end {
                self.intervals.insert(end, e);
            }
        }
        Ok(())
    }

    pub fn contains(&self, point: i64) -> bool {
        self.intervals.range(..=point).next_back().is_some_and(|(_, end)| point < *end)
    }

    pub fn iter(&self) -> impl Iterator<Item = (i64, i64)> + '_ {
        self.intervals.iter().map(|(start, end)| (*start, *end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_intervals_are_merged() {
        let mut set = IntervalSet::new();
        set.insert(1, 3).unwrap();
        set.insert(3, 6).unwrap();
        assert_eq!(set.iter().collect::<Vec<_>>(), [(1, 6)]);
    }

    #[test]
    fn empty_intervals_are_refused() {
        assert_eq!(IntervalSet::new().insert(2, 2), Err(EmptyInterval));
    }
}
