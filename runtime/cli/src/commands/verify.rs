//! `glovebox verify`: checks that no record of a run's journal was changed, and that the journal has the record of
//! `--head`.
//!
//! The chain and the signatures prove that no record was changed. Only a hash that was stored elsewhere proves that no
//! record is missing at the end, because every shorter journal has a valid chain too.

use crate::arguments::VerifyArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::runs;
use crate::runs::journal;
use crate::terminal::rows::Rows;
use crate::terminal::{self, counted, paint::Paint, visible};
use glovebox_journal::event::Digest;
use glovebox_state::evidence::RunSummary;

/// Verifies a journal, and checks that it has the record with the hash of `--head`, if that is given.
pub fn verify(arguments: &VerifyArguments) -> CommandResult {
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let journal = journal::open_verified(&run)?;
    journal::beginning(&run, &journal.verified.records)?;
    let mut found = None;
    let summary = RunSummary::read(&journal, |record| {
        found = found.or_else(|| (arguments.head == Some(record.hash)).then_some(record.seq));
    });
    let summary = summary.map_err(|error| journal::unreadable(&run, &error))?;
    let verified = journal.close();
    if let (Some(head), None) = (&arguments.head, found) {
        return Err(not_there(head));
    }
    let records = usize::try_from(verified.records_count()).unwrap_or(usize::MAX);
    let mut rows = Rows::new(12).painted(Paint::stdout());
    let status = if runs::is_live(&run) { "running" } else { summary.status.as_str() };
    rows.row("run", format_args!("{} of {}: {status}", run.id, summary.pipeline));
    rows.row("journal", format_args!("{}, none was changed", counted(records, "record")));
    let whose = journal::foreign_reason(verified.provenance);
    rows.block("signed", visible::line(&whose.unwrap_or_else(|| "every record, with your key".to_owned())));
    rows.row("head", verified.head());
    rows.block("complete", completeness(found.map(|seq| usize::try_from(seq).unwrap_or(usize::MAX)), records));
    terminal::print(rows.finish());
    Ok(Exit::Ok)
}

/// Returns the error, with exit code 11, for a journal without the record of `--head`.
fn not_there(head: &Digest) -> Stop {
    let message = format!("no record of the journal has the hash {head}");
    Stop::new(Exit::Mismatch, message).with_help(
        "if the hash is of this run, the journal lost its last records or was replaced: do not trust it, and restore a copy",
    )
}

fn completeness(found: Option<usize>, records: usize) -> String {
    match found {
        Some(at) if at == records => "yes: it ends with the record of `--head`".to_owned(),
        Some(at) => format!("yes up to `--head`, record {at}; {} added since", counted(records - at, "record")),
        None => "unknown: only `--head HASH` can show that the last records are missing".to_owned(),
    }
}
