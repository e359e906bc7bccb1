//! `glovebox plugin`: what a component asks for, and which bytes the project agrees to run.

use crate::arguments::InspectArguments;
use crate::exit::{Ended, Exit, Stop};
use crate::terminal::{self, inspection};
use std::path::Path;

/// Prints what a component's bytes say. Nothing in it is executed.
pub fn inspect(arguments: &InspectArguments) -> Ended {
    let found = read(&arguments.file)?;
    if arguments.json {
        terminal::print_json(&found)?;
    } else {
        terminal::print(&inspection::render(&found));
    }
    Ok(Exit::Ok)
}

fn read(file: &Path) -> Result<glovebox_host::inspect::Inspection, Stop> {
    let bytes = std::fs::read(file).map_err(|error| Stop::io(format!("read `{}`", file.display()), &error))?;
    glovebox_host::inspect::inspect(&bytes)
        .map_err(|error| Stop::new(Exit::Plugin, format!("`{}` is {error}", file.display())))
}
