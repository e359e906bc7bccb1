//! Stores the answered exchanges of attempts until a record contains their results.
//!
//! Each attempt has one file, named by its task and ordinal, so that an attempt that is executed again finds the earlier
//! answers. The folder is in the run directory, which no stage can reach.

use super::handed_on::HandedOn;
use crate::run_dir::{EXCHANGES_DIR, RunDir};
use cap_std::fs::{Dir, File, OpenOptions, OpenOptionsExt};
use glovebox_host::llm::ExchangeLog;
use glovebox_host::tools::ToolCallLog;
use glovebox_journal::event::{Attempt, Record, Verdict};
use glovebox_record::spend::SpendTotals;
use glovebox_record::{Digest, Failure, FailureClass};
use glovebox_workspace::regular_file;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::{self, Write as _};
use std::path::Path;

/// File name ending of the files with answers of tool servers.
const TOOLS_SUFFIX: &str = ".tools.ndjson";

/// Opens the exchanges of an attempt with its model. `handed_on` has those of other machines, and gets all further ones.
pub(super) fn open(run: &RunDir, attempt: &Attempt, handed_on: Option<&HandedOn>) -> io::Result<ExchangeLog> {
    run.dir.create_dir_all(EXCHANGES_DIR)?;
    let folder = run.dir.open_dir(EXCHANGES_DIR)?;
    let Some(handed_on) = handed_on else { return ExchangeLog::open(open_file(&folder, file_name(attempt), true)?) };
    let name = attempt_name(attempt);
    let lines = handed_on.read(&name)?;
    // This machine may have begun the attempt too: its lines are among them.
    folder.remove_file(file_name(attempt)).or_else(none_there)?;
    let mut file = open_file(&folder, file_name(attempt), true)?;
    file.write_all(&lines)?;
    Ok(ExchangeLog::open(file)?.kept_by(handed_on.keeper(name)))
}

/// Opens the answers of tool servers to an attempt.
pub(super) fn open_tools(run: &RunDir, attempt: &Attempt) -> io::Result<ToolCallLog> {
    run.dir.create_dir_all(EXCHANGES_DIR)?;
    let folder = run.dir.open_dir(EXCHANGES_DIR)?;
    ToolCallLog::open(open_file(&folder, tools_name(attempt), true)?)
}

/// Returns the length of the file with the exchanges of an attempt that has not ended. 0 without such a file.
pub fn logged_bytes(run: &Dir, attempt: &Attempt) -> io::Result<u64> {
    match run.symlink_metadata(format!("{EXCHANGES_DIR}/{}", file_name(attempt))) {
        Ok(found) => Ok(found.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

/// Returns the transcript so far of an attempt that has not ended. Empty if there is none.
pub fn transcript(run: &Dir, attempt: &Attempt) -> io::Result<String> {
    let opened = run.open_dir(EXCHANGES_DIR).and_then(|folder| regular_file::open_in(&folder, file_name(attempt)));
    match opened {
        Ok(file) => ExchangeLog::transcript(file),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(error),
    }
}

/// Answers that a run keeps for a resume, so that they are not paid for again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HeldCost {
    /// Number of answers.
    pub answers: u64,
    /// Usage that was paid for and is not in a record yet.
    #[serde(flatten)]
    pub uncounted: SpendTotals,
}

/// Returns the answers that a run keeps for a resume.
pub fn held(run: &Dir) -> io::Result<HeldCost> {
    let mut held = HeldCost::default();
    let Ok(folder) = run.open_dir(EXCHANGES_DIR) else { return Ok(held) };
    for name in names(&folder)?.iter().filter(|name| !name.ends_with(TOOLS_SUFFIX)) {
        let (answers, uncounted) = ExchangeLog::stored_answers(regular_file::open_in(&folder, name)?)?;
        held.answers += answers;
        held.uncounted.add(uncounted);
    }
    Ok(held)
}

/// Handles a record that was appended. If an attempt has ended and may be executed again, its exchanges are kept, and marked so that
/// their cost is not counted twice. Otherwise they are removed. When the run succeeds, the exchanges of all attempts are removed.
pub fn note(run: &Dir, record: &Record) {
    if record.event.run_finished().is_some_and(|ended| ended.status == Verdict::Success) {
        // If this fails, a later success of the same run removes the folder.
        let _not_there = run.remove_dir_all(EXCHANGES_DIR);
    }
    let finished = record.event.stage_finished().filter(|finished| finished.model.asked.is_some());
    let Some(finished) = finished else { return };
    let Ok(folder) = run.open_dir(EXCHANGES_DIR) else { return };
    let name = file_name(&finished.attempt);
    let failure = finished.outcome.failure.as_ref();
    let noted = match may_be_repeated(failure) {
        true => open_file(&folder, &name, false).and_then(|mut file| ExchangeLog::book(&mut file)),
        false => {
            let removed = folder.remove_file(tools_name(&finished.attempt)).or_else(none_there);
            removed.and_then(|()| folder.remove_file(&name))
        }
    };
    if let Err(error) = noted.or_else(none_there) {
        tracing::warn!(%error, "could not mark or remove the stored exchanges of a finished attempt");
    }
}

/// Returns true if an attempt that ended with this failure may be made again under the same number.
pub(crate) fn may_be_repeated(failure: Option<&Failure>) -> bool {
    failure.is_some_and(|failure| matches!(failure.class, FailureClass::Canceled | FailureClass::Budget))
}

/// Removes all exchanges of a run, so that its models and tool servers are asked again.
pub fn drop_all(run: &Dir) -> io::Result<()> {
    let Ok(folder) = run.open_dir(EXCHANGES_DIR) else { return Ok(()) };
    for name in names(&folder)? {
        match name.ends_with(TOOLS_SUFFIX) {
            true => folder.remove_file(&name)?,
            false => ExchangeLog::drop_all(&mut open_file(&folder, &name, false)?)?,
        }
    }
    Ok(())
}

fn open_file(folder: &Dir, name: impl AsRef<Path>, create: bool) -> io::Result<File> {
    folder.open_with(name, OpenOptions::new().read(true).append(true).create(create).mode(0o600))
}

fn none_there(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

fn names(folder: &Dir) -> io::Result<Vec<String>> {
    folder.entries()?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

/// Returns the file name for an attempt. It is the same when the attempt is executed again.
fn file_name(attempt: &Attempt) -> String {
    format!("{}.ndjson", attempt_name(attempt))
}

/// Returns the name of the file with the answers of tool servers.
fn tools_name(attempt: &Attempt) -> String {
    format!("{}{TOOLS_SUFFIX}", attempt_name(attempt))
}

fn attempt_name(attempt: &Attempt) -> String {
    let key = format!("{}\n{}", attempt.task, attempt.ordinal);
    Digest::hash(key.as_bytes()).hex()
}
