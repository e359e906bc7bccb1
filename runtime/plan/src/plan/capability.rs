//! Capabilities: what a node can do, typed, so that plans can be compared and `--deny` rules can refuse them.
//!
//! A capability knows what it covers, not who gave it: [`super::origin`] says that. A node neither reads nor writes what is hidden
//! from it, so a capability over files carries its exceptions. In doubt, a capability counts as the larger one.

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

/// Paths of the workspace without some of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct Region {
    /// The paths.
    pub entry: Entry,
    /// Paths among them that do not exist, each with everything below it.
    pub except: Vec<Entry>,
}

/// A budget of a run or a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Wall time of a run, milliseconds.
    WallMs,
    /// Steps of a run.
    Steps,
    /// Model turns of a visit.
    Turns,
    /// Model tokens of a run.
    Tokens,
    /// Money for model calls of a run, in millionths of a dollar.
    Money,
}

/// One thing a node can do, at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Capability {
    /// Reads paths of the workspace.
    Read(Region),
    /// Reads a folder of hold-outs.
    ReadHoldouts(Region),
    /// Writes paths of the workspace, to be kept.
    Write(Region),
    /// Lets commands read an absolute folder of the machine.
    ReadMachine(MachineFolder),
    /// Lets commands write a folder that is removed after the stage.
    Scratch(Entry),
    /// Lets commands write a folder that is kept within the run.
    Cache(Entry),
    /// Runs a shell text, exactly this one.
    Shell(String),
    /// Runs programs whose words begin with these.
    Argv(CommandWords),
    /// Runs anything.
    AnyCommand,
    /// Lets commands reach a host, as a proxy's list names it.
    Reach(HostRule),
    /// Lets commands reach whatever the machine can.
    FullNetwork,
    /// Starts an agent program.
    Agent(String),
    /// Asks the model.
    Model,
    /// Executes a third-party component.
    Plugin(String),
    /// Shows builders the output of hold-outs.
    TellHoldouts,
    /// Commits, for builders to see, what it writes with hold-outs in reach.
    CommitBesideHoldouts,
    /// Runs a shell text as the program under test, exactly this one.
    Subject(String),
    /// Runs a shell text around each tool call of the model, exactly this one.
    Hook(HookKind, String),
    /// Starts a tool server, which does this.
    ToolServer(String, ServerGrant),
    /// Gives commands a toolchain.
    Toolchain(Toolchain),
    /// Gives commands a folder of programs.
    Programs(String),
    /// Gives commands a variable.
    Variable(String),
    /// Copies ignored files of the project into the run.
    Include(Entry),
    /// Accepts a sandbox as low as this tier around commands.
    SandboxTier(Tier),
    /// Uses up to so much of a resource.
    Spend(Resource, u64),
    /// Has this bound for one attempt.
    Limit(LimitName, u64),
    /// Lets a person choose this, as the key and where it leads.
    Offer(String, NodeId),
    /// Goes on with this choice when no person answers.
    Default(NodeId),
}

impl Capability {
    /// The parts of this capability that lie outside of all others; empty when the others cover it.
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

    /// True for what a human gate offers, or does without an answer.
    pub(super) fn is_of_gate(&self) -> bool {
        matches!(self, Capability::Offer(..) | Capability::Default(_))
    }

    /// The region it reads; none when it does not read the workspace.
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
            (C::ToolServer(one, known), C::ToolServer(other, grant)) => one == other && known.covers(grant),
            (C::SandboxTier(known), C::SandboxTier(tier)) => known <= tier,
            (C::Spend(known, most), C::Spend(resource, amount)) => known == resource && most >= amount,
            (C::Limit(known, most), C::Limit(name, amount)) => known == name && most >= amount,
            _ => self == other,
        }
    }
}

impl Region {
    /// All paths of an entry.
    pub fn from_entry(entry: &Entry) -> Self {
        Self { entry: entry.clone(), except: Vec::new() }
    }

    /// The parts of this region that lie outside of all others. What is hidden in one may be visible in another, so every hidden
    /// entry is checked beside the region itself. A part that only several finer entries together would cover counts as outside.
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

    /// True when nothing of an entry is there.
    pub fn hides(&self, entry: &Entry) -> bool {
        self.except.iter().any(|hidden| hidden.path() == entry.path() || entry.path().is_below(hidden.path()))
    }
}

/// The narrower of two entries that overlap; for `src/` and `src` the former.
pub(super) fn narrower<'a>(one: &'a Entry, other: &'a Entry) -> Option<&'a Entry> {
    if one.path() == other.path() {
        return Some(if one.is_subtree() { one } else { other });
    }
    if one.is_subtree() && other.path().is_below(one.path()) {
        return Some(other);
    }
    (other.is_subtree() && one.path().is_below(other.path())).then_some(one)
}

/// An absolute folder of the machine, without a slash at the end.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct MachineFolder(pub String);

impl MachineFolder {
    /// True for the other folder itself and everything below it.
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

/// The leading words of a command.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct CommandWords(pub Vec<String>);

/// The words, then `…` for any others.
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

/// The grant as one line, such as `write src/`.
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
            C::Toolchain(toolchain) => write!(f, "use the toolchain {}", toolchain.as_str()),
            C::Programs(folder) => write!(f, "find programs in {folder}"),
            C::Variable(name) => write!(f, "use the environment variable {name}"),
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
