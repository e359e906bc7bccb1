//! Grants that the operator took back after a plugin was locked.
//!
//! A narrower grant needs no new agreement, so nothing names it until the plugin needs it. Then the refusal names the line of
//! `glovebox.toml`, because its reader looks at a lock file that seems to allow the request.

use crate::config::PluginEntry;
use crate::lock::LockedPlugin;
use crate::lock::line::{Line, grant_lines};
use glovebox_host::grants::covers_command;
use glovebox_record::evidence::Refusal;
use glovebox_record::path::ScopePath;

/// A line of the lock file that `glovebox.toml` no longer offers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NarrowedGrant {
    /// The line of the lock file.
    pub line: Line,
    /// Line of the plugin's table in `glovebox.toml`, from 1.
    pub config_line: usize,
}

impl NarrowedGrant {
    /// Returns the lines that the operator offered when the plugin was locked, and no longer offers as a whole.
    pub fn for_plugin(locked: &LockedPlugin, entry: &PluginEntry) -> Vec<Self> {
        let now = grant_lines(&entry.grants.clone().unwrap_or_default(), entry.role);
        let now: Vec<Line> = now.iter().map(|line| Line::parse(line)).collect();
        let offered = locked.offered.iter().map(|line| Line::parse(line));
        let narrowed = offered.filter(|line| !now.iter().any(|now| now.covers(line)));
        narrowed.map(|line| Self { line, config_line: entry.line }).collect()
    }

    /// Returns true if the line would have allowed the request.
    fn allowed(&self, refusal: &Refusal) -> bool {
        let contains = |entry: &glovebox_record::scope::Entry| {
            ScopePath::parse(&refusal.path).is_ok_and(|path| entry.contains(&path))
        };
        match (&self.line, refusal.operation.as_str()) {
            (Line::Read(entry), "read" | "list" | "stat" | "read link") => contains(entry),
            (Line::Run(words), "run") => covers_command(words, &refusal.path),
            (Line::Model, "ask the model") => true,
            (_, "read" | "list" | "stat" | "read link" | "run" | "ask the model") => false,
            (Line::Write(entry), _) => contains(entry),
            _ => false,
        }
    }
}

/// Adds the narrowed grant to the help of each refusal that it causes.
pub fn name_in(refusals: &mut [Refusal], narrowed: &[NarrowedGrant]) {
    for refusal in refusals {
        let Some(cause) = narrowed.iter().find(|grant| grant.allowed(refusal)) else { continue };
        let NarrowedGrant { line, config_line } = cause;
        refusal.help = format!("`glovebox.toml:{config_line}` grants less than `glovebox.lock`: it lacks `{line}`");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_the_line_that_would_have_allowed_it() {
        let narrowed = ["read docs/", "write out/", "run cargo", "model"]
            .map(|line| NarrowedGrant { line: Line::parse(line), config_line: 3 });
        let check = |operation: &str, path: &str, line: Option<&str>| {
            let mut refusals = [Refusal::new(operation, path, "not granted", "grant it")];
            name_in(&mut refusals, &narrowed);
            let expected = line.map_or("grant it".to_owned(), |line| {
                format!("`glovebox.toml:3` grants less than `glovebox.lock`: it lacks `{line}`")
            });
            assert_eq!(refusals[0].help, expected, "{operation} {path}");
        };
        check("read", "docs/a.md", Some("read docs/"));
        check("read", "src/a.rs", None);
        check("read", "out/a", None);
        check("write", "docs/a.md", None);
        check("remove", "out/a", Some("write out/"));
        check("run", "cargo test", Some("run cargo"));
        check("run", "git", None);
        check("ask the model", "", Some("model"));
    }
}
