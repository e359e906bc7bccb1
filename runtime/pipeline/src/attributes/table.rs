//! The table of attributes, one entry each, and the page of it for `docs/`.

use super::Carrier::{self, Edge, Graph, Node};
use super::{DRAWING, Known};
use glovebox_record::LimitName;
use std::fmt::Write;

const G: &[Carrier] = &[Graph];
const N: &[Carrier] = &[Node];
const E: &[Carrier] = &[Edge];
const GN: &[Carrier] = &[Graph, Node];
const NE: &[Carrier] = &[Node, Edge];
const GNE: &[Carrier] = &[Graph, Node, Edge];

/// The specification's appendix A.
const SPEC: &str = "spec A";

const fn known(
    name: &'static str,
    on: &'static [Carrier],
    value: &'static str,
    default: &'static str,
    summary: &'static str,
    source: &'static str,
) -> Known {
    Known { name, on, value, default, summary, source, instead: None }
}

impl Known {
    /// Marks an attribute that this version does not enforce, with what to do instead. A run refuses it.
    const fn refused(self, instead: &'static str) -> Self {
        Self { instead: Some(instead), ..self }
    }
}

/// Every known attribute.
pub const ATTRIBUTES: &[Known] = &[
    known("goal", G, "text", "empty", "the purpose of the pipeline; prompts use it as `$goal`", SPEC),
    known("label", GNE, "text", "the name", "the displayed text; on an edge also the routing key", SPEC),
    known("model_stylesheet", G, "stylesheet", "empty", "model settings by selector", SPEC),
    known("default_max_retries", G, "integer", "0", "retries for nodes without `max_retries`", SPEC),
    known("default_max_retry", G, "integer", "0", "older name of `default_max_retries`", SPEC),
    known("default_fidelity", G, "fidelity", "`compact`", "fidelity for nodes without `fidelity`", SPEC)
        .refused("remove it: every agent stage starts a fresh conversation"),
    known(
        "retry_target",
        GN,
        "node",
        "none",
        "next node after a failure; on the graph: after an unmet goal gate",
        SPEC,
    ),
    known(
        "fallback_retry_target",
        GN,
        "node",
        "none",
        "used if `retry_target` is absent or names no declared node",
        SPEC,
    ),
    known("stack.child_dotfile", GN, "path", "none", "the child pipeline of a supervisor", SPEC)
        .refused("remove it: this version does not run child pipelines"),
    known("stack.child_workdir", GN, "path", "the workspace", "working directory of the child pipeline", SPEC)
        .refused("remove it: this version does not run child pipelines"),
    known("stack.child_autostart", N, "boolean", "`true`", "whether the supervisor starts its child", "spec §4.11")
        .refused("remove it: this version does not run child pipelines"),
    known("tool_hooks.pre", GN, "text", "none", "command to run before each tool call of an agent", SPEC)
        .refused("run the check in a tool or verify stage after the agent's stage"),
    known("tool_hooks.post", GN, "text", "none", "command to run after each tool call of an agent", SPEC)
        .refused("run the check in a tool or verify stage after the agent's stage"),
    known("max_steps", G, "integer", "200", "maximum number of stage executions in a run", "glovebox"),
    known("max_wall_time", G, "duration", "none", "maximum wall time of a run", "glovebox"),
    known("max_budget_usd", GN, "number", "none", "maximum cost of a run", "glovebox")
        .refused("limit the run with `max_turns`, `max_steps` and `max_wall_time`"),
    known("max_tokens", GN, "integer", "none", "maximum number of model tokens", "glovebox")
        .refused("limit the run with `max_turns`, `max_steps` and `max_wall_time`"),
    known("max_turns", GN, "integer", "none", "maximum number of model turns in one attempt", "glovebox"),
    known(
        "loop_restart_signature_limit",
        G,
        "integer",
        "set by the engine",
        "number of equal failures that ends the run",
        "other engines",
    )
    .refused("limit the loop with `max_steps`"),
    known(
        "scenarios",
        G,
        "paths",
        "`scripts/scenarios/`",
        "hold-out folders that builder stages never see",
        "glovebox",
    ),
    known(
        "scenario_copies",
        G,
        "text",
        "`refuse`",
        "`allow`: the workspace may contain copies of hold-outs, which every stage can read",
        "glovebox",
    ),
    known("shape", N, "shape", "`box`", "decides the handler, unless `type` is set", SPEC),
    known("type", N, "text", "from the shape", "the handler; takes precedence over the shape", SPEC),
    known(
        "prompt",
        N,
        "text",
        "the label",
        "the instruction of an agent stage, or `@path` of a file that contains it",
        SPEC,
    ),
    known("max_retries", N, "integer", "from the graph", "additional attempts", SPEC),
    known("retry_policy", N, "policy", "`none`", "preset for attempts and delays", "spec §3.6"),
    known("goal_gate", N, "boolean", "`false`", "the stage must succeed before the run may exit", SPEC),
    known("fidelity", NE, "fidelity", "from the graph", "how much earlier context the session gets", SPEC)
        .refused("remove it: every agent stage starts a fresh conversation"),
    known("thread_id", NE, "text", "derived", "which session the stage continues", SPEC)
        .refused("remove it: every agent stage starts a fresh conversation"),
    known("class", N, "text", "empty", "class names for the style sheet", SPEC),
    known("timeout", N, "duration", "none", "maximum duration of one attempt", SPEC),
    known("llm_model", GN, "text", "from the style sheet", "the model", SPEC),
    known("llm_provider", GN, "text", "from the model", "the provider of the model", SPEC),
    known("reasoning_effort", GN, "effort", "`high`", "`low`, `medium` or `high`", SPEC),
    known("auto_status", N, "boolean", "`false`", "accepts a stage without a status as a success", SPEC),
    known("allow_partial", N, "boolean", "`false`", "accepts a partial result when no retries are left", SPEC),
    known(
        "allowed_write_paths",
        N,
        "paths",
        "the workspace; for a plugin nothing",
        "what the stage may write; an empty value allows nothing",
        "other engines",
    ),
    known("read_paths", N, "paths", "the workspace", "what the stage may read, besides its write scope", "glovebox"),
    known("scratch", N, "paths", "none", "folders that the stage may write and that are deleted after it", "glovebox"),
    known(
        "cache",
        N,
        "paths",
        "none",
        "folders that the stage may write; kept during the run, never committed",
        "glovebox",
    ),
    known(
        "cache_from",
        N,
        "text",
        "none",
        "`base`: the stage's command fills its `cache` once, over the files that the run began with",
        "glovebox",
    ),
    known(
        "network",
        N,
        "network",
        "the operator's setting",
        "what the stage's commands can reach; never more than the operator grants",
        "glovebox",
    ),
    known("allowed_commands", N, "commands", "none", "commands that an agent may run; `*` for a shell", "glovebox"),
    known("agent.backend", N, "text", "set by the engine", "the agent program that does the work", "other engines")
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known("codex.workdir", N, "path", "the workspace", "folder in which the stage's commands start", "other engines"),
    known(
        "codex.add_dirs",
        N,
        "paths",
        "none",
        "folders that the stage may read, besides its working directory",
        "other engines",
    ),
    known(
        "codex.strict_read_scope",
        N,
        "boolean",
        "`false`",
        "the stage sees only its working directory, `codex.add_dirs` and its write scope",
        "other engines",
    ),
    known(
        "codex.block_read_paths",
        N,
        "paths",
        "the hold-outs",
        "what the stage does not see, instead of the hold-outs",
        "other engines",
    ),
    known(
        "codex.allow_read_scenarios",
        N,
        "boolean",
        "`false`",
        "the stage may read the hold-outs that test it",
        "other engines",
    ),
    known("codex.path", N, "path", "`codex`", "the agent's program", "other engines")
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known("codex.sandbox", N, "text", "none", "the agent's own sandbox mode", "other engines")
        .refused("remove it: `[sandbox]` in glovebox.toml confines what an agent runs"),
    known("codex.approval", N, "text", "none", "when the agent asks for approval", "other engines")
        .refused("remove it: `allowed_commands` says what an agent may run"),
    known(
        "codex.skip_git_repo_check",
        N,
        "boolean",
        "`false`",
        "the agent also works outside a repository",
        "other engines",
    )
    .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known("codex.disable_mcp", N, "boolean", "`false`", "the agent starts no MCP servers", "other engines")
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known("codex.model", N, "text", "`llm_model`", "the agent's model", "other engines").refused("use `llm_model`"),
    known("codex.profile", N, "text", "none", "the agent's configuration profile", "other engines")
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known("codex.timeout_seconds", N, "integer", "0", "maximum run time of the agent; 0 for no limit", "other engines")
        .refused("use `timeout`"),
    known("codex.heartbeat_seconds", N, "integer", "15", "seconds between two heartbeat reports", "other engines")
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known("codex.config_overrides", N, "text", "none", "settings of the agent, separated by `;;`", "other engines")
        .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known(
        "codex.auto_approve_commands",
        N,
        "text",
        "none",
        "commands that the agent runs without approval",
        "other engines",
    )
    .refused("use `allowed_commands`"),
    known(
        "codex.auto_approve_config_key",
        N,
        "text",
        "none",
        "the agent's setting that receives `codex.auto_approve_commands`",
        "other engines",
    )
    .refused("remove it: an agent stage uses the model of the run and starts no codex program"),
    known("codex.dangerous_bypass", N, "boolean", "`false`", "switches off the agent's own sandbox", "other engines")
        .refused("remove it: a pipeline cannot switch off the sandbox of a stage"),
    known("tool_command", N, "text", "required", "the command of a tool stage", "spec §4.10"),
    known("command", N, "text", "required", "the command of a verify stage", "other engines"),
    known(
        "working_dir",
        N,
        "path",
        "the workspace",
        "folder in which the command of a tool or verify stage starts",
        "other engines",
    ),
    known(
        "env_*",
        N,
        "text",
        "none",
        "an environment variable of the command: `env_MODE=ci` sets `MODE`",
        "other engines",
    ),
    known(
        "verify_command",
        N,
        "text",
        "none",
        "a verification command that runs right after the stage",
        "other engines",
    )
    .refused("add a verify stage after it: `shape=octagon, command=\"cargo test\"`"),
    known(
        "verification.allowed_commands",
        N,
        "commands",
        "required",
        "prefixes of the commands that a plan may contain",
        "other engines",
    )
    .refused("use a verify stage: `shape=octagon, command=\"cargo test\"`"),
    known(
        "verification.workdir",
        N,
        "path",
        "the workspace",
        "folder in which a plan's commands start",
        "other engines",
    )
    .refused("use a verify stage: `shape=octagon, command=\"cargo test\"`"),
    known(
        "verification.plan_context_key",
        N,
        "text",
        "`verification.plan`",
        "the context key that holds the plan",
        "other engines",
    )
    .refused("use a verify stage: `shape=octagon, command=\"cargo test\"`"),
    known(
        "scenario_feedback",
        GN,
        "text",
        "`summary`",
        "`full`: builders also get the output of stages with hold-outs",
        "glovebox",
    ),
    known(
        "scenario_writes",
        N,
        "text",
        "`scratch`",
        "`commit`: commits what the stage writes with hold-outs in reach; the default drops it",
        "glovebox",
    ),
    known(
        "verify_subject",
        N,
        "text",
        "none",
        "the program under test, which `subject` starts in a sandbox of its own",
        "glovebox",
    ),
    known(
        "verify_subject_port",
        N,
        "integer",
        "none",
        "port of `verify_subject`, which then runs as long as the stage; reachable at `127.0.0.1`",
        "glovebox",
    ),
    known(
        "requires_tool_success",
        N,
        "boolean",
        "`false`",
        "requires the success of `required_tool_node`",
        "other engines",
    )
    .refused("put a condition on the tool stage's edges: `condition=\"outcome=success\"`"),
    known("required_tool_node", N, "node", "none", "the tool stage that must succeed", "other engines")
        .refused("put a condition on the tool stage's edges: `condition=\"outcome=success\"`"),
    known("join_policy", N, "text", "`wait_all`", "when a join is complete", "spec §4.8")
        .refused("remove it: branches do not run in parallel in this version"),
    known("error_policy", N, "text", "`continue`", "what happens after a branch has failed", "spec §4.8")
        .refused("remove it: branches do not run in parallel in this version"),
    known("max_parallel", N, "integer", "4", "maximum number of branches at a time", "spec §4.8")
        .refused("remove it: branches do not run in parallel in this version"),
    known("k", N, "integer", "none", "number of branches that `k_of_n` needs", "other engines")
        .refused("remove it: branches do not run in parallel in this version"),
    known("quorum_fraction", N, "number", "0.5", "share of branches that `quorum` needs", "other engines")
        .refused("remove it: branches do not run in parallel in this version"),
    known("human.default_choice", N, "node", "none", "answer of a human gate after its `timeout`", "spec §6.5")
        .refused("remove it: this version does not run human gates"),
    known("manager.poll_interval", N, "duration", "`45s`", "time between two checks of a supervisor", "spec §4.11")
        .refused("remove it: this version does not run child pipelines"),
    known("manager.max_cycles", N, "integer", "1000", "maximum number of these checks", "spec §4.11")
        .refused("remove it: this version does not run child pipelines"),
    known("manager.stop_condition", N, "condition", "empty", "condition that ends the supervisor", "spec §4.11")
        .refused("remove it: this version does not run child pipelines"),
    known("manager.actions", N, "text", "`observe,wait`", "what the supervisor does at each check", "spec §4.11")
        .refused("remove it: this version does not run child pipelines"),
    known("limits.<name>", N, "amount", "`glovebox.toml`", "a limit of the stage; the names are below", "glovebox"),
    known("test.outcome", N, "outcome", "none", "without a model: the outcome of the stage", "other engines"),
    known(
        "test.outcome_sequence",
        N,
        "text",
        "none",
        "without a model: the outcome of the first, second, … execution",
        "other engines",
    ),
    known("test.preferred_next_label", N, "text", "none", "without a model: the preferred edge label", "other engines"),
    known("test.suggested_next_ids", N, "text", "none", "without a model: the suggested next nodes", "other engines"),
    known("test.notes", N, "text", "none", "without a model: the notes of the outcome", "other engines"),
    known(
        "test.verification_plan_json",
        N,
        "text",
        "none",
        "without a model: the verification plan that the stage returns",
        "other engines",
    ),
    known("condition", E, "condition", "none", "the run takes the edge only if this holds", SPEC),
    known("weight", E, "integer", "0", "priority among eligible edges, higher first", SPEC),
    known("default", E, "boolean", "`false`", "wins over the weights of other edges without a condition", "glovebox"),
    known("loop_restart", E, "boolean", "`false`", "starts a fresh run at the target", SPEC)
        .refused("remove it: an edge back continues the same run, limited by `max_steps`"),
    known("gate_requires", N, "text", "none", "stages that must pass before a gate", "other engines")
        .refused("lead the path to the gate through the stages that must pass, with `condition=\"outcome=success\"`"),
    known("status_file", N, "path", "none", "a file with the outcome of a stage", "other engines")
        .refused("remove it: the handler returns the outcome of a stage, never a file"),
    known("verify_timeout", N, "duration", "none", "maximum run time of `verify_command`", "other engines")
        .refused("set `timeout` on a verify stage"),
    known("verify_plugin", N, "text", "none", "a plugin that verifies the stage", "other engines")
        .refused("add a stage of that plugin after it: `type=\"acme.review\"`"),
    known("max_visits", GN, "integer", "none", "maximum number of visits to a node", "other engines")
        .refused("limit the run with `max_steps`"),
    known("stall_timeout_ms", G, "integer", "none", "maximum time without an event in a run", "other engines")
        .refused("set `timeout` on stages, or `max_wall_time` on the graph"),
    known(
        "loop_detection_window",
        GN,
        "integer",
        "none",
        "number of equal tool calls that ends an agent's loop",
        "coding-agent-loop §2.10",
    )
    .refused("limit the stage with `max_turns`"),
];

/// The reference of all attributes, as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Attributes of a pipeline\n\n\
         Generated from the table of attributes in the source.\n\n\
         - *Source*: *spec* is the Attractor specification, *spec A* its appendix A. *glovebox* means that this runtime defines the \
           attribute, *other engines* that other engines for Attractor pipelines use it.\n\
         - *Enforced*: `glovebox run` refuses a file with an attribute that is not enforced. `glovebox check` warns about it and \
           says what to do instead ([`not_enforced`](rules.md#not_enforced)).\n\
         - Glovebox keeps all other attributes for plugins. `glovebox check` reports such an attribute, and suggests a known name \
           that is similar ([`attribute_known`](rules.md#attribute_known)).\n",
    );
    for (carrier, title) in [(Graph, "The graph"), (Node, "Nodes"), (Edge, "Edges")] {
        write!(
            text,
            "\n## {title}\n\n| attribute | value | default | what it does | enforced | source |\n|---|---|---|---|---|---|\n"
        )
        .expect("writing to a string does not fail");
        let mut rows: Vec<&Known> = ATTRIBUTES.iter().filter(|known| known.on.contains(&carrier)).collect();
        rows.sort_by_key(|known| known.name);
        for Known { name, value, default, summary, source, instead, .. } in rows {
            let enforced = if instead.is_none() { "yes" } else { "no" };
            writeln!(text, "| `{name}` | {value} | {default} | {summary} | {enforced} | {source} |")
                .expect("writing to a string does not fail");
        }
    }
    text.push_str(VALUES);
    listed(
        &mut text,
        "Limits",
        "Names of `limits.<name>`. A name ends in its unit; a name without a unit is a count.",
        &LimitName::ALL.iter().map(|name| name.as_str()).collect::<Vec<_>>(),
    );
    listed(
        &mut text,
        "Drawing",
        "Names for programs that draw the graph. Glovebox ignores them when it runs a pipeline.",
        DRAWING,
    );
    text
}

const VALUES: &str = "
## Values

| value | what it is |
|---|---|
| text, integer, number, boolean | `\"two words\"`, `-1`, `0.5`, `true` |
| duration | an integer with the unit `ms`, `s`, `m`, `h` or `d`: `900s` |
| amount | a number; a limit in milliseconds or bytes also accepts a unit: `10s`, `64MiB` |
| path, paths | relative to the workspace, without `..`; a folder ends in `/`; separated by commas: `src/,Cargo.toml` |
| commands | prefixes of commands, in whole words, separated by commas: `cargo test,git status` |
| network | `none`, `full` or `proxy:api.example.com,*.crates.io` |
| node | the id of a declared node |
| condition | `key=value` or `key!=value`, joined by `&&` |
| outcome | `success`, `partial_success`, `retry`, `fail` or `skipped` |
| fidelity | `full`, `truncate`, `compact`, `summary:low`, `summary:medium` or `summary:high` |
| policy | `none`, `standard`, `aggressive`, `linear` or `patient` |
| stylesheet | `selector { property: value; }`, selectors `*`, `shape`, `.class` and `#id` |
| shape, effort | see `shape_known` and `reasoning_effort_valid` in [rules.md](rules.md) |
";

fn listed(text: &mut String, title: &str, about: &str, names: &[&str]) {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    write!(text, "\n## {title}\n\n{about}\n\n{}\n", names.join(", ")).expect("writing to a string does not fail");
}
