//! `glovebox completions`: the script that completes commands and flags in a shell.

use crate::arguments::{Arguments, CompletionsArguments};
use crate::exit::{Ended, Exit};
use crate::terminal;
use clap::{Command, CommandFactory};

/// Prints the script of a shell.
pub fn completions(arguments: &CompletionsArguments) -> Ended {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut visible_tree(), "glovebox", &mut script);
    terminal::print_bytes(&script);
    Ok(Exit::Ok)
}

/// The commands without those that only other processes of glovebox start.
fn visible_tree() -> Command {
    let tree = Arguments::command();
    let commands = tree.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let empty = Command::new("glovebox").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    empty.args(tree.get_arguments().cloned()).subcommands(commands)
}
