//! The handler of a node (spec §2.8): from `type`, then from a shape on the node, then from its id, then from the default shape.

use crate::ir::Handler;

/// Shapes with their handler types (spec appendix B, and the octagon for `verify`).
pub const SHAPES: &[(&str, &str)] = &[
    ("Mdiamond", "start"),
    ("Msquare", "exit"),
    ("box", "codergen"),
    ("hexagon", "wait.human"),
    ("diamond", "conditional"),
    ("component", "parallel"),
    ("tripleoctagon", "parallel.fan_in"),
    ("parallelogram", "tool"),
    ("house", "stack.manager_loop"),
    ("octagon", "verify"),
];

/// Known handler types, including those that this version does not execute.
pub const TYPES: &[&str] = &[
    "start",
    "exit",
    "conditional",
    "codergen",
    "tool",
    "verify",
    "parallel",
    "parallel.fan_in",
    "wait.human",
    "stack.manager_loop",
    "verification",
];

/// First-party components.
pub const FIRST_PARTY: &[&str] = &["codergen", "tool", "verify"];

/// The handler with this type name.
pub(super) fn of_type(name: &str) -> Handler {
    match name {
        "start" => Handler::Start,
        "exit" => Handler::Exit,
        "conditional" => Handler::Conditional,
        _ if TYPES.contains(&name) && !FIRST_PARTY.contains(&name) => Handler::Unavailable(name.into()),
        _ => Handler::Component(name.into()),
    }
}

/// The handler of a shape. An unknown shape runs as codergen, and the lint `shape_known` reports it.
pub(super) fn of_shape(shape: &str) -> Handler {
    let found = SHAPES.iter().find(|(known, _)| *known == shape);
    of_type(found.map_or("codergen", |(_, handler)| handler))
}

/// The shape that an id implies if the node has no shape of its own.
pub(crate) fn shape_of_id(id: &str) -> Option<&'static str> {
    match id {
        "start" | "Start" => Some("Mdiamond"),
        "exit" | "Exit" | "end" | "End" | "done" | "Done" => Some("Msquare"),
        _ => None,
    }
}
