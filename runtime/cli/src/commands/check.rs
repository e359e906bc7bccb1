//! `glovebox check`: is a pipeline valid, and if not, where and why.

use crate::arguments::{CheckArguments, CheckFormat};
use crate::exit::{Ended, Exit, Stop};
use crate::source;
use crate::terminal;
use crate::terminal::diagnostics::{self, Findings};
use glovebox_pipeline::diagnostic::Severity;

/// Checks every file before it answers, so that one bad file hides no other.
pub fn check(arguments: &CheckArguments) -> Ended {
    let inputs = source::inputs(&arguments.inputs);
    let mut checked = Vec::new();
    for file in &arguments.files {
        let source = source::read_text(file)?;
        let diagnostics = glovebox_pipeline::check(&source, &inputs).diagnostics;
        checked.push(Findings { file: file.display().to_string(), source, diagnostics });
    }
    match arguments.format {
        CheckFormat::Json => terminal::print_json(&checked.iter().flat_map(diagnostics::records).collect::<Vec<_>>())?,
        CheckFormat::Text => checked.iter().for_each(|findings| source::report(findings, Severity::Info)),
    }
    let total = |severity| checked.iter().map(|findings| findings.count(severity)).sum::<usize>();
    let (errors, warnings) = (total(Severity::Error), total(Severity::Warning));
    if arguments.format == CheckFormat::Text {
        let files = checked.len();
        terminal::say(&format!("{files} checked: {errors} errors, {warnings} warnings\n"));
    }
    if errors == 0 { Ok(Exit::Ok) } else { Err(Stop::silent(Exit::Invalid)) }
}
