//! Adjusts a list of commands after a failure that the list itself caused (decision command-list-adjustments). Pure: converts one list
//! to another.

use crate::commands::Command;
use crate::failure::Code;
use glovebox_plugin_sdk::{Value, json};

/// A list of commands before and after an adjustment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Adjustment {
    /// Cause of the failure.
    pub(crate) reason: Code,
    /// Name of the applied rule.
    pub(crate) rule: &'static str,
    /// Commands before the adjustment.
    pub(crate) previous: Vec<String>,
    /// Commands after the adjustment.
    pub(crate) next: Vec<Command>,
}

impl Adjustment {
    /// Returns the payload of openTiger's requeue event (decision command-list-adjustments).
    pub(crate) fn to_json(&self) -> Value {
        let next: Vec<&str> = self.next.iter().map(|command| command.line.as_str()).collect();
        json!({
            "reason": self.reason.as_str(),
            "recoveryRule": self.rule,
            "previousCommands": self.previous,
            "nextCommands": next,
        })
    }
}

/// Name of the rule that drops a command.
pub(crate) const DROP: &str = "drop_failed_command";
/// Name of the rule that moves a check before the cleanup that removes the checked file.
pub(crate) const REORDER: &str = "reorder_clean_and_artifact_check";

/// Returns the list without the command at index `failed`.
pub(crate) fn without(list: &[Command], failed: usize, reason: Code) -> Adjustment {
    let kept = list.iter().enumerate().filter(|(at, _)| *at != failed).map(|(_, command)| command.clone());
    Adjustment { reason, rule: DROP, previous: lines(list), next: kept.collect() }
}

/// Returns the list with the check at index `failed` moved before the cleanup that removed the checked file. Returns `None` if there
/// is no such cleanup.
pub(crate) fn reordered(list: &[Command], failed: usize) -> Option<Adjustment> {
    let check = list.get(failed).filter(|command| is_artifact_check(&command.words))?;
    let cleanup = list[..failed].iter().position(|command| is_cleanup(&command.words))?;
    let mut next = list.to_vec();
    next.remove(failed);
    next.insert(cleanup, check.clone());
    Some(Adjustment { reason: Code::SequenceIssue, rule: REORDER, previous: lines(list), next })
}

fn lines(list: &[Command]) -> Vec<String> {
    list.iter().map(|command| command.line.clone()).collect()
}

/// Folders with files that builds create.
const GENERATED: [&str; 14] = [
    ".next",
    ".nuxt",
    "artifacts",
    "bin",
    "build",
    "coverage",
    "dist",
    "gen",
    "generated",
    "out",
    "public",
    "reports",
    "target",
    "tmp",
];

/// Returns true for exactly `test -f` or `test -s` on a path that a build creates.
fn is_artifact_check(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [program, flag, path] = *words.as_slice() else { return false };
    let mut folders = path.trim_start_matches("./").split('/').rev().skip(1);
    program == "test" && matches!(flag, "-f" | "-s") && folders.any(|folder| GENERATED.contains(&folder))
}

/// Returns true for a command that removes files that builds create.
fn is_cleanup(words: &[String]) -> bool {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_clean = |name: &str| name == "clean" || name.starts_with("clean:");
    match *words.as_slice() {
        ["rm" | "rimraf", ..] | ["git", "clean", ..] => true,
        ["npm" | "pnpm" | "yarn" | "bun", "run", script, ..] => is_clean(script),
        ["make" | "just" | "cargo" | "go" | "pnpm" | "yarn", target, ..] => is_clean(target),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::exec;

    fn list(lines: &[&str]) -> Vec<Command> {
        let command = |line: &&str| Command::planned(line, exec::words(line).unwrap_or_default());
        lines.iter().map(command).collect()
    }

    #[test]
    fn drops_one_command() {
        for reason in [Code::MissingScript, Code::MissingMakeTarget, Code::NoTestFiles, Code::UnsupportedFormat] {
            let adjustment = without(&list(&["a", "b | c", "d"]), 1, reason);
            let expected = json!({
                "reason": reason.as_str(),
                "recoveryRule": "drop_failed_command",
                "previousCommands": ["a", "b | c", "d"],
                "nextCommands": ["a", "d"],
            });
            assert_eq!(adjustment.to_json(), expected);
        }
    }

    #[test]
    fn moves_a_check_before_the_cleanup() {
        let adjustment = reordered(&list(&["make build", "make clean", "a", "test -s dist/app.js"]), 3).unwrap();
        let expected = json!({
            "reason": "verification_command_sequence_issue",
            "recoveryRule": "reorder_clean_and_artifact_check",
            "previousCommands": ["make build", "make clean", "a", "test -s dist/app.js"],
            "nextCommands": ["make build", "test -s dist/app.js", "make clean", "a"],
        });
        assert_eq!(adjustment.to_json(), expected);
    }

    #[test]
    fn leaves_every_other_failure_alone() {
        for lines in [
            ["make build", "test -f dist/a"],
            ["rm -r dist", "grep -q x dist/a"],
            ["rm -r dist", "test -f src/main.rs"],
            ["rm -r dist", "test -d dist/a"],
            ["rm -r dist", "test -f dist"],
            ["npm run cleanup", "test -f dist/a"],
        ] {
            assert_eq!(reordered(&list(&lines), 1), None, "{lines:?}");
        }
        assert_eq!(reordered(&list(&["test -f dist/a", "rm -r dist"]), 0), None);
    }
}
