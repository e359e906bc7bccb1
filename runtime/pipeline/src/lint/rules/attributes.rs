//! Rules about single attributes: names and values that would be read as something else, or not at all.

use super::Rule;
use crate::diagnostic::Severity::{Info, Warning};
use crate::lint::{attributes, not_enforced, targets};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "type_known",
        severity: Warning,
        check: Some(attributes::type_known),
        summary: "`type` names a handler",
        help: "a plugin's type has a dot: `acme.review`; it is bound in `glovebox.toml`",
        why: "`type` goes over the shape (spec §2.6), so a misspelt one takes the stage away from the handler that its shape stands \
              for. A run stops before its first stage because nothing is bound to the name. Names with a dot belong to plugins and \
              are not judged here.",
        bad: r#"digraph ship {
  test [type="tol", tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
        good: r#"digraph ship {
  test [type="tool", tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
    },
    Rule {
        id: "shape_known",
        severity: Warning,
        check: Some(attributes::shape_known),
        summary: "`shape` stands for a handler",
        help: "give the node a `type`, or one of the shapes that have a handler",
        why: "The shape decides the handler (spec §2.8), and a shape without one is executed as a box. What was meant as a tool or a \
              human gate becomes a stage that asks a model.",
        bad: r#"digraph ship {
  test [label="Test", shape=paralelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
        good: r#"digraph ship {
  test [label="Test", shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> test -> exit
}"#,
    },
    Rule {
        id: "fidelity_valid",
        severity: Warning,
        check: Some(attributes::fidelity_valid),
        summary: "`fidelity` is a known mode",
        help: "modes are `full`, `truncate`, `compact`, `summary:low`, `summary:medium`, `summary:high`",
        why: "Fidelity says how much of what came before a stage's session carries over (spec §5.4 and §7.2). An unknown mode is \
              none, and the stage works with less, or with more, than it was given.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", fidelity="summary:hihg"]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", fidelity="summary:high"]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "retry_target_exists",
        severity: Warning,
        check: Some(attributes::retry_target_exists),
        summary: "`retry_target` names a declared node",
        help: "correct the name; as it stands it is ignored",
        why: "A target that does not exist counts as absent (spec §2.5 and §7.2). The fallback is taken, or the run stops at the \
              failure that the jump was written for.",
        bad: r#"digraph ship {
  graph [max_steps=20]
  plan [prompt="Plan the work", allowed_write_paths=""]
  test [shape=parallelogram, tool_command="cargo test", allowed_write_paths="", retry_target=paln]
  start; exit
  start -> plan -> test -> exit
}"#,
        good: r#"digraph ship {
  graph [max_steps=20]
  plan [prompt="Plan the work", allowed_write_paths=""]
  test [shape=parallelogram, tool_command="cargo test", allowed_write_paths="", retry_target=plan]
  start; exit
  start -> plan -> test -> exit
}"#,
    },
    Rule {
        id: "unused_retry_target",
        severity: Warning,
        check: Some(targets::unused_retry_target),
        summary: "a `retry_target` is jumped to in some case",
        help: "remove it, or the edge or attribute that goes first",
        why: "A failure follows a fail edge first, then `retry_target`, then `fallback_retry_target` (spec §3.7); the graph's targets \
              serve unmet goal gates alone (spec §3.4). A target that something always goes before shows a way that no run takes, \
              and whoever reads the file counts on it.",
        bad: r#"digraph ship {
  graph [max_steps=20]
  plan [prompt="Plan the work", allowed_write_paths=""]
  test [shape=parallelogram, tool_command="cargo test", allowed_write_paths="", retry_target=plan]
  start; exit
  start -> plan -> test
  test -> exit [condition="outcome=success"]
  test -> plan [condition="outcome=fail"]
}"#,
        good: r#"digraph ship {
  graph [max_steps=20]
  plan [prompt="Plan the work", allowed_write_paths=""]
  test [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> plan -> test
  test -> exit [condition="outcome=success"]
  test -> plan [condition="outcome=fail"]
}"#,
    },
    Rule {
        id: "goal_gate_has_retry",
        severity: Warning,
        check: Some(attributes::goal_gate_has_retry),
        summary: "a goal gate says where to go when it is unmet",
        help: "set `retry_target`, on the node or on the graph, to the stage that can mend it; without it the run fails at the exit",
        why: "Gates are checked when the run has reached an exit (spec §3.4 and §7.2, seed 1). With an unmet gate and no target the \
              run ends there as `GoalGateUnsatisfied`, with nothing tried again.",
        bad: r#"digraph ship {
  graph [max_steps=20]
  build [prompt="Build it", allowed_write_paths="src/"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths="", goal_gate=true]
  start; exit
  start -> build -> test -> exit
}"#,
        good: r#"digraph ship {
  graph [max_steps=20]
  build [prompt="Build it", allowed_write_paths="src/"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths="", goal_gate=true, retry_target=build]
  start; exit
  start -> build -> test -> exit
}"#,
    },
    Rule {
        id: "prompt_on_llm_nodes",
        severity: Warning,
        check: Some(attributes::prompt_on_llm_nodes),
        summary: "an agent stage has a prompt or a label",
        help: "set `prompt=\"…\"`; as it stands the node's name is the prompt",
        why: "The prompt falls back to the label and the label to the node's name (spec §2.6 and §7.2). A model that is sent the one \
              word `review` does something, and the stage succeeds with it.",
        bad: r#"digraph ship {
  review [allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "provider_valid",
        severity: Warning,
        check: Some(attributes::provider_valid),
        summary: "`llm_provider` is a known provider",
        help: "correct the name, or leave it out",
        why: "A provider nobody knows is found out at the first call of the stage, after the stages before it have been paid for \
              (seed 1). Left out, the provider follows from the model.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", llm_provider=antropic]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", llm_provider=anthropic]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "reasoning_effort_valid",
        severity: Warning,
        check: Some(attributes::reasoning_effort_valid),
        summary: "`reasoning_effort` is `low`, `medium` or `high`",
        help: "use one of the three",
        why: "The specification knows three words (appendix A). Any other is refused by the provider when the stage runs, or dropped \
              on the way, and the stage thinks less than it was told to.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", reasoning_effort=hihg]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", reasoning_effort=high]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "attribute_known",
        severity: Warning,
        check: Some(attributes::attribute_known),
        summary: "attributes are spelled right and stand where they are read",
        help: "correct the name; as it stands the attribute does nothing",
        why: "An attribute that nothing reads does nothing: a misspelt `allowed_write_paths` leaves the whole workspace open, a \
              `timeout` on the graph bounds no stage. This rule speaks up where a name is nearly a known one, or a known one in the \
              wrong place; `attribute_unread` remarks on the others.",
        bad: r#"digraph ship {
  review [label="Review", promt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [label="Review", prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "attribute_unread",
        severity: Info,
        check: Some(attributes::attribute_unread),
        summary: "attributes are read by somebody",
        help: "leave it where a plugin or a tool of yours reads it; nothing of glovebox does",
        why: "Unknown attributes are kept and handed to plugins, so the name may be meant for one. On a stage of ours, on an edge or \
              on the graph it changes nothing; it may also come from another system, where it did. Attributes of nodes that a \
              plugin works for, and graph attributes that prompts use as `$name`, are not remarked on.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", severity_floor=3]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [type="acme.review", severity_floor=3]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "auto_status_no_effect",
        severity: Info,
        check: Some(attributes::auto_status_no_effect),
        summary: "a stage does not rely on `auto_status`",
        help: "remove it: a handler always answers with an outcome of its own here, and no answer is a failure",
        why: "`auto_status` makes a success of a stage that wrote no status (spec appendix C). Components give an outcome or fail, so \
              there is nothing for it to stand in for; it never goes over a non-zero exit, a trap or a timeout (design §9 #14).",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", auto_status=true]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "not_enforced",
        severity: Warning,
        check: Some(not_enforced::check),
        summary: "the file asks for nothing that this version would not enforce",
        help: "remove it: `glovebox run` refuses it in this version",
        why: "A field that is read and not enforced is worse than none: its author counts on a bound or a guard that is not there. \
              `check` accepts such a file, so that it can be looked at and drawn; `run` refuses it before the first stage.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths="", "codex.dangerous_bypass"=true]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
];
