//! `glovebox fmt`: pipelines written in the one way.

use crate::arguments::FmtArguments;
use crate::exit::{Ended, Exit, Stop};
use crate::terminal::diagnostics::Findings;
use crate::terminal::{self, counted, visible};
use crate::{files, source};
use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::Severity;
use glovebox_pipeline::format::format;

/// Formats every file, or with `--check` says which are not; one that cannot be read or parsed stops no other.
pub fn fmt(arguments: &FmtArguments) -> Ended {
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
            Err(Stop::new(Exit::Invalid, message).with_help("glovebox fmt FILE"))
        }
        None => Ok(Exit::Ok),
    }
}

/// True when the file was not in the one way. Standard input is answered on standard output, whatever way it was in.
fn one(file: &std::path::Path, is_check: bool) -> Result<bool, Stop> {
    let text = source::read_text(file)?;
    let formatted = format(Source::new(&text)).map_err(|diagnostics| {
        let findings = Findings { file: file.display().to_string(), source: text.clone(), diagnostics };
        source::report(&findings, Severity::Error);
        source::invalid(&findings)
    })?;
    let differs = formatted != text;
    match (is_check, source::is_stdin(file)) {
        (true, _) => {}
        (false, true) => {
            terminal::print(formatted);
            return Ok(false);
        }
        (false, false) if differs => files::replace(file, &formatted)?,
        (false, false) => {}
    }
    Ok(differs)
}
