//! The commands in the groups of `glovebox help`.
//!
//! clap lists all commands under one heading, so this module builds the list from the tree and makes it part of the
//! help template. A test compares the table with the tree, and `docs/commands.md` with both.

use super::Arguments;
use clap::{Command, CommandFactory};
use std::fmt::Write;

/// Each group with its commands, in the order of the help.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Begin a pipeline", &["init", "check", "fmt", "explain", "graph", "plan"]),
    ("Run a pipeline", &["run", "resume", "fork", "gates", "answer", "steer", "pause", "cancel", "wait", "attach"]),
    ("Look at runs", &["ls", "show", "why", "tasks", "logs", "transcript", "diff", "apply", "rm", "gc"]),
    ("Prove what a run did", &["evidence", "verify", "attest", "verify-run", "holdout"]),
    ("Plugins and models", &["plugin", "models", "trust", "fake-llm"]),
    ("Serve runs", &["serve", "tokens"]),
    ("This program and machine", &["doctor", "schema", "version", "help", "completions", "man"]),
];

/// Width of the column of command names: the length of the longest name.
const NAME_COLUMNS: usize = 11;

/// Returns the tree of commands, with help that lists them in groups.
pub fn tree() -> Command {
    let tree = Arguments::command();
    let template = template(&tree);
    tree.help_template(template)
}

/// Returns clap's default help template, with the groups in place of the list of commands.
fn template(tree: &Command) -> String {
    let (header, literal) = (tree.get_styles().get_header(), tree.get_styles().get_literal());
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (title, names) in GROUPS {
        let _ = writeln!(text, "\n{header}{title}:{header:#}");
        for command in names.iter().filter_map(|name| tree.find_subcommand(name)) {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(text, "  {literal}{:NAME_COLUMNS$}{literal:#}  {about}", command.get_name());
        }
    }
    let _ = write!(text, "\n{header}Options:{header:#}\n{{options}}{{after-help}}");
    text
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
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| *names).copied().collect();
        let mut commands: Vec<&str> = visible(&tree).into_iter().map(Command::get_name).collect();
        grouped.sort_unstable();
        commands.sort_unstable();
        assert_eq!(grouped, commands);
        assert_eq!(commands.iter().map(|name| name.len()).max(), Some(NAME_COLUMNS));
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
            assert!(help.contains(&format!("\n  {name:NAME_COLUMNS$}  {about}\n")), "{name}: {help}");
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
            let inner: Vec<String> = visible(tree.find_subcommand(name).unwrap())
                .iter()
                .map(|inner| format!("{name} {}", inner.get_name()))
                .collect();
            if inner.is_empty() { vec![(*name).to_owned()] } else { inner }
        };
        let expected: Vec<(String, Vec<String>)> = GROUPS
            .iter()
            .map(|(title, names)| ((*title).to_owned(), names.iter().flat_map(of_command).collect()))
            .collect();
        assert_eq!(tables(), expected);
    }
}
