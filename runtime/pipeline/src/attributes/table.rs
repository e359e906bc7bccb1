//! The table of attributes: one line each, and a page of it for `docs/`.

use super::Carrier::{self, Edge, Graph, Node};
use super::{DRAWING, Known, LIMITS};
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
    /// Marks what this version reads and would not enforce, with what to do instead: a run refuses it (design §9 #37).
    const fn refused(self, instead: &'static str) -> Self {
        Self { instead: Some(instead), ..self }
    }
}

/// Every attribute that means something.
pub const ATTRIBUTES: &[Known] = &[
    known("goal", G, "text", "empty", "what the pipeline is for; `$goal` in prompts", SPEC),
    known("label", GNE, "text", "the name", "what people see; on an edge also the routing key", SPEC),
    known("model_stylesheet", G, "stylesheet", "empty", "model settings by selector", SPEC),
    known("default_max_retries", G, "integer", "0", "retries for nodes that do not say", SPEC),
    known("default_max_retry", G, "integer", "0", "the older name of `default_max_retries`", SPEC),
    known("default_fidelity", G, "fidelity", "`compact`", "context fidelity for nodes that do not say", SPEC)
        .refused("remove it: every agent stage starts a fresh conversation"),
    known("retry_target", GN, "node", "none", "where to go after a failure; on the graph after an unmet gate", SPEC),
    known("fallback_retry_target", GN, "node", "none", "the second choice for that", SPEC),
    known("stack.child_dotfile", GN, "path", "none", "the child pipeline of a supervisor", SPEC)
        .refused("remove it: this version runs no child pipelines"),
    known("stack.child_workdir", GN, "path", "the workspace", "where the child pipeline works", SPEC)
        .refused("remove it: this version runs no child pipelines"),
    known("stack.child_autostart", N, "boolean", "`true`", "the supervisor starts its child", "spec §4.11")
        .refused("remove it: this version runs no child pipelines"),
    known("tool_hooks.pre", GN, "text", "none", "command before each tool call of an agent", SPEC)
        .refused("run the check as a tool or verify stage behind the agent's"),
    known("tool_hooks.post", GN, "text", "none", "command after each tool call of an agent", SPEC)
        .refused("run the check as a tool or verify stage behind the agent's"),
    known("max_steps", G, "integer", "200", "most stage executions in a run", "seed 1"),
    known("max_wall_time", G, "duration", "none", "longest wall time of a run", "glovebox"),
    known("max_budget_usd", GN, "number", "none", "most money a run may spend", "seed 1")
        .refused("bound the run by `max_turns`, `max_steps` and `max_wall_time`"),
    known("max_tokens", GN, "integer", "none", "most model tokens", "glovebox")
        .refused("bound the run by `max_turns`, `max_steps` and `max_wall_time`"),
    known("max_turns", GN, "integer", "none", "most model turns in one attempt", "seed 0"),
    known("loop_restart_signature_limit", G, "integer", "the runtime's", "equal failures that end the run", "seed 3")
        .refused("bound the loop by `max_steps`"),
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
        "`allow`: the workspace may hold copies of hold-outs, which every stage can read",
        "glovebox",
    ),
    known("shape", N, "shape", "`box`", "decides the handler unless `type` does", SPEC),
    known("type", N, "text", "by shape", "the handler, over the shape", SPEC),
    known(
        "prompt",
        N,
        "text",
        "the label",
        "the instruction of an agent stage, or `@` and the path of a file with it",
        SPEC,
    ),
    known("max_retries", N, "integer", "the graph's", "additional attempts", SPEC),
    known("retry_policy", N, "policy", "`none`", "preset of attempts and delays", "spec §3.6"),
    known("goal_gate", N, "boolean", "`false`", "must have succeeded before the pipeline may exit", SPEC),
    known("fidelity", NE, "fidelity", "the graph's", "how much context the session carries over", SPEC)
        .refused("remove it: every agent stage starts a fresh conversation"),
    known("thread_id", NE, "text", "derived", "which session is used again", SPEC)
        .refused("remove it: every agent stage starts a fresh conversation"),
    known("class", N, "text", "empty", "class names for the style sheet", SPEC),
    known("timeout", N, "duration", "none", "longest execution of one attempt", SPEC),
    known("llm_model", GN, "text", "by style sheet", "the model", SPEC),
    known("llm_provider", GN, "text", "by model", "who serves the model", SPEC),
    known("reasoning_effort", GN, "effort", "`high`", "`low`, `medium` or `high`", SPEC),
    known("auto_status", N, "boolean", "`false`", "success without a word from the handler is accepted", SPEC),
    known("allow_partial", N, "boolean", "`false`", "a partial result is accepted when retries are used up", SPEC),
    known(
        "allowed_write_paths",
        N,
        "paths",
        "the workspace; for a plugin nothing",
        "what the stage may write; nothing when empty",
        "seed 2",
    ),
    known("read_paths", N, "paths", "the workspace", "what the stage may read besides its write scope", "glovebox"),
    known("scratch", N, "paths", "none", "folders it may write that are dropped afterwards", "glovebox"),
    known("cache", N, "paths", "none", "folders it may write, kept within the run, never committed", "glovebox"),
    known(
        "cache_from",
        N,
        "text",
        "none",
        "`base`: its command fills its `cache` once, over the files that the run began with",
        "glovebox",
    ),
    known(
        "network",
        N,
        "network",
        "the operator's",
        "what its commands reach, at most what the operator grants",
        "glovebox",
    ),
    known("allowed_commands", N, "commands", "none", "commands an agent may run; `*` for a shell", "glovebox"),
    known("agent.backend", N, "text", "the runtime's", "which agent does the work", "seed 2")
        .refused("remove it: an agent stage asks the model of the run, and no codex program is started"),
    known("codex.workdir", N, "path", "the workspace", "where the stage's commands start", "seed 2"),
    known("codex.add_dirs", N, "paths", "none", "folders it reads beside its working directory", "seed 2"),
    known(
        "codex.strict_read_scope",
        N,
        "boolean",
        "`false`",
        "it sees working directory, `codex.add_dirs` and write scope only",
        "seed 2",
    ),
    known(
        "codex.block_read_paths",
        N,
        "paths",
        "the hold-outs",
        "what it does not see, in place of the hold-outs",
        "seed 2",
    ),
    known("codex.allow_read_scenarios", N, "boolean", "`false`", "it may read the hold-outs it is judged by", "seed 2"),
    known("codex.path", N, "path", "`codex`", "the agent's program", "seed 2")
        .refused("remove it: an agent stage asks the model of the run, and no codex program is started"),
    known("codex.sandbox", N, "text", "none", "the agent's own sandbox mode", "seed 2")
        .refused("remove it: `[sandbox]` in glovebox.toml confines what an agent runs"),
    known("codex.approval", N, "text", "none", "when the agent asks for approval", "seed 2")
        .refused("remove it: `allowed_commands` says what an agent may run"),
    known(
        "codex.skip_git_repo_check",
        N,
        "boolean",
        "`false`",
        "the agent works outside of a repository too",
        "seed 2",
    )
    .refused("remove it: an agent stage asks the model of the run, and no codex program is started"),
    known("codex.disable_mcp", N, "boolean", "`false`", "the agent starts no servers of its own", "seed 2")
        .refused("remove it: an agent stage asks the model of the run, and no codex program is started"),
    known("codex.model", N, "text", "`llm_model`", "the agent's model", "seed 2").refused("use `llm_model`"),
    known("codex.profile", N, "text", "none", "the agent's configuration profile", "seed 2")
        .refused("remove it: an agent stage asks the model of the run, and no codex program is started"),
    known("codex.timeout_seconds", N, "integer", "0", "longest run of the agent; 0 for no end", "seed 2")
        .refused("use `timeout`"),
    known("codex.heartbeat_seconds", N, "integer", "15", "how often the agent's life is reported", "seed 2")
        .refused("remove it: an agent stage asks the model of the run, and no codex program is started"),
    known("codex.config_overrides", N, "text", "none", "settings of the agent, separated by `;;`", "seed 2")
        .refused("remove it: an agent stage asks the model of the run, and no codex program is started"),
    known("codex.auto_approve_commands", N, "text", "none", "commands the agent need not ask for", "seed 2")
        .refused("use `allowed_commands`"),
    known("codex.auto_approve_config_key", N, "text", "none", "the setting that list goes into", "seed 2")
        .refused("remove it: an agent stage asks the model of the run, and no codex program is started"),
    known("codex.dangerous_bypass", N, "boolean", "`false`", "the agent's own sandbox is switched off", "seed 2")
        .refused("remove it: the walls of a stage cannot be taken down by a pipeline"),
    known("tool_command", N, "text", "required", "what a tool stage runs", "spec §4.10"),
    known("command", N, "text", "required", "what a verify stage runs", "seed 0"),
    known("working_dir", N, "path", "the workspace", "where a tool or verify stage's command starts", "seed 0"),
    known("env_*", N, "text", "none", "a variable of the command: `env_MODE=ci` sets `MODE`", "seed 0"),
    known("verify_command", N, "text", "none", "verification right after the stage", "seed 0")
        .refused("put a verify stage behind it: `shape=octagon, command=\"cargo test\"`"),
    known(
        "verification.allowed_commands",
        N,
        "commands",
        "required",
        "beginnings of the commands a plan may hold",
        "seed 2",
    )
    .refused("use a verify stage: `shape=octagon, command=\"cargo test\"`"),
    known("verification.workdir", N, "path", "the workspace", "where a plan's commands start", "seed 2")
        .refused("use a verify stage: `shape=octagon, command=\"cargo test\"`"),
    known(
        "verification.plan_context_key",
        N,
        "text",
        "`verification.plan`",
        "the context key that holds the plan",
        "seed 2",
    )
    .refused("use a verify stage: `shape=octagon, command=\"cargo test\"`"),
    known("scenario_feedback", GN, "text", "`summary`", "`full`: builders read hold-out output too", "glovebox"),
    known(
        "scenario_writes",
        N,
        "text",
        "`scratch`",
        "`commit`: what it writes with hold-outs in reach is committed, not dropped",
        "glovebox",
    ),
    known(
        "verify_subject",
        N,
        "text",
        "none",
        "the program under test, which `subject` starts in its own jail",
        "glovebox",
    ),
    known(
        "verify_subject_port",
        N,
        "integer",
        "none",
        "`verify_subject` runs as long as the stage; its loopback port is reachable at `127.0.0.1`",
        "glovebox",
    ),
    known("requires_tool_success", N, "boolean", "`false`", "demands the success of `required_tool_node`", "seed 2")
        .refused("let the tool stage's own edges decide: `condition=\"outcome=success\"`"),
    known("required_tool_node", N, "node", "none", "the tool stage that must have succeeded", "seed 2")
        .refused("let the tool stage's own edges decide: `condition=\"outcome=success\"`"),
    known("join_policy", N, "text", "`wait_all`", "when a join is content", "spec §4.8, seed 3")
        .refused("remove it: branches do not run in parallel in this version"),
    known("error_policy", N, "text", "`continue`", "what a failed branch means", "spec §4.8, seed 3")
        .refused("remove it: branches do not run in parallel in this version"),
    known("max_parallel", N, "integer", "4", "branches at a time", "spec §4.8")
        .refused("remove it: branches do not run in parallel in this version"),
    known("k", N, "integer", "none", "branches that `k_of_n` wants", "seed 3")
        .refused("remove it: branches do not run in parallel in this version"),
    known("quorum_fraction", N, "number", "0.5", "share of branches that `quorum` wants", "seed 3")
        .refused("remove it: branches do not run in parallel in this version"),
    known(
        "human.default_choice",
        N,
        "node",
        "none",
        "what a human gate takes when its `timeout` has passed",
        "spec §6.5",
    )
    .refused("remove it: this version asks no person during a run"),
    known("manager.poll_interval", N, "duration", "`45s`", "how often a supervisor looks", "spec §4.11")
        .refused("remove it: this version runs no child pipelines"),
    known("manager.max_cycles", N, "integer", "1000", "how often at most", "spec §4.11")
        .refused("remove it: this version runs no child pipelines"),
    known("manager.stop_condition", N, "condition", "empty", "when the supervisor is content", "spec §4.11")
        .refused("remove it: this version runs no child pipelines"),
    known("manager.actions", N, "text", "`observe,wait`", "what the supervisor does each time", "spec §4.11")
        .refused("remove it: this version runs no child pipelines"),
    known("limits.<name>", N, "amount", "`glovebox.toml`", "a limit of the stage; the names are below", "glovebox"),
    known("test.outcome", N, "outcome", "none", "without a model: how the stage ends", "seed 2"),
    known("test.outcome_sequence", N, "text", "none", "how it ends at its first, second, … execution", "seed 2"),
    known("test.preferred_next_label", N, "text", "none", "the edge label it asks for", "seed 2"),
    known("test.suggested_next_ids", N, "text", "none", "the nodes it asks for", "seed 2"),
    known("test.notes", N, "text", "none", "what it says", "seed 2"),
    known("test.verification_plan_json", N, "text", "none", "the verification plan it returns", "seed 2"),
    known("condition", E, "condition", "none", "guard of the edge", SPEC),
    known("weight", E, "integer", "0", "priority among eligible edges, higher first", SPEC),
    known("default", E, "boolean", "`false`", "taken when nothing else matched", "seed 1"),
    known("loop_restart", E, "boolean", "`false`", "begins a fresh run at the target", SPEC)
        .refused("remove it: an edge back goes on in the same run, bounded by `max_steps`"),
    known("gate_requires", N, "text", "none", "what must have passed before a gate", "elsewhere")
        .refused("lead the way to the gate through the stages that must pass, by `condition=\"outcome=success\"`"),
    known("status_file", N, "path", "none", "a file with the outcome of a stage", "elsewhere")
        .refused("remove it: a stage's outcome is its handler's answer, never a file"),
    known("verify_timeout", N, "duration", "none", "longest run of `verify_command`", "elsewhere")
        .refused("set `timeout` on a verify stage"),
    known("verify_plugin", N, "text", "none", "a plugin that verifies the stage", "elsewhere")
        .refused("put a stage of that plugin behind it: `type=\"acme.review\"`"),
    known("max_visits", GN, "integer", "none", "most visits of a node", "elsewhere")
        .refused("bound the run by `max_steps`"),
    known("stall_timeout_ms", G, "integer", "none", "longest silence of a run", "seed 3")
        .refused("set `timeout` on stages, or `max_wall_time` on the graph"),
    known(
        "loop_detection_window",
        GN,
        "integer",
        "none",
        "equal tool calls that end an agent's loop",
        "coding-agent-loop §2.10",
    )
    .refused("bound the stage by `max_turns`"),
];

/// The reference of all attributes, as Markdown.
pub fn reference() -> String {
    let mut text = String::from(
        "# Attributes of a pipeline\n\n\
         Generated from the table of attributes. *Source*: the Attractor specification (*spec A* is its appendix A), one of the \
         guides this runtime began with (*seed*), or this runtime itself. *Enforced*: an attribute that is not is refused by a run; \
         `glovebox check` warns of it and says what to do instead (`not_enforced`). An attribute that is not listed is kept for \
         plugins; `check` remarks on it, and asks when it is nearly one of these ([rules.md](rules.md#attribute_known)).\n",
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
    listed(&mut text, "Limits", "Names of `limits.<name>`; each ends in its unit, or counts.", LIMITS);
    listed(&mut text, "Drawing", "Names that speak to whoever draws the graph; nothing else reads them.", DRAWING);
    text
}

const VALUES: &str = "
## Values

| value | what it is |
|---|---|
| text, integer, number, boolean | `\"two words\"`, `-1`, `0.5`, `true` |
| duration | an integer and `ms`, `s`, `m`, `h` or `d`: `900s` |
| amount | a number; with a unit of time or of size where the limit has one: `10s`, `64MiB` |
| path, paths | relative to the workspace, without `..`; a folder ends in `/`; separated by commas: `src/,Cargo.toml` |
| commands | beginnings of commands in whole words, separated by commas: `cargo test,git status` |
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
