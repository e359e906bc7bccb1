//! The commands in the groups of `glovebox help`.
//!
//! clap lists all commands under one heading, so this module builds the list from the tree and makes it part of the
//! help template. A test compares the table with the tree, and `docs/commands.md` with both.

use super::Arguments;
use clap::{Command, CommandFactory};
use std::fmt::Write;

/// Groups of commands: a title, and the names of its commands.
type Groups = [(&'static str, &'static [&'static str])];

/// Each group with its commands, in the order of the help.
const GROUPS: &Groups = &[
    ("Begin a pipeline", &["init", "check", "fmt", "explain", "graph", "plan"]),
    ("Run a pipeline", &["run", "resume", "fork", "gates", "answer", "steer", "pause", "cancel", "wait", "attach"]),
    ("Look at runs", &["ls", "show", "why", "tasks", "logs", "transcript", "diff", "apply", "rm", "gc"]),
    ("Prove what a run did", &["evidence", "verify", "attest", "verify-run", "holdout"]),
    ("Plugins and models", &["plugin", "models", "trust", "fake-llm"]),
    ("Serve runs", &["serve", "mcp", "tokens", "export"]),
    ("Run on many machines", &["fleet", "work", "pull"]),
    ("This program and machine", &["doctor", "schema", "version", "help", "completions", "man"]),
];

/// The groups of `glovebox plugin`, in the order in which an author and then a user of a plugin need them.
const PLUGIN_GROUPS: &Groups = &[
    ("Write and publish", &["new", "build", "rebuild", "dev", "test", "push", "wit", "embed-manifest"]),
    ("Find and use", &["search", "inspect", "add", "lock", "ls", "rehearse", "outdated", "update", "pull", "remove"]),
    ("Sign and trust", &["keygen", "sign", "verify", "revoke", "revocations"]),
];

/// Returns the tree of commands, with help that lists them in groups.
pub fn tree() -> Command {
    let tree = Arguments::command();
    let all = template(&tree, GROUPS);
    let tree = tree.help_template(all);
    tree.mut_subcommand("plugin", |plugin| {
        let own = template(&plugin, PLUGIN_GROUPS);
        plugin.help_template(own)
    })
}

/// Returns clap's default help template, with the groups in place of the list of commands.
fn template(tree: &Command, groups: &Groups) -> String {
    let width = columns(groups);
    let (header, literal) = (tree.get_styles().get_header(), tree.get_styles().get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in groups {
        let _ = writeln!(text, "\n{header}{title}:{header:#}");
        for command in names.iter().filter_map(|name| tree.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{:width$}{literal:#}  {about}", command.get_name());
        }
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    text
}

/// Returns the width of the column of command names: the length of the longest name.
fn columns(groups: &Groups) -> usize {
    groups.iter().flat_map(|(_, names)| *names).map(|name| name.len()).max().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = include_str!("../../../../docs/commands.md");

    fn visible(group: &Command) -> Vec<&Command> {
        group.get_subcommands().filter(|command| !command.is_hide_set()).collect()
    }

    #[test]
    fn each_command_is_in_one_group() {
        let tree = Arguments::command();
        for (tree, groups) in [(&tree, GROUPS), (tree.find_subcommand("plugin").unwrap(), PLUGIN_GROUPS)] {
            let mut grouped: Vec<&str> = groups.iter().flat_map(|(_, names)| *names).copied().collect();
            let mut commands: Vec<&str> = visible(tree).into_iter().map(Command::get_name).collect();
            grouped.sort_unstable();
            commands.sort_unstable();
            assert_eq!(grouped, commands);
        }
    }

    #[test]
    fn the_plugin_commands_are_listed_in_groups() {
        let mut tree = tree();
        let help = tree.find_subcommand_mut("plugin").unwrap().render_help().to_string();
        let at = |words: &str| help.find(words).unwrap_or_else(|| panic!("{words}: {help}"));
        assert!(at("Write and publish:") < at("\n  new ") && at("\n  push ") < at("Find and use:"));
        assert!(at("\n  remove ") < at("Sign and trust:") && at("\n  revoke ") < at("Options:"));
        assert!(!help.contains("Commands:"), "{help}");
    }

    #[test]
    fn help_lists_the_groups_in_lines_that_fit() {
        let help = tree().render_help().to_string();
        let titles: Vec<&str> =
            help.lines().filter(|line| !line.starts_with(' ')).filter_map(|line| line.strip_suffix(':')).collect();
        let expected: Vec<&str> = GROUPS.iter().map(|(title, _)| *title).chain(["Options"]).collect();
        assert_eq!(titles, expected, "{help}");
        for command in visible(&Arguments::command()) {
            let (name, about) = (command.get_name(), command.get_about().unwrap());
            let width = columns(GROUPS);
            assert!(help.contains(&format!("\n  {name:width$}  {about}\n")), "{name}: {help}");
        }
        let (list, _) = help.split_once("\nOptions:\n").unwrap();
        let long: Vec<&str> = list.lines().filter(|line| line.starts_with(' ') && line.chars().count() > 80).collect();
        assert!(long.is_empty(), "{long:?}");
        assert!(help.contains("--no-pager") && help.ends_with("glovebox help environment\n"), "{help}");
    }

    /// Returns the commands that the tables of the page list, by the heading of their section.
    fn tables() -> Vec<(String, Vec<String>)> {
        let tree = Arguments::command();
        let sections = PAGE.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap());
        let rows = |text: &str| {
            let cells = text.lines().filter_map(|line| line.strip_prefix("| `glovebox "));
            cells.map(|cell| path(&tree, cell.split('`').next().unwrap())).collect::<Vec<_>>()
        };
        sections.map(|(title, text)| (title.to_owned(), rows(text))).filter(|(_, rows)| !rows.is_empty()).collect()
    }

    /// Returns the part of a row that names its command: the first word, and each following word that is a subcommand
    /// of the previous one.
    fn path(tree: &Command, row: &str) -> String {
        let mut words = row.split_whitespace();
        let first = words.next().unwrap_or_default();
        let (mut found, mut path) = (tree.find_subcommand(first), first.to_owned());
        for word in words {
            found = found.and_then(|command| command.find_subcommand(word));
            if found.is_none() {
                break;
            }
            path = format!("{path} {word}");
        }
        path
    }

    #[test]
    fn the_page_lists_each_command_in_its_group() {
        let tree = Arguments::command();
        let of_command = |name: &&str| {
            let inner: Vec<String> = match *name {
                "plugin" => {
                    PLUGIN_GROUPS.iter().flat_map(|(_, names)| *names).map(|inner| format!("{name} {inner}")).collect()
                }
                _ => visible(tree.find_subcommand(name).unwrap())
                    .iter()
                    .map(|inner| format!("{name} {}", inner.get_name()))
                    .collect(),
            };
            if inner.is_empty() { vec![(*name).to_owned()] } else { inner }
        };
        let expected: Vec<(String, Vec<String>)> = GROUPS
            .iter()
            .map(|(title, names)| ((*title).to_owned(), names.iter().flat_map(of_command).collect()))
            .collect();
        assert_eq!(tables(), expected);
    }
}
