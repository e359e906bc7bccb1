//! The content of changes that a run has set aside.
//!
//! A change has the number under which the summary lists it. Only what a record names is read: the folder of the attempt,
//! and the file that `report.json` in it gives for the path of the record. The folder of a run may come from elsewhere, so
//! neither the report nor a link in it leads to another file.

use super::RunFolder;
use super::changes;
use super::journal;
use crate::exit::Stop;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_engine::attempt::QUARANTINE_DIR;
use glovebox_journal::event::{Event, Record, RefusedChange};
use glovebox_journal::ports::BlobStore;
use glovebox_journal::reading::ReadRecords;
use glovebox_record::{AttemptId, Digest};
use glovebox_workspace::quarantine::QuarantineReport;
use glovebox_workspace::regular_file;
use std::io::{self, Read};

const REPORT_FILE: &str = "report.json";
/// Maximum size of a report, in bytes.
const REPORT_BYTES_MAX: u64 = 64 << 20;
/// Maximum number of programs under test whose folders are searched.
const SUBJECTS_MAX: usize = 64;

/// A change that a run has set aside, and where its content is.
#[derive(Debug, PartialEq, Eq)]
pub enum SetAside {
    /// In the quarantine of an attempt: the change, and how many equal ones the record names before it.
    OfAttempt(AttemptId, RefusedChange, usize),
    /// In a blob: the version of one branch. `None` if the branch removed the file.
    OfBranch(Option<Digest>),
}

/// Returns the change with this number. `None` if no change has it.
pub fn find(run: &RunFolder, number: u64) -> Result<Option<SetAside>, Stop> {
    let journal = journal::open_to_show(run)?;
    let (mut found, mut before) = (None, 0);
    let read = journal.read(1..=journal.last_seq(), &mut |record: &Record| {
        let named = named(&record.event);
        let at = number.checked_sub(before + 1).and_then(|at| usize::try_from(at).ok());
        before += named.len() as u64;
        if let Some(change) = at.and_then(|at| named.into_iter().nth(at)) {
            found = Some(change);
        }
    });
    read.map_err(|error| journal::unreadable(run, &error))?;
    Ok(found)
}

/// Returns the changes that a record sets aside, in the order in which the summary counts them.
fn named(event: &Event) -> Vec<SetAside> {
    match event {
        Event::StageFinished(stage) => {
            let (id, list) = (&stage.attempt.id, &stage.files.quarantined);
            let equal = |at: usize| list[..at].iter().filter(|change| **change == list[at]).count();
            list.iter()
                .enumerate()
                .map(|(at, change)| SetAside::OfAttempt(id.clone(), change.clone(), equal(at)))
                .collect()
        }
        Event::FanInFinished(finished) => {
            let sides = finished.conflicts.iter().flat_map(|conflict| &conflict.sides);
            sides.map(|side| SetAside::OfBranch(side.change.digest)).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the content of a change. `None` if the run does not have it, or if it is longer than `bytes_max`.
pub fn content(run: &RunFolder, change: &SetAside, bytes_max: u64) -> Result<Option<Vec<u8>>, Stop> {
    let (attempt, change, before) = match change {
        SetAside::OfAttempt(attempt, change, before) => (attempt, change, *before),
        SetAside::OfBranch(None) => return Ok(None),
        SetAside::OfBranch(Some(digest)) => {
            return Ok(changes::open_blobs(run)?.read_all(digest, bytes_max).ok());
        }
    };
    let failed = |error: io::Error| Stop::io(format!("read the quarantine of run `{}`", run.id), &error);
    let folder = Dir::open_ambient_dir(&run.path, ambient_authority()).map_err(failed)?;
    let Some(folder) = absent(folder.open_dir(QUARANTINE_DIR)).map_err(failed)? else { return Ok(None) };
    let subjects = (1..=SUBJECTS_MAX).map(|number| format!("{attempt}-subject-{number}"));
    let mut left = before;
    for name in std::iter::once(attempt.to_string()).chain(subjects).filter(|name| is_name(name)) {
        let Some(folder) = absent(folder.open_dir(&name)).map_err(failed)? else { continue };
        let report = read(&folder, REPORT_FILE, REPORT_BYTES_MAX).map_err(failed)?;
        let report: QuarantineReport = serde_json::from_slice(&report.unwrap_or_default()).unwrap_or_default();
        for kept in report.kept.iter().filter(|kept| kept.path == change.path && kept.reason == change.reason) {
            if left > 0 {
                left -= 1;
                continue;
            }
            let stored = kept.stored_as.as_deref().filter(|name| is_name(name));
            return stored.map_or(Ok(None), |name| read(&folder, name, bytes_max).map_err(failed));
        }
    }
    Ok(None)
}

/// Returns true for the name of an entry of a folder, which leads nowhere else.
fn is_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// Reads a file. `None` if it is not there, is not a regular file, or is longer than `bytes_max`.
fn read(folder: &Dir, name: &str, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    if !folder.symlink_metadata(name).is_ok_and(|found| found.is_file()) {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    regular_file::open_in(folder, name)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= bytes_max))
}

fn absent<T>(opened: io::Result<T>) -> io::Result<Option<T>> {
    match opened {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
