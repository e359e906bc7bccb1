//! Sets of capabilities: of a binding, and of a plan, node by node and together.
//!
//! This is the only module that converts grants to capabilities. Plans are compared, refused and printed from these sets.

use super::capability::{Capability, CommandWords, MachineFolder, Region, Resource};
use super::{Binding, Confinement, HoldoutAccess, Plan, PlannedFolders, Shared};
use glovebox_host::call::CommandGrant;
use glovebox_host::grants::FileTier;
use glovebox_pipeline::gate::Gate;
use glovebox_pipeline::ir::holdouts::{Feedback, Writes};
use glovebox_pipeline::ir::{Handler, Node, NodeId};
use glovebox_record::{Network, RunBounds, Tier, scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// What a node, or a run as a whole, can do. The default is nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct CapabilitySet(Shared<BTreeSet<Capability>>);

impl CapabilitySet {
    /// Returns all capabilities in their order.
    pub fn iter(&self) -> impl Iterator<Item = &Capability> + Clone {
        self.0.iter()
    }

    /// Adds capabilities.
    pub fn extend(&mut self, capabilities: impl IntoIterator<Item = Capability>) {
        self.0.changeable().extend(capabilities);
    }

    /// Returns the parts of this set that another set does not cover. If parts cover each other, only the largest is
    /// returned.
    pub fn minus(&self, other: &CapabilitySet) -> CapabilitySet {
        let rest = self.0.difference(&other.0);
        let found: BTreeSet<Capability> = rest.flat_map(|capability| capability.minus(other.iter())).collect();
        let is_least = |capability: &&Capability| {
            let others = found.iter().filter(|other| other != capability);
            !matches!(capability, Capability::Spend(..) | Capability::SandboxTier(_))
                || !capability.minus(others).is_empty()
        };
        found.iter().filter(is_least).cloned().collect()
    }

    /// Returns the capabilities that no node's set contains exactly.
    pub fn without(&self, nodes: &BTreeMap<NodeId, CapabilitySet>) -> CapabilitySet {
        let is_own = |capability: &&Capability| !nodes.values().any(|other| other.0.contains(capability));
        self.0.iter().filter(is_own).cloned().collect()
    }

    /// Returns true if the set covers a capability.
    pub fn allows(&self, capability: &Capability) -> bool {
        capability.minus(self.iter()).is_empty()
    }

    /// Returns one line per capability, such as `write src/`. Each line is returned once.
    pub fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.iter().map(ToString::to_string).collect();
        lines.dedup();
        lines
    }
}

impl FromIterator<Capability> for CapabilitySet {
    fn from_iter<T: IntoIterator<Item = Capability>>(capabilities: T) -> Self {
        Self(Shared::new(capabilities.into_iter().collect()))
    }
}

impl IntoIterator for CapabilitySet {
    type Item = Capability;
    type IntoIter = std::collections::btree_set::IntoIter<Capability>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_value().into_iter()
    }
}

/// The capabilities of a plan, per node and together.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PlanCapabilities {
    /// The capabilities of each node. A human gate has only its choices; other control nodes have none.
    pub nodes: BTreeMap<NodeId, CapabilitySet>,
    /// The capabilities of all nodes together, and of the run as a whole.
    pub run: CapabilitySet,
}

impl Plan {
    /// Returns the capabilities of each node, and of the run within these bounds.
    pub fn capabilities(&self, bounds: RunBounds) -> PlanCapabilities {
        let mut found = PlanCapabilities::default();
        let mut known = EachBinding::default();
        for node in self.pipeline.stages() {
            let binding = self.bindings.get(&node.id);
            let own = binding.map(|binding| known.get_or_make(binding, || self.of_binding(binding)));
            let (mut own, is_known) = own.unwrap_or_default();
            if node.handler == Handler::Human {
                let of_gate: CapabilitySet = self.of_gate(node);
                found.run.extend(of_gate.iter().cloned());
                own.extend(of_gate);
            }
            let tells = node.access.holdouts.feedback == Feedback::Full;
            if tells && binding.is_some_and(|binding| binding.holdouts == HoldoutAccess::ReadOnly) {
                own.extend([Capability::TellHoldouts]);
                found.run.extend([Capability::TellHoldouts]);
            }
            if !is_known {
                found.run.extend(own.iter().cloned());
            }
            found.nodes.insert(node.id.clone(), own);
        }
        let included = self.folders.include.iter().filter_map(|text| scope::Entry::parse(text).ok());
        found.run.extend(included.map(Capability::Include));
        found.run.extend([
            Capability::Spend(Resource::Steps, bounds.steps_max),
            Capability::Spend(Resource::WallMs, bounds.wall_max_ms.unwrap_or(u64::MAX)),
            Capability::Spend(Resource::Tokens, bounds.spend_max.tokens_max.unwrap_or(u64::MAX)),
            Capability::Spend(Resource::Money, bounds.spend_max.cost_max.map_or(u64::MAX, |most| most.0)),
        ]);
        found
    }

    /// Returns true if the reader can read everything that the other node can read.
    pub fn reads_all_of(&self, reader: &NodeId, other: &NodeId) -> bool {
        let could = |id| self.binding(id).map(|binding| self.of_binding(binding)).unwrap_or_default();
        let is_read = |capability: &Capability| {
            use Capability::{Cache, History, Read, ReadHoldouts, ReadMachine, Scratch};
            matches!(capability, Read(_) | ReadHoldouts(_) | ReadMachine(_) | Scratch(_) | Cache(_) | History)
        };
        reader == other || !could(other).minus(&could(reader)).iter().any(is_read)
    }

    /// Returns the choices of a person at a human gate, and the default without an answer.
    fn of_gate(&self, node: &Node) -> CapabilitySet {
        let Gate { choices, default, .. } = Gate::new(&self.pipeline, node);
        let default = default.map(|default| Capability::Default(default.to));
        let offers = choices.into_iter().map(|choice| Capability::Offer(choice.label, choice.to));
        offers.chain(default).collect()
    }

    /// Returns true if commands of a binding see the history of the project's repository. A stage from which a path of the
    /// project is hidden does not, because earlier commits contain the path.
    pub fn shows_history(&self, binding: &Binding) -> bool {
        let PlannedFolders { shows_history, scenarios, .. } = &self.folders;
        *shows_history && binding.runs_commands() && binding.scope.shows_all_but(scenarios)
    }

    pub(super) fn of_binding(&self, binding: &Binding) -> CapabilitySet {
        let mut found = CapabilitySet::default();
        let region =
            |entry: &scope::Entry| Region { except: binding.scope.hidden.clone(), ..Region::from_entry(entry) };
        if binding.tier != FileTier::None || binding.starts_processes() {
            let (read, write) = (&binding.scope.read, &binding.scope.write);
            found.extend(read.iter().chain(write).map(|entry| Capability::Read(region(entry))));
            found.extend(write.iter().filter(|_| binding.keeps_writes()).map(|entry| Capability::Write(region(entry))));
        }
        if binding.holdouts == HoldoutAccess::ReadOnly {
            let open = self.folders.sealed.iter().filter(|folder| !binding.scope.is_hidden(folder.path()));
            found.extend(open.map(|folder| Capability::ReadHoldouts(region(folder))));
        }
        if let Some(separation) = &binding.separation {
            found.extend(separation.command.iter().cloned().map(Capability::Subject));
            let commits = separation.writes == Writes::Commit && binding.holdouts == HoldoutAccess::ReadOnly;
            found.extend(commits.then_some(Capability::CommitBesideHoldouts));
        }
        if binding.runs_commands() {
            self.of_commands(binding, &mut found);
        }
        if let Some(program) = &binding.program {
            found.extend([Capability::Agent(program.program.to_string()), Capability::AnyCommand]);
            found.extend(program.folders.iter().cloned().map(Capability::ReadMachine));
        }
        if binding.starts_processes() {
            self.of_processes(&mut found);
        }
        found.extend(binding.hooks.iter().map(|(kind, text)| Capability::Hook(kind, text.to_owned())));
        for server in &binding.servers {
            found.extend(server.grants().map(|grant| Capability::ToolServer(server.name.clone(), grant)));
        }
        for provider in &binding.providers {
            found.extend(provider.grants().map(|grant| Capability::ToolProvider(provider.name.clone(), grant)));
            found.extend([Capability::Plugin(provider.name.clone())]);
        }
        if binding.model {
            found.extend([Capability::Model, Capability::Spend(Resource::Turns, binding.limits.turns)]);
        }
        found.extend((!binding.first_party).then(|| Capability::Plugin(binding.handler.clone())));
        found
    }

    fn of_commands(&self, binding: &Binding, found: &mut CapabilitySet) {
        found.extend(of_grant(&binding.commands));
        found.extend(self.shows_history(binding).then_some(Capability::History));
        found.extend(reached(&binding.command_access.network));
        found.extend(binding.command_access.scratch.iter().cloned().map(Capability::Scratch));
        found.extend(binding.command_access.cache.iter().cloned().map(Capability::Cache));
    }

    /// Adds the access to the machine that every process has.
    fn of_processes(&self, found: &mut CapabilitySet) {
        found
            .extend(self.commands.sandbox.setting.read.iter().cloned().map(MachineFolder).map(Capability::ReadMachine));
        found.extend(self.folders.stores.iter().cloned().map(Capability::ReadMachine));
        let tier = match self.commands.sandbox.confinement {
            Confinement::Tier(Tier::Unconfined) => Tier::Unconfined,
            _ => self.commands.sandbox.setting.require,
        };
        found.extend([Capability::SandboxTier(tier)]);
        found.extend(self.commands.exec.toolchains.iter().copied().map(Capability::Toolchain));
        if let Some(venv) = &self.commands.exec.venv {
            found.extend([Capability::ReadMachine(MachineFolder(venv.path.clone()))]);
            found.extend([Capability::Programs(format!("{}/bin", venv.path))]);
        }
        found.extend(self.commands.exec.path.iter().cloned().map(Capability::Programs));
        found.extend(self.commands.exec.env.keys().cloned().map(Capability::Variable));
    }
}

/// Values that are computed from a binding, once for all nodes that share the binding.
pub(super) struct EachBinding<T>(HashMap<*const Binding, T>);

impl<T> Default for EachBinding<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Clone> EachBinding<T> {
    /// Returns the value for a binding, and true if it was computed before.
    pub(super) fn get_or_make(&mut self, binding: &Binding, make: impl FnOnce() -> T) -> (T, bool) {
        match self.0.entry(std::ptr::from_ref(binding)) {
            Entry::Occupied(known) => (known.get().clone(), true),
            Entry::Vacant(place) => (place.insert(make()).clone(), false),
        }
    }
}

/// Returns the hosts that commands with this network can reach.
pub fn reached(network: &Network) -> Vec<Capability> {
    match network {
        Network::None => Vec::new(),
        Network::Proxy(hosts) => hosts.iter().cloned().map(Capability::Reach).collect(),
        Network::Full => vec![Capability::FullNetwork],
    }
}

/// Returns the commands that a grant allows.
fn of_grant(commands: &CommandGrant) -> impl Iterator<Item = Capability> {
    let any = commands.any.then_some(Capability::AnyCommand);
    let shell = commands.shell_texts.iter().cloned().map(Capability::Shell);
    any.into_iter().chain(shell).chain(commands.argv_prefixes.iter().cloned().map(CommandWords).map(Capability::Argv))
}
