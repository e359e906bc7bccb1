//! `glovebox pull`: makes an ordinary run directory of a run of a fleet.

use crate::arguments::PullRunArguments;
use crate::drive;
use crate::exit::{CommandResult, Exit, Stop};
use crate::fleet_connection::unread;
use crate::prepare;
use crate::runs::{self, RunFolder, RunId, recorded};
use crate::terminal::progress::ProgressFormat;
use crate::terminal::{self, visible};
use crate::user_key;
use glovebox_engine::run::{self, Pulled};
use glovebox_fleet::log::NatsLog;
use glovebox_journal::event::{self, Record};
use glovebox_journal::ports::{BlobStore as _, RunLog};
use glovebox_pipeline::ir::Pipeline;
use glovebox_state::evidence::{RunStatus, RunSummary, VerdictFile};
use std::path::Path;
use std::sync::Arc;

/// Maximum size of a pipeline that is read, in bytes.
const SOURCE_BYTES_MAX: u64 = 1 << 30;
/// Number of records that are read at a time.
const PAGE_RECORDS: usize = 256;

/// Pulls a run that has ended.
pub fn pull(arguments: &PullRunArguments) -> CommandResult {
    let id = RunId::parse(&arguments.run)?;
    let project = prepare::read_project(&arguments.workdir, None)?;
    let pulled = async {
        let connected = arguments.fleet.connect(&project.config, &project.workdir).await?;
        let log = connected.fleet.log(connected.blobs.clone());
        let records = existing(&log, &id).await?;
        if !has_ended(&records) {
            let message = format!("run `{}` has not ended", visible::line(id.as_str()));
            return Err(Stop::new(Exit::Transient, message).with_help("try again when it has ended"));
        }
        let pipeline = pipeline(&log, &records).await?;
        let run = runs::create(&arguments.runs.runs_dir, id.clone())?;
        into(&run, &log, &records, pipeline, true).await.inspect_err(|_| runs::discard(&run))?;
        Ok::<_, Stop>(run)
    };
    let run = drive::block_on(pulled)??;
    terminal::print(format_args!("{}\n", run.path.display()));
    Ok(Exit::Ok)
}

/// Returns true if the run has ended.
pub fn has_ended(records: &[Record]) -> bool {
    RunSummary::from_records(records).end.finished_at.is_some()
}

/// Returns true if no machine drives the run until a person does something.
pub fn is_paused(records: &[Record]) -> bool {
    RunSummary::from_records(records).status == RunStatus::Paused
}

/// Reads all records of a run that must exist.
pub async fn existing(log: &NatsLog, id: &RunId) -> Result<Vec<Record>, Stop> {
    let records = read(log, &id.as_str().into()).await?;
    match records.is_empty() {
        true => Err(Stop::new(Exit::Usage, format!("the fleet has no run `{}`", visible::line(id.as_str())))),
        false => Ok(records),
    }
}

/// Reads all records of a run.
pub async fn read(log: &NatsLog, run: &event::RunId) -> Result<Vec<Record>, Stop> {
    let mut records: Vec<Record> = Vec::new();
    loop {
        let from = records.last().map_or(1, |last| last.seq + 1);
        let page = log.read(run, from, PAGE_RECORDS).await.map_err(|error| unread(&error))?;
        if page.is_empty() {
            return Ok(records);
        }
        records.extend(page);
    }
}

/// Returns the pipeline that a run executes.
pub async fn pipeline(log: &NatsLog, records: &[Record]) -> Result<Arc<Pipeline>, Stop> {
    let started = records.first().and_then(|first| first.event.run_started());
    let started = started.ok_or_else(|| Stop::new(Exit::Mismatch, "the run has no first record"))?;
    let blobs = log.blobs_of(&started.run_id).await.map_err(|error| unread(&error))?;
    let text = |digest: &_| {
        let bytes = blobs.read_all(digest, SOURCE_BYTES_MAX).map_err(|error| unread(&error))?;
        String::from_utf8(bytes).map_err(|error| Stop::new(Exit::Mismatch, format!("blob {digest}: {error}")))
    };
    Ok(recorded::read_with(started.run_id.as_str(), started, text)?.pipeline)
}

/// Copies a run into the folder of a new run. Without `has_files`, the copy has no workspace, and is only read.
pub async fn into(
    run: &RunFolder,
    log: &NatsLog,
    records: &[Record],
    pipeline: Arc<Pipeline>,
    has_files: bool,
) -> Result<Pulled, Stop> {
    let dir = drive::open_dir(run, user_key::to_sign()?)?;
    let id = run.id.as_str().into();
    let blobs = log.blobs_of(&id).await.map_err(|error| unread(&error))?;
    let pulled = run::pull(&dir, &id, records, &blobs, pipeline, has_files).await;
    pulled.map_err(|error| drive::stop(run, &error))
}

/// Prints the summary of a run that was pulled, and returns its exit code.
pub fn conclude(run: &RunFolder, records: &[Record], format: ProgressFormat, runs_dir: &Path) -> CommandResult {
    let summary = RunSummary::from_records(records);
    let started = records.first().and_then(|first| first.event.run_started());
    let verdict = started.map(|started| VerdictFile::new(&summary, started));
    drive::print_end(run, &summary, verdict, format, runs_dir)?;
    Ok(Exit::from(summary.end.exit))
}
