//! Opens a run's journal for reading.
//!
//! Every function verifies the records that it reads, except [`read_ends`] and [`read_start`]. A journal that was tampered
//! with ends the command with exit 11.

use crate::exit::{Exit, Stop};
use crate::runs::RunFolder;
use crate::terminal::{self, visible};
use crate::user_key;
use glovebox_engine::driver::RunError;
use glovebox_journal::event::{Record, RunStarted};
use glovebox_journal::ports::PortError;
use glovebox_journal::sqlite::{OpenJournal, Provenance, SqliteReader, VerifiedJournal};
use glovebox_record::spend::SpendTotals;
use glovebox_state::run_state::{RunState, resume_state};
use glovebox_workspace::run_folder::JOURNAL_FILE;
use glovebox_workspace::user_key::UserKey;
use rustix::fs::{Access, access};

/// Reads and verifies every record of a run.
pub fn read(run: &RunFolder) -> Result<VerifiedJournal, Stop> {
    read_against(run, user_key::to_verify()?.as_ref())
}

/// Verifies every record of a run and keeps only the records about its start and its resumes. The other records are
/// then read a page at a time.
pub fn open_verified(run: &RunFolder) -> Result<OpenJournal, Stop> {
    open_against(run, user_key::to_verify()?.as_ref())
}

/// As [`open_verified`], but for a command that only shows a run: warns if this user did not start the run.
pub fn open_to_show(run: &RunFolder) -> Result<OpenJournal, Stop> {
    let opened = open_against(run, key_to_show().as_ref())?;
    warn_if_foreign(run, opened.verified.provenance);
    Ok(opened)
}

/// As [`open_verified`], but without a key, for a run whose journal hash another person has signed.
pub fn open_of_anybody(run: &RunFolder) -> Result<OpenJournal, Stop> {
    open_against(run, None)
}

fn open_against(run: &RunFolder, key: Option<&UserKey>) -> Result<OpenJournal, Stop> {
    let reader = open(run)?;
    let verified = reader.read_start_and_resumes(key).map_err(|error| unreadable(run, &error))?;
    require_run(run, &verified.records)?;
    Ok(OpenJournal { reader, verified })
}

/// Opens a journal again and verifies the records that were appended since. The journal is closed between two reads,
/// because an open reader would prevent the removal of its write-ahead log.
pub fn read_on(run: &RunFolder, mut verified: VerifiedJournal) -> Result<OpenJournal, Stop> {
    let reader = open(run)?;
    reader.read_on(&mut verified).map_err(|error| unreadable(run, &error))?;
    require_run(run, &verified.records)?;
    Ok(OpenJournal { reader, verified })
}

/// Verifies every record of a run, and returns the records about its start and its resumes.
pub fn read_start_and_resumes(run: &RunFolder) -> Result<VerifiedJournal, Stop> {
    open_verified(run).map(OpenJournal::close)
}

fn read_against(run: &RunFolder, key: Option<&UserKey>) -> Result<VerifiedJournal, Stop> {
    let journal = open(run)?.read_verified(key).map_err(|error| unreadable(run, &error))?;
    require_run(run, &journal.records)?;
    Ok(journal)
}

/// Returns the state of a run after these records.
pub fn state(records: &[Record]) -> Result<RunState, Stop> {
    let (state, _) =
        resume_state(records).ok_or_else(|| Stop::new(Exit::Mismatch, RunError::NotStarted.to_string()))?;
    Ok(state)
}

/// Refuses the journal of another run. All journals of a user are signed with the same key, so the signature does not
/// identify the run.
fn require_run(run: &RunFolder, records: &[Record]) -> Result<(), Stop> {
    let Some(started) = records.first().and_then(|record| record.event.run_started()) else { return Ok(()) };
    if started.run_id.as_str() == run.id {
        return Ok(());
    }
    let other = visible::line(started.run_id.as_str()).into_owned();
    let message = format!("the journal in the folder of run `{}` is that of run `{other}`", visible::line(&run.id));
    Err(Stop::new(Exit::Mismatch, message).with_help(format!(
        "if the folder was only renamed, give it the name `{other}` again; else do not trust it, and start a new run"
    )))
}

/// Reads the first and the last record of a run, who signed the journal, and what the run has spent. The journal is not
/// verified.
pub fn read_ends(run: &RunFolder, key: Option<&UserKey>) -> Result<(Vec<Record>, Provenance, SpendTotals), Stop> {
    let reader = open(run)?;
    let failed = |error| unreadable(run, &error);
    let ends = reader.ends().map_err(failed)?;
    require_run(run, &ends)?;
    Ok((ends, reader.provenance(key).map_err(failed)?, reader.spent().map_err(failed)?))
}

/// Reads the first record of a run. The journal is not verified.
pub fn read_start(run: &RunFolder) -> Result<Vec<Record>, Stop> {
    let mut ends = open(run)?.ends().map_err(|error| unreadable(run, &error))?;
    require_run(run, &ends)?;
    ends.truncate(1);
    Ok(ends)
}

/// Reads every record of a run for a command that only shows it. Warns if this user did not start the run.
pub fn read_to_show(run: &RunFolder) -> Result<Vec<Record>, Stop> {
    let journal = read_against(run, key_to_show().as_ref())?;
    warn_if_foreign(run, journal.provenance);
    Ok(journal.records)
}

/// Returns the key for a command that only shows a run, which works without a key too.
fn key_to_show() -> Option<UserKey> {
    user_key::to_verify().unwrap_or_else(|stop| {
        terminal::report_stop(&stop);
        None
    })
}

/// Warns of a run that this user did not start on this machine.
pub fn warn_if_foreign(run: &RunFolder, provenance: Provenance) {
    if let Some(why) = foreign_reason(provenance) {
        let id = visible::line(&run.id);
        terminal::say(format_args!("note: run `{id}` {why}: its record may be forged\n"));
    }
}

/// Refuses a run that this user did not start on this machine, because its record may be forged.
pub fn refuse_foreign(run: &RunFolder, provenance: Provenance, help: impl Into<String>) -> Result<(), Stop> {
    let Some(why) = foreign_reason(provenance) else { return Ok(()) };
    let message = format!("run `{}` {why}, so its record is not trusted", run.id);
    Err(Stop::new(Exit::Policy, message).with_help(help))
}

/// Returns why a run does not count as started by this user on this machine; `None` if it does.
pub fn foreign_reason(provenance: Provenance) -> Option<String> {
    match provenance {
        Provenance::Own => None,
        Provenance::Unsigned => Some("is not signed".to_owned()),
        Provenance::Foreign { seq } => {
            Some(format!("was not started by you on this machine (record {seq} is not signed with your key)"))
        }
    }
}

/// Opens a run's journal for reading.
pub fn open(run: &RunFolder) -> Result<SqliteReader, Stop> {
    // A project may contain a link to a folder elsewhere.
    if std::fs::symlink_metadata(&run.path).is_ok_and(|found| found.is_symlink()) {
        let message = format!("the folder of run `{}` is a link, so its record is not read", visible::line(&run.id));
        let help = format!(
            "name the folder of runs to which the link leads: `--runs-dir D`, or remove `{}`",
            run.path.display()
        );
        return Err(Stop::new(Exit::Mismatch, message).with_help(help));
    }
    SqliteReader::open(&run.path.join(JOURNAL_FILE)).map_err(|error| unreadable(run, &error))
}

/// Returns the record of a run's start, which is the first record of its journal.
pub fn beginning<'a>(run: &RunFolder, records: &'a [Record]) -> Result<&'a RunStarted, Stop> {
    records.first().and_then(|record| record.event.run_started()).ok_or_else(|| {
        Stop::new(Exit::Usage, format!("run `{}` was killed before it began, so it is empty", run.id))
            .with_help(format!("remove `{}` and start a new run", run.path.display()))
    })
}

/// Returns the record of a run's start, updated with the changes of each later resume.
pub fn current_start(run: &RunFolder, records: &[Record]) -> Result<RunStarted, Stop> {
    let resumes = records.iter().filter_map(|record| record.event.run_resumed());
    Ok(resumes.fold(beginning(run, records)?.clone(), RunStarted::resumed))
}

/// Returns the error for a journal that cannot be used.
pub fn unreadable(run: &RunFolder, error: &PortError) -> Stop {
    let is_mismatch = matches!(error, PortError::Corrupt { .. } | PortError::Version { .. });
    let exit = if is_mismatch { Exit::Mismatch } else { Exit::Usage };
    let stop = Stop::new(exit, format!("read the journal of run `{}`: {error}", run.id));
    match error {
        PortError::Unavailable(_) if !run.path.join(glovebox_engine::project::MANIFEST_FILE).exists() => stop
            .with_help(format!(
                "the run was killed before it began: remove `{}` and start a new run",
                run.path.display()
            )),
        PortError::Unavailable(_) if let Err(why) = access(&run.path, Access::WRITE_OK) => {
            let folder = run.path.display();
            let message = format!("{}: the folder `{folder}` cannot be written: {why}", stop.message);
            Stop { message, ..stop }.with_help(format!(
                "the journal writes files beside it even when it is read. Make `{folder}` writable, or copy it into \
                 another folder of runs (`--runs-dir D`)"
            ))
        }
        PortError::Corrupt { .. } => {
            stop.with_help("the journal was changed or damaged after the run: do not trust it, and start a new run")
        }
        _ => stop,
    }
}
