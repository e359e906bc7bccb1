//! The table of attributes, one row each.

mod verification;

use super::Carrier::{self, Edge, Graph, Node};
use super::DefinedBy::{self, CodingAgentLoop, Glovebox, OtherEngines, Spec};
use super::KnownAttribute;
use super::ValueKind::{self, *};
use crate::key::{self, Key};

const G: &[Carrier] = &[Graph];
const N: &[Carrier] = &[Node];
const E: &[Carrier] = &[Edge];
const GN: &[Carrier] = &[Graph, Node];
const NE: &[Carrier] = &[Node, Edge];
const GNE: &[Carrier] = &[Graph, Node, Edge];

/// Appendix A of the specification.
const SPEC: DefinedBy = Spec("A");

const fn known(
    key: Key<'static>,
    on: &'static [Carrier],
    value: ValueKind,
    default: &'static str,
    summary: &'static str,
    source: DefinedBy,
) -> KnownAttribute {
    KnownAttribute { key, on, value, default, summary, source, instead: None }
}

impl KnownAttribute {
    /// Marks an attribute that this version does not enforce, with what to use instead. A run refuses the attribute.
    const fn refused(self, instead: &'static str) -> Self {
        Self { instead: Some(instead), ..self }
    }
}

/// All known attributes.
pub const ATTRIBUTES: &[KnownAttribute] = &all::<{ GENERAL.len() + verification::ROWS.len() }>();

const fn all<const LEN: usize>() -> [KnownAttribute; LEN] {
    let (mut all, mut next) = ([GENERAL[0]; LEN], 1);
    while next < LEN {
        let of_verification = next.checked_sub(GENERAL.len());
        all[next] = if let Some(row) = of_verification { verification::ROWS[row] } else { GENERAL[next] };
        next += 1;
    }
    all
}

/// The attributes of all stages, agents, parallel nodes and human gates.
const GENERAL: &[KnownAttribute] = &[
    known(key::GOAL, G, Text, "empty", "the purpose of the pipeline; prompts use it as `$goal`", SPEC),
    known(key::LABEL, GNE, Text, "the name", "the displayed text; on an edge also the routing key", SPEC),
    known(key::MODEL_STYLESHEET, G, Stylesheet, "empty", "model settings by selector", SPEC),
    known(key::DEFAULT_MAX_RETRIES, G, Integer, "0", "retries for nodes without `max_retries`", SPEC),
    known(key::DEFAULT_MAX_RETRY, G, Integer, "0", "older name of `default_max_retries`", SPEC),
    known(key::DEFAULT_FIDELITY, G, Fidelity, "`compact`", "fidelity for nodes without `fidelity`", SPEC),
    known(
        key::RETRY_TARGET,
        GN,
        NodeName,
        "none",
        "next node after a failure; on the graph: after an unmet goal gate",
        SPEC,
    ),
    known(
        key::FALLBACK_RETRY_TARGET,
        GN,
        NodeName,
        "none",
        "used if `retry_target` is absent or names no declared node",
        SPEC,
    ),
    known(
        key::STACK_CHILD_DOTFILE,
        GN,
        Path,
        "the graph's",
        "the file of the child pipeline, relative to the folder of this file",
        SPEC,
    ),
    known(
        key::STACK_CONTEXT_IN,
        N,
        Text,
        "empty",
        "context keys that the child pipeline gets when it starts",
        Glovebox,
    ),
    known(key::STACK_CONTEXT_OUT, N, Text, "empty", "context keys that the child pipeline returns", Glovebox),
    known(
        key::STACK_CHILD,
        N,
        Path,
        "none",
        "written by Glovebox: the file of the child pipeline that this node runs",
        Glovebox,
    ),
    known(
        key::STACK_CHILD_OF,
        N,
        NodeName,
        "none",
        "written by Glovebox: the node that runs the child pipeline of this stage",
        Glovebox,
    ),
    known(key::STACK_CHILD_GOAL, N, Text, "empty", "written by Glovebox: the goal of the child pipeline", Glovebox),
    known(
        key::STACK_CHILD_MAX_STEPS,
        N,
        Integer,
        "none",
        "written by Glovebox: `max_steps` of the child pipeline",
        Glovebox,
    ),
    known(key::STACK_CHILD_WORKDIR, GN, Path, "the workspace", "working directory of the child pipeline", SPEC)
        .refused("remove it: a child pipeline works in the same workspace"),
    known(
        key::STACK_CHILD_AUTOSTART,
        N,
        Boolean,
        "`true`",
        "whether the node starts its child pipeline; must be `true`",
        Spec("§4.11"),
    ),
    known(
        key::TOOL_HOOKS_PRE,
        GN,
        Text,
        "none; a value on a node replaces the value on the graph",
        "shell command before each tool call of an agent; the call is refused unless it exits with 0",
        SPEC,
    ),
    known(
        key::TOOL_HOOKS_POST,
        GN,
        Text,
        "none; a value on a node replaces the value on the graph",
        "shell command after each tool call of an agent; its exit code has no effect",
        SPEC,
    ),
    known(
        key::MCP,
        GN,
        Text,
        "none; a value on a node replaces the value on the graph",
        "tool servers whose tools an agent may call, such as `github` or `github.get_issue`",
        Glovebox,
    ),
    known(
        key::MAX_STEPS,
        GN,
        Integer,
        "200 in a run",
        "maximum number of stage executions in a run, or of a node in it",
        Glovebox,
    ),
    known(
        key::MAX_WALL_TIME,
        GN,
        Duration,
        "none",
        "maximum wall time of a run, or of the attempts of a node in it",
        Glovebox,
    ),
    known(
        key::MAX_BUDGET_USD,
        GN,
        Number,
        "none",
        "maximum cost of the model calls of a run, or of a node in it",
        Glovebox,
    ),
    known(
        key::MAX_TOKENS,
        GN,
        Integer,
        "none",
        "maximum number of model tokens of a run, or of a node in it",
        Glovebox,
    ),
    known(key::MAX_TURNS, GN, Integer, "none", "maximum number of model turns in one attempt", Glovebox),
    known(
        key::LOOP_RESTART_SIGNATURE_LIMIT,
        G,
        Integer,
        "3",
        "number of visits of a stage that end with the same failure; the last of them ends the run",
        OtherEngines,
    ),
    known(key::MAX_RESTARTS, G, Integer, "50", "maximum number of restarts by edges with `loop_restart`", OtherEngines),
    known(
        key::LOOP_RESTART_PERSIST_KEYS,
        G,
        Text,
        "none",
        "context keys that a restart keeps, separated by commas",
        OtherEngines,
    ),
    known(key::SCENARIOS, G, Paths, "`scripts/scenarios/`", "hold-out folders that builder stages never see", Glovebox),
    known(
        key::SCENARIO_COPIES,
        G,
        Text,
        "`refuse`",
        "`allow`: the workspace may contain copies of hold-outs, which every stage can read",
        Glovebox,
    ),
    known(
        key::HOLDOUTS,
        N,
        Paths,
        "by the command",
        "hold-out folders that a verifying stage runs: `true` for all, `false` or an empty value for none",
        Glovebox,
    ),
    known(key::SHAPE, N, Shape, "`box`", "decides the handler, unless `type` is set", SPEC),
    known(key::TYPE, N, Text, "from the shape", "the handler; takes precedence over the shape", SPEC),
    known(
        key::PROMPT,
        N,
        Text,
        "the label",
        "the instruction of an agent stage, or `@path` of a file that contains it",
        SPEC,
    ),
    known(key::MAX_RETRIES, N, Integer, "from the graph", "additional attempts", SPEC),
    known(
        key::RETRY_POLICY,
        GN,
        Policy,
        "`none`",
        "preset for attempts and delays; on the graph for nodes without their own, and for transient failures",
        Spec("§3.6"),
    ),
    known(key::GOAL_GATE, N, Boolean, "`false`", "the stage must succeed before the run may exit", SPEC),
    known(
        key::FIDELITY,
        NE,
        Fidelity,
        "from the graph",
        "how much earlier context an agent stage gets; on an edge: the stage that the edge leads to",
        SPEC,
    ),
    known(
        key::THREAD_ID,
        GNE,
        Text,
        "the subgraph's class; without one, the conversation of the agent stage before it",
        "the conversation that a stage with `fidelity=full` continues",
        SPEC,
    ),
    known(key::CLASS, N, Text, "empty", "class names for the style sheet", SPEC),
    known(
        key::TIMEOUT,
        N,
        Duration,
        "none",
        "maximum duration of one attempt, of a question, or of a parallel node with its branches",
        SPEC,
    ),
    known(key::LLM_MODEL, GN, Text, "from the style sheet", "the model", SPEC),
    known(key::LLM_PROVIDER, GN, Text, "from the model", "the provider of the model", SPEC),
    known(key::REASONING_EFFORT, GN, Effort, "`high`", "`low`, `medium` or `high`", SPEC),
    known(
        key::OUTPUT_SCHEMA,
        N,
        Text,
        "none",
        "the JSON Schema of an agent's answer, or `@path` of a file that contains it",
        Glovebox,
    ),
    known(key::AUTO_STATUS, N, Boolean, "`false`", "accepts a stage without a status as a success", SPEC),
    known(key::ALLOW_PARTIAL, N, Boolean, "`false`", "accepts a partial result when no retries are left", SPEC),
    known(
        key::ALLOWED_WRITE_PATHS,
        N,
        Paths,
        "the workspace; for a plugin nothing",
        "what the stage may write; an empty value allows nothing",
        OtherEngines,
    ),
    known(key::READ_PATHS, N, Paths, "the workspace", "what the stage may read, besides its write scope", Glovebox),
    known(key::SCRATCH, N, Paths, "none", "folders that the stage may write and that are deleted after it", Glovebox),
    known(
        key::CACHE,
        N,
        Paths,
        "none",
        "folders that the stage may write; kept during the run, never committed",
        Glovebox,
    ),
    known(
        key::CACHE_FROM,
        N,
        Text,
        "none",
        "`base`: the stage's command fills its `cache` once, over the files that the run began with",
        Glovebox,
    ),
    known(
        key::NETWORK,
        N,
        Network,
        "the operator's setting",
        "what the stage's commands can reach; never more than the operator grants",
        Glovebox,
    ),
    known(key::ALLOWED_COMMANDS, N, Commands, "none", "commands that an agent may run; `*` for a shell", Glovebox),
    known(key::AGENT_BACKEND, N, Text, "built in", "`codex`, `claude`, `gemini`, `opencode`, `exec`", OtherEngines),
    known(key::AGENT_PATH, N, Path, "the program's name", "the path of the agent program", Glovebox),
    known(
        key::AGENT_COMMAND,
        N,
        Text,
        "for `exec` required",
        "the command line that starts the program of `exec`",
        Glovebox,
    ),
    known(key::CODEX_WORKDIR, N, Path, "the workspace", "folder in which the stage's commands start", OtherEngines),
    known(
        key::CODEX_ADD_DIRS,
        N,
        Paths,
        "none",
        "folders that the stage may read, besides its working directory",
        OtherEngines,
    ),
    known(
        key::CODEX_STRICT_READ_SCOPE,
        N,
        Boolean,
        "`false`",
        "the stage sees only its working directory, `codex.add_dirs` and its write scope",
        OtherEngines,
    ),
    known(
        key::CODEX_BLOCK_READ_PATHS,
        N,
        Paths,
        "the hold-outs",
        "paths that the stage does not see; replaces the default, the hold-outs",
        OtherEngines,
    ),
    known(
        key::CODEX_ALLOW_READ_SCENARIOS,
        N,
        Boolean,
        "`false`",
        "the stage may read the hold-outs that test it",
        OtherEngines,
    ),
    known(
        key::CODEX_PATH,
        N,
        Path,
        "`codex`",
        "the path of the Codex program; a relative path is resolved in the workspace",
        OtherEngines,
    ),
    known(key::CODEX_SANDBOX, N, Text, "`workspace-write`", "`read-only`: the stage writes nothing", OtherEngines),
    known(key::CODEX_APPROVAL, N, Text, "`never`", "no effect: Codex never asks for approval", OtherEngines),
    known(key::CODEX_SKIP_GIT_REPO_CHECK, N, Boolean, "`false`", "Codex works without a repository", OtherEngines),
    known(
        key::CODEX_DISABLE_MCP,
        N,
        Boolean,
        "`true`",
        "Codex starts no MCP servers; none are configured in its jail",
        OtherEngines,
    ),
    known(key::CODEX_MODEL, N, Text, "`llm_model`", "the model, instead of `llm_model`", OtherEngines),
    known(key::CODEX_PROFILE, N, Text, "none", "the agent's configuration profile", OtherEngines)
        .refused("use `codex.config_overrides`: the jail does not contain the user's configuration of Codex"),
    known(key::CODEX_TIMEOUT_SECONDS, N, Integer, "0", "maximum run time of Codex; 0 for no limit", OtherEngines),
    known(
        key::CODEX_HEARTBEAT_SECONDS,
        N,
        Integer,
        "15",
        "seconds without output until a line says that Codex still works",
        OtherEngines,
    ),
    known(key::CODEX_CONFIG_OVERRIDES, N, Text, "none", "settings of Codex, separated by `;;`", OtherEngines),
    known(key::CODEX_AUTO_APPROVE_COMMANDS, N, Text, "none", "commands without approval", OtherEngines)
        .refused("remove it: no command needs approval, because the jail confines every command"),
    known(key::CODEX_AUTO_APPROVE_CONFIG_KEY, N, Text, "none", "the setting for these commands", OtherEngines)
        .refused("remove it: no command needs approval, because the jail confines every command"),
    known(
        key::CODEX_DANGEROUS_BYPASS,
        N,
        Boolean,
        "`true`",
        "switches off Codex's own sandbox; the sandbox of Glovebox remains",
        OtherEngines,
    ),
    known(
        key::JOIN_POLICY,
        N,
        Text,
        "`wait_all`",
        "when a parallel node is complete: `wait_all`, `first_success`, `k_of_n` or `quorum`",
        Spec("§4.8"),
    ),
    known(
        key::ERROR_POLICY,
        N,
        Text,
        "`continue`",
        "what a failed branch does to its parallel node: `continue`, `fail_fast` or `ignore`",
        Spec("§4.8"),
    ),
    known(key::MAX_PARALLEL, N, Integer, "4", "maximum number of branches at a time", Spec("§4.8")),
    known(key::K, N, Integer, "1", "number of branches that must succeed for `k_of_n`", OtherEngines),
    known(key::QUORUM_FRACTION, N, Number, "0.5", "share of branches that must succeed for `quorum`", OtherEngines),
    known(
        key::MERGE,
        N,
        Text,
        "`best`",
        "whose changes a fan-in takes: `best` branch, or `all` that succeeded",
        Glovebox,
    ),
    known(
        key::HUMAN_DEFAULT_CHOICE,
        N,
        Text,
        "none",
        "answer of a human gate after its `timeout`, or when no person can answer: a target, key or label",
        Spec("§6.5"),
    ),
    known(
        key::HUMAN_TYPE,
        N,
        Text,
        "`multiple_choice`",
        "question of a human gate: `multiple_choice`, `yes_no`, `freeform` or `confirmation`",
        Spec("§6.2"),
    ),
    known(key::HUMAN_TIMEOUT, N, Duration, "`timeout`", "how long a human gate waits for an answer", Spec("§6.5")),
    known(key::MANAGER_POLL_INTERVAL, N, Duration, "`45s`", "time between two checks of a supervisor", Spec("§4.11")),
    known(key::MANAGER_MAX_CYCLES, N, Integer, "1000", "maximum number of these checks", Spec("§4.11")),
    known(key::MANAGER_STOP_CONDITION, N, Condition, "empty", "condition that ends the supervisor", Spec("§4.11")),
    known(key::MANAGER_ACTIONS, N, Text, "`observe,wait`", "what the supervisor does at each check", Spec("§4.11")),
    known(key::LIMITS_ANY, N, Amount, "`glovebox.toml`", "a limit of the stage; the names are below", Glovebox),
    known(key::TEST_OUTCOME, N, Outcome, "none", "without a model: the outcome of the stage", OtherEngines),
    known(
        key::TEST_OUTCOME_SEQUENCE,
        N,
        Text,
        "none",
        "without a model: the outcome of the first, second, … execution",
        OtherEngines,
    ),
    known(key::TEST_PREFERRED_NEXT_LABEL, N, Text, "none", "without a model: the preferred edge label", OtherEngines),
    known(key::TEST_SUGGESTED_NEXT_IDS, N, Text, "none", "without a model: the suggested next nodes", OtherEngines),
    known(key::TEST_NOTES, N, Text, "none", "without a model: the notes of the outcome", OtherEngines),
    known(
        key::TEST_VERIFICATION_PLAN_JSON,
        N,
        Text,
        "none",
        "without a model: the verification plan that the stage returns",
        OtherEngines,
    ),
    known(key::CONDITION, E, Condition, "none", "the run takes the edge only if this holds", SPEC),
    known(key::WEIGHT, E, Integer, "0", "priority among eligible edges, higher first", SPEC),
    known(
        key::DEFAULT,
        E,
        Boolean,
        "`false`",
        "takes precedence over the weights of other edges without a condition",
        Glovebox,
    ),
    known(key::LOOP_RESTART, E, Boolean, "`false`", "begins a new generation of the run at the target", SPEC),
    known(
        key::GATE_REQUIRES,
        N,
        Text,
        "`success`",
        "`receipt`: a verifier's command must have passed in the last visit of the node",
        Glovebox,
    ),
    known(key::STATUS_FILE, N, Path, "none", "a file with the outcome of a stage", OtherEngines)
        .refused("remove it: the handler returns the outcome of a stage, never a file"),
    known(key::VERIFY_TIMEOUT, N, Duration, "`60s`", "maximum run time of the verification", OtherEngines),
    known(
        key::VERIFY_PLUGIN,
        N,
        Text,
        "none",
        "a verifier plugin that runs in the place of `verify_command`",
        Glovebox,
    ),
    known(key::MAX_VISITS, GN, Integer, "none", "maximum number of visits to a node; 0 for no limit", OtherEngines),
    known(
        key::STALL_TIMEOUT_MS,
        G,
        Integer,
        "600000",
        "maximum time without progress of any branch of a run, in milliseconds; 0 for no limit",
        OtherEngines,
    ),
    known(
        key::STALL_CHECK_INTERVAL_MS,
        G,
        Integer,
        "a tenth of `stall_timeout_ms`, at most 10000",
        "time between two looks at the progress of the branches, in milliseconds",
        OtherEngines,
    ),
    known(
        key::LOOP_DETECTION_WINDOW,
        GN,
        Integer,
        "none",
        "number of equal tool calls that ends an agent's loop",
        CodingAgentLoop("§2.10"),
    )
    .refused("limit the stage with `max_turns`"),
];
