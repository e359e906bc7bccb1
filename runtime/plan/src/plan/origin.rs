//! The origin of a capability: what allows it, and what narrowed it.
//!
//! An origin is a typed value until it is printed. No code parses an origin from its text.

use super::Plan;
use super::capability::{Capability, MachineFolder, Resource};
use crate::config::{CONFIG_FILE_NAME, HistorySetting};
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::keyed::Text;
use glovebox_record::{LimitName, Tier};
use std::borrow::Cow;
use std::fmt;

/// Something that allows a capability or narrows it, such as an attribute, a table or a flag.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum OriginPart {
    /// A built-in component, by its handler type.
    BuiltIn(Text),
    /// The wants of a plugin, and a field of the operator's grants to it.
    Plugin {
        /// The handler type.
        handler: Text,
        /// The field of `grants`.
        field: GrantField,
        /// Line of the table in `glovebox.toml`.
        line: usize,
    },
    /// The verify contract of a verification stage.
    Contract,
    /// A field of a table of `glovebox.toml`.
    Config(&'static str, &'static str),
    /// A table below `[mcp]` of `glovebox.toml`.
    Server(String),
    /// A table below `[plugins]` of `glovebox.toml`, whose plugin offers tools.
    Provider(String),
    /// A whole table of `glovebox.toml`.
    ConfigTable(&'static str),
    /// An attribute of the node.
    Attribute(Cow<'static, str>),
    /// An attribute that the node does not set.
    Unset(&'static str),
    /// An attribute of the node that lists blocked paths, and this path is not among them.
    NotBlocked(&'static str),
    /// A setting with its value, or a flag of the command line.
    Flag(&'static str),
    /// The limits of the pipeline, or the flags that replace them.
    RunBounds,
    /// The run as a whole.
    Run,
    /// The node's edges.
    Edges,
    /// A default that applies if nothing else allows or narrows the capability.
    Default,
}

/// A field of `grants` in `glovebox.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum GrantField {
    /// `commands`.
    Commands,
    /// `model`.
    Model,
    /// `read`.
    Read,
    /// `write`.
    Write,
}

impl fmt::Display for GrantField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GrantField::Commands => "commands",
            GrantField::Model => "model",
            GrantField::Read => "read",
            GrantField::Write => "write",
        })
    }
}

/// What allows a capability, then what narrowed it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Origin(Vec<OriginPart>);

impl Origin {
    /// Creates the origin of a capability that `part` allows and that nothing has narrowed.
    pub fn from_part(part: OriginPart) -> Self {
        Self(vec![part])
    }

    /// Creates the origin of a capability that an attribute of the node allows.
    pub fn attribute(name: impl Into<Cow<'static, str>>) -> Self {
        Self::from_part(OriginPart::Attribute(name.into()))
    }

    /// Returns the origin of the capability after `part` has narrowed it.
    #[must_use]
    pub fn and(mut self, part: OriginPart) -> Self {
        self.0.push(part);
        self
    }
}

/// A capability and its origin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// The capability.
    pub capability: Capability,
    /// What allows the capability, and what narrowed it.
    pub origin: Origin,
}

impl Grant {
    /// Returns true if the capability is a part of this grant.
    fn gives(&self, wanted: &Capability) -> bool {
        use Capability as C;
        match (&self.capability, wanted) {
            (C::Read(given) | C::Write(given), C::Read(region))
            | (C::Write(given), C::Write(region))
            | (C::ReadHoldouts(given), C::ReadHoldouts(region)) => given.entry.covers(&region.entry),
            (C::Limit(name, _), C::Spend(Resource::Turns, _)) => *name == LimitName::Turns,
            (given, wanted) => given == wanted,
        }
    }
}

impl Plan {
    /// Returns the origin of a capability of a node, or of the run as a whole.
    pub fn origin(&self, node: Option<&NodeId>, capability: &Capability) -> Cow<'_, Origin> {
        let Some(node) = node else { return Cow::Owned(of_run(capability)) };
        let part = match capability {
            Capability::ReadMachine(folder) if self.folders.stores.contains(folder) => {
                OriginPart::Config("workspace", "dependencies")
            }
            Capability::ReadMachine(folder)
                if self.commands.exec.venv.as_ref().is_some_and(|venv| venv.path == folder.0) =>
            {
                OriginPart::Config("exec", "venv")
            }
            Capability::ReadMachine(folder) if self.is_of_program(node, folder) => OriginPart::ConfigTable("agents"),
            Capability::ReadMachine(_) => OriginPart::Config("sandbox", "read"),
            Capability::Toolchain(_) | Capability::Programs(_) | Capability::Variable(_) => {
                OriginPart::ConfigTable("exec")
            }
            Capability::SandboxTier(Tier::Unconfined) => OriginPart::Flag("--dangerously-no-sandbox"),
            Capability::SandboxTier(_) => OriginPart::Config("sandbox", "require"),
            Capability::History if self.folders.history == HistorySetting::Whole => {
                OriginPart::Config("workspace", "git")
            }
            Capability::History => OriginPart::Default,
            Capability::Offer(..) => OriginPart::Edges,
            Capability::Default(_) => OriginPart::Attribute("human.default_choice".into()),
            Capability::Plugin(_) => {
                return Cow::Owned(Origin::attribute("type").and(OriginPart::ConfigTable("plugins")));
            }
            _ => {
                let grants = self.binding(node).map_or(&[][..], |binding| &binding.grants);
                let given = grants.iter().find(|grant| grant.gives(capability));
                return given.map_or_else(
                    || Cow::Owned(Origin::from_part(OriginPart::Default)),
                    |grant| Cow::Borrowed(&grant.origin),
                );
            }
        };
        Cow::Owned(Origin::from_part(part))
    }
}

impl Plan {
    fn is_of_program(&self, node: &NodeId, folder: &MachineFolder) -> bool {
        let program = self.binding(node).and_then(|binding| binding.program.as_ref());
        program.is_some_and(|program| program.folders.contains(folder))
    }
}

/// Returns the origin of a capability that no single node has.
fn of_run(capability: &Capability) -> Origin {
    Origin::from_part(match capability {
        Capability::Spend(..) => OriginPart::RunBounds,
        Capability::Include(_) => OriginPart::Config("workspace", "include"),
        _ => OriginPart::Run,
    })
}

impl fmt::Display for OriginPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OriginPart::BuiltIn(handler) => write!(f, "built-in `{handler}`"),
            OriginPart::Plugin { handler, field, line } => {
                write!(f, "wants of `{handler}` and `grants.{field}` of {CONFIG_FILE_NAME}:{line}")
            }
            OriginPart::Contract => f.write_str("its verify contract"),
            OriginPart::Config(table, field) => write!(f, "`{field}` under `[{table}]` of {CONFIG_FILE_NAME}"),
            OriginPart::ConfigTable(table) => write!(f, "`[{table}]` of {CONFIG_FILE_NAME}"),
            OriginPart::Server(name) => write!(f, "`[mcp.{name}]` of {CONFIG_FILE_NAME}"),
            OriginPart::Provider(name) => write!(f, "`[plugins.\"{name}\"]` of {CONFIG_FILE_NAME}"),
            OriginPart::Attribute(name) => write!(f, "`{name}` of the node"),
            OriginPart::Unset(name) => write!(f, "`{name}` is not set"),
            OriginPart::NotBlocked(name) => write!(f, "`{name}` of the node does not list it"),
            OriginPart::Flag(name) => write!(f, "`{name}`"),
            OriginPart::RunBounds => f.write_str("`max_steps` or `max_wall_time` of the pipeline, or their flags"),
            OriginPart::Run => f.write_str("the run"),
            OriginPart::Edges => f.write_str("the edges of the node"),
            OriginPart::Default => f.write_str("a default"),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, part) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{part}")?;
        }
        Ok(())
    }
}
