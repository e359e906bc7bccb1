//! Permissions of a plugin. Author's wants and operator's grants have the same fields.
//!
//! The default is nothing. A field that this host cannot enforce is an error and is never ignored. An intersection never contains more
//! than either side.

use glovebox_record::LimitSettings;
use glovebox_record::scope::{self, Entry};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A component's access to files (wasm-host tiers), from the lowest to the highest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileTier {
    /// No access.
    #[default]
    None,
    /// Through `glovebox:plugin/files` only. No file system is linked.
    Workspace,
    /// Through a `wasi:filesystem` that enforces the scope on every operation, and through `files`.
    Posix,
}

impl FileTier {
    /// Returns the name in `glovebox.toml`, in plans and in lock files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Workspace => "workspace",
            Self::Posix => "posix",
        }
    }
}

/// Permissions that an author asks for. The fields are those of [`Grants`].
pub type Wants = Grants;

/// Granted permissions. The default denies everything: no files, no commands, no model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "GrantsTable")]
pub struct Grants {
    /// Access to files.
    pub filesystem: FileTier,
    /// Paths that may be read. A trailing `/` means the subtree, and `./` the whole workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub read: Vec<Entry>,
    /// Paths that may be written. A trailing `/` means the subtree, and `./` the whole workspace.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<Entry>,
    /// Leading words of commands, such as `cargo test`. `*` is any command.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// True if the component may ask the model that is bound to the node.
    pub model: bool,
    /// Limits that differ from the defaults. An author can only lower them; the operator can raise them.
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
    /// An empty text in the list of commands.
    #[error("an empty text in `commands`, expected the first words of a command, such as `cargo test`, or `*`")]
    EmptyCommand,
    /// Paths without access to files.
    #[error("`{0}` without `filesystem`: add `filesystem = \"workspace\"` or `filesystem = \"posix\"`")]
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
    /// The names of all fields.
    pub const FIELDS: &'static [&'static str] = &["filesystem", "read", "write", "commands", "model", "limits"];

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

    /// Returns the intersection of both sides: the lower tier, the narrower paths, the longer commands and the lower limits.
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

/// Returns the commands that both lists allow, each in its narrower form.
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

/// Returns true if these leading words of a command allow every command that the other ones allow.
pub fn covers_command(words: &str, narrow: &str) -> bool {
    Words(words).cover(Words(narrow))
}

/// Leading words of a command. `*` is any command.
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
        check("filesystem = 'posix'\nread = ['../x']", "`../x` is not a path of a scope");
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
