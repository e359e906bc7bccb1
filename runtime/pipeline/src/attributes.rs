//! The attributes that mean something, in one table: what carries them, what they hold, what they are for.
//!
//! Sources: spec appendix A, and the guardrail, bound and test attributes of this runtime. A name outside the table is kept for
//! plugins; the lints `attribute_known` and `attribute_unread` say so.

mod table;

use crate::nearest::nearest;
pub use table::{ATTRIBUTES, reference};

/// What may carry an attribute.
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
    /// What may carry it.
    pub on: &'static [Carrier],
    /// What its value is: `text`, `integer`, `boolean`, `duration`, `paths`, `commands`, `node`, `condition`, …
    pub value: &'static str,
    /// What holds when nobody says: a value in backticks, or words; `required` when there is none.
    pub default: &'static str,
    /// What it does, one line.
    pub summary: &'static str,
    /// Where it comes from: the specification, a seed, or this runtime.
    pub source: &'static str,
    /// What to do instead, when this version does not enforce it and a run refuses it.
    pub instead: Option<&'static str>,
}

/// Beginnings of names of which a run refuses all that the table does not call enforced.
pub const REFUSED_NAMESPACES: &[&str] =
    &["codex.", "agent.", "verification.", "tool_hooks.", "human.", "manager.", "stack."];

/// What to do instead of an attribute that this version would not enforce; none for one that it does, and for names that no
/// known source uses, which are left to plugins.
pub fn instead_of(name: &str) -> Option<&'static str> {
    match ATTRIBUTES.iter().find(|known| known.name == name) {
        Some(known) => known.instead,
        None => REFUSED_NAMESPACES.iter().any(|space| name.starts_with(space)).then_some("remove it: nothing reads it"),
    }
}

/// Beginnings of attribute names whose rest is read elsewhere.
pub const NAMESPACES: &[&str] =
    &["limits.", "test.", "codex.", "agent.", "verification.", "tool_hooks.", "human.", "manager.", "stack.", "env_"];

/// Limits that `limits.<name>` may set, each with its unit in its name (bytes, milliseconds, else a count).
pub const LIMITS: &[&str] = &[
    "wall_ms",
    "memory_bytes",
    "table_elements",
    "instances",
    "resources",
    "hostcall_bytes",
    "output_bytes",
    "write_bytes",
    "write_entries",
    "component_bytes",
    "turns",
    "tool_rounds",
    "artifact_bytes",
    "log_lines",
    "command_ms",
    "command_output_bytes",
    "commands",
    "cpu_ms",
    "command_memory_bytes",
    "processes",
    "descriptors",
    "file_bytes",
    "tmp_bytes",
    "disk_bytes",
    "outcome_bytes",
    "refusals",
];

/// Names that speak to whoever draws the graph.
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

/// True when the name is in a table above and is read there, or is in a namespace.
pub fn is_known(name: &str, carrier: Carrier) -> bool {
    match ATTRIBUTES.iter().find(|known| known.name == name) {
        Some(known) => known.on.contains(&carrier) || DRAWING.contains(&name),
        None => {
            (NAMESPACES.iter().any(|space| name.starts_with(space)) && guard_meant(name).is_none())
                || DRAWING.contains(&name)
        }
    }
}

/// The attribute that a name in a namespace nearly is: a misspelt guard would guard nothing.
pub fn guard_meant(name: &str) -> Option<&'static str> {
    let (space, word) = name.split_once('.').filter(|(space, _)| *space != "limits")?;
    let guards =
        || ATTRIBUTES.iter().filter_map(|known| Some((known.name, known.name.strip_prefix(space)?.strip_prefix('.')?)));
    let meant = nearest(word, guards().map(|(_, word)| word))?;
    guards().find(|(_, word)| *word == meant).map(|(name, _)| name).filter(|known| *known != name)
}
