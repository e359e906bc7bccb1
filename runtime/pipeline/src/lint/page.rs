//! Prints the page of a rule for the terminal, and the page of all rules for `docs/`.
//!
//! The text comes from the table of rules; this file contains no text about a single rule.

use super::rules::{RULES, TITLES};
use super::{Rule, Severity};
use std::fmt::Write;

/// Maximum width of a page in the terminal, in characters.
const WIDTH: usize = 100;

impl Rule {
    /// Returns the page that explains the rule: the requirement, the reason, the fix, and a wrong and a right file.
    pub fn page(&self) -> String {
        let Self { id, severity, summary, help, why, bad, good, .. } = self;
        let (why, help) = (wrapped(why), wrapped(&format!("To fix it: {help}")));
        let (bad, good) = (indented(bad), indented(good));
        let severity = severity.as_str();
        format!("{id} ({severity})\n\n{summary}\n\n{why}\n\n{help}\n\nWrong:\n\n{bad}\n\nRight:\n\n{good}\n")
    }

    /// Returns true for a rule about scripts, whose examples are scripts.
    pub fn is_about_scripts(&self) -> bool {
        self.bad.starts_with("#!")
    }
}

/// Returns the page of all rules, as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Rules of `glovebox check`\n\n\
         Generated from the table of rules in the source; `glovebox explain RULE` prints one rule. A pipeline with an *error* does \
         not run (exit 3). With `--strict`, a *warning* stops it too. *Info* is only a remark. `glovebox check --fix` makes the \
         corrections that are certain.\n\n",
    );
    for rule in RULES {
        if let Some((title, _)) = TITLES.iter().find(|(_, first)| *first == rule.id) {
            write!(text, "- {title}:").expect("writing to a string does not fail");
        }
        let ends = RULES.iter().skip_while(|other| other.id != rule.id).nth(1).is_none_or(is_first);
        let end = if ends { "\n" } else { "," };
        write!(text, " [`{0}`](#{0}){end}", rule.id).expect("writing to a string does not fail");
    }
    for rule in RULES {
        if let Some((title, _)) = TITLES.iter().find(|(_, first)| *first == rule.id) {
            write!(text, "\n## {title}\n").expect("writing to a string does not fail");
        }
        text.push_str(&section(rule));
    }
    text
}

fn is_first(rule: &Rule) -> bool {
    TITLES.iter().any(|(_, first)| *first == rule.id)
}

fn section(rule: &Rule) -> String {
    let language = if rule.is_about_scripts() { "sh" } else { "dot" };
    let severity = match rule.severity {
        Severity::Error => "Error",
        Severity::Warning => "Warning",
        Severity::Info => "Info",
    };
    let Rule { id, summary, help, why, bad, good, .. } = rule;
    format!(
        "\n### {id}\n\n{severity}: {summary}.\n\n{why}\n\nTo fix it: {help}.\n\n\
         Wrong:\n\n```{language}\n{bad}```\n\nRight:\n\n```{language}\n{good}```\n"
    )
}

/// Breaks a paragraph between words into lines of at most [`WIDTH`] characters.
fn wrapped(paragraph: &str) -> String {
    let mut text = String::with_capacity(paragraph.len() + 8);
    let mut column = 0;
    for word in paragraph.split_whitespace() {
        let width = word.chars().count();
        if column > 0 {
            let breaks = column + 1 + width > WIDTH;
            text.push(if breaks { '\n' } else { ' ' });
            column = if breaks { 0 } else { column + 1 };
        }
        text.push_str(word);
        column += width;
    }
    text
}

fn indented(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}
