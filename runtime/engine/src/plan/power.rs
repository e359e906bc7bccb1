//! Powers: what the nodes of a plan could do, one by one, typed so that two plans can be compared and rules can refuse them.
//!
//! A power knows what lies within it, never why it was given: [`Plan::origin`] says that. What is hidden from a node takes away
//! from its reading and writing, so a power over files carries its exceptions. When in doubt a power counts as the larger one.

use super::confinement::reach_of;
use super::{Binding, HoldoutAccess, Plan};
use crate::config::sandbox::Tier;
use glovebox_host::grants::FileTier;
use glovebox_pipeline::holdouts::{Feedback, Writes};
use glovebox_pipeline::ir::NodeId;
use glovebox_sandbox::proxy::rules::Rules;
use glovebox_sandbox::scope::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Paths of the workspace without some of them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Region {
    /// The paths.
    pub entry: Entry,
    /// What does not exist among them; each takes everything below it along.
    pub except: Vec<Entry>,
}

/// One thing a node could do, at most.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Power {
    /// Reads paths of the workspace.
    Read(Region),
    /// Writes paths of the workspace, to be kept.
    Write(Region),
    /// Lets commands read an absolute folder of the machine.
    Machine(String),
    /// Lets commands write a folder that is dropped after the stage.
    Scratch(Entry),
    /// Lets commands write a folder that is kept within the run.
    Cache(Entry),
    /// Runs a shell text, exactly this one.
    Shell(String),
    /// Runs programs whose words begin with these.
    Argv(Vec<String>),
    /// Runs anything.
    AnyCommand,
    /// Lets commands reach a host, as a proxy's list names it.
    Reach(String),
    /// Lets commands reach whatever the machine can.
    FullNetwork,
    /// Asks the model.
    Model,
    /// Has a third-party component do the work.
    Plugin(String),
    /// Tells builders what hold-outs say.
    TellHoldouts,
    /// Has committed, for builders to see, what it writes with hold-outs in reach.
    CommitBesideHoldouts,
    /// Runs a shell text as the program under test, exactly this one.
    Subject(String),
    /// Gives commands a program folder, a toolchain or a variable, in words.
    Setting(String),
    /// Takes ignored files of the project along.
    Include(Entry),
    /// Accepts walls as low as this tier around commands.
    Walls(Tier),
    /// Spends up to so much of something by name.
    Spend(&'static str, u64),
}

impl Power {
    /// What of this power lies outside of others; empty when they cover it.
    pub fn beyond<'a>(&self, others: impl Iterator<Item = &'a Power> + Clone) -> Vec<Power> {
        match self {
            Power::Read(region) => {
                let known: Vec<&Region> = others
                    .filter_map(|other| if let Power::Read(known) = other { Some(known) } else { None })
                    .collect();
                region.beyond(&known).into_iter().map(Power::Read).collect()
            }
            Power::Write(region) => {
                let known: Vec<&Region> = others
                    .filter_map(|other| if let Power::Write(known) = other { Some(known) } else { None })
                    .collect();
                region.beyond(&known).into_iter().map(Power::Write).collect()
            }
            _ if others.into_iter().any(|other| other.covers(self)) => Vec::new(),
            _ => vec![self.clone()],
        }
    }

    fn covers(&self, other: &Power) -> bool {
        match (self, other) {
            (Power::Machine(known), Power::Machine(folder)) => is_within(folder, known),
            (Power::Scratch(known), Power::Scratch(entry))
            | (Power::Cache(known), Power::Cache(entry))
            | (Power::Include(known), Power::Include(entry)) => known.covers(entry),
            (Power::AnyCommand, Power::Argv(_) | Power::Shell(_)) => true,
            (Power::Argv(known), Power::Argv(words)) => words.starts_with(known),
            (Power::FullNetwork, Power::Reach(_)) => true,
            (Power::Reach(known), Power::Reach(host)) => {
                known == host
                    || Rules::parse(std::slice::from_ref(known)).is_ok_and(|rules| rules.cover(host) == Ok(true))
            }
            (Power::Walls(known), Power::Walls(tier)) => known <= tier,
            (Power::Spend(known, most), Power::Spend(name, amount)) => known == name && most >= amount,
            _ => self == other,
        }
    }
}

impl Region {
    /// The parts of this region that lie outside of all others. What is hidden in one may be there in another, so every hidden
    /// entry is looked at beside the region itself; a part that only the others' finer entries would cover is told whole.
    fn beyond(&self, others: &[&Region]) -> Vec<Region> {
        let hidden = others.iter().flat_map(|known| &known.except);
        let inside = hidden.filter_map(|hidden| narrower(hidden, &self.entry));
        let parts: BTreeSet<&Entry> = inside.chain([&self.entry]).filter(|part| !self.hides(part)).collect();
        let is_open = |part: &&&Entry| !others.iter().any(|known| known.entry.covers(part) && !known.hides(part));
        let open: Vec<&Entry> = parts.iter().filter(is_open).copied().collect();
        let is_largest = |part: &&&Entry| !open.iter().any(|other| other != *part && other.covers(part));
        let largest = open.iter().filter(is_largest);
        largest.map(|part| Region { entry: (*part).clone(), except: self.except.clone() }).collect()
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

/// True for an absolute path that is another or below it.
pub(super) fn is_within(path: &str, folder: &str) -> bool {
    let below = |rest: &str| rest.is_empty() || rest.starts_with('/');
    folder == "/" || path.strip_prefix(folder).is_some_and(below)
}

impl fmt::Display for Power {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Power::Read(region) => write!(f, "read {}", region.entry),
            Power::Write(region) => write!(f, "write {}", region.entry),
            Power::Machine(folder) => write!(f, "read {folder}"),
            Power::Scratch(entry) => write!(f, "scratch {entry}"),
            Power::Cache(entry) => write!(f, "cache {entry}"),
            Power::Shell(text) => write!(f, "run {text}"),
            Power::Argv(words) => write!(f, "run {} …", words.join(" ")),
            Power::AnyCommand => f.write_str("run *"),
            Power::Reach(host) => write!(f, "reach {host}"),
            Power::FullNetwork => f.write_str("reach *"),
            Power::Model => f.write_str("model"),
            Power::Plugin(name) => write!(f, "plugin {name}"),
            Power::CommitBesideHoldouts => f.write_str("commit what it writes beside hold-outs"),
            Power::Subject(text) => write!(f, "run {text} as the program under test"),
            Power::TellHoldouts => f.write_str("tell builders what hold-outs say"),
            Power::Setting(text) => f.write_str(text),
            Power::Include(entry) => write!(f, "take along {entry}"),
            Power::Walls(tier) => write!(f, "accept the sandbox tier {tier}"),
            Power::Spend(name, u64::MAX) => write!(f, "spend any number of {name}"),
            Power::Spend(name, most) => write!(f, "spend {most} {name}"),
        }
    }
}

/// What a plan could do: per node, and together.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Powers {
    /// Of each node, by id; empty for those that the engine passes by itself.
    pub nodes: BTreeMap<String, BTreeSet<Power>>,
    /// Of all nodes together, and what the run as a whole is given.
    pub all: BTreeSet<Power>,
}

impl Plan {
    /// What the nodes could do, one by one. `steps_max` and `wall_max_ms` are the run's bounds; none for the latter is no bound.
    pub fn powers(&self, steps_max: u64, wall_max_ms: Option<u64>) -> Powers {
        let mut powers = Powers::default();
        for node in &self.pipeline.nodes {
            let binding = self.bindings.get(&node.id);
            let mut own = binding.map(|binding| self.of_binding(binding)).unwrap_or_default();
            let tells = node.holdouts.feedback == Feedback::Full;
            if tells && binding.is_some_and(|binding| binding.holdouts == HoldoutAccess::ReadOnly) {
                own.insert(Power::TellHoldouts);
            }
            powers.all.extend(own.iter().cloned());
            powers.nodes.insert(node.id.to_string(), own);
        }
        powers.all.insert(Power::Spend("steps", steps_max));
        powers.all.insert(Power::Spend("ms", wall_max_ms.unwrap_or(u64::MAX)));
        powers.all.extend(self.workspace_include.iter().filter_map(|text| Entry::parse(text).ok()).map(Power::Include));
        powers
    }

    fn of_binding(&self, binding: &Binding) -> BTreeSet<Power> {
        let mut powers = BTreeSet::new();
        let region = |entry: &Entry| Region { entry: entry.clone(), except: binding.scope.hidden.clone() };
        if binding.tier != FileTier::None || binding.runs_commands() {
            let (read, write) = (&binding.scope.read, &binding.scope.write);
            powers.extend(read.iter().chain(write).map(|entry| Power::Read(region(entry))));
            powers.extend(write.iter().filter(|_| binding.keeps_writes()).map(|entry| Power::Write(region(entry))));
        }
        if binding.holdouts == HoldoutAccess::ReadOnly {
            let open = self.sealed.iter().filter(|folder| !binding.scope.is_hidden(folder.path()));
            powers.extend(open.map(|folder| Power::Read(region(folder))));
        }
        if let Some(apart) = &binding.apart {
            powers.extend(apart.command.clone().map(Power::Subject));
            let commits = apart.writes == Writes::Commit && binding.holdouts == HoldoutAccess::ReadOnly;
            powers.extend(commits.then_some(Power::CommitBesideHoldouts));
        }
        if binding.runs_commands() {
            self.of_commands(binding, &mut powers);
        }
        if binding.model {
            powers.insert(Power::Model);
            powers.insert(Power::Spend("turns", binding.limits.turns));
        }
        if !binding.first_party {
            powers.insert(Power::Plugin(binding.handler.clone()));
        }
        powers
    }

    fn of_commands(&self, binding: &Binding, powers: &mut BTreeSet<Power>) {
        let commands = &binding.commands;
        powers.extend(commands.any.then_some(Power::AnyCommand));
        powers.extend(commands.shell_texts.iter().cloned().map(Power::Shell));
        powers.extend(commands.argv_prefixes.iter().cloned().map(Power::Argv));
        powers.extend(reach_of(&binding.confined.network).into_iter().map(|host| match host.as_str() {
            "*" => Power::FullNetwork,
            _ => Power::Reach(host),
        }));
        powers.extend(binding.confined.scratch.iter().cloned().map(Power::Scratch));
        powers.extend(binding.confined.cache.iter().cloned().map(Power::Cache));
        powers.extend(self.sandbox.setting.read.iter().cloned().map(Power::Machine));
        powers.insert(Power::Walls(if self.sandbox.is_unconfined() {
            Tier::Unconfined
        } else {
            self.sandbox.setting.require
        }));
        let toolchains =
            self.exec.toolchains.iter().map(|toolchain| format!("use the toolchain {}", toolchain.as_str()));
        let path = self.exec.path.iter().map(|folder| format!("find programs in {folder}"));
        let env = self.exec.env.keys().map(|name| format!("see the variable {name}"));
        powers.extend(toolchains.chain(path).chain(env).map(Power::Setting));
    }

    /// Who gave a node a power, in words: the origin of the grant that the power is a part of.
    pub fn origin(&self, node: &str, power: &Power) -> String {
        let binding = self.binding(&NodeId::new(node));
        let config = "glovebox.toml";
        match power {
            Power::Machine(_) => return format!("`read` under `[sandbox]` of {config}"),
            Power::Setting(_) => return format!("`[exec]` of {config}"),
            Power::Walls(Tier::Unconfined) => return "`--dangerously-no-sandbox`".to_owned(),
            Power::Walls(_) => return format!("`require` under `[sandbox]` of {config}"),
            Power::Plugin(_) => return format!("`type` of the node, `[plugins]` of {config}"),
            _ => {}
        }
        let origins = binding.map_or(&[][..], |binding| binding.origins.as_slice());
        let of = |kind: &str, entry: Option<&Entry>| {
            let given = origins.iter().filter_map(|origin| Some((origin.grant.strip_prefix(kind)?, origin)));
            let mut given = given.filter(|(what, _)| match entry {
                None => true,
                Some(entry) => Entry::parse(what).is_ok_and(|granted| granted.covers(entry)),
            });
            given.next().map(|(_, origin)| origin.from.clone())
        };
        let exact = |text: String| origins.iter().find(|origin| origin.grant == text).map(|origin| origin.from.clone());
        let found = match power {
            Power::Read(Region { entry, .. }) => {
                of("hold-outs ", Some(entry)).or_else(|| of("read ", Some(entry))).or_else(|| of("write ", Some(entry)))
            }
            Power::Write(Region { entry, .. }) => of("write ", Some(entry)),
            Power::Reach(_) | Power::FullNetwork => of("reach ", None),
            Power::Argv(words) => exact(format!("run {}", words.join(" "))),
            Power::Spend(name, _) => of(&format!("limit {name} "), None),
            power => exact(power.to_string()),
        };
        found.unwrap_or_else(|| "a default".to_owned())
    }
}

#[cfg(test)]
mod tests;
