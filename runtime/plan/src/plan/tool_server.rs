//! The tool servers of a plan: which servers a node may start, what each gets, and how a plan prints them.
//!
//! Plain data. A plan names variables and never contains their values. The printed properties of a server are covered by the
//! plan's digest.

use super::Plan;
use crate::config::ServerEntry;
use glovebox_host::tools::AllowedTools;
use glovebox_record::Network;
use glovebox_record::network::HostRule;
use glovebox_record::scope::{Entry, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// A tool server that a node may start.
#[derive(Debug, Clone)]
pub struct BoundServer {
    /// The name of the server's table in `glovebox.toml`.
    pub name: String,
    /// The table of the server.
    pub entry: Arc<ServerEntry>,
    /// The tools of the server that the node may call.
    pub tools: AllowedTools,
    /// The part of the workspace that the server sees.
    pub scope: Scope,
}

/// A grant of a tool server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ServerGrant {
    /// The server is started with this command line.
    Start(Vec<String>),
    /// This tool of the server may be called.
    Tool(String),
    /// Every tool that the server lists may be called.
    AnyTool,
    /// The server reads these paths of the workspace.
    Read(Entry),
    /// The server reaches this host.
    Reach(HostRule),
    /// The server reaches everything that the machine can reach.
    FullNetwork,
    /// The server gets this variable. Its value comes from the variable named second.
    Variable(String, String),
}

impl ServerGrant {
    /// Returns true if this grant allows everything that the other one allows.
    pub(super) fn covers(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::AnyTool, Self::Tool(_)) | (Self::FullNetwork, Self::Reach(_)) => true,
            (Self::Read(known), Self::Read(entry)) => known.covers(entry),
            (Self::Reach(known), Self::Reach(host)) => known.covers(host),
            _ => self == other,
        }
    }
}

/// Writes the grant as the end of a line, such as `call echo`.
impl fmt::Display for ServerGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start(words) => write!(f, "start {}", words.join(" ")),
            Self::Tool(name) => write!(f, "call {name}"),
            Self::AnyTool => f.write_str("call *"),
            Self::Read(entry) => write!(f, "read {entry}"),
            Self::Reach(host) => write!(f, "reach {host}"),
            Self::FullNetwork => f.write_str("reach *"),
            Self::Variable(name, source) if name == source => write!(f, "use the environment variable {name}"),
            Self::Variable(name, source) => write!(f, "use the environment variable {name} from {source}"),
        }
    }
}

impl BoundServer {
    /// Returns all grants of the server for its node.
    pub fn grants(&self) -> impl Iterator<Item = ServerGrant> {
        let entry = &self.entry;
        let tools = match &self.tools {
            AllowedTools::All => vec![ServerGrant::AnyTool],
            AllowedTools::Named(names) => names.iter().cloned().map(ServerGrant::Tool).collect(),
        };
        let network = match &entry.network {
            Network::None => Vec::new(),
            Network::Proxy(hosts) => hosts.iter().cloned().map(ServerGrant::Reach).collect(),
            Network::Full => vec![ServerGrant::FullNetwork],
        };
        let variable = |(name, source): (&String, &String)| ServerGrant::Variable(name.to_owned(), source.to_owned());
        let read = self.scope.read.iter().cloned().map(ServerGrant::Read);
        let start = ServerGrant::Start(entry.command.clone());
        std::iter::once(start).chain(tools).chain(network).chain(read).chain(entry.env.iter().map(variable))
    }
}

impl Plan {
    /// Returns every tool server that a node may start, by name.
    pub fn servers(&self) -> BTreeMap<&str, &ServerEntry> {
        let servers = self.bindings.values().flat_map(|binding| &binding.servers);
        servers.map(|server| (server.name.as_str(), &*server.entry)).collect()
    }

    pub(super) fn printed_servers(&self) -> Vec<PlanToolServer<'_>> {
        self.servers().into_iter().map(|(name, entry)| PlanToolServer::new(name, entry)).collect()
    }
}

/// A tool server that some node may start.
#[derive(Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PlanToolServer<'a> {
    /// The name of the server's table in `glovebox.toml`.
    pub name: &'a str,
    /// The program and its arguments.
    pub command: &'a [String],
    /// The variables of the server. Each value is the name of the variable from which it is copied. A plan contains no values
    /// of variables.
    pub env: &'a BTreeMap<String, String>,
    /// The part of the workspace that the server sees, within the read scope of the stage.
    pub read: Vec<String>,
    /// The network access of the server.
    pub network: String,
    /// The tools that the operator allows; `*` for all.
    pub tools: Vec<&'a str>,
    /// Maximum duration of the start of the server and of a call, in milliseconds.
    pub timeout_ms: u64,
}

impl<'a> PlanToolServer<'a> {
    fn new(name: &'a str, entry: &'a ServerEntry) -> Self {
        let all = || vec!["*"];
        Self {
            name,
            command: &entry.command,
            env: &entry.env,
            read: entry.read.iter().map(ToString::to_string).collect(),
            network: entry.network.to_string(),
            tools: entry.tools.as_ref().map_or_else(all, |names| names.iter().map(String::as_str).collect()),
            timeout_ms: u64::try_from(entry.timeout.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Writes the server on one line, with everything that it gets.
impl fmt::Display for PlanToolServer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let read = if self.read.is_empty() { "nothing".to_owned() } else { self.read.join(", ") };
        write!(f, "{}: reads {read}; network {}", self.name, self.network)?;
        if !self.env.is_empty() {
            let of = |(name, source): (&String, &String)| format!("{name} from {source}");
            write!(f, "; variables {}", self.env.iter().map(of).collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}
