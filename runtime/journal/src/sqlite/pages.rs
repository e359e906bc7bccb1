//! Reads a verified journal page by page, so that a command needs no more memory for a long run than for a short one.
//!
//! The whole journal is verified before any record is returned. When records are read again, each one is checked
//! against its predecessor, and the last one against the verified end of the journal.

use super::{OpenJournal, PAGE_RECORDS, SqliteReader, VerifiedJournal, rows};
use crate::event::Record;
use crate::ports::PortError;
use crate::reading::ReadRecords;
use std::ops::RangeInclusive;

/// An iterator over pages of records of a journal, in order.
pub struct Pages<'a> {
    reader: &'a SqliteReader,
    journal: &'a VerifiedJournal,
    at: rows::Tip,
    /// Sequence number of the last record to read.
    end: u64,
}

impl Iterator for Pages<'_> {
    type Item = Result<Vec<Record>, PortError>;

    fn next(&mut self) -> Option<Self::Item> {
        let left = self.end.saturating_sub(self.at.seq);
        if left == 0 {
            return None;
        }
        let records_max = usize::try_from(left).unwrap_or(PAGE_RECORDS).min(PAGE_RECORDS);
        let page = rows::page(&self.reader.connection, &mut self.at, records_max).and_then(|page| self.checked(page));
        if page.is_err() {
            self.end = 0;
        }
        Some(page)
    }
}

impl Pages<'_> {
    /// Refuses an empty page, and a page whose end differs from the verified end of the journal.
    fn checked(&self, page: Vec<Record>) -> Result<Vec<Record>, PortError> {
        let verified = &self.journal.tip;
        let is_other = self.at.seq == verified.seq && self.at.hash != verified.hash;
        match page.is_empty() || is_other {
            true => Err(rows::changed(self.at.seq)),
            false => Ok(page),
        }
    }
}

impl SqliteReader {
    /// Returns the records of a verified journal after the record with sequence number `after`.
    pub fn pages<'a>(&'a self, journal: &'a VerifiedJournal, after: u64) -> Result<Pages<'a>, PortError> {
        self.pages_between(journal, &(after + 1..=journal.records_count()))
    }

    /// Verifies the records that were appended since the journal was verified, and adds the records that
    /// [`SqliteReader::read_start_and_resumes`] keeps.
    pub fn read_on(&self, journal: &mut VerifiedJournal) -> Result<(), PortError> {
        let (terms, tip) = rows::terms(&self.connection, journal.tip)?;
        journal.records.extend(terms);
        journal.tip = tip;
        Ok(())
    }

    /// As [`SqliteReader::pages`], but for the records with these sequence numbers.
    pub(crate) fn pages_between<'a>(
        &'a self,
        journal: &'a VerifiedJournal,
        range: &RangeInclusive<u64>,
    ) -> Result<Pages<'a>, PortError> {
        Ok(Pages { reader: self, journal, at: rows::before(&self.connection, *range.start())?, end: *range.end() })
    }
}

impl ReadRecords for OpenJournal {
    fn resumes(&self) -> &[Record] {
        &self.verified.records
    }

    fn last_seq(&self) -> u64 {
        self.verified.records_count()
    }

    fn read(&self, seqs: RangeInclusive<u64>, take: &mut dyn FnMut(&Record)) -> Result<(), PortError> {
        for page in self.reader.pages_between(&self.verified, &seqs)? {
            page?.iter().for_each(&mut *take);
        }
        Ok(())
    }
}
