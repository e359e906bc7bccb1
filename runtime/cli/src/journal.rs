//! A run's journal, read to its end for commands that only look.
//!
//! Opens read-only and verifies the chain: a journal that was tampered with is exit 11, never a result.

use crate::exit::{Exit, Stop};
use crate::runs::{JOURNAL_FILE, RunFolder};
use glovebox_engine::event::{Event, Record, RunStarted};
use glovebox_engine::ports::PortError;
use glovebox_engine::sqlite::SqliteReader;

const PAGE_RECORDS: usize = 1000;

/// Reads every record of a run.
pub fn read(run: &RunFolder) -> Result<Vec<Record>, Stop> {
    let stop = |error: PortError| unreadable(run, &error);
    let reader = SqliteReader::open(&run.path.join(JOURNAL_FILE)).map_err(stop)?;
    let mut records: Vec<Record> = Vec::new();
    loop {
        let from = records.last().map_or(1, |record| record.seq + 1);
        let page = reader.read(from, PAGE_RECORDS).map_err(stop)?;
        if page.is_empty() {
            return Ok(records);
        }
        records.extend(page);
    }
}

/// The first record of a run: how it was started.
pub fn beginning<'a>(run: &RunFolder, records: &'a [Record]) -> Result<&'a RunStarted, Stop> {
    match records.first().map(|record| &record.event) {
        Some(Event::RunStarted(started)) => Ok(started),
        _ => Err(Stop::new(
            Exit::Usage,
            format!("run `{}` was killed before it began, so there is nothing in it", run.id),
        )
        .with_help(format!("remove `{}` and run again", run.path.display()))),
    }
}

/// Why a journal cannot be used.
pub fn unreadable(run: &RunFolder, error: &PortError) -> Stop {
    let exit = if matches!(error, PortError::Corrupt { .. }) { Exit::Mismatch } else { Exit::Usage };
    let stop = Stop::new(exit, format!("read the journal of run `{}`: {error}", run.id));
    match error {
        PortError::Unavailable(_) if !run.path.join(glovebox_engine::project::MANIFEST_FILE).exists() => stop
            .with_help(format!("a run that was killed before it began: remove `{}` and run again", run.path.display())),
        _ => stop,
    }
}
