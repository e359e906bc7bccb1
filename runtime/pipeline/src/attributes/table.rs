//! The table of attributes, one entry each.

use super::Carrier::{self, Edge, Graph, Node};
use super::DefinedBy::{self, CodingAgentLoop, Glovebox, OtherEngines, Spec};
use super::Known;
use super::ValueKind::{self, *};
use crate::key::{self, Key};

const G: &[Carrier] = &[Graph];
const N: &[Carrier] = &[Node];
const E: &[Carrier] = &[Edge];
const GN: &[Carrier] = &[Graph, Node];
const NE: &[Carrier] = &[Node, Edge];
const GNE: &[Carrier] = &[Graph, Node, Edge];

/// The specification's appendix A.
const SPEC: DefinedBy = Spec("A");

const fn known(
    key: Key<'static>,
    on: &'static [Carrier],
    value: ValueKind,
    default: &'static str,
    summary: &'static str,
    source: DefinedBy,
) -> Known {
    Known { key, on, value, default, summary, source, instead: None }
}

impl Known {
    /// Marks an attribute that this version does not enforce, with what to do instead. A run refuses it.
    const fn refused(self, instead: &'static str) -> Self {
        Self { instead: Some(instead), ..self }
    }
}

/// Every known attribute.
pub const ATTRIBUTES: &[Known] = &[
    known(key::GOAL, G, Text, "empty", "the purpose of the pipeline; prompts use it as `$goal`", SPEC),
    known(key::LABEL, GNE, Text, "the name", "the displayed text; on an edge also the routing key", SPEC),
    known(key::MODEL_STYLESHEET, G, Stylesheet, "empty", "model settings by selector", SPEC),
    known(key::DEFAULT_MAX_RETRIES, G, Integer, "0", "retries for nodes without `max_retries`", SPEC),
    known(key::DEFAULT_MAX_RETRY, G, Integer, "0", "older name of `default_max_retries`", SPEC),
    known(key::DEFAULT_FIDELITY, G, Fidelity, "`compact`", "fidelity for nodes without `fidelity`", SPEC)
        .refused("remove it: every agent stage starts a fresh conversation"),
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
    known(key::STACK_CHILD_DOTFILE, GN, Path, "none", "the child pipeline of a supervisor", SPEC)
        .refused("remove it: this version does not run child pipelines"),
    known(key::STACK_CHILD_WORKDIR, GN, Path, "the workspace", "working directory of the child pipeline", SPEC)
        .refused("remove it: this version does not run child pipelines"),
    known(key::STACK_CHILD_AUTOSTART, N, Boolean, "`true`", "whether the supervisor starts its child", Spec("§4.11"))
        .refused("remove it: this version does not run child pipelines"),
    known(key::TOOL_HOOKS_PRE, GN, Text, "none", "command to run before each tool call of an agent", SPEC)
        .refused("run the check in a tool or verify stage after the agent's stage"),
    known(key::TOOL_HOOKS_POST, GN, Text, "none", "command to run after each tool call of an agent", SPEC)
        .refused("run the check in a tool or verify stage after the agent's stage"),
    known(key::MAX_STEPS, G, Integer, "200", "maximum number of stage executions in a run", Glovebox),
    known(key::MAX_WALL_TIME, G, Duration, "none", "maximum wall time of a run", Glovebox),
    known(key::MAX_BUDGET_USD, GN, Number, "none", "maximum cost of a run", Glovebox)
        .refused("limit the run with `max_turns`, `max_steps` and `max_wall_time`"),
    known(key::MAX_TOKENS, GN, Integer, "none", "maximum number of model tokens", Glovebox)
        .refused("limit the run with `max_turns`, `max_steps` and `max_wall_time`"),
    known(key::MAX_TURNS, GN, Integer, "none", "maximum number of model turns in one attempt", Glovebox),
    known(
        key::LOOP_RESTART_SIGNATURE_LIMIT,
        G,
        Integer,
        "set by the engine",
        "number of equal failures that ends the run",
        OtherEngines,
    )
    .refused("limit the loop with `max_steps`"),
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
        "hold-out folders that a tool or verify stage runs; an empty value hides all of them",
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
    known(key::RETRY_POLICY, N, Policy, "`none`", "preset for attempts and delays", Spec("§3.6")),
    known(key::GOAL_GATE, N, Boolean, "`false`", "the stage must succeed before the run may exit", SPEC),
    known(key::FIDELITY, NE, Fidelity, "from the graph", "how much earlier context the session gets", SPEC)
        .refused("remove it: every agent stage starts a fresh conversation"),
    known(key::THREAD_ID, NE, Text, "derived", "which session the stage continues", SPEC)
        .refused("remove it: every agent stage starts a fresh conversation"),
    known(key::CLASS, N, Text, "empty", "class names for the style sheet", SPEC),
    known(key::TIMEOUT, N, Duration, "none", "maximum duration of one attempt", SPEC),
    known(key::LLM_MODEL, GN, Text, "from the style sheet", "the model", SPEC),
    known(key::LLM_PROVIDER, GN, Text, "from the model", "the provider of the model", SPEC),
    known(key::REASONING_EFFORT, GN, Effort, "`high`", "`low`, `medium` or `high`", SPEC),
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
    known(key::AGENT_BACKEND, N, Text, "set by the engine", "the agent program that does the work", OtherEngines)
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
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
        "what the stage does not see, instead of the hold-outs",
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
    known(key::CODEX_PATH, N, Path, "`codex`", "the agent's program", OtherEngines)
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known(key::CODEX_SANDBOX, N, Text, "none", "the agent's own sandbox mode", OtherEngines)
        .refused("remove it: `[sandbox]` in glovebox.toml confines what an agent runs"),
    known(key::CODEX_APPROVAL, N, Text, "none", "when the agent asks for approval", OtherEngines)
        .refused("remove it: `allowed_commands` says what an agent may run"),
    known(
        key::CODEX_SKIP_GIT_REPO_CHECK,
        N,
        Boolean,
        "`false`",
        "the agent also works outside a repository",
        OtherEngines,
    )
    .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known(key::CODEX_DISABLE_MCP, N, Boolean, "`false`", "the agent starts no MCP servers", OtherEngines)
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known(key::CODEX_MODEL, N, Text, "`llm_model`", "the agent's model", OtherEngines).refused("use `llm_model`"),
    known(key::CODEX_PROFILE, N, Text, "none", "the agent's configuration profile", OtherEngines)
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known(key::CODEX_TIMEOUT_SECONDS, N, Integer, "0", "maximum run time of the agent; 0 for no limit", OtherEngines)
        .refused("use `timeout`"),
    known(key::CODEX_HEARTBEAT_SECONDS, N, Integer, "15", "seconds between two heartbeat reports", OtherEngines)
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known(key::CODEX_CONFIG_OVERRIDES, N, Text, "none", "settings of the agent, separated by `;;`", OtherEngines)
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known(
        key::CODEX_AUTO_APPROVE_COMMANDS,
        N,
        Text,
        "none",
        "commands that the agent runs without approval",
        OtherEngines,
    )
    .refused("use `allowed_commands`"),
    known(
        key::CODEX_AUTO_APPROVE_CONFIG_KEY,
        N,
        Text,
        "none",
        "the agent's setting that receives `codex.auto_approve_commands`",
        OtherEngines,
    )
    .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known(key::CODEX_DANGEROUS_BYPASS, N, Boolean, "`false`", "switches off the agent's own sandbox", OtherEngines)
        .refused("remove it: a pipeline cannot switch off the sandbox of a stage"),
    known(key::TOOL_COMMAND, N, Text, "required", "the command of a tool stage", Spec("§4.10")),
    known(key::COMMAND, N, Text, "required", "the command of a verify stage", OtherEngines),
    known(
        key::WORKING_DIR,
        N,
        Path,
        "the workspace",
        "folder in which the command of a tool or verify stage starts",
        OtherEngines,
    ),
    known(
        key::ENV_ANY,
        N,
        Text,
        "none",
        "an environment variable of the command: `env_MODE=ci` sets `MODE`",
        OtherEngines,
    ),
    known(key::VERIFY_COMMAND, N, Text, "none", "a verification command that runs right after the stage", OtherEngines)
        .refused("add a verify stage after it: `shape=octagon, command=\"cargo test\"`"),
    known(
        key::VERIFICATION_ALLOWED_COMMANDS,
        N,
        Commands,
        "required",
        "prefixes of the commands that a plan may contain",
        OtherEngines,
    )
    .refused("use a verify stage: `shape=octagon, command=\"cargo test\"`"),
    known(key::VERIFICATION_WORKDIR, N, Path, "the workspace", "folder in which a plan's commands start", OtherEngines)
        .refused("use a verify stage: `shape=octagon, command=\"cargo test\"`"),
    known(
        key::VERIFICATION_PLAN_CONTEXT_KEY,
        N,
        Text,
        "`verification.plan`",
        "the context key that holds the plan",
        OtherEngines,
    )
    .refused("use a verify stage: `shape=octagon, command=\"cargo test\"`"),
    known(
        key::SCENARIO_FEEDBACK,
        GN,
        Text,
        "`summary`",
        "`full`: builders also get the output of stages with hold-outs",
        Glovebox,
    ),
    known(
        key::SCENARIO_WRITES,
        N,
        Text,
        "`scratch`",
        "`commit`: commits what the stage writes with hold-outs in reach; the default drops it",
        Glovebox,
    ),
    known(
        key::VERIFY_SUBJECT,
        N,
        Text,
        "none",
        "the program under test, which `subject` starts in a sandbox of its own",
        Glovebox,
    ),
    known(
        key::VERIFY_SUBJECT_PORT,
        N,
        Integer,
        "none",
        "port of `verify_subject`, which then runs as long as the stage; reachable at `127.0.0.1`",
        Glovebox,
    ),
    known(
        key::REQUIRES_TOOL_SUCCESS,
        N,
        Boolean,
        "`false`",
        "requires the success of `required_tool_node`",
        OtherEngines,
    )
    .refused("put a condition on the tool stage's edges: `condition=\"outcome=success\"`"),
    known(key::REQUIRED_TOOL_NODE, N, NodeName, "none", "the tool stage that must succeed", OtherEngines)
        .refused("put a condition on the tool stage's edges: `condition=\"outcome=success\"`"),
    known(key::JOIN_POLICY, N, Text, "`wait_all`", "when a join is complete", Spec("§4.8"))
        .refused("remove it: branches do not run in parallel in this version"),
    known(key::ERROR_POLICY, N, Text, "`continue`", "what happens after a branch has failed", Spec("§4.8"))
        .refused("remove it: branches do not run in parallel in this version"),
    known(key::MAX_PARALLEL, N, Integer, "4", "maximum number of branches at a time", Spec("§4.8"))
        .refused("remove it: branches do not run in parallel in this version"),
    known(key::K, N, Integer, "none", "number of branches that `k_of_n` needs", OtherEngines)
        .refused("remove it: branches do not run in parallel in this version"),
    known(key::QUORUM_FRACTION, N, Number, "0.5", "share of branches that `quorum` needs", OtherEngines)
        .refused("remove it: branches do not run in parallel in this version"),
    known(key::HUMAN_DEFAULT_CHOICE, N, NodeName, "none", "answer of a human gate after its `timeout`", Spec("§6.5"))
        .refused("remove it: this version does not run human gates"),
    known(key::MANAGER_POLL_INTERVAL, N, Duration, "`45s`", "time between two checks of a supervisor", Spec("§4.11"))
        .refused("remove it: this version does not run child pipelines"),
    known(key::MANAGER_MAX_CYCLES, N, Integer, "1000", "maximum number of these checks", Spec("§4.11"))
        .refused("remove it: this version does not run child pipelines"),
    known(key::MANAGER_STOP_CONDITION, N, Condition, "empty", "condition that ends the supervisor", Spec("§4.11"))
        .refused("remove it: this version does not run child pipelines"),
    known(key::MANAGER_ACTIONS, N, Text, "`observe,wait`", "what the supervisor does at each check", Spec("§4.11"))
        .refused("remove it: this version does not run child pipelines"),
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
    known(key::DEFAULT, E, Boolean, "`false`", "wins over the weights of other edges without a condition", Glovebox),
    known(key::LOOP_RESTART, E, Boolean, "`false`", "starts a fresh run at the target", SPEC)
        .refused("remove it: an edge back continues the same run, limited by `max_steps`"),
    known(key::GATE_REQUIRES, N, Text, "none", "stages that must pass before a gate", OtherEngines)
        .refused("lead the path to the gate through the stages that must pass, with `condition=\"outcome=success\"`"),
    known(key::STATUS_FILE, N, Path, "none", "a file with the outcome of a stage", OtherEngines)
        .refused("remove it: the handler returns the outcome of a stage, never a file"),
    known(key::VERIFY_TIMEOUT, N, Duration, "none", "maximum run time of `verify_command`", OtherEngines)
        .refused("set `timeout` on a verify stage"),
    known(key::VERIFY_PLUGIN, N, Text, "none", "a plugin that verifies the stage", OtherEngines)
        .refused("add a stage of that plugin after it: `type=\"acme.review\"`"),
    known(key::MAX_VISITS, GN, Integer, "none", "maximum number of visits to a node; 0 for no limit", OtherEngines),
    known(key::STALL_TIMEOUT_MS, G, Integer, "none", "maximum time without an event in a run", OtherEngines)
        .refused("set `timeout` on stages, or `max_wall_time` on the graph"),
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
