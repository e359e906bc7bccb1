//! Rules about where outcomes lead: gaps, conditions that never hold, failures and unverified work that leave as a success.

use super::Rule;
use crate::diagnostic::Severity::{Info, Warning};
use crate::lint::{routes, unverified};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "verify_does_not_dominate_exit",
        severity: Warning,
        check: Some(unverified::verify_does_not_dominate_exit),
        summary: "no way leads past the verification to an exit",
        help: "lead the way through a tool or verify stage, or make one a goal gate: `goal_gate=true`",
        why: "An agent's word that its work is done is no evidence (seed 0: three runs reported success over broken output). On the \
              way that is shown, a stage that may write is followed by no command that looked at the result and passed, and the run \
              ends as a success all the same. Tool, verify and verification stages count on their way out after a success, so do \
              human gates, `verify_command` and any goal gate (seed 1). In a file without any verification every way is such a \
              way: `no_verification` says so once.",
        bad: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> build -> test -> exit
  build -> exit [label="Nothing to do"]
}"#,
        good: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> build -> test -> exit
}"#,
    },
    Rule {
        id: "no_verification",
        severity: Info,
        check: Some(unverified::no_verification),
        summary: "some stage looks at what was built",
        help: "add a tool stage that tests the result, such as `test [shape=parallelogram, tool_command=\"cargo test\"]`",
        why: "Nothing in the file looks at what the stages write, so that a success of the run is their own word for it (seed 0, \
              seed 1). That may be meant: a draft needs no proof. The run's summary names whose word was taken.",
        bad: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/"]
  start; exit
  start -> build -> exit
}"#,
        good: r#"digraph ship {
  build [prompt="Build it", allowed_write_paths="src/"]
  test  [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> build -> test -> exit
}"#,
    },
    Rule {
        id: "no_failure_route",
        severity: Warning,
        check: Some(routes::no_failure_route),
        summary: "a stage whose edges ask for its outcome also says where a failure leads",
        help: "add an edge with `condition=\"outcome=fail\"`, or `retry_target`",
        why: "A failed stage follows a fail edge, a `retry_target` or a plain edge into a diamond; otherwise the run stops with the \
              stage's reason (spec §3.7, design §9 #2; seed 2: no exit path for failures). A stage that asks for outcomes in the \
              middle of the work and leaves this one out has usually forgotten it. The last stage before an exit may stop the run: \
              its failure is the run's.",
        bad: r#"digraph ship {
  test   [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> test
  test -> report [condition="outcome=success"]
  report -> exit
}"#,
        good: r#"digraph ship {
  test   [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> test
  test -> report [condition="outcome=success"]
  test -> report [condition="outcome=fail", label="Report the failure"]
  report -> exit
}"#,
    },
    Rule {
        id: "all_conditional_edges",
        severity: Warning,
        check: Some(routes::all_conditional_edges),
        summary: "conditions leave no outcome without an edge",
        help: "add an edge without a condition, or with the missing one; a run that finds no edge fails",
        why: "When no condition holds there is no first edge to fall back to: the run fails with `no route from node` (design §9 #4). \
              Every combination of the values that the conditions name is tried, and one that they do not name; human gates ask \
              again until an edge fits, and are not judged by their labels.",
        bad: r#"digraph ship {
  triage [prompt="Set the context key size", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> triage
  triage -> exit   [condition="context.size=small"]
  triage -> report [condition="context.size=large"]
  report -> exit
}"#,
        good: r#"digraph ship {
  triage [prompt="Set the context key size", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> triage
  triage -> exit   [condition="context.size=small"]
  triage -> report [condition="context.size!=small"]
  report -> exit
}"#,
    },
    Rule {
        id: "edge_to_exit_on_failure",
        severity: Warning,
        check: Some(routes::edge_to_exit_on_failure),
        summary: "a failed stage does not lead to a successful exit",
        help: "lead it to a stage that mends it, or make the stage a goal gate",
        why: "A run that reaches an exit with its goal gates met is a success, whatever the last stage said (spec §3.4). A fail edge \
              into an exit therefore turns a failure into a success. Without the edge the run stops and fails with the stage's \
              reason; with a goal gate the exit refuses.",
        bad: r#"digraph ship {
  test [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> test
  test -> exit [condition="outcome=success"]
  test -> exit [condition="outcome=fail"]
}"#,
        good: r#"digraph ship {
  test [shape=parallelogram, tool_command="cargo test", allowed_write_paths=""]
  start; exit
  start -> test
  test -> exit [condition="outcome=success"]
}"#,
    },
    Rule {
        id: "condition_outcome",
        severity: Warning,
        check: Some(routes::condition_outcome),
        summary: "`outcome` is compared with an outcome there is",
        help: "outcomes are `success`, `partial_success`, `retry`, `fail`, `skipped`",
        why: "Conditions compare exactly and with case (spec §10.3): `outcome=SUCCESS` or `outcome=passed` never holds, and its edge \
              is never taken. Values of your own belong in a context key or a preferred label.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review
  review -> exit [condition="outcome=sucess"]
  review -> report
  report -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review
  review -> exit [condition="outcome=success"]
  review -> report
  report -> exit
}"#,
    },
    Rule {
        id: "condition_key",
        severity: Warning,
        check: Some(routes::condition_key),
        summary: "a condition's bare key is no misspelt `outcome` or `preferred_label`",
        help: "correct it, or write `context.` before a context key",
        why: "Any other bare key is looked up in the context (spec §10.4), where a missing one is empty text. A misspelt `outcom` is \
              therefore no mistake that a run could report: it compares empty text, each time.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review
  review -> exit [condition="outcom=success"]
  review -> report
  report -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review
  review -> exit [condition="outcome=success"]
  review -> report
  report -> exit
}"#,
    },
    Rule {
        id: "default_ignored",
        severity: Warning,
        check: Some(routes::default_ignored),
        summary: "`default=true` stands on an edge without a condition",
        help: "remove the condition or the `default`",
        why: "`default=true` chooses among edges without a condition, before weights do (seed 1, design §9 #5). An edge with a \
              condition is taken when the condition holds and never otherwise, default or not.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review
  review -> report [condition="context.long=true"]
  review -> exit   [condition="context.long!=true", default=true]
  report -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review
  review -> report [condition="context.long=true"]
  review -> exit   [default=true]
  report -> exit
}"#,
    },
];
