//! Permissions of a plugin: one vocabulary for the author's wants and the operator's grants.
//!
//! The default is nothing. A field this host could not enforce is an error and never ignored; the intersection of two
//! sides never holds more than either of them.

use glovebox_record::LimitSettings;
use glovebox_record::scope::{self, Entry};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A component's access to files (wasm-host tiers), lowest by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileTier {
    /// Not at all.
    #[default]
    None,
    /// Through `glovebox:plugin/files` only; no file system is linked.
    Workspace,
    /// Through a `wasi:filesystem` that enforces the scope on every operation, and `files` besides.
    Posix,
}

impl FileTier {
    /// Returns the word in `glovebox.toml`, in plans and in locks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Workspace => "workspace",
            Self::Posix => "posix",
        }
    }
}

/// Permissions that an author asks for; the same fields as [`Grants`].
pub type Wants = Grants;

/// Granted permissions. The default denies everything: no files, no commands, no model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "GrantsTable")]
pub struct Grants {
    /// Access to files.
    pub filesystem: FileTier,
    /// Paths that may be read; a trailing `/` means the subtree, `./` the whole workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Entry>,
    /// Paths that may be written; a trailing `/` means the subtree, `./` the whole workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Entry>,
    /// Commands by whole leading words, such as `cargo test`; `*` is any command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// True if the model bound to the node may be asked.
    pub model: bool,
    /// Lower bounds than the defaults, or higher ones where an operator writes them.
    #[serde(skip_serializing_if = "LimitSettings::is_empty")]
    pub limits: LimitSettings,
}

/// Why a set of wants or grants is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GrantError {
    /// A field that the host cannot enforce.
    #[error(
        "the host cannot enforce `{0}`, expected one of `filesystem`, `read`, `write`, `commands`, `model`, `limits`"
    )]
    Unenforceable(String),
    /// An empty command.
    #[error("an empty text in `commands`, expected leading words such as `cargo test`, or `*`")]
    EmptyCommand,
    /// Invalid paths.
    #[error("`{0}` without `filesystem`, expected `filesystem = \"workspace\"` or `filesystem = \"posix\"` beside it")]
    NoFiles(&'static str),
}

#[derive(Deserialize)]
#[serde(default)]
#[derive(Default)]
struct GrantsTable {
    filesystem: FileTier,
    read: Vec<Entry>,
    write: Vec<Entry>,
    commands: Vec<String>,
    model: bool,
    limits: LimitSettings,
    #[serde(flatten)]
    rest: BTreeMap<String, IgnoredAny>,
}

impl TryFrom<GrantsTable> for Grants {
    type Error = GrantError;

    fn try_from(written: GrantsTable) -> Result<Self, GrantError> {
        let GrantsTable { filesystem, read, write, commands, model, limits, rest } = written;
        if let Some(name) = rest.into_keys().next() {
            return Err(GrantError::Unenforceable(name));
        }
        let grants = Grants { filesystem, read, write, commands, model, limits };
        grants.check()?;
        Ok(grants)
    }
}

impl Grants {
    fn check(&self) -> Result<(), GrantError> {
        for (field, paths) in [("read", &self.read), ("write", &self.write)] {
            if !paths.is_empty() && self.filesystem == FileTier::None {
                return Err(GrantError::NoFiles(field));
            }
        }
        if self.commands.iter().any(|command| command.split_whitespace().next().is_none()) {
            return Err(GrantError::EmptyCommand);
        }
        Ok(())
    }

    /// Returns the intersection of both sides: the lower tier, the narrower paths, the longer commands, the lower limits.
    pub fn intersect(&self, other: &Grants) -> Grants {
        let filesystem = self.filesystem.min(other.filesystem);
        let paths = |a: &[Entry], b: &[Entry]| match filesystem {
            FileTier::None => Vec::new(),
            _ => scope::intersect(a, b),
        };
        Grants {
            filesystem,
            read: paths(&self.read, &other.read),
            write: paths(&self.write, &other.write),
            commands: shared_commands(&self.commands, &other.commands),
            model: self.model && other.model,
            limits: self.limits.merge(&other.limits),
        }
    }
}

/// Returns the commands that both lists allow, each in the narrower form.
pub fn shared_commands(left: &[String], right: &[String]) -> Vec<String> {
    let mut kept: Vec<String> = Vec::new();
    for a in left {
        for b in right {
            let narrower = if Words(a).cover(Words(b)) {
                b
            } else if Words(b).cover(Words(a)) {
                a
            } else {
                continue;
            };
            if !kept.contains(narrower) {
                kept.push(narrower.clone());
            }
        }
    }
    kept
}

/// The leading words of a command; `*` is any command.
#[derive(Clone, Copy)]
struct Words<'a>(&'a str);

impl Words<'_> {
    fn cover(self, narrow: Words<'_>) -> bool {
        let mut words = narrow.0.split_whitespace();
        self.0.trim() == "*" || self.0.split_whitespace().all(|word| words.next() == Some(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grants(text: &str) -> Grants {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn the_default_denies() {
        assert_eq!(grants(""), Grants::default());
        assert_eq!(Grants::default().filesystem, FileTier::None);
    }

    #[test]
    fn what_cannot_be_enforced_is_refused() {
        let check = |text: &str, expected: &str| {
            let error = toml::from_str::<Grants>(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        };
        check("network = true", "the host cannot enforce `network`");
        check("env = ['PATH']", "the host cannot enforce `env`");
        check("filesystem = 'all'", "unknown variant `all`");
        check("filesystem = 'posix'\nread = ['../x']", "`../x` is no path of a scope");
        check("filesystem = 'posix'\nwrite = ['/etc/']", "the path is absolute");
        check("read = ['src/']", "`read` without `filesystem`");
        check("commands = [' ']", "an empty text in `commands`");
        check("limits = { fuel = 3 }", "unknown limit `fuel`");
    }

    #[test]
    fn an_intersection_holds_no_more_than_either_side() {
        let wants = grants(
            "filesystem = 'posix'\nread = ['src/', 'README.md']\nwrite = ['src/', 'out.txt']\n\
             commands = ['cargo', 'git status']\nmodel = true\nlimits = { turns = 5 }",
        );
        let operator = grants(
            "filesystem = 'workspace'\nread = ['src/lib/', 'README.md', 'docs/']\nwrite = ['out.txt']\n\
             commands = ['cargo test', 'git']\nlimits = { turns = 9, wall_ms = '1s' }",
        );
        let both = grants(
            "filesystem = 'workspace'\nread = ['src/lib/', 'README.md']\nwrite = ['out.txt']\n\
             commands = ['cargo test', 'git status']\nlimits = { turns = 5, wall_ms = '1s' }",
        );
        assert_eq!(wants.intersect(&operator), both);
        assert_eq!(operator.intersect(&wants).commands, both.commands);
        assert_eq!(wants.intersect(&Grants::default()), Grants { limits: wants.limits.clone(), ..Grants::default() });
    }

    #[test]
    fn any_command_is_narrowed() {
        let any = grants("commands = ['*']");
        let some = grants("commands = ['cargo test']");
        assert_eq!(any.intersect(&some).commands, ["cargo test"]);
        assert_eq!(any.intersect(&any).commands, ["*"]);
        assert!(grants("commands = ['cargo tes']").intersect(&some).commands.is_empty());
    }

    #[test]
    fn grants_survive_the_lock_file() {
        let written = grants("filesystem = 'posix'\nread = ['src/']\nlimits = { wall_ms = '1s' }");
        assert_eq!(grants(&toml::to_string(&written).unwrap()), written);
    }
}
