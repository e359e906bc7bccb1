//! Folds a verified journal that is read a few records at a time, also where a resume went back.
//!
//! A fold that goes back starts again with the records that lead there, which are read once more. So never more than one page of
//! records is in memory.

use crate::event::Record;
use crate::ports::PortError;
use crate::rewind::{self, Fold};
use std::ops::RangeInclusive;

/// A verified journal that can be read again.
pub trait ReadRecords {
    /// Every record that resumed the run, in order; others may be among them.
    fn resumes(&self) -> &[Record];

    /// The sequence number of the last record; 0 without one.
    fn last_seq(&self) -> u64;

    /// Reads the records with these sequence numbers, in order.
    ///
    /// # Errors
    /// When the journal cannot be read, or changed after it was verified.
    fn read(&self, seqs: RangeInclusive<u64>, take: &mut dyn FnMut(&Record)) -> Result<(), PortError>;

    /// The sequence numbers of the records that lead to the end of the run: all but those that a resume went back behind.
    fn in_force(&self) -> Vec<RangeInclusive<u64>> {
        rewind::ranges(self.resumes(), self.last_seq())
    }
}

/// Folds all records of a journal.
///
/// # Errors
/// When the journal cannot be read, or changed after it was verified.
pub fn fold<F: Fold>(journal: &impl ReadRecords, fold: &mut F) -> Result<(), PortError> {
    let mut start = 1;
    let backs = journal.resumes().iter().filter_map(|record| Some((record.seq, rewind::back_to(record)?)));
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
