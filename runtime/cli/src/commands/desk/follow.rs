//! The records of a run, as they are appended.

use super::problem::problem;
use super::records::line;
use crate::exit::Stop;
use crate::runs::hidden::Hidden;
use crate::runs::journal;
use crate::runs::{self, RunFolder};
use glovebox_journal::sqlite::{OpenJournal, VerifiedJournal};
use glovebox_serve::desk::{Follow, Problem, RecordLine};
use glovebox_serve::right::Sight;
use glovebox_state::named_events::NamedEvents;
use glovebox_workspace::run_folder::JOURNAL_FILE;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

/// Name of the write-ahead log beside the journal.
const LOG_FILE: &str = "journal.sqlite-wal";

/// A reader of one run that continues where it stopped. Between two reads the journal is closed, because an open reader
/// would prevent the removal of its write-ahead log.
pub(super) struct JournalFollow {
    run: RunFolder,
    seen: Sight,
    hidden: Hidden,
    verified: Option<VerifiedJournal>,
    /// Number of the last record that was returned, or that was left out.
    position: u64,
    named: NamedEvents,
    stamps: [Option<Stamp>; 2],
}

/// Length and time of a file.
type Stamp = (u64, i64, i64);

impl JournalFollow {
    /// Begins with the first record.
    pub(super) fn begin(run: RunFolder, seen: Sight) -> Result<Self, Stop> {
        Self::begin_at(run, seen, 0)
    }

    /// Begins after the record with this number. The events of the specification are not complete then.
    pub(super) fn begin_at(run: RunFolder, seen: Sight, position: u64) -> Result<Self, Stop> {
        let verified = journal::open_to_show(&run)?.close();
        let hidden = Hidden::in_records(&verified.records);
        let (verified, named) = (Some(verified), NamedEvents::default());
        Ok(Self { run, seen, hidden, verified, position, named, stamps: [None; 2] })
    }

    fn read(&mut self) -> Result<Vec<Arc<RecordLine>>, Stop> {
        self.stamps = stamps(&self.run);
        let OpenJournal { reader, verified } = match self.verified.take() {
            Some(verified) => journal::read_on(&self.run, verified)?,
            None => journal::open_to_show(&self.run)?,
        };
        let failed = |error| journal::unreadable(&self.run, &error);
        let mut lines = Vec::new();
        if let Some(page) = reader.pages(&verified, self.position).map_err(failed)?.next() {
            for record in &page.map_err(failed)? {
                let events = self.named.of(record);
                lines.push(Arc::new(line(record, &events, &self.hidden, self.seen)?));
                self.position = record.seq;
            }
        }
        self.verified = Some(verified);
        Ok(lines)
    }
}

impl Follow for JournalFollow {
    fn next(&mut self) -> Result<Vec<Arc<RecordLine>>, Problem> {
        self.read().map_err(problem)
    }

    fn has_changed(&self) -> bool {
        self.stamps != stamps(&self.run)
    }

    fn is_live(&self) -> bool {
        runs::is_live(&self.run)
    }
}

fn stamps(run: &RunFolder) -> [Option<Stamp>; 2] {
    [JOURNAL_FILE, LOG_FILE].map(|name| {
        let found = std::fs::symlink_metadata(run.path.join(name)).ok()?;
        Some((found.len(), found.mtime(), found.mtime_nsec()))
    })
}
