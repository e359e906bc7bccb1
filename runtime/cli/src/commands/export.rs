//! `glovebox export`: writes a run as telemetry to a file, or sends it to a collector.

use crate::arguments::ExportArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::exports::otlp::Telemetry;
use crate::exports::otlp::headers;
use crate::exports::otlp::send::Collector;
use crate::replaced_file;
use crate::runs;
use crate::terminal::{self, counted, visible};
use std::path::Path;

/// Exports a run.
pub fn export(arguments: &ExportArguments) -> CommandResult {
    // A wrong address is reported before anything is read.
    let collector = Collector::parse(&arguments.otlp).transpose()?;
    if collector.is_none() && !arguments.headers.otlp_header.is_empty() {
        let message = "`--otlp-header` is for a collector, and `--otlp` names a file";
        return Err(Stop::new(Exit::Usage, message));
    }
    let run = runs::select(&arguments.runs.runs_dir, &arguments.run)?;
    let telemetry = Telemetry::of(&run)?;
    match collector {
        Some(collector) => {
            collector
                .with_headers(headers::read(&arguments.headers.otlp_header)?)
                .send(&telemetry)
                .map_err(|not_sent| not_sent.stop)?;
        }
        None => {
            let [traces, metrics] = telemetry.documents()?;
            replaced_file::put(Path::new(&arguments.otlp), format!("{traces}\n{metrics}\n"))?;
        }
    }
    let (spans, to) = (counted(telemetry.spans_count(), "span"), visible::line(&arguments.otlp));
    terminal::say(format_args!("exported {spans} of run {} to {to}\n", visible::line(&run.id)));
    Ok(Exit::Ok)
}
