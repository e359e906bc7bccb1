//! The check of the commands that the component runs.

use crate::bench::Bench;
use crate::error::TestError;
use crate::report::Finding;
use crate::text::quoted;
use glovebox_record::CommandEnding;

pub(super) fn end(bench: &Bench<'_>) -> Result<Finding, TestError> {
    if bench.wants().commands.is_empty() {
        return Ok(Finding::NotApplicable("it wants no commands".to_owned()));
    }
    if !bench.runs_commands() {
        return Ok(Finding::NotRun("its commands were refused: `--allow-commands` runs them in a sandbox".to_owned()));
    }
    let receipts = &bench.normal()?.report.receipts;
    if receipts.is_empty() {
        return Ok(Finding::NotApplicable("with this input it runs no command".to_owned()));
    }
    let other = receipts.iter().find(|receipt| receipt.how != CommandEnding::Exited);
    Ok(match other {
        Some(receipt) => Finding::Failed(format!("{} {}", quoted(&receipt.argv.join(" ")), receipt.how)),
        None => Finding::Passed(Some(match receipts.len() {
            1 => "1 command".to_owned(),
            count => format!("{count} commands"),
        })),
    })
}
