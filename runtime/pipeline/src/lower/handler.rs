//! Which handler a node has (spec §2.8): `type`, else the shape written on the node, else its id, else the shape by default.

use crate::ir::Handler;

/// Shapes and the handler type each stands for (spec appendix B, and the octagon for `verify`).
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

/// Handler types of this runtime, executed or not.
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

/// The handler of a type name.
pub(super) fn of_type(name: &str) -> Handler {
    match name {
        "start" => Handler::Start,
        "exit" => Handler::Exit,
        "conditional" => Handler::Conditional,
        _ if TYPES.contains(&name) && !FIRST_PARTY.contains(&name) => Handler::Unavailable(name.into()),
        _ => Handler::Component(name.into()),
    }
}

/// The handler of a shape; a shape without one is executed as codergen, which the lint `shape_known` says.
pub(super) fn of_shape(shape: &str) -> Handler {
    let found = SHAPES.iter().find(|(known, _)| *known == shape);
    of_type(found.map_or("codergen", |(_, handler)| handler))
}

/// The shape that an id stands for when no shape is written on the node.
pub(crate) fn shape_of_id(id: &str) -> Option<&'static str> {
    match id {
        "start" | "Start" => Some("Mdiamond"),
        "exit" | "Exit" | "end" | "End" | "done" | "Done" => Some("Msquare"),
        _ => None,
    }
}
