//! Colours of text for people. `--color` decides, then the environment, then the terminal.
//!
//! Colours are added last, after untrusted text was escaped and columns were padded.

use clap::ColorChoice;
use std::fmt::Display;
use std::io::IsTerminal;
use std::sync::OnceLock;

static CHOICE: OnceLock<ColorChoice> = OnceLock::new();

/// Sets the value of `--color`. Only the first call has an effect.
pub fn choose(choice: ColorChoice) {
    let _decided_before = CHOICE.set(choice);
}

/// Returns the value of `--color`.
pub fn choice() -> ColorChoice {
    CHOICE.get().copied().unwrap_or(ColorChoice::Auto)
}

/// Returns true if a stream may have colours. `--color` decides; else `NO_COLOR` means never and `CLICOLOR_FORCE`
/// always; else a terminal that is not `dumb` has colours.
fn is_coloured(stream: &impl IsTerminal) -> bool {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    match choice() {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto if set("NO_COLOR").is_some() => false,
        ColorChoice::Auto => set("CLICOLOR_FORCE").is_some_and(|value| value != "0") || super::is_capable(stream),
    }
}

/// A colour or a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colour {
    /// For titles.
    Bold,
    /// For less important text.
    Dim,
    /// For a failure or a refusal.
    Red,
    /// For a success.
    Green,
    /// For what is not proved.
    Yellow,
    /// For work in progress, or for what to do next.
    Cyan,
}

impl Colour {
    fn code(self) -> &'static str {
        match self {
            Colour::Bold => "1",
            Colour::Dim => "2",
            Colour::Red => "31",
            Colour::Green => "32",
            Colour::Yellow => "33",
            Colour::Cyan => "36",
        }
    }
}

/// Adds colours to text, or returns the text unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Paint {
    is_on: bool,
}

impl Paint {
    /// Returns the paint for results on stdout.
    pub fn stdout() -> Self {
        Self { is_on: is_coloured(&std::io::stdout()) }
    }

    /// Returns the paint for messages on stderr.
    pub fn stderr() -> Self {
        Self { is_on: is_coloured(&std::io::stderr()) }
    }

    /// Returns paint with colours, whatever the output is.
    #[cfg(test)]
    pub fn always() -> Self {
        Self { is_on: true }
    }

    /// Returns true if text gets colours.
    pub fn is_on(self) -> bool {
        self.is_on
    }

    /// Returns a text in a colour.
    pub fn with(self, colour: Colour, text: impl Display) -> String {
        if self.is_on { format!("\x1b[{}m{text}\x1b[m", colour.code()) } else { text.to_string() }
    }

    /// Returns the title of a row, which is padded already, in the colour of its meaning.
    pub fn title(self, title: &str) -> String {
        let colour = match title.trim() {
            "" => return title.to_owned(),
            "verified" => Colour::Green,
            "because" | "failed" | "not verified" | "refused" | "quarantined" => Colour::Red,
            "unverified"
            | "simulated"
            | "ran"
            | "network"
            | "verified (subject not isolated)"
            | "verified (with start-up files of builders)"
            | "verified (with caches of builders' code)" => Colour::Yellow,
            "help" | "next" => Colour::Cyan,
            _ => Colour::Bold,
        };
        self.with(colour, title)
    }

    /// Returns the state of a run or a stage, which is padded already, in its colour.
    pub fn status(self, status: &str) -> String {
        let colour = match status.trim() {
            "success" => Colour::Green,
            "running" => Colour::Cyan,
            "unfinished" | "partial_success" | "retry" => Colour::Yellow,
            "fail" | "broken" | "unreadable" => Colour::Red,
            _ => return status.to_owned(),
        };
        self.with(colour, status)
    }

    /// Colours an outline: lines without indentation are bold, and the first word of an indented line is cyan.
    pub fn outline(self, text: &str) -> String {
        if !self.is_on {
            return text.to_owned();
        }
        let line = |line: &str| match line.strip_prefix("  ").and_then(|inner| inner.split_once(' ')) {
            Some((title, rest)) => format!("  {} {rest}\n", self.with(Colour::Cyan, title)),
            None if line.starts_with(' ') || line.is_empty() => format!("{line}\n"),
            None => self.with(Colour::Bold, line) + "\n",
        };
        text.lines().map(line).collect()
    }

    /// Colours one path of a patch as git does.
    pub fn patch(self, patch: &str) -> String {
        if !self.is_on {
            return patch.to_owned();
        }
        let mut is_head = true;
        let line = |line: &str| {
            is_head &= !line.starts_with("@@");
            let colour = match line.as_bytes().first() {
                _ if is_head => Colour::Bold,
                Some(b'@') => Colour::Cyan,
                Some(b'+') => Colour::Green,
                Some(b'-') => Colour::Red,
                _ => return format!("{line}\n"),
            };
            self.with(colour, line) + "\n"
        };
        patch.lines().map(line).collect()
    }

    /// Colours the marks in a table of changed lines as git does.
    pub fn stat(self, table: &str) -> String {
        if !self.is_on {
            return table.to_owned();
        }
        let line = |line: &str| match line.rsplit_once(" | ") {
            Some((name, counts)) => {
                let count = counts.trim_end_matches(['+', '-']);
                let marks = &counts[count.len()..];
                let added = marks.trim_end_matches('-');
                let removed = &marks[added.len()..];
                let painted =
                    |colour, marks: &str| if marks.is_empty() { String::new() } else { self.with(colour, marks) };
                format!("{name} | {count}{}{}\n", painted(Colour::Green, added), painted(Colour::Red, removed))
            }
            None => format!("{line}\n"),
        };
        table.lines().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_has_the_colours_of_git() {
        let patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n";
        let expected = "\x1b[1mdiff --git a/x b/x\x1b[m\n\x1b[1m--- a/x\x1b[m\n\x1b[1m+++ b/x\x1b[m\n\x1b[36m@@ -1 +1 @@\x1b[m\n\
                        \x1b[31m-old\x1b[m\n\x1b[32m+new\x1b[m\n same\n";
        assert_eq!(Paint::always().patch(patch), expected);
        assert_eq!(Paint::default().patch(patch), patch);
    }

    #[test]
    fn only_the_marks_of_a_table_are_coloured() {
        let table = " a+ | b.c | 3 ++-\n 1 file changed\n";
        assert_eq!(Paint::always().stat(table), " a+ | b.c | 3 \x1b[32m++\x1b[m\x1b[31m-\x1b[m\n 1 file changed\n");
    }
}
