//! Rules about the routes of outcomes: outcomes without an edge, conditions that never hold, failures and unverified work that
//! end as a success, and edges that restart a run.

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};
use crate::lint::{gates, restarts, routes, unverified};

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "verify_does_not_dominate_exit",
        severity: Warning,
        check: Some(unverified::verify_does_not_dominate_exit),
        summary: "every path to an exit should pass a verification",
        help: "lead the path through a tool or verify stage, or make one a goal gate: `goal_gate=true`",
        why: "An agent's claim that its work is done is no evidence: agents have reported success over broken output. On the \
              path that the message shows, a stage may write files, no command checks the result, and the run still ends as a \
              success. These count as a verification: a tool, verify or verification stage that succeeded, a human gate, \
              `verify_command`, and any goal gate. If a file has no verification at all, `no_verification` reports it once \
              instead.",
        bad: include_str!("../../../rules/verify_does_not_dominate_exit.bad.dot"),
        good: include_str!("../../../rules/verify_does_not_dominate_exit.good.dot"),
    },
    Rule {
        id: "no_verification",
        severity: Info,
        check: Some(unverified::no_verification),
        summary: "at least one stage should check what was built",
        help: "add a tool stage that tests the result, such as `test [shape=parallelogram, tool_command=\"cargo test\"]`",
        why: "No stage in the file checks what the other stages write. A successful run then means only that the stages reported \
              success. A draft may not need more. The summary of the run names the stages whose claim nothing checked.",
        bad: include_str!("../../../rules/no_verification.bad.dot"),
        good: include_str!("../../../rules/no_verification.good.dot"),
    },
    Rule {
        id: "no_failure_route",
        severity: Warning,
        check: Some(routes::no_failure_route),
        summary: "a stage with outcome conditions should also have an edge for its failure",
        help: "add an edge with `condition=\"outcome=fail\"`, or `retry_target`",
        why: "A failed stage follows a fail edge, a `retry_target` or a plain edge into a diamond. Otherwise the run stops with \
              the stage's reason (Attractor spec §3.7). If a stage in the middle of the graph tests its outcome and leaves out \
              the failure, the author has usually forgotten it. The last stage before an exit may stop the run, because its \
              failure is the failure of the run.",
        bad: include_str!("../../../rules/no_failure_route.bad.dot"),
        good: include_str!("../../../rules/no_failure_route.good.dot"),
    },
    Rule {
        id: "all_conditional_edges",
        severity: Warning,
        check: Some(routes::all_conditional_edges),
        summary: "the conditions of a stage's edges should cover every outcome",
        help: "add an edge without a condition, or with the missing one; a run that finds no edge fails",
        why: "If no condition holds, the run fails with `no route from node`. Glovebox never falls back to the first edge. This \
              rule tries every combination of the values in the conditions, and one value that they do not name. It does not \
              check the labels of human gates, which ask again until an edge fits.",
        bad: include_str!("../../../rules/all_conditional_edges.bad.dot"),
        good: include_str!("../../../rules/all_conditional_edges.good.dot"),
    },
    Rule {
        id: "edge_to_exit_on_failure",
        severity: Warning,
        check: Some(routes::edge_to_exit_on_failure),
        summary: "a failed stage should not lead to a successful exit",
        help: "lead it to a stage that fixes the failure, or make the stage a goal gate",
        why: "A run that reaches an exit with its goal gates met is a success, whatever the last stage returned (Attractor spec \
              §3.4). So a fail edge into an exit turns a failure into a success. Without the edge, the run stops and fails with \
              the stage's reason. With a goal gate, the run cannot leave through the exit.",
        bad: include_str!("../../../rules/edge_to_exit_on_failure.bad.dot"),
        good: include_str!("../../../rules/edge_to_exit_on_failure.good.dot"),
    },
    Rule {
        id: "condition_outcome",
        severity: Warning,
        check: Some(routes::condition_outcome),
        summary: "`outcome` should be compared with an existing outcome",
        help: "use `success`, `partial_success`, `retry`, `fail` or `skipped`",
        why: "Conditions compare exact text, upper and lower case included (Attractor spec §10.3). `outcome=SUCCESS` or \
              `outcome=passed` never holds, and the run never takes its edge. Use a context key or a preferred label for values \
              of your own.",
        bad: include_str!("../../../rules/condition_outcome.bad.dot"),
        good: include_str!("../../../rules/condition_outcome.good.dot"),
    },
    Rule {
        id: "condition_key",
        severity: Warning,
        check: Some(routes::condition_key),
        summary: "a condition should not misspell `outcome` or `preferred_label`",
        help: "correct it, or write `context.` before a context key",
        why: "Glovebox looks up any other bare key in the context (Attractor spec §10.4), where a missing key is empty text. So \
              a run accepts a misspelt `outcom`, and compares empty text.",
        bad: include_str!("../../../rules/condition_key.bad.dot"),
        good: include_str!("../../../rules/condition_key.good.dot"),
    },
    Rule {
        id: "retry_edge_never_taken",
        severity: Warning,
        check: Some(routes::retry_edge_never_taken),
        summary: "an edge for `outcome=retry` should leave a node that can end with it",
        help: "remove the edge, or remove `allow_partial`",
        why: "A stage that asks for a retry and has no retries left follows an edge for `retry`. With `allow_partial` its outcome \
              becomes `partial_success` first, and gates, parallel nodes and fan-ins never end with `retry`. The edge is never \
              taken, but a reader of the file expects it.",
        bad: include_str!("../../../rules/retry_edge_never_taken.bad.dot"),
        good: include_str!("../../../rules/retry_edge_never_taken.good.dot"),
    },
    Rule {
        id: "default_ignored",
        severity: Warning,
        check: Some(routes::default_ignored),
        summary: "`default=true` should be on an edge without a condition",
        help: "remove the condition or the `default`",
        why: "`default=true` chooses among edges without a condition, before weights do. A run takes an edge with a condition \
              only if the condition holds, with or without `default`.",
        bad: include_str!("../../../rules/default_ignored.bad.dot"),
        good: include_str!("../../../rules/default_ignored.good.dot"),
    },
    Rule {
        id: "human_gate",
        severity: Error,
        check: Some(gates::human_gate),
        summary: "a human gate must have choices, and its default must be one of them",
        help: "give each outgoing edge a label; `human.default_choice` names the target, key or label of one",
        why: "The choices of a human gate are its outgoing edges. Without a choice no answer is possible, and the run waits \
            forever. A default that names no choice would leave the gate unanswered after its timeout. A `yes_no` question \
            needs two choices, a `confirmation` one or two.",
        bad: include_str!("../../../rules/human_gate.bad.dot"),
        good: include_str!("../../../rules/human_gate.good.dot"),
    },
    Rule {
        id: "human_gate_keys",
        severity: Warning,
        check: Some(gates::human_gate_keys),
        summary: "the choices of a human gate should have different keys",
        help: "write a key in front of the label: `label=\"[R] Reject\"`",
        why: "The key of a choice is the text in brackets at the start of its label, or else the first letter of the label. \
            If two choices have the same key, an answer with this key is refused, and only the whole label selects one of \
            them.",
        bad: include_str!("../../../rules/human_gate_keys.bad.dot"),
        good: include_str!("../../../rules/human_gate_keys.good.dot"),
    },
];

/// Rules about edges that restart the run.
pub(super) const RESTARTS: &[Rule] = &[
    Rule {
        id: "loop_restart_in_branch",
        severity: Error,
        check: Some(restarts::in_branch),
        summary: "a branch of a parallel node must not restart the run",
        help: "put `loop_restart` on an edge after the fan-in",
        why: "A restart begins a new generation of the whole run (Attractor spec §2.6). The other branches of the parallel \
            node are still running, and no branch may end the work of the others.",
        bad: include_str!("../../../rules/loop_restart_in_branch.bad.dot"),
        good: include_str!("../../../rules/loop_restart_in_branch.good.dot"),
    },
    Rule {
        id: "loop_restart_failure_class_guard",
        severity: Warning,
        check: Some(restarts::class_guard),
        summary: "an edge that restarts the run after a failure should require a transient failure",
        help: "add `context.failure_class=transient` to the condition, and another edge for the other failures",
        why: "Only a transient failure can go away by itself, so only such a failure may restart a run. Any other failure that \
              takes this edge ends the run with the stage's reason.",
        bad: include_str!("../../../rules/loop_restart_failure_class_guard.bad.dot"),
        good: include_str!("../../../rules/loop_restart_failure_class_guard.good.dot"),
    },
];
