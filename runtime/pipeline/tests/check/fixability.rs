//! Tests of the warning about a builder that cannot fix a failed script. The same rule ends a run.

use super::lint::rule;
use super::{accept, node, with};
use glovebox_pipeline::fixability::{leads_to, out_of_reach};
use glovebox_pipeline::ir::NodeId;
use insta::assert_snapshot;

/// Checks which scripts in the command of `t` the builder `f` must not write. `tool` and `graph` are further attributes
/// of `t` and of the graph.
#[track_caller]
fn check(command: &str, tool: &str, graph: &str, scope: &str, expected: &[&str]) {
    let pipeline = accept(&with(&format!(
        "graph [label=x {graph}] t [shape=parallelogram, tool_command=\"{command}\", allowed_write_paths=\"\" {tool}] \
         f [prompt=p, allowed_write_paths=\"{scope}\"] start -> t -> f -> exit"
    )));
    assert_eq!(out_of_reach(&pipeline, node(&pipeline, "t"), node(&pipeline, "f")), expected, "{command}");
}

#[test]
fn scripts_outside_of_the_write_scope_are_found() {
    check("bash scripts/test.sh", "", "", "src/", &["scripts/test.sh"]);
    check("bash scripts/test.sh", "", "", "scripts/", &[]);
    check("bash scripts/test.sh", "", "", "scripts/test.sh", &[]);
    check("bash scripts/test.sh", "", "", "scripts/tests/,scripts", &["scripts/test.sh"]);
    check(
        "./a.sh && sh b.sh; (c.sh)|d.sh $(e.sh) 'f.sh' a.sh",
        "",
        "",
        "b.sh",
        &["./a.sh", "c.sh", "d.sh", "e.sh", "f.sh", "a.sh"],
    );
    check("./a.sh", "", "", "a.sh", &[]);
    check("cargo test && echo .sh *.sh x.shell sh", "", "", "", &[]);
    check("./x.sh", ", working_dir=app", "", "app/", &[]);
    check("./x.sh", ", codex.workdir=app", "", "app/x.sh", &[]);
    check("./x.sh", ", working_dir=app", "", "x.sh", &["./x.sh"]);
    check("bash scripts/scenarios/one.sh", "", "", "src/", &[]);
    check("bash scripts/scenarios/one.sh lint.sh", "", "", "src/", &["lint.sh"]);
    check("bash hold/one.sh", "", ", scenarios=\"hold\"", "src/", &[]);
    check("bash scripts/scenarios/one.sh", "", ", scenarios=\"hold\"", "src/", &["scripts/scenarios/one.sh"]);
}

#[test]
fn handlers_count_as_they_are_resolved() {
    let scripts = |tool: &str, fix: &str| {
        let pipeline =
            accept(&with(&format!("t [{tool}, tool_command=\"sh a.sh\"] f [{fix}] start -> t -> f -> exit")));
        out_of_reach(&pipeline, node(&pipeline, "t"), node(&pipeline, "f")).join(",")
    };
    assert_eq!(scripts("shape=parallelogram", "prompt=p, allowed_write_paths=\"src/\""), "a.sh");
    assert_eq!(scripts("type=tool", "prompt=p, allowed_write_paths=\"src/\""), "a.sh");
    assert_eq!(scripts("type=tool", "type=\"acme.x\", allowed_write_paths=\"src/\""), "a.sh");
    assert_eq!(scripts("type=tool", "prompt=p"), "", "without a scope everything may be written");
    assert_eq!(
        scripts("type=tool", "type=tool, tool_command=x, allowed_write_paths=\"src/\""),
        "",
        "tool stages fix nothing"
    );
    assert_eq!(scripts("shape=octagon, command=\"sh b.sh\"", "prompt=p, allowed_write_paths=\"src/\""), "");
    assert_eq!(scripts("prompt=p", "prompt=p, allowed_write_paths=\"src/\""), "");
}

#[test]
fn ways_follow_edges_and_jumps() {
    let pipeline = accept(&with("a b c d [retry_target=a] start -> a -> b -> c -> exit start -> d -> exit"));
    let check = |from: &str, to: &str, expected: bool| {
        assert_eq!(leads_to(&pipeline, &NodeId::new(from), &NodeId::new(to)), expected, "{from} {to}");
    };
    check("a", "c", true);
    check("c", "a", false);
    check("d", "c", true);
    check("a", "a", false);
}

#[test]
fn a_failure_that_leads_to_who_cannot_mend_it_is_told() {
    let of = |edges: &str| {
        rule(
            "unfixable_failure_source",
            &with(&format!(
                "t [shape=parallelogram, tool_command=\"sh a.sh\"] g [shape=diamond] f [prompt=p, allowed_write_paths=\"src/\"] \
                 w [prompt=p] start -> t start -> g start -> w start -> f {edges} w -> exit"
            )),
        )
    };
    assert_snapshot!(of("t -> exit [condition=\"outcome=success\"] t -> f [condition=\"outcome=fail\"]"), @r#"unfixable_failure_source «"src/"» unfixable_failure_source: failed node t references a.sh outside allowed_write_paths for f"#);
    assert_snapshot!(of("t -> f [condition=\"outcome!=success\"] t -> exit"), @r#"unfixable_failure_source «"src/"» unfixable_failure_source: failed node t references a.sh outside allowed_write_paths for f"#);
    assert_snapshot!(of("t [retry_target=f] t -> exit"), @r#"unfixable_failure_source «"src/"» unfixable_failure_source: failed node t references a.sh outside allowed_write_paths for f"#);
    assert_snapshot!(of("t -> g g -> f [condition=\"outcome=fail\"] g -> exit"), @r#"unfixable_failure_source «"src/"» unfixable_failure_source: failed node t references a.sh outside allowed_write_paths for f"#);
    for fine in [
        "t -> f",
        "t -> f [condition=\"outcome=success\"]",
        "t -> w [condition=\"outcome=fail\"] t -> exit",
        "t -> g g -> f [condition=\"outcome=success\"]",
    ] {
        assert_eq!(of(fine), "", "{fine}");
    }
}
