//! The table of known attributes: the elements on which they have an effect, their values and their purpose.
//!
//! The attributes come from spec appendix A, from other engines, and from Glovebox itself (guardrails, limits, tests). Attributes
//! with unknown names are kept for plugins; the lints `attribute_known` and `attribute_unread` report them
//! (decision known-attributes).

mod page;
mod table;

use crate::key::Key;
use crate::nearest::nearest;
pub use page::reference;
use std::fmt;
pub use table::ATTRIBUTES;

/// The kinds of elements that can have attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// The graph.
    Graph,
    /// A node.
    Node,
    /// An edge.
    Edge,
}

/// One attribute.
#[derive(Debug, Clone, Copy)]
pub struct KnownAttribute {
    /// Key of the attribute.
    pub key: Key<'static>,
    /// The elements on which the attribute has an effect.
    pub on: &'static [Carrier],
    /// Type of the value.
    pub value: ValueKind,
    /// Default value: a value in backticks, or a description; `required` if there is no default.
    pub default: &'static str,
    /// Effect of the attribute, in one line.
    pub summary: &'static str,
    /// The specification or program that defines the attribute.
    pub source: DefinedBy,
    /// What to use instead, if this version does not enforce the attribute; a run then refuses the attribute. `None`
    /// for an enforced attribute.
    pub instead: Option<&'static str>,
}

/// The type of an attribute's value. The generated page of attributes describes each type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// A limit: a number, or a number with a unit.
    Amount,
    /// `true` or `false`.
    Boolean,
    /// Prefixes of commands.
    Commands,
    /// The condition of an edge.
    Condition,
    /// An integer with a unit of time.
    Duration,
    /// A name for the reasoning effort of a model.
    Effort,
    /// The amount of earlier context that a session gets.
    Fidelity,
    /// A whole number.
    Integer,
    /// What the machine of a stage must have.
    Need,
    /// The network access of a stage's commands.
    Network,
    /// The id of a declared node.
    NodeName,
    /// A decimal number.
    Number,
    /// The status of a stage's outcome.
    Outcome,
    /// One path of the workspace.
    Path,
    /// Paths of the workspace.
    Paths,
    /// A preset for retries.
    Policy,
    /// A shape of Graphviz.
    Shape,
    /// Rules with settings for models.
    Stylesheet,
    /// Any text.
    Text,
}

impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Amount => "amount",
            Self::Boolean => "boolean",
            Self::Commands => "commands",
            Self::Condition => "condition",
            Self::Duration => "duration",
            Self::Effort => "effort",
            Self::Fidelity => "fidelity",
            Self::Integer => "integer",
            Self::Need => "need",
            Self::Network => "network",
            Self::NodeName => "node",
            Self::Number => "number",
            Self::Outcome => "outcome",
            Self::Path => "path",
            Self::Paths => "paths",
            Self::Policy => "policy",
            Self::Shape => "shape",
            Self::Stylesheet => "stylesheet",
            Self::Text => "text",
        })
    }
}

/// Who defines an attribute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinedBy {
    /// This section of the Attractor specification.
    Spec(&'static str),
    /// This section of the specification of the coding agent's loop.
    CodingAgentLoop(&'static str),
    /// Other engines for Attractor pipelines.
    OtherEngines,
    /// This runtime.
    Glovebox,
}

impl fmt::Display for DefinedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Spec(section) => write!(f, "spec {section}"),
            Self::CodingAgentLoop(section) => write!(f, "coding-agent-loop {section}"),
            Self::OtherEngines => f.write_str("other engines"),
            Self::Glovebox => f.write_str("glovebox"),
        }
    }
}

/// Returns the attribute with this key. `None` if the table does not contain the key.
pub fn known(key: Key<'_>) -> Option<&'static KnownAttribute> {
    ATTRIBUTES.iter().find(|known| known.key == key)
}

/// Key prefixes that are reserved for known attributes. A run refuses a key with one of these prefixes, unless the key
/// is in the table and is enforced.
pub const REFUSED_NAMESPACES: &[&str] =
    &["codex.", "agent.", "verification.", "tool_hooks.", "human.", "manager.", "stack."];

/// Returns what to use instead of an attribute that this version does not enforce. `None` for an enforced attribute,
/// and for an unknown key without a reserved prefix, which may belong to a plugin.
pub fn instead_of(key: Key<'_>) -> Option<&'static str> {
    match known(key) {
        Some(known) => known.instead,
        None => REFUSED_NAMESPACES
            .iter()
            .any(|space| key.as_str().starts_with(space))
            .then_some("remove it: Glovebox does not read it"),
    }
}

/// Prefixes of keys that are known without a row in the table, because other modules read them.
pub const NAMESPACES: &[&str] =
    &["limits.", "test.", "codex.", "agent.", "verification.", "tool_hooks.", "human.", "manager.", "stack.", "env_"];

/// Keys that only programs that draw the graph use.
pub const DRAWING: &[&str] = &[
    "URL",
    "bgcolor",
    "center",
    "clusterrank",
    "color",
    "colorscheme",
    "comment",
    "compound",
    "concentrate",
    "constraint",
    "dir",
    "dpi",
    "fillcolor",
    "fixedsize",
    "fontcolor",
    "fontname",
    "fontsize",
    "group",
    "headlabel",
    "headport",
    "height",
    "href",
    "image",
    "labeljust",
    "labelloc",
    "landscape",
    "layout",
    "len",
    "lhead",
    "ltail",
    "margin",
    "minlen",
    "newrank",
    "nodesep",
    "nojustify",
    "ordering",
    "orientation",
    "outputorder",
    "pad",
    "penwidth",
    "peripheries",
    "pos",
    "rank",
    "rankdir",
    "ranksep",
    "ratio",
    "regular",
    "rotate",
    "sides",
    "size",
    "splines",
    "style",
    "tailport",
    "taillabel",
    "tooltip",
    "width",
    "xlabel",
    "arrowhead",
    "arrowsize",
    "arrowtail",
    "class",
    "id",
];

/// Returns true if the key has an effect on this kind of element, or if it has a known prefix and is not similar to a known key.
pub fn is_known(key: Key<'_>, carrier: Carrier) -> bool {
    let is_drawing = DRAWING.contains(&key.as_str());
    match known(key) {
        Some(known) => known.on.contains(&carrier) || is_drawing,
        None => {
            (NAMESPACES.iter().any(|space| key.as_str().starts_with(space)) && guard_meant(key).is_none()) || is_drawing
        }
    }
}

/// Returns true if Glovebox itself reads an attribute of nodes with this key, so that no plugin can declare it as its own.
pub fn is_reserved(key: Key<'_>) -> bool {
    let has_namespace = NAMESPACES.iter().any(|space| key.as_str().starts_with(space));
    known(key).is_some() || is_known(key, Carrier::Node) || has_namespace
}

/// If a key with a known prefix is probably a misspelling, returns the key that is meant. A misspelt guardrail would
/// protect nothing.
pub fn guard_meant(key: Key<'_>) -> Option<Key<'static>> {
    let (space, word) = key.as_str().split_once('.').filter(|(space, _)| *space != "limits")?;
    let own_word = |known: &KnownAttribute| known.key.as_str().strip_prefix(space)?.strip_prefix('.');
    let guards = || ATTRIBUTES.iter().filter_map(|known| Some((known.key, own_word(known)?)));
    let meant = nearest(word, guards().map(|(_, word)| word))?;
    guards().find(|(_, word)| *word == meant).map(|(known, _)| known).filter(|known| *known != key)
}
