//! Rules about the graph's form: the specification's (§7.2), seed 1's orphans, and loops.

use super::Rule;
use crate::diagnostic::Severity::{Error, Info, Warning};
use crate::lint::structure;

pub(super) const RULES: &[Rule] = &[
    Rule {
        id: "start_node",
        severity: Error,
        check: Some(structure::start_node),
        summary: "there is exactly one start node",
        help: "declare one: `start [shape=Mdiamond]`",
        why: "A run begins at the start node (spec §7.2). Without one there is no first stage; with two the run could begin at \
              either, and the stages after the other would never run.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  exit
  review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "terminal_node",
        severity: Error,
        check: Some(structure::terminal_node),
        summary: "there is an exit node",
        help: "declare one: `exit [shape=Msquare]`",
        why: "A run succeeds by reaching an exit, where its goal gates are checked (spec §3.4 and §7.2). Without one the last stage \
              finds no route and every run fails. The specification wants exactly one; the seeds allow several, and so do we \
              (design §9 #7).",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start
  start -> review
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "reachability",
        severity: Error,
        check: Some(structure::reachability),
        summary: "every node can be reached from the start",
        help: "draw an edge to it, or remove it",
        why: "A stage that no way leads to never runs, and a run that skips it looks like one that passed it (spec §7.2, seed 1). \
              Most often an edge is missing or its target is misspelt. Jumps to a `retry_target` count as ways.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review -> exit
  report -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review -> report -> exit
}"#,
    },
    Rule {
        id: "edge_target_exists",
        severity: Error,
        check: Some(structure::edge_target_exists),
        summary: "edges join declared nodes",
        help: "declare the node, or correct its name",
        why: "Graphviz makes a node of every name it meets. A pipeline that did so would run a misspelt `reveiw` as an agent stage \
              whose prompt is its name (spec §7.2, design §9 #6).",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> reveiw -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "start_no_incoming",
        severity: Error,
        check: Some(structure::start_no_incoming),
        summary: "no edge leads into the start node",
        help: "lead it to the first stage instead",
        why: "The start node marks the beginning and does nothing (spec §7.2). An edge back to it means the first stage, and says \
              so less clearly; with several edges out of the start it is not even certain which stage is meant.",
        bad: r#"digraph ship {
  graph [max_steps=20]
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review
  review -> exit  [condition="outcome=success"]
  review -> start [condition="outcome=fail"]
}"#,
        good: r#"digraph ship {
  graph [max_steps=20]
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review
  review -> exit   [condition="outcome=success"]
  review -> review [condition="outcome=fail"]
}"#,
    },
    Rule {
        id: "exit_no_outgoing",
        severity: Error,
        check: Some(structure::exit_no_outgoing),
        summary: "no edge leaves an exit node",
        help: "remove the edge; a node called `exit`, `end` or `done` is an exit unless it has a shape, such as `shape=box`",
        why: "A run ends at an exit (spec §7.2), so what is drawn after it never runs. It happens most with a stage that is called \
              `done` or `end` and is taken for an exit by its name.",
        bad: r#"digraph ship {
  graph [max_steps=20]
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit -> review
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
    },
    Rule {
        id: "orphan_node",
        severity: Warning,
        check: Some(structure::orphan_node),
        summary: "the graph is one piece",
        help: "join the nodes with the rest, or remove them",
        why: "Nodes that no edge joins with the start's part of the graph are left over from an edit or wait for an edge that was \
              forgotten (seed 1). They are named together, as one piece, while `reachability` names each node that never runs.",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review -> exit
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review -> report -> exit
}"#,
    },
    Rule {
        id: "exit_reachable",
        severity: Warning,
        check: Some(structure::exit_reachable),
        summary: "an exit can be reached from every node",
        help: "draw an edge towards an exit",
        why: "A run that gets to a stage without a way on fails with `no route from node`, after all its work is done and paid for. \
              In a loop without a way out it goes round until a bound stops it (seed 2, common mistakes; design §9 #4).",
        bad: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review -> exit
  review -> report [label="Report"]
}"#,
        good: r#"digraph ship {
  review [prompt="Review the code", allowed_write_paths=""]
  report [prompt="Report", allowed_write_paths=""]
  start; exit
  start -> review -> exit
  review -> report [label="Report"]
  report -> exit
}"#,
    },
    Rule {
        id: "loop_without_bound",
        severity: Info,
        check: Some(structure::loop_without_bound),
        summary: "a graph with a loop says when to stop",
        help: "set `graph [max_steps=50]` or `graph [max_wall_time=\"2h\"]`",
        why: "A fix loop whose failure cannot be fixed turns until something stops it: 246 rounds in 16 hours have been reported \
              where a tool was missing. Without a word in the file the default of 200 stage executions does (seed 1), which is \
              more than most loops are worth. The cycle breaker for repeated failures is no substitute: the texts must repeat.",
        bad: r#"digraph ship {
  test   [shape=parallelogram, tool_command="cargo test", allowed_write_paths="target/"]
  repair [prompt="Make the tests pass", allowed_write_paths="src/"]
  start; exit
  start -> test
  test -> exit   [condition="outcome=success"]
  test -> repair [condition="outcome=fail"]
  repair -> test
}"#,
        good: r#"digraph ship {
  graph [max_steps=20]
  test   [shape=parallelogram, tool_command="cargo test", allowed_write_paths="target/"]
  repair [prompt="Make the tests pass", allowed_write_paths="src/"]
  start; exit
  start -> test
  test -> exit   [condition="outcome=success"]
  test -> repair [condition="outcome=fail"]
  repair -> test
}"#,
    },
];
