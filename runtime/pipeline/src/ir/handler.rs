//! The behaviour of a node, with the names and shapes of built-in handlers.

use super::Text;
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
pub(crate) const CHILD_EXIT: &str = "stack.child_exit";

/// The shape of a fan-in, also where `type` names the component that judges.
pub(crate) const FAN_IN_SHAPE: &str = "tripleoctagon";

/// Known handler types, including those that this version does not execute.
pub(crate) const TYPES: &[&str] = &[
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

/// The behaviour of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Handler {
    /// The entry point; does nothing.
    Start,
    /// An exit; the engine checks the goal gates there.
    Exit,
    /// An exit of a child pipeline: the engine checks the child's goal gates there, and its branch ends.
    ChildExit,
    /// Passes the previous outcome through and lets the edges decide.
    Conditional,
    /// Begins a branch for each edge (spec §4.8).
    Parallel,
    /// Joins the branches of a parallel node and takes the best (spec §4.9). It compares their outcomes, or the named component judges them.
    FanIn(Option<Text>),
    /// Asks a person; each outgoing edge is a choice.
    Human,
    /// A component does the work: `codergen`, `tool`, `verify`, or a plugin's `ns.name`.
    Component(Text),
    /// A handler of the specification that this version does not execute: `stack.manager_loop`, ….
    Unavailable(Text),
}

impl Handler {
    /// The handler type as written in a pipeline.
    pub fn name(&self) -> &str {
        match self {
            Handler::Start => "start",
            Handler::Exit => "exit",
            Handler::ChildExit => CHILD_EXIT,
            Handler::Conditional => "conditional",
            Handler::Parallel => "parallel",
            Handler::FanIn(None) => "parallel.fan_in",
            Handler::Human => "wait.human",
            Handler::Component(name) | Handler::Unavailable(name) | Handler::FanIn(Some(name)) => name,
        }
    }

    /// The component that does the work of the node; none where the engine itself does it.
    pub fn component(&self) -> Option<&Text> {
        match self {
            Handler::Component(name) | Handler::FanIn(Some(name)) => Some(name),
            _ => None,
        }
    }

    /// True for a handler whose component may ask a model: an agent, or a plugin, whose grants decide.
    pub fn may_ask_model(&self) -> bool {
        let kind = self.component().map(|name| HandlerKind::from_name(name));
        matches!(kind, Some(HandlerKind::Codergen | HandlerKind::Plugin))
    }

    /// True for a node that joins branches.
    pub fn is_fan_in(&self) -> bool {
        matches!(self, Handler::FanIn(_))
    }

    /// Bounds and retries without effect on a node of this handler, because it makes no attempt.
    pub fn ignored_bounds(&self) -> &'static [Key<'static>] {
        match self {
            Handler::Component(_) | Handler::FanIn(Some(_)) | Handler::Unavailable(_) => &[],
            Handler::Parallel | Handler::FanIn(None) => &[key::MAX_RETRIES, key::RETRY_POLICY, key::MAX_WALL_TIME],
            Handler::Exit => &[key::MAX_WALL_TIME, key::MAX_STEPS],
            _ => &[key::MAX_WALL_TIME],
        }
    }

    /// The kind of the handler.
    pub fn kind(&self) -> HandlerKind {
        HandlerKind::from_name(self.name())
    }
}

/// The role of a stage in a run (decision who-has-hold-outs).
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

/// The kind of a handler. Only this type knows the names of built-in handlers.
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
    pub fn from_name(name: &str) -> Self {
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

    /// True for a verifier that judges the changes of stages instead of the files.
    pub fn judges_changes(self) -> bool {
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
