//! Retries and timeouts with the real binary: presets on nodes and the graph, a stage that prints nothing, and the
//! timeout of every kind of stage.

use crate::case::Fact::Is;
use crate::case::{Case, PLAIN, check_all};

#[test]
fn a_preset_works_on_the_node_and_on_the_graph() {
    check_all(&[
        Case {
            name: "the graph's preset repeats an outcome `retry`",
            graph: "graph [retry_policy=linear]; A [prompt=x, test.outcome_sequence=\"retry,retry,success\"]; start -> A -> done",
            visited: "A",
            ..PLAIN
        },
        Case {
            name: "the graph's preset does not repeat a plain failure",
            graph: "graph [retry_policy=linear]; A [prompt=x, test.outcome_sequence=\"fail,success\"]; start -> A -> done",
            exit: 1,
            visited: "A",
            ..PLAIN
        },
        Case {
            name: "the node's preset does",
            graph: "A [prompt=x, retry_policy=standard, test.outcome_sequence=\"fail,success\"]; start -> A -> done",
            visited: "A",
            ..PLAIN
        },
        Case {
            name: "`none` on the node wins over the graph",
            graph: "graph [retry_policy=linear]; A [prompt=x, retry_policy=none, test.outcome_sequence=\"retry,success\"]; start -> A -> done",
            exit: 9,
            visited: "A",
            ..PLAIN
        },
    ]);
}

#[test]
fn an_edge_for_retry_is_followed_when_the_retries_are_used_up() {
    check_all(&[
        Case {
            name: "before the failure",
            graph: "A [prompt=x, max_retries=1, test.outcome=retry]; B [prompt=x]; C [prompt=x]; start -> A; \
                A -> B [condition=\"outcome=retry\"]; A -> C [condition=\"outcome=fail\"]; A -> done [condition=\"outcome=success\"]; \
                B -> done; C -> done",
            visited: "A B",
            facts: &[Is("A/status.json", "/outcome", "retry"), Is("A/status.json", "/failure_class", "transient")],
            ..PLAIN
        },
        Case {
            name: "through a diamond",
            graph: "A [prompt=x, test.outcome=retry]; D [shape=diamond]; B [prompt=x]; C [prompt=x]; start -> A -> D; \
                D -> B [condition=\"outcome=retry\"]; D -> C [condition=\"outcome=fail\"]; D -> done [condition=\"outcome=success\"]; \
                B -> done; C -> done",
            visited: "A D B",
            ..PLAIN
        },
        Case {
            name: "and not while there are retries",
            graph: "A [prompt=x, max_retries=2, test.outcome_sequence=\"retry,success\"]; B [prompt=x]; start -> A; \
                A -> B [condition=\"outcome=retry\"]; A -> done [condition=\"outcome=success\"]; B -> done",
            visited: "A",
            ..PLAIN
        },
    ]);
}

#[test]
fn a_timeout_ends_every_kind_of_stage() {
    let over = |name, graph, script| Case {
        name,
        graph,
        script,
        exit: 5,
        visited: "A",
        facts: &[Is("final.json", "/failure_class", "budget"), Is("A/status.json", "/failure_code", "limit/wall_ms")],
        ..PLAIN
    };
    check_all(&[
        over(
            "a tool",
            "A [shape=parallelogram, tool_command=\"sleep 30\", timeout=\"900ms\", allowed_write_paths=\"\"]; start -> A -> done",
            "",
        ),
        over(
            "a check",
            "A [shape=octagon, command=\"sleep 30\", timeout=\"900ms\", allowed_write_paths=\"\"]; start -> A -> done",
            "",
        ),
        over(
            "an agent",
            "A [prompt=x, allowed_commands=\"sleep\", timeout=\"2s\", allowed_write_paths=\"\"]; start -> A -> done",
            "[[node.A]]\ntool = [{ name = \"shell\", arguments = { command = \"sleep 30\" } }]\n[[node.A]]\ntext = \"done\"\n",
        ),
    ]);
}
