//! Rules about the structure of the graph (spec §7.2), unconnected nodes and loops.

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};
use crate::lint::structure;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "start_node",
        severity: Error,
        check: Some(structure::start_node),
        summary: "a pipeline must have exactly one start node",
        help: "declare one: `start [shape=Mdiamond]`",
        why: "A run begins at the start node (Attractor spec §7.2). Without one there is no first stage. With two, a run could \
              begin at either, and the stages after the other one would never run.",
        bad: include_str!("../../../rules/start_node.bad.dot"),
        good: include_str!("../../../rules/start_node.good.dot"),
    },
    Rule {
        id: "terminal_node",
        severity: Error,
        check: Some(structure::terminal_node),
        summary: "a pipeline must have an exit node",
        help: "declare one: `exit [shape=Msquare]`",
        why: "A run succeeds when it reaches an exit, where Glovebox checks the goal gates (Attractor spec §3.4 and §7.2). \
              Without an exit, the last stage finds no next edge and every run fails. The specification allows exactly one exit; \
              Glovebox allows several.",
        bad: include_str!("../../../rules/terminal_node.bad.dot"),
        good: include_str!("../../../rules/terminal_node.good.dot"),
    },
    Rule {
        id: "reachability",
        severity: Error,
        check: Some(structure::reachability),
        summary: "every node must be reachable from the start",
        help: "add an edge to it, or remove it",
        why: "A stage that no path leads to never runs, and nothing in the run shows that it is missing (Attractor spec §7.2). \
              Most often the file lacks an edge, or the target of an edge is misspelt. A jump to a `retry_target` counts as a \
              path.",
        bad: include_str!("../../../rules/reachability.bad.dot"),
        good: include_str!("../../../rules/reachability.good.dot"),
    },
    Rule {
        id: "edge_target_exists",
        severity: Error,
        check: Some(structure::edge_target_exists),
        summary: "an edge must connect declared nodes",
        help: "declare the node, or correct its name",
        why: "Graphviz creates a node for every name in an edge. If Glovebox did the same, a misspelt `reveiw` would run as an \
              agent stage whose prompt is its name (Attractor spec §7.2).",
        bad: include_str!("../../../rules/edge_target_exists.bad.dot"),
        good: include_str!("../../../rules/edge_target_exists.good.dot"),
    },
    Rule {
        id: "start_no_incoming",
        severity: Error,
        check: Some(structure::start_no_incoming),
        summary: "no edge may lead into the start node",
        help: "lead the edge to the first stage instead",
        why: "The start node marks the beginning and does nothing (Attractor spec §7.2). The author of such an edge means the \
              first stage. If several edges leave the start, it is not clear which stage that is.",
        bad: include_str!("../../../rules/start_no_incoming.bad.dot"),
        good: include_str!("../../../rules/start_no_incoming.good.dot"),
    },
    Rule {
        id: "exit_no_outgoing",
        severity: Error,
        check: Some(structure::exit_no_outgoing),
        summary: "no edge may leave an exit node",
        help: "remove the edge; a node called `exit`, `end` or `done` is an exit unless it has a shape, such as `shape=box`",
        why: "A run ends at an exit (Attractor spec §7.2), so nothing after the exit ever runs. Most often the node is a stage \
              with the name `done` or `end`, and Glovebox takes it for an exit because of that name.",
        bad: include_str!("../../../rules/exit_no_outgoing.bad.dot"),
        good: include_str!("../../../rules/exit_no_outgoing.good.dot"),
    },
    Rule {
        id: "orphan_node",
        severity: Warning,
        check: Some(structure::orphan_node),
        summary: "every node should be connected to the rest of the graph",
        help: "connect the nodes to the rest, or remove them",
        why: "Nodes without a connection to the start's part of the graph are left over from an edit, or the file lacks an edge. \
              This rule reports such nodes together, as one group. The rule `reachability` reports each node that never runs.",
        bad: include_str!("../../../rules/orphan_node.bad.dot"),
        good: include_str!("../../../rules/orphan_node.good.dot"),
    },
    Rule {
        id: "exit_reachable",
        severity: Warning,
        check: Some(structure::exit_reachable),
        summary: "every node should have a path to an exit",
        help: "add an edge towards an exit",
        why: "A run that reaches a stage from which no edge leads to an exit fails with `no route from node`, although its work \
              is done and paid for. A loop without an exit repeats until a limit stops it.",
        bad: include_str!("../../../rules/exit_reachable.bad.dot"),
        good: include_str!("../../../rules/exit_reachable.good.dot"),
    },
    Rule {
        id: "loop_without_bound",
        severity: Info,
        check: Some(structure::loop_without_bound),
        summary: "a graph with a loop should set a limit",
        help: "set `graph [max_steps=50]` or `graph [max_wall_time=\"2h\"]`",
        why: "A loop that cannot fix its failure repeats until a limit stops it. In one reported case a tool was missing, and \
              the loop ran 246 times in 16 hours. Without a limit in the file, the default of 200 stage executions applies, \
              which is more than most loops are worth. The cycle breaker for repeated failures does not replace a limit: it acts \
              only if the failure texts repeat.",
        bad: include_str!("../../../rules/loop_without_bound.bad.dot"),
        good: include_str!("../../../rules/loop_without_bound.good.dot"),
    },
];
