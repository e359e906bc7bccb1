//! The command that made a verification fail, for people.
//!
//! The host's receipt says which one. A stage that runs a plan says whose command it was, and which one could not even start.

use crate::event::{CommandSource, FailedCommand};
use glovebox_host::call::Report;
use glovebox_pipeline::ir::Node;
use glovebox_pipeline::lower::handler::HandlerKind;
use glovebox_record::Receipt;
use serde::Deserialize;

/// The file with what a verification stage says of its commands.
const RESULTS_FILE: &str = "verification.results.json";
/// Bytes of it that are read.
const RESULTS_BYTES_MAX: usize = 16 << 20;
/// Bytes of a command that are kept.
const LINE_BYTES_MAX: usize = 4096;

/// What a verification stage says of its failure.
#[derive(Deserialize)]
struct Results {
    error_meta: Option<Said>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    failed_command: String,
    failed_command_source: CommandSource,
}

/// The command behind a failed verification; none for any other stage.
pub(super) fn of(node: &Node, report: &Report) -> Option<FailedCommand> {
    report.outcome.failure.as_ref()?;
    let is_plan = node.handler.kind() == HandlerKind::Verification;
    if is_plan && let Some(said) = said(report) {
        return Some(FailedCommand { line: cut(said.failed_command), source: said.failed_command_source });
    }
    let is_own = |receipt: &&Receipt| !receipt.passed() && receipt.hook.is_none() && !receipt.subject;
    let receipt = report.receipts.iter().rev().find(is_own)?;
    Some(FailedCommand { line: cut(line(&receipt.argv)), source: CommandSource::Explicit })
}

fn said(report: &Report) -> Option<Said> {
    let file = report.artifacts.iter().rev().find(|kept| kept.name == RESULTS_FILE)?;
    let results: Results = serde_json::from_slice(file.data.get(..file.data.len().min(RESULTS_BYTES_MAX))?).ok()?;
    results.error_meta
}

/// A command as its author wrote it.
fn line(argv: &[String]) -> String {
    match argv {
        [shell, flag, text] if shell == "sh" && flag == "-c" => text.clone(),
        words => words.join(" "),
    }
}

fn cut(mut line: String) -> String {
    line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
    line
}
