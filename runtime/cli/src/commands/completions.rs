//! `glovebox completions`: the script that completes commands and flags in a shell.

use crate::arguments::{self, Arguments, CompletionsArguments};
use crate::exit::{CommandResult, Exit};
use crate::terminal;
use clap::{Command, CommandFactory, Subcommand};

/// Prints the script of a shell.
pub fn completions(arguments: &CompletionsArguments) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut visible_tree(), "glovebox", &mut script);
    terminal::print_bytes(&script);
    Ok(Exit::Ok)
}

/// Returns the commands, without those that only other processes of glovebox start. Scripts list flags in the order of
/// the tree, so the arguments of each command are added before the global flags.
fn visible_tree() -> Command {
    let tree = Arguments::command();
    let full = arguments::Command::augment_subcommands_for_update(Command::new("glovebox"));
    let commands = full.get_subcommands().filter(|command| !command.is_hide_set()).cloned();
    let empty = Command::new("glovebox").version(env!("CARGO_PKG_VERSION")).disable_help_subcommand(true);
    empty.args(tree.get_arguments().cloned()).subcommands(commands)
}
