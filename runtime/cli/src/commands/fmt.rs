//! `glovebox fmt`: formats pipeline files.

use crate::arguments::FmtArguments;
use crate::exit::{CommandResult, Exit, Stop};
use crate::replaced_file;
use crate::terminal::diagnostics::Findings;
use crate::terminal::{self, counted, visible};
use glovebox_pipeline::Source;
use glovebox_pipeline::format::format;
use glovebox_plan::prepare::refusal::Refusal;
use glovebox_plan::prepare::source;

/// Formats every file, or with `--check` lists the files that are not formatted. An invalid file does not stop the others.
pub fn fmt(arguments: &FmtArguments) -> CommandResult {
    let mut worst = None;
    let mut differing = 0;
    for file in &arguments.files {
        match one(file, arguments.check) {
            Ok(true) => {
                differing += 1;
                let verb = if arguments.check { "is not formatted" } else { "formatted" };
                let name = file.display().to_string();
                terminal::say(format_args!("{verb}: {}\n", visible::line(&name)));
            }
            Ok(false) => {}
            Err(stop) => {
                terminal::report_stop(&stop);
                worst.get_or_insert(stop.exit);
            }
        }
    }
    match worst {
        Some(exit) => Err(Stop::silent(exit)),
        None if arguments.check && differing > 0 => {
            let message = format!("{} not formatted", counted(differing, "file"));
            Err(Stop::new(Exit::Invalid, message).with_help("format the files: `glovebox fmt FILE`"))
        }
        None => Ok(Exit::Ok),
    }
}

/// Formats or checks one file, and returns true if it was not formatted. Standard input is formatted to standard
/// output.
fn one(file: &std::path::Path, is_check: bool) -> Result<bool, Stop> {
    let text = source::read_text(file)?;
    let formatted = match format(Source::new(&text)) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            let findings = Findings { file: file.display().to_string(), source: text, diagnostics };
            return Err(Refusal::for_findings(findings).into());
        }
    };
    let differs = formatted != text;
    match (is_check, source::is_stdin(file)) {
        (true, _) => {}
        (false, true) => {
            terminal::print(formatted);
            return Ok(false);
        }
        (false, false) if differs => replaced_file::replace(file, &formatted)?,
        (false, false) => {}
    }
    Ok(differs)
}
