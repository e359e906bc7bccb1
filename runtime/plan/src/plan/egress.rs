//! Data of the user that could leave the machine through a run of a plan: each source besides the project's files, with
//! each destination.
//!
//! Configuration and pipeline come with a project, and an untrusted person may have written both. A stage can pass on what it
//! reads, through the workspace and through answers of models. So every source that any process can read is paired with every
//! destination that any process or model reaches. A key is not readable by processes and is paired only with the host of its
//! own model. This module does not know whether the user has confirmed a pair.
//!
//! A machine of a fleet makes stages for other people, who get everything that a stage writes. So the fleet is a destination
//! there, also of a stage without a network, and what a stage reaches on the machine or near it is a source.

use super::Plan;
use super::capability::MachineFolder;
use crate::config::{ConfiguredModel, KeySource, ModelAccess};
use glovebox_models::target::Endpoint;
use glovebox_record::Network;
use glovebox_record::network::HostRule;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;

/// For whom a machine executes a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client {
    /// For its own user, who gets the results.
    User,
    /// For the people of a fleet.
    Fleet,
}

/// Data of the user that the files of the project do not contain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum EgressSource {
    /// A variable of the user's environment.
    Variable(String),
    /// The earlier commits and the other branches of the project's repository.
    History,
    /// The file with a model's key, as `glovebox.toml` names it.
    KeyFile(String),
    /// A folder of the machine that commands, agent programs or tool servers read. Folders of toolchains and stores that
    /// Glovebox itself found are not included.
    Folder(MachineFolder),
    /// What answers a model's requests on this machine, or near it without a key: scheme, host and port.
    LocalService(String),
    /// What answers on this machine and near it, to a process with the network `full`.
    Network,
}

/// A destination that does not belong to the user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum EgressSink {
    /// The host of a model: scheme, host and port; and the file of certificates that are trusted for it in addition to the
    /// bundled ones.
    Model(String, Option<String>),
    /// An endpoint on this machine, on which a process with the network `full` could listen instead of the model's server.
    OpenLoopback(String),
    /// A host that a proxy lets processes reach.
    Proxy(HostRule),
    /// Everything that this machine can reach.
    FullNetwork,
    /// The people who begin and follow runs of the fleet, and its other machines.
    Fleet,
}

/// A source and a destination that its data could reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Egress {
    /// The data that leaves.
    pub source: EgressSource,
    /// The destination of the data.
    pub sink: EgressSink,
    /// Where the source is named, such as `[mcp.t] env`.
    pub named_in: String,
    /// What reaches the sink, such as `model m`.
    pub reached_by: String,
}

/// A source and a destination, as a plan prints the pair.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanEgress {
    /// `env NAME`, `file PATH`, `folder PATH` or `git history`.
    pub source: String,
    /// Scheme, host and port of a model's endpoint, `proxy HOST` or `network full`.
    pub sink: String,
    /// Where the source is named.
    pub named_in: String,
    /// What reaches the sink, such as `model m`.
    pub reached_by: String,
    /// True if the user has confirmed the pair for this project.
    pub confirmed: bool,
}

/// Sources or sinks, each with the first place that names or reaches it.
type Reasons<T> = BTreeMap<T, String>;

impl Plan {
    /// Returns every pair of a source of user data and a destination that the data could reach. For the user, a provider's
    /// own host with its usual key is not included, because data that is sent there stays in the user's own account.
    pub fn egress(&self, client: Client) -> Vec<Egress> {
        let (mut sinks, sources) = (self.egress_sinks(), self.read_sources());
        let has_full = sinks.contains_key(&EgressSink::FullNetwork);
        if client == Client::Fleet {
            sinks.insert(EgressSink::Fleet, "the stages of the run".to_owned());
        }
        let mut found: BTreeMap<(EgressSource, EgressSink), (String, String)> = BTreeMap::new();
        for (source, named_in) in sources {
            for (sink, reached_by) in &sinks {
                found.insert((source.clone(), sink.clone()), (named_in.clone(), reached_by.clone()));
            }
        }
        if client == Client::Fleet {
            let reached = self.reached_sources().into_iter();
            found.extend(reached.map(|(source, by)| ((source, EgressSink::Fleet), (by.clone(), by))));
        }
        for model in self.asked_models().into_values() {
            let pair = match client {
                Client::User => Egress::for_key(model.configured(), has_full),
                Client::Fleet => Egress::for_any_key(model.configured()),
            };
            let Some(pair) = pair else { continue };
            found.entry((pair.source, pair.sink)).or_insert((pair.named_in, pair.reached_by));
        }
        let pairs = found.into_iter();
        pairs.map(|((source, sink), (named_in, reached_by))| Egress { source, sink, named_in, reached_by }).collect()
    }

    /// Returns the processes with the network `full`, such as ``commands of node `b` `` or ``tool server `t` ``.
    pub fn with_full_network(&self) -> Vec<String> {
        let full = self.networks().into_iter().filter(|(network, _)| **network == Network::Full);
        full.map(|(_, by)| by).collect()
    }

    /// Returns the network of each node with commands, and of each tool server.
    fn networks(&self) -> Vec<(&Network, String)> {
        let with_commands = self.bindings.iter().filter(|(_, binding)| binding.runs_commands());
        let of_nodes = with_commands.map(|(id, binding)| {
            let what = binding.program.as_ref().map_or_else(|| "commands".to_owned(), |own| own.program.to_string());
            (&binding.command_access.network, format!("{what} of `{id}`"))
        });
        let of_servers = self.servers().into_iter();
        of_nodes.chain(of_servers.map(|(name, entry)| (&entry.network, format!("tool server `{name}`")))).collect()
    }

    fn egress_sinks(&self) -> Reasons<EgressSink> {
        let mut found = Reasons::new();
        for (network, by) in self.networks() {
            let sinks = match network {
                Network::None => Vec::new(),
                Network::Proxy(hosts) => hosts.iter().cloned().map(EgressSink::Proxy).collect(),
                Network::Full => vec![EgressSink::FullNetwork],
            };
            for sink in sinks {
                found.entry(sink).or_insert_with(|| by.clone());
            }
        }
        for (name, model) in self.asked_models() {
            if let Some(sink) = foreign(&model.access) {
                found.entry(sink).or_insert_with(|| format!("model `{name}`"));
            }
        }
        found
    }

    /// Returns what processes and models reach on this machine and near it.
    fn reached_sources(&self) -> Reasons<EgressSource> {
        let full = self.with_full_network().into_iter().map(|by| (EgressSource::Network, by));
        // A model without a key can be any server in the network of the machine.
        let is_near = |access: &ModelAccess| access.endpoint.is_local() || access.key == KeySource::None;
        let near = self.asked_models().into_iter().filter(|(_, model)| is_near(&model.access));
        let near = near.map(|(name, model)| {
            (EgressSource::LocalService(model.access.endpoint.origin()), format!("[models.{name}]"))
        });
        full.chain(near).collect()
    }

    /// Returns the data of the user that processes can read. Keys of models are not included.
    fn read_sources(&self) -> Reasons<EgressSource> {
        let mut found = Reasons::new();
        let mut add = |source, named_in: &dyn fmt::Display| {
            found.entry(source).or_insert_with(|| named_in.to_string());
        };
        let folder = |path: &String| EgressSource::Folder(MachineFolder(path.to_owned()));
        if self.bindings.values().any(|binding| binding.starts_processes()) {
            self.commands.sandbox.setting.read.iter().for_each(|path| add(folder(path), &"[sandbox] read"));
            self.commands.exec.path.iter().for_each(|path| add(folder(path), &"[exec] path"));
            self.commands.exec.venv.iter().for_each(|venv| add(folder(&venv.path), &"[exec] venv"));
        }
        if self.bindings.values().any(|binding| self.shows_history(binding)) {
            add(EgressSource::History, &"[workspace] git");
        }
        // An agent program is started only if its node asks a model.
        let live = self.bindings.iter().filter(|(node, _)| self.models.by_node.contains_key(*node));
        for program in live.filter_map(|(_, binding)| binding.program.as_ref()) {
            let named_in = format!("[agents.{}] read", program.program);
            program.folders.iter().for_each(|path| add(folder(&path.0), &named_in));
        }
        for (name, entry) in self.servers() {
            let named_in = format!("[mcp.{name}] env");
            entry.env.values().for_each(|variable| add(EgressSource::Variable(variable.to_owned()), &named_in));
        }
        found
    }
}

impl Egress {
    /// Returns the pair of a model's key and its destination. `None` if the destination is the model's own provider or this
    /// machine. If `has_full` is true, another process has the network `full`, and this machine then counts as a destination
    /// too.
    pub fn for_key(model: ConfiguredModel<'_>, has_full: bool) -> Option<Self> {
        let sink = match model.access.endpoint.is_local() {
            false => foreign(model.access)?,
            true if has_full => EgressSink::OpenLoopback(model.access.endpoint.origin()),
            true => return None,
        };
        Self::for_key_at(model, sink)
    }

    /// Returns the pair of a model's key and its destination, whatever it is. `None` if the model has no key.
    fn for_any_key(model: ConfiguredModel<'_>) -> Option<Self> {
        let sink = EgressSink::Model(model.access.endpoint.origin(), model.access.ca_file.clone());
        Self::for_key_at(model, sink)
    }

    fn for_key_at(model: ConfiguredModel<'_>, sink: EgressSink) -> Option<Self> {
        let ConfiguredModel { name, access } = model;
        let source = match &access.key {
            KeySource::None => return None,
            KeySource::Variable(variable) => EgressSource::Variable(variable.to_owned()),
            KeySource::File(file) => EgressSource::KeyFile(file.to_owned()),
        };
        Some(Self { source, sink, named_in: format!("[models.{name}]"), reached_by: format!("model `{name}`") })
    }
}

/// Returns the host of a model if data that is sent to it leaves the user's control. `None` for this machine, and for the
/// provider with its usual key and the bundled certificates.
fn foreign(access: &ModelAccess) -> Option<EgressSink> {
    let family = access.family;
    let usual: Option<Endpoint> = family.endpoint().and_then(|text| text.parse().ok());
    let is_own_host = usual.is_some_and(|usual| usual.origin() == access.endpoint.origin());
    let has_usual_key = match &access.key {
        KeySource::Variable(name) => family.key_variable() == Some(name),
        KeySource::None | KeySource::File(_) => false,
    };
    let is_own = is_own_host && has_usual_key && access.ca_file.is_none();
    let is_foreign = !access.endpoint.is_local() && !is_own;
    is_foreign.then(|| EgressSink::Model(access.endpoint.origin(), access.ca_file.clone()))
}

impl fmt::Display for EgressSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "env {name}"),
            Self::History => f.write_str("git history"),
            Self::KeyFile(file) => write!(f, "file {file}"),
            Self::Folder(folder) => write!(f, "folder {}", folder.0),
            Self::LocalService(origin) => write!(f, "service {origin}"),
            Self::Network => f.write_str("network full"),
        }
    }
}

impl fmt::Display for EgressSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Model(origin, _) | Self::OpenLoopback(origin) => f.write_str(origin),
            Self::Proxy(host) => write!(f, "proxy {host}"),
            Self::FullNetwork => f.write_str("network full"),
            Self::Fleet => f.write_str("fleet"),
        }
    }
}
