//! Rewinds: a resume may restart a run before an earlier visit. The records after that point are then no longer in
//! force.
//!
//! No record is ever removed. The records *in force* are those from which the state of the run is computed. They form
//! one sequence: the `run.resumed` record of a rewind follows the last record before the visit, and the records between
//! these two are skipped. A fold continues with its state before the visit, but keeps the spend of the run.

use crate::event::Record;
use std::ops::RangeInclusive;

/// A fold of the records of a run.
pub trait Fold {
    /// The fold of the records before an earlier visit, for a rewind to that visit.
    type Past: Fold + Default;

    /// Applies the next record.
    fn apply(&mut self, record: &Record);

    /// Rewinds the fold to the state in `past`. The `run.resumed` record of the rewind is applied next.
    fn go_back(&mut self, past: Self::Past);
}

/// Folds all records of a journal that is in memory.
pub fn fold<F: Fold>(records: &[Record], fold: &mut F) {
    for part in parts(records) {
        if let Some(before) = part.before {
            fold.go_back(after(before));
        }
        part.records.iter().for_each(|record| fold.apply(record));
    }
}

/// Returns the fold of consecutive records.
pub fn after<'a, F: Fold + Default>(records: impl IntoIterator<Item = &'a Record>) -> F {
    let mut fold = F::default();
    records.into_iter().for_each(|record| fold.apply(record));
    fold
}

/// Maximum number of rewinds of a run. At each one, a reader folds all earlier records again.
pub const BACKS_MAX: usize = 100;

/// A series of consecutive records.
pub struct Part<'a> {
    /// The records in force before the first of `records`, if that record is a rewind.
    pub before: Option<Vec<&'a Record>>,
    /// The records.
    pub records: &'a [Record],
}

/// Splits the records of a journal. A new part begins at each rewind.
pub fn parts(records: &[Record]) -> impl Iterator<Item = Part<'_>> {
    let begins = (1..records.len()).filter(|at| rewind_target(&records[*at]).is_some()).take(BACKS_MAX);
    let starts: Vec<usize> = (0..1).chain(begins).collect();
    let ends: Vec<usize> = starts.iter().skip(1).copied().chain([records.len()]).collect();
    starts.into_iter().zip(ends).map(|(start, end)| {
        let before = || rewind_target(&records[start]).map(|seq| before(&records[..start], seq));
        Part { before: (start > 0).then(before).flatten(), records: &records[start..end] }
    })
}

/// Returns the records in force at the end of a journal, in order.
pub fn in_force(records: &[Record]) -> Vec<&Record> {
    let mut line = Vec::new();
    let mut rest = records;
    while let Some((last, others)) = rest.split_last() {
        line.push(last);
        rest = rewind_target(last).map_or(others, |seq| up_to(others, seq));
    }
    line.reverse();
    line
}

/// Returns the records in force up to and including record `seq`, in order.
pub fn before(records: &[Record], seq: u64) -> Vec<&Record> {
    in_force(up_to(records, seq))
}

/// As [`before`], but returns ranges of sequence numbers, and needs only the records that resumed the run.
pub fn ranges(resumes: &[Record], seq: u64) -> Vec<RangeInclusive<u64>> {
    let mut ranges = Vec::new();
    let mut end = seq;
    for (at, back) in resumes.iter().rev().filter_map(|record| Some((record.seq, rewind_target(record)?))) {
        if at <= end {
            ranges.push(at..=end);
            end = back.min(at.saturating_sub(1));
        }
    }
    ranges.extend((end > 0).then_some(1..=end));
    ranges.reverse();
    ranges
}

fn up_to(records: &[Record], seq: u64) -> &[Record] {
    &records[..records.partition_point(|record| record.seq <= seq)]
}

/// Returns the number of rewinds.
pub fn rewind_count(records: &[Record]) -> usize {
    records.iter().filter(|record| rewind_target(record).is_some()).count()
}

/// Returns the sequence number of the record that a resume rewound the run to. `None` if the record is not a rewind.
pub(crate) fn rewind_target(record: &Record) -> Option<u64> {
    record.event.run_resumed()?.back.as_ref().map(|back| back.seq)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::event::{Digest, EventText, RunResumed, WentBack};
    use jiff::Timestamp;

    /// Creates one record for each number. A record with a number above 0 rewinds to the record with that number.
    fn journal(backs: &[u64]) -> Vec<Record> {
        let record = |(seq, back): (u64, &u64)| {
            let back = (*back > 0).then_some(WentBack { visit: 1, generation: 0, seq: *back });
            let event = Event::RunResumed(Box::new(RunResumed { back, ..RunResumed::default() }));
            let hash = Digest::hash(&seq.to_le_bytes());
            Record { seq, at: Timestamp::UNIX_EPOCH, prev: hash, hash, event, text: EventText::default() }
        };
        (1..).zip(backs).map(record).collect()
    }

    fn places(records: Vec<&Record>) -> Vec<u64> {
        records.into_iter().map(|record| record.seq).collect()
    }

    #[test]
    fn what_follows_a_visit_that_a_resume_went_back_to_is_history() {
        let records = journal(&[0, 0, 0, 2, 0, 3, 0]);
        assert_eq!(places(in_force(&records)), [1, 2, 3, 6, 7], "also back to what was left");
        assert_eq!(places(before(&records, 5)), [1, 2, 4, 5]);
        let parts: Vec<_> = parts(&records).map(|part| (part.before.map(places), part.records.len())).collect();
        assert_eq!(parts, [(None, 3), (Some(vec![1, 2]), 2), (Some(vec![1, 2, 3]), 2)]);
    }

    #[test]
    fn a_record_that_goes_nowhere_ends_the_line() {
        // A forged journal may contain any number.
        assert_eq!(places(in_force(&journal(&[0, 2, 3, 9, 0]))), [1, 2, 3, 4, 5]);
        assert!(in_force(&[]).is_empty());
        assert_eq!(parts(&[]).map(|part| part.records.len()).sum::<usize>(), 0);
        assert_eq!(parts(&journal(&[1, 0])).count(), 1);
    }

    #[test]
    fn ranges_are_the_records_before() {
        for backs in [&[0, 0, 0, 2, 0, 3, 0][..], &[0, 2, 3, 9, 0], &[0, 0, 1, 1, 4, 2, 0, 6], &[0], &[]] {
            let records = journal(backs);
            for seq in 0..=records.len() as u64 {
                let ranges = ranges(&records, seq).into_iter().flatten().collect::<Vec<_>>();
                assert_eq!(ranges, places(before(&records, seq)), "up to {seq} of {backs:?}");
            }
        }
        assert_eq!(ranges(&[], 0), [], "a journal without records has no range");
    }

    #[test]
    fn many_resumes_that_go_back_cost_no_more_than_their_records() {
        let backs: Vec<u64> = (0..400).map(|at| if at > 1 { at } else { 0 }).collect();
        assert_eq!(in_force(&journal(&backs)).len(), 400);
        assert_eq!(parts(&journal(&backs)).count(), BACKS_MAX + 1);
        assert_eq!(rewind_count(&journal(&backs)), 398);
    }
}
