//! Folding a journal that is read a few records at once, also where the run went back.
//!
//! A fold that goes back begins again with the records that lead there, which are read once more. So it never needs all records at once.

use crate::event::Record;
use crate::ports::PortError;
use crate::rewind;
use crate::sqlite::{SqliteReader, VerifiedJournal};
use std::ops::RangeInclusive;

/// The records that lead to one that went back.
pub struct Past<'a> {
    reader: &'a SqliteReader,
    journal: &'a VerifiedJournal,
    ranges: Vec<RangeInclusive<u64>>,
}

impl Past<'_> {
    /// Reads them in order.
    ///
    /// # Errors
    /// When the journal cannot be read, or is not the one that was verified any more.
    pub fn each(&self, mut take: impl FnMut(&Record)) -> Result<(), PortError> {
        for range in &self.ranges {
            for page in self.reader.pages_between(self.journal, range)? {
                page?.iter().for_each(&mut take);
            }
        }
        Ok(())
    }
}

/// Gives every record of a verified journal to `take`, with those that lead to it if it went back.
///
/// # Errors
/// When the journal cannot be read, is not the one that was verified any more, or `take` says so.
pub fn each(
    (reader, journal): (&SqliteReader, &VerifiedJournal),
    mut take: impl FnMut(Record, Option<Past<'_>>) -> Result<(), PortError>,
) -> Result<(), PortError> {
    let mut backs = 0;
    for page in reader.pages(journal, 0)? {
        for record in page? {
            let back = rewind::back_to(&record).filter(|_| record.seq > 1 && backs < rewind::BACKS_MAX);
            backs += usize::from(back.is_some());
            let past = back.map(|seq| {
                let ranges = rewind::ranges(&journal.records, seq.min(record.seq - 1));
                Past { reader, journal, ranges }
            });
            take(record, past)?;
        }
    }
    Ok(())
}
