//! The handler of a node (spec §2.8): from `type`, then from a shape on the node, then from its id, then from the default shape.

use crate::ir::{Handler, NodeId};
use crate::key::{self, Key};

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

/// The type of a child pipeline's exit where its stages are part of another pipeline.
pub const CHILD_EXIT: &str = "stack.child_exit";

/// The shape of a fan-in, also where `type` names the component that judges.
const FAN_IN_SHAPE: &str = "tripleoctagon";

/// Known handler types, including those that this version does not execute.
pub const TYPES: &[&str] = &[
    "start",
    "exit",
    "conditional",
    "codergen",
    "tool",
    "verify",
    "diff-limits",
    "json-schema",
    "junit",
    "tree-assert",
    "parallel",
    "parallel.fan_in",
    "wait.human",
    "stack.manager_loop",
    "subpipeline",
    "verification",
];

/// The part a stage has in a run (decision who-has-hold-outs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Role {
    /// Verifiers test its work. It must not see their hold-outs.
    #[default]
    Builder,
    /// It verifies the work of builders and may have hold-outs in reach.
    Verifier,
}

impl Role {
    /// The word in `glovebox.toml` and in plans.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Builder => "builder",
            Self::Verifier => "verifier",
        }
    }
}

/// What a handler is. This is the one place that knows the names of built-in handlers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandlerKind {
    /// Begins the run.
    Start,
    /// Ends the run.
    Exit,
    /// Only routes.
    Conditional,
    /// Runs an agent on a prompt.
    Codergen,
    /// Runs the author's command.
    Tool,
    /// Runs the author's command as a check.
    Verify,
    /// Bounds what stages changed.
    DiffLimits,
    /// Checks a JSON file against a schema.
    JsonSchema,
    /// Checks a test report, which its command may write.
    Junit,
    /// Checks which files exist and what they contain.
    TreeAssert,
    /// Runs branches.
    Parallel,
    /// Joins branches.
    FanIn,
    /// Asks a person.
    Human,
    /// Runs a child pipeline and supervises it.
    Manager,
    /// Runs a child pipeline.
    Subpipeline,
    /// Ends a child pipeline.
    ChildExit,
    /// Runs a model's plan of checks.
    Verification,
    /// A third-party component.
    Plugin,
}

impl HandlerKind {
    /// The kind of a handler type.
    pub fn of(name: &str) -> Self {
        match name {
            "start" => Self::Start,
            "exit" => Self::Exit,
            "conditional" => Self::Conditional,
            "codergen" => Self::Codergen,
            "tool" => Self::Tool,
            "verify" => Self::Verify,
            "diff-limits" => Self::DiffLimits,
            "json-schema" => Self::JsonSchema,
            "junit" => Self::Junit,
            "tree-assert" => Self::TreeAssert,
            "parallel" => Self::Parallel,
            "parallel.fan_in" => Self::FanIn,
            "wait.human" => Self::Human,
            "stack.manager_loop" => Self::Manager,
            "subpipeline" => Self::Subpipeline,
            CHILD_EXIT => Self::ChildExit,
            "verification" => Self::Verification,
            _ => Self::Plugin,
        }
    }

    /// True for a component that comes with the binary.
    pub fn is_first_party(self) -> bool {
        self == Self::Codergen || self.role() == Some(Role::Verifier)
    }

    /// True for a verifier that runs no command.
    pub fn only_reads(self) -> bool {
        matches!(self, Self::DiffLimits | Self::JsonSchema | Self::TreeAssert)
    }

    /// True for a verifier that judges what was changed, and not the files as they are.
    pub fn is_told_changes(self) -> bool {
        self == Self::DiffLimits
    }

    /// The role of its stages, unless the operator gives a plugin another one. None when no component executes it.
    pub fn role(self) -> Option<Role> {
        match self {
            Self::Tool | Self::Verify | Self::Verification | Self::Junit => Some(Role::Verifier),
            kind if kind.only_reads() => Some(Role::Verifier),
            Self::Codergen | Self::Plugin => Some(Role::Builder),
            _ => None,
        }
    }

    /// The attribute with the prefixes of the commands that others may choose: an agent, or a model's plan.
    pub fn allow_list(self) -> Key<'static> {
        match self {
            Self::Verification => key::VERIFICATION_ALLOWED_COMMANDS,
            _ => key::ALLOWED_COMMANDS,
        }
    }

    /// The attribute with the author's command; none for a handler that takes no command.
    pub fn command(self) -> Option<Key<'static>> {
        match self {
            Self::Tool => Some(key::TOOL_COMMAND),
            Self::Verify | Self::Junit => Some(key::COMMAND),
            _ => None,
        }
    }
}

/// The handler with this type name.
pub(super) fn of_type(name: &str) -> Handler {
    match HandlerKind::of(name) {
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

/// What joins branches at a node of this shape: the component that a prompt or a `type` names judges them.
pub(super) fn judged(handler: Handler, shape: &str, has_prompt: bool) -> Handler {
    match handler {
        Handler::FanIn(None) if has_prompt => Handler::FanIn(Some("codergen".into())),
        Handler::Component(name) if shape == FAN_IN_SHAPE && may_judge(HandlerKind::of(&name)) => {
            Handler::FanIn(Some(name))
        }
        other => other,
    }
}

fn may_judge(kind: HandlerKind) -> bool {
    matches!(kind, HandlerKind::Codergen | HandlerKind::Plugin)
}

/// The handler of a shape. An unknown shape runs as codergen, and the lint `shape_known` reports it.
pub(crate) fn of_shape(shape: &str) -> Handler {
    let found = SHAPES.iter().find(|(known, _)| *known == shape);
    of_type(found.map_or("codergen", |(_, handler)| handler))
}

/// The shape that an id implies if the node has no shape of its own.
pub(crate) fn shape_of_id(id: &NodeId) -> Option<&'static str> {
    match id.as_str() {
        "start" | "Start" => Some("Mdiamond"),
        "exit" | "Exit" | "end" | "End" | "done" | "Done" => Some("Msquare"),
        _ => None,
    }
}
