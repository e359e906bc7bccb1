//! The behaviour of a node, and the names and shapes of built-in handlers.

use super::Text;
use crate::key::{self, Key};

/// Shapes and their handler types (spec appendix B, and the octagon for `verify`).
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

/// The handler type of a child pipeline's exit, after its stages have become part of another pipeline.
pub(crate) const CHILD_EXIT: &str = "stack.child_exit";

/// The shape of every fan-in, also of one whose `type` names the component that judges the branches.
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
    /// The start of the run. It does nothing.
    Start,
    /// An exit of the run. The engine checks the goal gates there.
    Exit,
    /// An exit of a child pipeline. The engine checks the child's goal gates there, and the child's branch ends.
    ChildExit,
    /// Keeps the previous outcome, so that the edges decide the route.
    Conditional,
    /// Begins a branch for each outgoing edge (spec §4.8).
    Parallel,
    /// Joins the branches of a parallel node and takes the best one (spec §4.9). It compares the outcomes, or the named component
    /// judges the branches.
    FanIn(Option<Text>),
    /// Asks a person to choose an outgoing edge.
    Human,
    /// A component executes the node: `codergen`, `tool`, `verify`, or a plugin's `ns.name`.
    Component(Text),
    /// A handler of the specification that this version does not execute, such as `stack.manager_loop`.
    Unavailable(Text),
}

impl Handler {
    /// Returns the handler type as written in a pipeline.
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

    /// Returns the name of the component that executes the node. `None` if the engine itself executes it.
    pub fn component(&self) -> Option<&Text> {
        match self {
            Handler::Component(name) | Handler::FanIn(Some(name)) => Some(name),
            _ => None,
        }
    }

    /// Returns true if the component of the handler may ask a model: an agent, or a plugin if its grants allow it.
    pub fn may_ask_model(&self) -> bool {
        let kind = self.component().map(|name| HandlerKind::from_name(name));
        matches!(kind, Some(HandlerKind::Codergen | HandlerKind::Plugin))
    }

    /// Returns true for a node that joins branches.
    pub fn is_fan_in(&self) -> bool {
        matches!(self, Handler::FanIn(_))
    }

    /// Returns the keys of limits and retries that have no effect on a node of this handler, because the engine itself
    /// executes the node.
    pub fn ignored_bounds(&self) -> &'static [Key<'static>] {
        match self {
            Handler::Component(_) | Handler::FanIn(Some(_)) | Handler::Unavailable(_) => &[],
            Handler::Parallel | Handler::FanIn(None) => &[key::MAX_RETRIES, key::RETRY_POLICY, key::MAX_WALL_TIME],
            Handler::Exit => &[key::MAX_WALL_TIME, key::MAX_STEPS],
            _ => &[key::MAX_WALL_TIME],
        }
    }

    /// Returns the kind of the handler.
    pub fn kind(&self) -> HandlerKind {
        HandlerKind::from_name(self.name())
    }
}

/// The role of a stage in a run (decision who-has-hold-outs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Role {
    /// The stage produces work, which verifiers test. It must not see their hold-outs.
    #[default]
    Builder,
    /// The stage verifies the work of builders, and may see hold-outs.
    Verifier,
}

impl Role {
    /// Returns the name in `glovebox.toml` and in plans.
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
    /// Only chooses an edge.
    Conditional,
    /// Runs an agent on a prompt.
    Codergen,
    /// Runs the author's command.
    Tool,
    /// Runs the author's command as a check.
    Verify,
    /// Checks the size of the changes of stages.
    DiffLimits,
    /// Checks a JSON file against a schema.
    JsonSchema,
    /// Checks a test report. Its command may write the report.
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
    /// Runs the checks that a model planned.
    Verification,
    /// A third-party component.
    Plugin,
}

impl HandlerKind {
    /// Returns the kind for a handler type.
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

    /// Returns true for a component that is part of the program `glovebox`.
    pub fn is_first_party(self) -> bool {
        self == Self::Codergen || self.role() == Some(Role::Verifier)
    }

    /// Returns true for a verifier that runs no commands.
    pub fn only_reads(self) -> bool {
        matches!(self, Self::DiffLimits | Self::JsonSchema | Self::TreeAssert)
    }

    /// Returns true for a verifier that judges the changes of stages instead of files.
    pub fn judges_changes(self) -> bool {
        self == Self::DiffLimits
    }

    /// Returns the role of a stage of this kind, which the operator can change for plugins. `None` if no component executes it.
    pub fn role(self) -> Option<Role> {
        match self {
            Self::Tool | Self::Verify | Self::Verification | Self::Junit => Some(Role::Verifier),
            kind if kind.only_reads() => Some(Role::Verifier),
            Self::Codergen | Self::Plugin => Some(Role::Builder),
            _ => None,
        }
    }

    /// Returns the key of the attribute with the prefixes of allowed commands, for commands that an agent or a model's
    /// plan chooses.
    pub fn allow_list(self) -> Key<'static> {
        match self {
            Self::Verification => key::VERIFICATION_ALLOWED_COMMANDS,
            _ => key::ALLOWED_COMMANDS,
        }
    }

    /// Returns the key of the attribute with the author's command. `None` for a handler that takes no command.
    pub fn command(self) -> Option<Key<'static>> {
        match self {
            Self::Tool => Some(key::TOOL_COMMAND),
            Self::Verify | Self::Junit => Some(key::COMMAND),
            _ => None,
        }
    }
}
