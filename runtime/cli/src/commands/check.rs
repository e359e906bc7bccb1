//! `glovebox check`: is a pipeline valid, and if not, where and why.

use crate::arguments::{CheckArguments, CheckFormat};
use crate::exit::{Ended, Exit, Stop};
use crate::source;
use crate::terminal;
use crate::terminal::counted;
use crate::terminal::diagnostics::{self, Findings};
use glovebox_pipeline::diagnostic::Severity;

/// Checks every file before it answers, so that one bad file hides no other.
pub fn check(arguments: &CheckArguments) -> Ended {
    let inputs = source::inputs(&arguments.inputs);
    let mut checked = Vec::new();
    let mut unreadable = None;
    for file in &arguments.files {
        let source = match source::read_text(file) {
            Ok(source) => source,
            Err(stop) => {
                terminal::report_stop(&stop);
                unreadable.get_or_insert(stop.exit);
                continue;
            }
        };
        let diagnostics = glovebox_pipeline::check(&source, &inputs).diagnostics;
        checked.push(Findings { file: file.display().to_string(), source, diagnostics });
    }
    match arguments.format {
        CheckFormat::Json => terminal::print_json(&checked.iter().flat_map(diagnostics::records).collect::<Vec<_>>())?,
        CheckFormat::Text => checked.iter().for_each(|findings| source::report(findings, Severity::Info)),
    }
    let total = |severity| checked.iter().map(|findings| findings.count(severity)).sum::<usize>();
    let (errors, warnings) = (total(Severity::Error), total(Severity::Warning));
    let has_errors = errors > 0;
    if arguments.format == CheckFormat::Text {
        let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
        terminal::say(&format!("{} checked: {errors}, {warnings}\n", checked.len()));
    }
    match unreadable {
        Some(exit) => Err(Stop::silent(exit)),
        None if has_errors => Err(Stop::silent(Exit::Invalid)),
        None => Ok(Exit::Ok),
    }
}
