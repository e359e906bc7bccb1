//! Folds a verified journal page by page, including a journal in which a resume rewound the run to an earlier visit.
//!
//! At a rewind, the records before that visit are read again and folded into a new state. So at most one page of
//! records is in memory.

use crate::event::Record;
use crate::ports::PortError;
use crate::rewind::{self, Fold};
use std::ops::RangeInclusive;

/// A verified journal whose records can be read several times.
pub trait ReadRecords {
    /// Returns all records that resumed the run, in order. Other records may be included.
    fn resumes(&self) -> &[Record];

    /// Returns the sequence number of the last record; 0 if there is none.
    fn last_seq(&self) -> u64;

    /// Passes the records with these sequence numbers to `take`, in order.
    ///
    /// # Errors
    /// An error if the journal cannot be read or was changed after it was verified.
    fn read(&self, seqs: RangeInclusive<u64>, take: &mut dyn FnMut(&Record)) -> Result<(), PortError>;

    /// Returns the sequence numbers of the records in force: all except those that a rewind undid.
    fn in_force(&self) -> Vec<RangeInclusive<u64>> {
        rewind::ranges(self.resumes(), self.last_seq())
    }
}

/// Folds all records of a journal.
///
/// # Errors
/// An error if the journal cannot be read or was changed after it was verified.
pub fn fold<F: Fold>(journal: &impl ReadRecords, fold: &mut F) -> Result<(), PortError> {
    let mut start = 1;
    let backs = journal.resumes().iter().filter_map(|record| Some((record.seq, rewind::rewind_target(record)?)));
    for (seq, back) in backs.filter(|(seq, _)| *seq > 1).take(rewind::BACKS_MAX) {
        journal.read(start..=seq - 1, &mut |record| fold.apply(record))?;
        let mut past = F::Past::default();
        for range in rewind::ranges(journal.resumes(), back.min(seq - 1)) {
            journal.read(range, &mut |record| past.apply(record))?;
        }
        fold.go_back(past);
        start = seq;
    }
    journal.read(start..=journal.last_seq(), &mut |record| fold.apply(record))
}
