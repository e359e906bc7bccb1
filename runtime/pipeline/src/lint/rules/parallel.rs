//! Rules about parallel nodes, their branches and their joins.

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};
use crate::lint::parallel;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "parallel_join",
        severity: Error,
        check: Some(parallel::join),
        summary: "the branches of a parallel node must meet in one fan-in, and only there",
        help: "let every branch lead to one node with `shape=tripleoctagon`, and continue from there",
        why: "A parallel node waits for its branches at a fan-in (Attractor spec §4.8 and §4.9). A branch that never gets \
            there cannot be joined. A branch that reaches an exit would end the run for all branches, and a branch that \
            leads back to its parallel node would start itself again.",
        bad: include_str!("../../../rules/parallel_join.bad.dot"),
        good: include_str!("../../../rules/parallel_join.good.dot"),
    },
    Rule {
        id: "parallel_join_added",
        severity: Info,
        check: None,
        summary: "the branches of a parallel node should meet in a fan-in that the file names",
        help: "write the fan-in that the message names",
        why: "Another engine of this language joins the branches of a parallel node at the nearest node to which all branches lead. Glovebox \
              accepts that: it adds a fan-in before this node, which takes the changes of all branches that succeeded \
              (`merge=all`). A fan-in of your own can take only the changes of the best branch, or ask a judge.",
        bad: include_str!("../../../rules/parallel_join_added.bad.dot"),
        good: include_str!("../../../rules/parallel_join_added.good.dot"),
    },
    Rule {
        id: "parallel_edges",
        severity: Error,
        check: Some(parallel::edges),
        summary: "an edge out of a parallel node must not have a condition",
        help: "remove the condition; a diamond in the branch can decide what the branch does",
        why: "Every edge out of a parallel node begins a branch (Attractor spec §4.8). A condition there would have no effect.",
        bad: include_str!("../../../rules/parallel_edges.bad.dot"),
        good: include_str!("../../../rules/parallel_edges.good.dot"),
    },
    Rule {
        id: "parallel_policy",
        severity: Error,
        check: Some(parallel::policy),
        summary: "the join policy of a parallel node must be one that its branches can satisfy",
        help: "set `k` to a number of branches that the parallel node has",
        why: "A parallel node with `k` above its number of branches fails in every run. An attribute that belongs to another \
            policy, or to another kind of node, has no effect. `max_retries` and `retry_policy` have no effect on a parallel \
            node or on a fan-in without a judge either, because only stages are repeated. `max_wall_time` on a node bounds its \
            attempts; gates, parallel nodes and diamonds have no attempts.",
        bad: include_str!("../../../rules/parallel_policy.bad.dot"),
        good: include_str!("../../../rules/parallel_policy.good.dot"),
    },
    Rule {
        id: "fan_in_without_parallel",
        severity: Warning,
        check: Some(parallel::lonely),
        summary: "a fan-in should join the branches of a parallel node",
        help: "put a parallel node before it: `split [shape=component]`",
        why: "A fan-in chooses among the results of branches (Attractor spec §4.9). A pipeline without a parallel node has no \
              branches, so the fan-in fails with `No parallel results to evaluate`.",
        bad: include_str!("../../../rules/fan_in_without_parallel.bad.dot"),
        good: include_str!("../../../rules/fan_in_without_parallel.good.dot"),
    },
    Rule {
        id: "parallel_writes",
        severity: Warning,
        check: Some(parallel::writes),
        summary: "branches whose changes are merged should write different paths",
        help: "give each branch a write scope of its own in `allowed_write_paths`",
        why: "A fan-in with `merge=all` takes the changes of all branches that succeeded. Where two of them changed the same \
              path in different ways, it takes neither and fails.",
        bad: include_str!("../../../rules/parallel_writes.bad.dot"),
        good: include_str!("../../../rules/parallel_writes.good.dot"),
    },
];
