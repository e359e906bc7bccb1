//! The command that caused the failure of a verification, and the commands of the verify contract that a verification
//! skipped. Both are for people.
//!
//! The host's receipt shows which command failed. A stage that runs a verification plan reports who named the command,
//! which command could not be started, and which commands were skipped.

use glovebox_host::call::Report;
use glovebox_journal::event::{CommandSource, FailedCommand};
use glovebox_pipeline::ir::{HandlerKind, Node};
use glovebox_record::Receipt;
use serde::Deserialize;

/// The file in which a verification stage reports about its commands.
const RESULTS_FILE: &str = "verification.results.json";
/// Maximum number of bytes of [`RESULTS_FILE`] that are read.
const RESULTS_BYTES_MAX: usize = 16 << 20;
/// Maximum number of skipped commands that are kept. The lists of a verify contract are shorter.
const DROPPED_MAX: usize = 1000;
/// Maximum number of bytes of a command that are kept.
const LINE_BYTES_MAX: usize = 4096;

/// The report of a verification stage about its commands.
#[derive(Deserialize)]
struct Results {
    error_meta: Option<StatedFailure>,
    #[serde(default)]
    dropped_checks: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StatedFailure {
    failed_command: String,
    failed_command_source: CommandSource,
}

/// Returns the command that caused a failure of the stage, if the stage failed.
pub(super) fn find(node: &Node, report: &Report) -> Option<FailedCommand> {
    let is_plan = node.handler.kind() == HandlerKind::Verification;
    if is_plan && let Some(said) = results(report).and_then(|results| results.error_meta) {
        return Some(FailedCommand { line: cut(said.failed_command), source: said.failed_command_source });
    }
    let is_own = |receipt: &&Receipt| !receipt.passed() && receipt.hook.is_none() && !receipt.subject;
    let receipt = report.receipts.iter().rev().find(is_own)?;
    Some(FailedCommand { line: cut(line(&receipt.argv)), source: CommandSource::Explicit })
}

/// Returns the commands of the verify contract that a verification stage skipped.
pub(super) fn dropped_checks(node: &Node, report: &Report) -> Vec<String> {
    let is_plan = node.handler.kind() == HandlerKind::Verification;
    let said = results(report).filter(|_| is_plan).map(|results| results.dropped_checks);
    said.unwrap_or_default().into_iter().take(DROPPED_MAX).map(cut).collect()
}

fn results(report: &Report) -> Option<Results> {
    let file = report.artifacts.iter().rev().find(|kept| kept.name == RESULTS_FILE)?;
    serde_json::from_slice(file.data.get(..file.data.len().min(RESULTS_BYTES_MAX))?).ok()
}

/// Returns a command as its author wrote it.
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
