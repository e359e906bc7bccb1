//! `glovebox man`: writes a manual page for each command.

use crate::arguments::{Arguments, ManArguments};
use crate::exit::{CommandResult, Exit, Stop};
use crate::terminal;
use clap::CommandFactory;
use glovebox_names::shell;

/// Writes the pages into a folder, and creates the folder if it does not exist.
pub fn man(arguments: &ManArguments) -> CommandResult {
    let folder = &arguments.folder;
    let failed = |error: std::io::Error| Stop::io(format!("write man pages to `{}`", folder.display()), &error);
    std::fs::create_dir_all(folder).map_err(failed)?;
    clap_mangen::generate_to(Arguments::command(), folder).map_err(failed)?;
    let main = folder.join("glovebox.1");
    terminal::say(format_args!("wrote the pages; read one: man -l {}\n", shell::word(&main.to_string_lossy())));
    Ok(Exit::Ok)
}
