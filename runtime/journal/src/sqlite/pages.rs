//! A verified journal's records a few at once, so that a command needs as much memory for a long run as for a short one.
//!
//! A journal is verified as a whole before any record of it is handed out. When records are read again, each is checked against its
//! predecessor once more, and the last one against what was verified.

use super::{OpenJournal, PAGE_RECORDS, SqliteReader, VerifiedJournal, rows};
use crate::event::Record;
use crate::ports::PortError;
use crate::reading::ReadRecords;
use std::ops::RangeInclusive;

/// Records of a journal, some at once and in order.
pub struct Pages<'a> {
    reader: &'a SqliteReader,
    journal: &'a VerifiedJournal,
    at: rows::Tip,
    /// The last record that is wanted.
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
    /// Refuses a page that is missing or leads elsewhere than the journal did when it was verified.
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
    /// Reads the records of a verified journal that follow the one with this sequence number.
    pub fn pages<'a>(&'a self, journal: &'a VerifiedJournal, after: u64) -> Result<Pages<'a>, PortError> {
        self.pages_between(journal, &(after + 1..=journal.records_count()))
    }

    /// Verifies what was appended since, and keeps of it what [`SqliteReader::read_terms`] keeps.
    pub fn read_on(&self, journal: &mut VerifiedJournal) -> Result<(), PortError> {
        let (terms, tip) = rows::terms(&self.connection, journal.tip)?;
        journal.records.extend(terms);
        journal.tip = tip;
        Ok(())
    }

    /// The same for the records with these sequence numbers.
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
