//! Capabilities: what a node can do, as typed values, so that plans can be compared and `--deny` rules can refuse them.
//!
//! A capability states what it covers; [`super::origin`] states what allows it. A node neither reads nor writes what is
//! hidden from it, so a capability over files lists the hidden paths as exceptions. If it is not certain what a
//! capability covers, the largest possibility is assumed.

use super::tool_server::ServerGrant;
use crate::config::Toolchain;
use glovebox_record::NodeId;
use glovebox_record::network::HostRule;
use glovebox_record::scope::Entry;
use glovebox_record::{HookKind, LimitName, Tier};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// Paths of the workspace, with exceptions.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// The paths.
    pub entry: Entry,
    /// Paths below `entry` that do not exist for the node, each with everything below it.
    pub except: Vec<Entry>,
}

/// A resource of a run or a visit that has a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Wall time of a run, in milliseconds.
    WallMs,
    /// Steps of a run.
    Steps,
    /// Model turns of a visit.
    Turns,
    /// Model tokens of a run.
    Tokens,
    /// Money for model calls of a run, in millionths of a US dollar.
    Money,
}

/// One thing that a node can do, at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Reads paths of the workspace.
    Read(Region),
    /// Reads a folder of hold-outs.
    ReadHoldouts(Region),
    /// Writes paths of the workspace, so that the files are kept.
    Write(Region),
    /// Lets commands read an absolute folder of the machine.
    ReadMachine(MachineFolder),
    /// Lets commands write a folder that is removed after the stage.
    Scratch(Entry),
    /// Lets commands write a folder that is kept within the run.
    Cache(Entry),
    /// Runs exactly this shell text.
    Shell(String),
    /// Runs programs whose command lines begin with these words.
    Argv(CommandWords),
    /// Runs any command.
    AnyCommand,
    /// Lets commands reach a host, as the list of a proxy names it.
    Reach(HostRule),
    /// Lets commands reach everything that the machine can reach.
    FullNetwork,
    /// Starts an agent program.
    Agent(String),
    /// Asks the model.
    Model,
    /// Executes a third-party component.
    Plugin(String),
    /// Shows the output of hold-outs to builders.
    TellHoldouts,
    /// Commits files that the node writes while it can read hold-outs, so that builders can see them.
    CommitBesideHoldouts,
    /// Runs exactly this shell text as the program under test.
    Subject(String),
    /// Runs exactly this shell text before or after each tool call of the model.
    Hook(HookKind, String),
    /// Starts this tool server, with this grant.
    ToolServer(String, ServerGrant),
    /// Calls tools of this plugin, with this grant.
    ToolProvider(String, ServerGrant),
    /// Gives commands a toolchain.
    Toolchain(Toolchain),
    /// Adds a folder to the PATH of commands.
    Programs(String),
    /// Sets a variable in the environment of commands.
    Variable(String),
    /// Lets commands read every commit and branch of the project's repository.
    History,
    /// Copies ignored files of the project into the run.
    Include(Entry),
    /// Accepts this tier as the lowest sandbox tier of commands.
    SandboxTier(Tier),
    /// Uses up to this amount of a resource.
    Spend(Resource, u64),
    /// Has this limit for one attempt.
    Limit(LimitName, u64),
    /// Lets a person choose this label, which leads to this node.
    Offer(String, NodeId),
    /// Continues at this node if no person answers.
    Default(NodeId),
}

impl Capability {
    /// Returns the parts of this capability that the others do not cover. Empty if they cover all of it.
    pub fn minus<'a>(&self, others: impl Iterator<Item = &'a Capability>) -> Vec<Capability> {
        match self {
            Capability::Read(region) => {
                region.minus(&others.filter_map(Capability::read_region).collect::<Vec<_>>(), Capability::Read)
            }
            Capability::ReadHoldouts(region) => {
                region.minus(&others.filter_map(Capability::read_region).collect::<Vec<_>>(), Capability::ReadHoldouts)
            }
            Capability::Write(region) => {
                let known =
                    others.filter_map(|other| if let Capability::Write(known) = other { Some(known) } else { None });
                region.minus(&known.collect::<Vec<_>>(), Capability::Write)
            }
            _ => {
                let is_covered = { others }.any(|other| other.covers(self));
                if is_covered { Vec::new() } else { vec![self.clone()] }
            }
        }
    }

    /// Returns true for a choice of a human gate, and for the node at which the gate continues if no person answers.
    pub(super) fn is_of_gate(&self) -> bool {
        matches!(self, Capability::Offer(..) | Capability::Default(_))
    }

    /// Returns the region that the capability reads. `None` if it does not read the workspace.
    pub(super) fn read_region(&self) -> Option<&Region> {
        match self {
            Capability::Read(region) | Capability::ReadHoldouts(region) => Some(region),
            _ => None,
        }
    }

    fn covers(&self, other: &Capability) -> bool {
        use Capability as C;
        match (self, other) {
            (C::ReadMachine(known), C::ReadMachine(folder)) => folder.is_within(known),
            (C::Scratch(known), C::Scratch(entry))
            | (C::Cache(known), C::Cache(entry))
            | (C::Include(known), C::Include(entry)) => known.covers(entry),
            (C::AnyCommand, C::Argv(_) | C::Shell(_)) => true,
            (C::Argv(known), C::Argv(words)) => words.0.starts_with(&known.0),
            (C::FullNetwork, C::Reach(_)) => true,
            (C::Reach(known), C::Reach(host)) => known.covers(host),
            (C::ToolServer(one, known), C::ToolServer(other, grant))
            | (C::ToolProvider(one, known), C::ToolProvider(other, grant)) => one == other && known.covers(grant),
            (C::SandboxTier(known), C::SandboxTier(tier)) => known <= tier,
            (C::Spend(known, most), C::Spend(resource, amount)) => known == resource && most >= amount,
            (C::Limit(known, most), C::Limit(name, amount)) => known == name && most >= amount,
            _ => self == other,
        }
    }
}

impl Region {
    /// Creates a region of all paths of an entry.
    pub fn from_entry(entry: &Entry) -> Self {
        Self { entry: entry.clone(), except: Vec::new() }
    }

    /// Returns the parts of this region that the others do not cover. An entry that is hidden in one region may be visible in
    /// another, so every hidden entry is checked in addition to the region itself. A part that only several smaller entries
    /// together would cover counts as not covered.
    fn minus(&self, others: &[&Region], capability: fn(Region) -> Capability) -> Vec<Capability> {
        let hidden = others.iter().flat_map(|known| &known.except);
        let inside = hidden.filter_map(|hidden| narrower(hidden, &self.entry));
        let parts: BTreeSet<&Entry> = inside.chain([&self.entry]).filter(|part| !self.hides(part)).collect();
        let is_open = |part: &&&Entry| !others.iter().any(|known| known.entry.covers(part) && !known.hides(part));
        let open: Vec<&Entry> = parts.iter().filter(is_open).copied().collect();
        let is_largest = |part: &&&Entry| !open.iter().any(|other| other != *part && other.covers(part));
        let largest = open.iter().filter(is_largest);
        largest.map(|part| capability(Region { except: self.except.clone(), ..Region::from_entry(part) })).collect()
    }

    /// Returns true if the whole entry is hidden.
    pub fn hides(&self, entry: &Entry) -> bool {
        self.except.iter().any(|hidden| hidden.path() == entry.path() || entry.path().is_below(hidden.path()))
    }
}

/// Returns the narrower of two entries that overlap; for `src/` and `src` it is `src/`. `None` if they do not overlap.
pub(super) fn narrower<'a>(one: &'a Entry, other: &'a Entry) -> Option<&'a Entry> {
    if one.path() == other.path() {
        return Some(if one.is_subtree() { one } else { other });
    }
    if one.is_subtree() && other.path().is_below(one.path()) {
        return Some(other);
    }
    (other.is_subtree() && one.path().is_below(other.path())).then_some(one)
}

/// An absolute folder of the machine, without a final slash.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MachineFolder(pub String);

impl MachineFolder {
    /// Returns true if this folder is the other folder or is below it.
    pub(super) fn is_within(&self, other: &MachineFolder) -> bool {
        let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
        other.0 == "/" || self.0.strip_prefix(&other.0).is_some_and(below)
    }
}

impl fmt::Display for MachineFolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first words of a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CommandWords(pub Vec<String>);

/// Writes the words, then `…` for further words.
impl fmt::Display for CommandWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} …", self.0.join(" "))
    }
}

impl Resource {
    fn as_str(self) -> &'static str {
        match self {
            Resource::WallMs => "ms",
            Resource::Steps => "steps",
            Resource::Turns => "turns",
            Resource::Tokens => "tokens",
            Resource::Money => "millionths of a dollar",
        }
    }
}

/// Writes the capability as one line, such as `write src/`.
impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use Capability as C;
        match self {
            C::Read(region) => write!(f, "read {}", region.entry),
            C::ReadHoldouts(region) => write!(f, "hold-outs {}", region.entry),
            C::Write(region) => write!(f, "write {}", region.entry),
            C::ReadMachine(folder) => write!(f, "read {folder}"),
            C::Scratch(entry) => write!(f, "scratch {entry}"),
            C::Cache(entry) => write!(f, "cache {entry}"),
            C::Shell(text) => write!(f, "run {text}"),
            C::Argv(words) => write!(f, "run {words}"),
            C::AnyCommand => f.write_str("run *"),
            C::Reach(host) => write!(f, "reach {host}"),
            C::FullNetwork => f.write_str("reach *"),
            C::Agent(program) => write!(f, "start the agent program {program}"),
            C::Model => f.write_str("model"),
            C::Plugin(name) => write!(f, "plugin {name}"),
            C::CommitBesideHoldouts => f.write_str("commit what it writes with hold-outs in reach"),
            C::Subject(text) => write!(f, "run {text} as the program under test"),
            C::Hook(HookKind::Pre, text) => write!(f, "run {text} before each tool call"),
            C::Hook(HookKind::Post, text) => write!(f, "run {text} after each tool call"),
            C::TellHoldouts => f.write_str("show builders the output of hold-outs"),
            C::ToolServer(name, grant) => write!(f, "tool server {name}: {grant}"),
            C::ToolProvider(name, grant) => write!(f, "tools of plugin {name}: {grant}"),
            C::Toolchain(toolchain) => write!(f, "use the toolchain {}", toolchain.as_str()),
            C::Programs(folder) => write!(f, "find programs in {folder}"),
            C::Variable(name) => write!(f, "use the environment variable {name}"),
            C::History => f.write_str("read the history of the repository"),
            C::Include(entry) => write!(f, "copy ignored files {entry}"),
            C::SandboxTier(tier) => write!(f, "accept the sandbox tier {tier}"),
            C::Spend(resource, u64::MAX) => write!(f, "spend any number of {}", resource.as_str()),
            C::Spend(resource, most) => write!(f, "spend {most} {}", resource.as_str()),
            C::Limit(name, most) => write!(f, "limit {name} {most}"),
            C::Offer(label, to) => write!(f, "offer the choice {label} -> {to}"),
            C::Default(to) => write!(f, "go on to {to} when no person answers"),
        }
    }
}

#[cfg(test)]
mod tests;
