//! The known attributes, in one table: where they apply, their values and their purpose.
//!
//! They come from spec appendix A, from other engines, and from this runtime (guardrails, limits, tests). Unknown names are kept for
//! plugins; the lints `attribute_known` and `attribute_unread` report them.

mod table;

use crate::nearest::nearest;
pub use table::{ATTRIBUTES, reference};

/// The kinds of elements with attributes.
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
pub struct Known {
    /// Its key.
    pub name: &'static str,
    /// The elements on which it has an effect.
    pub on: &'static [Carrier],
    /// The type of its value: `text`, `integer`, `boolean`, `duration`, `paths`, `commands`, `node`, `condition`, …
    pub value: &'static str,
    /// The default: a value in backticks, or a description; `required` if there is none.
    pub default: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Its source: a section of the specification, other engines, or this runtime.
    pub source: &'static str,
    /// What to do instead, if this version does not enforce it. A run refuses such an attribute.
    pub instead: Option<&'static str>,
}

/// Name prefixes. A run refuses every name with such a prefix that the table does not list as enforced.
pub const REFUSED_NAMESPACES: &[&str] =
    &["codex.", "agent.", "verification.", "tool_hooks.", "human.", "manager.", "stack."];

/// What to do instead of an attribute that this version does not enforce. None for an enforced attribute, and for an unknown name, which
/// may belong to a plugin.
pub fn instead_of(name: &str) -> Option<&'static str> {
    match ATTRIBUTES.iter().find(|known| known.name == name) {
        Some(known) => known.instead,
        None => REFUSED_NAMESPACES
            .iter()
            .any(|space| name.starts_with(space))
            .then_some("remove it: Glovebox does not read it"),
    }
}

/// Prefixes of attribute names that other modules read.
pub const NAMESPACES: &[&str] =
    &["limits.", "test.", "codex.", "agent.", "verification.", "tool_hooks.", "human.", "manager.", "stack.", "env_"];

/// Names for programs that draw the graph.
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

/// True if the name has an effect on this carrier, or is in a namespace.
pub fn is_known(name: &str, carrier: Carrier) -> bool {
    match ATTRIBUTES.iter().find(|known| known.name == name) {
        Some(known) => known.on.contains(&carrier) || DRAWING.contains(&name),
        None => {
            (NAMESPACES.iter().any(|space| name.starts_with(space)) && guard_meant(name).is_none())
                || DRAWING.contains(&name)
        }
    }
}

/// The attribute that a name in a namespace probably means, because a misspelt guard would guard nothing.
pub fn guard_meant(name: &str) -> Option<&'static str> {
    let (space, word) = name.split_once('.').filter(|(space, _)| *space != "limits")?;
    let guards =
        || ATTRIBUTES.iter().filter_map(|known| Some((known.name, known.name.strip_prefix(space)?.strip_prefix('.')?)));
    let meant = nearest(word, guards().map(|(_, word)| word))?;
    guards().find(|(_, word)| *word == meant).map(|(name, _)| name).filter(|known| *known != name)
}
