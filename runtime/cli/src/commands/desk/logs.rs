//! Events and ends of output of all runs, by time.

use super::all_or_one;
use super::problem::problem;
use super::sight;
use crate::runs::RunFolder;
use crate::runs::changes;
use crate::runs::failure::OUTPUTS;
use crate::runs::hidden::Hidden;
use crate::runs::journal;
use crate::terminal::{self, lines as prose};
use glovebox_journal::blobs::DirBlobs;
use glovebox_journal::event::{Record, StageFinished};
use glovebox_journal::ports::BlobStore;
use glovebox_journal::reading::ReadRecords;
use glovebox_record::{NodeId, Status};
use glovebox_serve::desk::Problem;
use glovebox_serve::right::Sight;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;

/// Number of the newest runs whose lines are listed.
const RUNS_MAX: usize = 50;
/// Maximum length of the end of an output, bytes.
const END_BYTES_MAX: usize = 1024;
/// Maximum size of an output whose end is read, bytes.
const OUTPUT_BYTES_MAX: u64 = 16 << 20;

/// Which lines are listed.
pub(super) struct Wanted<'a> {
    pub(super) run: Option<RunFolder>,
    pub(super) node: Option<&'a NodeId>,
    pub(super) since: Option<&'a str>,
    pub(super) limit: usize,
}

/// One line.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "log-line.json")]
pub struct LogLine {
    /// Version of this document.
    schema_version: u32,
    /// Time of the record.
    #[schemars(with = "String")]
    at: Timestamp,
    /// Id of the run.
    run_id: String,
    /// Number of the record.
    record: u64,
    /// Kind of the event.
    event: &'static str,
    /// The node of the event; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<NodeId>,
    /// The event as the terminal shows it.
    text: Vec<String>,
    /// The end of the output of a stage that failed; absent otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    output_end: Option<String>,
}

/// Returns the newest lines, oldest first.
pub(super) fn lines(runs_dir: &Path, wanted: &Wanted<'_>, seen: Sight) -> Result<Vec<String>, Problem> {
    let since = wanted.since.map(|text| text.parse::<Timestamp>()).transpose();
    let since = since.map_err(|_| Problem::new(400, "usage", "`since` is not a time as in RFC 3339"))?;
    let mut found = Vec::new();
    for run in all_or_one(runs_dir, wanted.run.as_ref())?.iter().take(RUNS_MAX) {
        // A run that cannot be read hides no other.
        found.extend(of_run(run, wanted, since, seen).unwrap_or_default());
    }
    found.sort_by_key(|line| (line.at, line.record));
    let skipped = found.len().saturating_sub(wanted.limit);
    found.iter().skip(skipped).map(|line| terminal::json_line(line).map_err(problem)).collect()
}

fn of_run(
    run: &RunFolder,
    wanted: &Wanted<'_>,
    since: Option<Timestamp>,
    seen: Sight,
) -> Result<Vec<LogLine>, crate::exit::Stop> {
    let journal = journal::open_to_show(run)?;
    let (hidden, blobs) = (Hidden::in_records(&journal.verified.records), changes::open_blobs(run)?);
    let mut found = Vec::new();
    let read = journal.read(1..=journal.last_seq(), &mut |record: &Record| {
        let node = record.event.node();
        let is_wanted =
            since.is_none_or(|since| record.at > since) && wanted.node.is_none_or(|wanted| node == Some(wanted));
        if !is_wanted {
            return;
        }
        let is_of_judge = node.is_some_and(|node| hidden.has(node)) || sight::quotes(record.event.kind());
        let is_hidden = seen != Sight::Everything && !hidden.is_empty() && is_of_judge;
        let output_end = record.event.stage_finished().filter(|_| !is_hidden).and_then(|stage| end(stage, &blobs));
        found.push(LogLine {
            schema_version: 1,
            at: record.at,
            run_id: run.id.clone(),
            record: record.seq,
            event: record.event.kind(),
            node: node.cloned(),
            text: if is_hidden { vec!["withheld".to_owned()] } else { prose::of_record(record) },
            output_end,
        });
        // The oldest lines are dropped early, so that the memory does not grow with the run.
        if found.len() > 2 * wanted.limit {
            found.drain(..wanted.limit);
        }
    });
    read.map_err(|error| journal::unreadable(run, &error))?;
    Ok(found)
}

/// Returns the end of the output of a stage that failed.
fn end(stage: &StageFinished, blobs: &DirBlobs) -> Option<String> {
    if !matches!(stage.outcome.status, Status::Fail | Status::Retry) {
        return None;
    }
    let is_output = |name: &str| OUTPUTS.iter().any(|ending| name.ends_with(ending));
    let artifact =
        stage.files.artifacts.iter().rev().find(|artifact| is_output(&artifact.name) && artifact.bytes > 0)?;
    let bytes = blobs.read_all(&artifact.digest, OUTPUT_BYTES_MAX).ok()?;
    Some(String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(END_BYTES_MAX)..]).into_owned())
}
