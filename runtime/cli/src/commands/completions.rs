//! `glovebox completions`: the script that completes commands and flags in a shell.
//!
//! The names of rules, plugins and attributes depend on the project, so the scripts of bash, fish and zsh ask `glovebox explain --names`
//! for them.

use crate::arguments::{self, Arguments, CompletionsArguments};
use crate::exit::{CommandResult, Exit};
use crate::terminal;
use clap::{Command, CommandFactory, Subcommand};
use clap_complete::Shell;

macro_rules! names {
    ($shell:literal) => {
        include_str!(concat!("../../templates/completions/names.", $shell))
    };
}

/// The function of zsh for arguments without a completion of their own.
const ZSH_DEFAULT: &str = ":_default'";
/// The beginnings of the two arguments of `explain` in the script of zsh.
const ZSH_ARGUMENTS: [&str; 2] = ["'::name -- A rule, ", "'::attribute -- An attribute "];

/// Prints the script of a shell.
pub fn completions(arguments: &CompletionsArguments) -> CommandResult {
    terminal::print_bytes(script(arguments.shell).as_bytes());
    Ok(Exit::Ok)
}

fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut visible_tree(), "glovebox", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => script + names!("bash"),
        Shell::Fish => script + names!("fish"),
        Shell::Zsh => with_names_of_zsh(&script),
        _ => script,
    }
}

/// Returns the script of zsh with a function for the arguments of `explain`. The function is defined before the last lines, which
/// complete the word at once if zsh loads the script for its first completion.
fn with_names_of_zsh(script: &str) -> String {
    let is_name = |line: &str| ZSH_ARGUMENTS.iter().any(|argument| line.trim_start().starts_with(argument));
    let line = |line: &str| match is_name(line) {
        true => line.replace(ZSH_DEFAULT, ":_glovebox_explain_names'") + "\n",
        false => format!("{line}\n"),
    };
    let script: String = script.lines().map(line).collect();
    let (before, last) = script.rsplit_once("\nif [ ").unwrap_or((&script, ""));
    format!("{before}\n{}\nif [ {last}", names!("zsh"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scripts_ask_for_the_names_of_explain() {
        let zsh = script(Shell::Zsh);
        assert_eq!(zsh.matches(":_glovebox_explain_names'").count(), 2, "the arguments of `explain` have other texts");
        let (before, after) = zsh.split_once("_glovebox_explain_names() {").unwrap();
        assert!(before.contains("#compdef glovebox") && after.contains("compdef _glovebox glovebox"));
        let fish = script(Shell::Fish);
        assert!(fish.contains("function __fish_glovebox_using_subcommand"), "the condition of fish has another name");
        assert!(script(Shell::Bash).ends_with("complete -F _glovebox_with_names -o bashdefault -o default glovebox\n"));
    }
}
