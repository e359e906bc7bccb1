//! The attributes that mean something, in one table: what carries them, what they hold, what they are for.
//!
//! Sources: spec appendix A, and the guardrail, bound and test attributes of this runtime. A name outside the table is kept for
//! plugins; the lint `attribute_known` says when it is nearly one of these.

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
    /// What it does, one line.
    pub summary: &'static str,
}

use crate::nearest::nearest;
use Carrier::{Edge, Graph, Node};

const fn known(name: &'static str, on: &'static [Carrier], value: &'static str, summary: &'static str) -> Known {
    Known { name, on, value, summary }
}

/// Every attribute this runtime reads.
pub const ATTRIBUTES: &[Known] = &[
    known("goal", &[Graph], "text", "what the pipeline is for; `$goal` in prompts"),
    known("label", &[Graph, Node, Edge], "text", "what people see; on an edge also the routing key"),
    known("model_stylesheet", &[Graph], "stylesheet", "model settings by selector"),
    known("default_max_retries", &[Graph], "integer", "retries for nodes that do not say"),
    known("default_max_retry", &[Graph], "integer", "the older name of `default_max_retries`"),
    known("default_fidelity", &[Graph], "fidelity", "context fidelity for nodes that do not say"),
    known("retry_target", &[Graph, Node], "node", "where to go after a failure or an unmet gate"),
    known("fallback_retry_target", &[Graph, Node], "node", "the second choice for that"),
    known("stack.child_dotfile", &[Graph], "text", "the child pipeline of a supervisor"),
    known("stack.child_workdir", &[Graph], "text", "where the child pipeline works"),
    known("tool_hooks.pre", &[Graph, Node], "text", "command before each tool call of an agent"),
    known("tool_hooks.post", &[Graph, Node], "text", "command after each tool call of an agent"),
    known("max_steps", &[Graph], "integer", "most stage executions in a run"),
    known("max_wall_time", &[Graph], "duration", "longest wall time of a run"),
    known("max_budget_usd", &[Graph, Node], "number", "most money a run may spend"),
    known("max_tokens", &[Graph, Node], "integer", "most model tokens"),
    known("max_turns", &[Graph, Node], "integer", "most model turns in one attempt"),
    known("scenarios", &[Graph], "paths", "hold-out folders that builder stages never see"),
    known("shape", &[Node], "shape", "decides the handler unless `type` does"),
    known("type", &[Node], "text", "the handler, over the shape"),
    known("prompt", &[Node], "text", "the instruction of an agent stage"),
    known("max_retries", &[Node], "integer", "additional attempts"),
    known("retry_policy", &[Node], "policy", "preset of attempts and delays"),
    known("goal_gate", &[Node], "boolean", "must have succeeded before the pipeline may exit"),
    known("fidelity", &[Node, Edge], "fidelity", "how much context the session carries over"),
    known("thread_id", &[Node, Edge], "text", "which session is used again"),
    known("class", &[Node], "text", "class names for the style sheet"),
    known("timeout", &[Node], "duration", "longest execution of one attempt"),
    known("llm_model", &[Graph, Node], "text", "the model"),
    known("llm_provider", &[Graph, Node], "text", "who serves the model"),
    known("reasoning_effort", &[Graph, Node], "effort", "`low`, `medium` or `high`"),
    known("auto_status", &[Node], "boolean", "success without a word from the handler is accepted"),
    known("allow_partial", &[Node], "boolean", "a partial result is accepted when retries are used up"),
    known("allowed_write_paths", &[Node], "paths", "what the stage may write; nothing when empty"),
    known("read_paths", &[Node], "paths", "what the stage may read besides its write scope"),
    known("codex.workdir", &[Node], "path", "where the stage's commands start"),
    known("codex.add_dirs", &[Node], "paths", "folders it reads beside its working directory"),
    known(
        "codex.strict_read_scope",
        &[Node],
        "boolean",
        "it sees working directory, `codex.add_dirs` and write scope only",
    ),
    known("codex.path", &[Node], "path", "the agent's program"),
    known("scratch", &[Node], "paths", "folders it may write that are dropped afterwards"),
    known("cache", &[Node], "paths", "folders it may write that are kept within the run and never committed"),
    known("network", &[Node], "network", "what its commands reach, at most what the operator grants"),
    known("allowed_commands", &[Node], "commands", "commands an agent may run; `*` for a shell"),
    known("tool_command", &[Node], "text", "what a tool stage runs"),
    known("command", &[Node], "text", "what a verify stage runs"),
    known("verify_command", &[Node], "text", "verification right after the stage"),
    known("scenario_feedback", &[Graph, Node], "text", "how much hold-out output a builder may read"),
    known("requires_tool_success", &[Node], "boolean", "demands the success of `required_tool_node`"),
    known("required_tool_node", &[Node], "node", "the tool stage that must have succeeded"),
    known("join_policy", &[Node], "text", "when a join is content"),
    known("error_policy", &[Node], "text", "what a failed branch means"),
    known("max_parallel", &[Node], "integer", "branches at a time"),
    known("k", &[Node], "integer", "branches that `k_of_n` wants"),
    known("quorum_fraction", &[Node], "number", "share of branches that `quorum` wants"),
    known("condition", &[Edge], "condition", "guard of the edge"),
    known("weight", &[Edge], "integer", "priority among eligible edges, higher first"),
    known("default", &[Edge], "boolean", "taken when nothing else matched"),
    known("loop_restart", &[Edge], "boolean", "begins a fresh run at the target"),
];

/// Beginnings of attribute names whose rest is read elsewhere.
pub const NAMESPACES: &[&str] =
    &["limits.", "test.", "codex.", "agent.", "verification.", "tool_hooks.", "human.", "manager.", "stack."];

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

/// The guard that a name of seed 2's namespace nearly is: a misspelt one would guard nothing.
pub fn guard_meant(name: &str) -> Option<&'static str> {
    let word = name.strip_prefix("codex.")?;
    let guards = || ATTRIBUTES.iter().filter_map(|known| Some((known.name, known.name.strip_prefix("codex.")?)));
    let meant = nearest(word, guards().map(|(_, word)| word))?;
    guards().find(|(_, word)| *word == meant).map(|(name, _)| name).filter(|known| *known != name)
}
