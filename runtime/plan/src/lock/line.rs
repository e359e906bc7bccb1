//! One line of a lock file: a want, an offer or a grant of a plugin.
//!
//! Lines are compared by what they allow and not by their text: `read src/` covers `read src/lib/`, and `run cargo` covers
//! `run cargo test`. A text that this version does not know is covered only by itself.

use glovebox_host::grants::{FileTier, Grants, covers_command};
use glovebox_host::tools::AllowedTools;
use glovebox_pipeline::ir::Role;
use glovebox_record::LimitName;
use glovebox_record::scope::Entry;
use std::fmt;

/// The operand of a line that stands for all tools.
const ANY_TOOL: &str = "*";

/// One line of wants, offers or grants.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Access to files.
    Filesystem(FileTier),
    /// A path that may be read.
    Read(Entry),
    /// A path that may be written.
    Write(Entry),
    /// Leading words of commands.
    Run(String),
    /// A limit, in the unit of the limit.
    Limit(LimitName, u64),
    /// Requests to the model of the node.
    Model,
    /// The role of a verifier.
    Verifier,
    /// A tool that agents may call; `*` for all tools of the plugin.
    Tool(String),
    /// Any other text, such as the grants of a rule plugin.
    Other(String),
}

impl Line {
    /// Parses a line in the form in which it is displayed. Every text is a line.
    pub fn parse(text: &str) -> Self {
        let known = match text {
            "model" => Some(Self::Model),
            "role verifier" => Some(Self::Verifier),
            _ => text.split_once(' ').and_then(|(word, rest)| Self::with_operand(word, rest)),
        };
        known.unwrap_or_else(|| Self::Other(text.to_owned()))
    }

    fn with_operand(word: &str, operand: &str) -> Option<Self> {
        match word {
            "filesystem" => {
                let tiers = [FileTier::None, FileTier::Workspace, FileTier::Posix];
                tiers.into_iter().find(|tier| tier.as_str() == operand).map(Self::Filesystem)
            }
            "read" => Entry::parse(operand).ok().map(Self::Read),
            "write" => Entry::parse(operand).ok().map(Self::Write),
            "run" => Some(Self::Run(operand.to_owned())),
            "tool" => Some(Self::Tool(operand.to_owned())),
            "limit" => {
                let (name, amount) = operand.split_once(' ')?;
                Some(Self::Limit(name.parse().ok()?, amount.parse().ok()?))
            }
            _ => None,
        }
    }

    /// Returns true if this line allows everything that the other line allows.
    pub fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Filesystem(own), Self::Filesystem(other)) => own >= other,
            (Self::Read(own), Self::Read(other)) | (Self::Write(own), Self::Write(other)) => own.covers(other),
            (Self::Run(own), Self::Run(other)) => covers_command(own, other),
            (Self::Tool(own), Self::Tool(other)) => own == ANY_TOOL || own == other,
            (Self::Limit(own, most), Self::Limit(other, amount)) => own == other && amount <= most,
            _ => self == other,
        }
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Filesystem(tier) => write!(f, "filesystem {}", tier.as_str()),
            Self::Read(entry) => write!(f, "read {entry}"),
            Self::Write(entry) => write!(f, "write {entry}"),
            Self::Run(words) => write!(f, "run {words}"),
            Self::Limit(name, amount) => write!(f, "limit {name} {amount}"),
            Self::Model => f.write_str("model"),
            Self::Verifier => f.write_str("role verifier"),
            Self::Tool(name) => write!(f, "tool {name}"),
            Self::Other(text) => f.write_str(text),
        }
    }
}

/// Returns the tools that agents may call as lines of `glovebox.lock`.
pub fn tool_lines(tools: &AllowedTools) -> Vec<String> {
    let line = |name: &str| Line::Tool(name.to_owned()).to_string();
    match tools {
        AllowedTools::All => vec![line(ANY_TOOL)],
        AllowedTools::Named(names) => names.iter().map(|name| line(name)).collect(),
    }
}

/// Returns grants and a role as sorted lines of `glovebox.lock`.
pub fn grant_lines(grants: &Grants, role: Role) -> Vec<String> {
    let mut lines = vec![Line::Filesystem(grants.filesystem)];
    lines.extend(grants.read.iter().cloned().map(Line::Read));
    lines.extend(grants.write.iter().cloned().map(Line::Write));
    lines.extend(grants.commands.iter().cloned().map(Line::Run));
    lines.extend(grants.limits.iter().map(|(name, amount)| Line::Limit(name, amount)));
    lines.extend(grants.model.then_some(Line::Model));
    lines.extend((role == Role::Verifier).then_some(Line::Verifier));
    let mut lines: Vec<String> = lines.iter().map(Line::to_string).collect();
    lines.sort();
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive_a_round_trip() {
        for text in [
            "filesystem workspace",
            "read ./",
            "write src/a.rs",
            "run cargo test",
            "run *",
            "limit memory_bytes 64",
            "model",
            "role verifier",
            "tool find",
            "tool *",
            "transform",
        ] {
            assert_eq!(Line::parse(text).to_string(), text);
        }
        assert_eq!(Line::parse("read ../x"), Line::Other("read ../x".to_owned()));
    }

    #[test]
    fn a_line_covers_what_it_allows() {
        let check = |own: &str, other: &str, expected: bool| {
            assert_eq!(Line::parse(own).covers(&Line::parse(other)), expected, "`{own}` and `{other}`");
        };
        check("read src/", "read src/a/", true);
        check("read src/a/", "read src/", false);
        check("read src/", "read src-old/", false);
        check("read src/", "write src/", false);
        check("write ./", "write x", true);
        check("run cargo", "run cargo test", true);
        check("run cargo", "run cargo-deny", false);
        check("run cargo test", "run cargo", false);
        check("run *", "run rm -rf", true);
        check("filesystem posix", "filesystem workspace", true);
        check("filesystem none", "filesystem workspace", false);
        check("limit turns 5", "limit turns 5", true);
        check("limit turns 5", "limit turns 6", false);
        check("limit turns 5", "limit wall_ms 5", false);
        check("model", "role verifier", false);
        check("tool *", "tool find", true);
        check("tool find", "tool *", false);
        check("tool find", "tool find_all", false);
        check("transform", "transform", true);
        check("transform", "widen", false);
    }
}
