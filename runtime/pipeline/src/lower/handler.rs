//! Finds the handler of a node (spec §2.8). The first of these decides: `type`, the node's own shape, its id, the
//! default shape.

use crate::ir::{FAN_IN_SHAPE, Handler, HandlerKind, NodeId, SHAPES};

/// Returns the handler for this type name.
pub(super) fn of_type(name: &str) -> Handler {
    match HandlerKind::from_name(name) {
        HandlerKind::Start => Handler::Start,
        HandlerKind::Exit => Handler::Exit,
        HandlerKind::Conditional => Handler::Conditional,
        HandlerKind::Parallel => Handler::Parallel,
        HandlerKind::FanIn => Handler::FanIn(None),
        HandlerKind::Human => Handler::Human,
        HandlerKind::ChildExit => Handler::ChildExit,
        kind if kind.role().is_some() => Handler::Component(name.into()),
        _ => Handler::Unavailable(name.into()),
    }
}

/// Returns the handler of a node with this shape. A fan-in gets a component that judges the branches if the node has a
/// prompt or a `type`.
pub(super) fn judged(handler: Handler, shape: &str, has_prompt: bool) -> Handler {
    match handler {
        Handler::FanIn(None) if has_prompt => Handler::FanIn(Some("codergen".into())),
        Handler::Component(name) if shape == FAN_IN_SHAPE && may_judge(HandlerKind::from_name(&name)) => {
            Handler::FanIn(Some(name))
        }
        other => other,
    }
}

fn may_judge(kind: HandlerKind) -> bool {
    matches!(kind, HandlerKind::Codergen | HandlerKind::Plugin)
}

/// Returns the handler for a shape. An unknown shape is executed as codergen, and the lint `shape_known` reports it.
pub(crate) fn of_shape(shape: &str) -> Handler {
    let found = SHAPES.iter().find(|(known, _)| *known == shape);
    of_type(found.map_or("codergen", |(_, handler)| handler))
}

/// Returns the shape that an id implies if the node has no shape of its own. `None` for most ids.
pub(crate) fn shape_of_id(id: &NodeId) -> Option<&'static str> {
    match id.as_str() {
        "start" | "Start" => Some("Mdiamond"),
        "exit" | "Exit" | "end" | "End" | "done" | "Done" => Some("Msquare"),
        _ => None,
    }
}
