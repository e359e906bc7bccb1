//! `check` and `run` agree: what a run refuses is an error of `check` with the same exit code, told once in both.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod workbench;

use workbench::{Answer, Workbench};

/// A pipeline with one stage `n` and what follows it.
fn with(stage: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph g {{\n  start [shape=Mdiamond]; done [shape=Msquare]\n  {stage}\n  start -> n -> done\n}}\n"
    ))
}

fn errors(answer: &Answer) -> Vec<String> {
    let lines = answer.stderr.lines().filter(|line| line.starts_with("error[") || line.starts_with("warning["));
    lines.map(str::to_owned).collect()
}

#[test]
fn what_run_refuses_is_one_error_of_check_with_the_same_code() {
    for (stage, rule) in [
        ("n [shape=hexagon, label=\"Go on?\"]", "not_enforced"),
        ("n [shape=component]", "not_enforced"),
        ("n [shape=tripleoctagon]", "not_enforced"),
        ("n [shape=house]", "not_enforced"),
        ("n [prompt=p, allowed_write_paths=\"\", fidelity=full]", "not_enforced"),
        (
            "n [prompt=p, allowed_write_paths=\"\"]; n -> n [loop_restart=true, condition=\"outcome=fail\"]",
            "not_enforced",
        ),
        ("n [type=\"acme.todo\"]", "type_unknown"),
        ("n [type=tol, tool_command=true]", "type_unknown"),
        ("n [shape=octagon, command=true, network=full]", "network_not_granted"),
        ("n [shape=octagon, command=true, scratch=\"a/\", cache=\"a/b/\"]", "sandbox_folder"),
        ("graph [scenarios=\"checks/\"]; n [shape=octagon, command=\"sh checks/a\"]", "holdout_access"),
        ("n [shape=octagon, command=true, holdouts=\"scripts/scenarios/\"]", "holdout_access"),
        ("n [prompt=p, allowed_write_paths=\"\", test.outcome=maybe]", "test_attribute"),
    ] {
        let bench = with(stage);
        let check = bench.glovebox(&["check", "pipeline.dot"]);
        check.ends(3).says(&format!("error[{rule}]"));
        let told = errors(&check);
        assert_eq!(told.iter().filter(|line| line.contains(&format!("[{rule}]"))).count(), 1, "{told:?}");
        check.never_says("[type_known]");
        let run = bench.glovebox(&["run", "pipeline.dot"]);
        run.ends(3).never_says("[type_known]");
        bench.glovebox(&["plan", "pipeline.dot"]).ends(3);
        if rule != "holdout_access" {
            assert_eq!(errors(&run).iter().filter(|line| line.contains(rule)).count(), 1, "{:?}", errors(&run));
        }
        assert!(!bench.has(".glovebox/runs"), "{stage}");
    }
}

#[test]
fn the_language_alone_is_checked_on_request() {
    for stage in ["n [shape=hexagon, label=\"Go on?\"]", "n [type=\"acme.todo\"]"] {
        with(stage).glovebox(&["check", "--for", "lint", "pipeline.dot"]).ends(0).never_says("error[");
    }
    with("n [shape=hexagon]").glovebox(&["check", "--for", "lint", "pipeline.dot"]).says("warning[not_enforced]");
    with("n [shape=octagon]").glovebox(&["check", "--for", "lint", "pipeline.dot"]).ends(3);
}

#[test]
fn a_plugin_that_may_not_run_is_exit_7_in_both() {
    let bench = with("n [type=\"acme.todo\", allowed_write_paths=\"\"]");
    let table = "[plugins.\"acme.todo\"]\npath = \"todo.wasm\"\ngrants = { filesystem = \"none\" }\n";
    bench.write("glovebox.toml", table);
    for words in [&["check", "pipeline.dot"][..], &["run", "pipeline.dot"], &["plan", "pipeline.dot"]] {
        bench.glovebox(words).ends(7).says("plugin `acme.todo` cannot be read from `todo.wasm`");
    }
    let found = bench.glovebox(&["check", "--format", "json", "pipeline.dot"]).ends(7).json();
    assert_eq!((&found[0]["rule"], &found[0]["node"]), (&"plugin_refused".into(), &"n".into()));
    bench.glovebox(&["check", "--for", "lint", "pipeline.dot"]).ends(0);
    // An error of the file comes first, as in a run.
    bench.write(
        "pipeline.dot",
        &bench
            .read("pipeline.dot")
            .replace("done [", "done [class=x]; m [type=\"acme.no\"]; n -> m -> done [label=x] done ["),
    );
    bench.glovebox(&["check", "pipeline.dot"]).ends(3);
}

#[test]
fn whatever_can_be_read_is_drawn() {
    let bench = with("n [shape=octagon, max_retries=often]; n -> missing; lost [prompt=p, colour=red]");
    bench.glovebox(&["check", "pipeline.dot"]).ends(3);
    for format in ["ascii", "unicode", "svg", "json", "dot"] {
        let drawn = bench.glovebox(&["graph", "--format", format, "pipeline.dot"]);
        drawn.ends(0).says("missing").says("lost");
        assert!(drawn.stderr.contains("error[edge_target_exists]"), "{}", drawn.stderr);
        assert!(!drawn.stdout.contains("error["), "the picture alone is on standard output");
    }
    for text in ["digraph g { }", "digraph g { a -> b }", "digraph g { start; start -> start }"] {
        bench.write("pipeline.dot", text);
        bench.glovebox(&["graph", "--format", "ascii", "pipeline.dot"]).ends(0);
        bench.glovebox(&["graph", "--format", "svg", "pipeline.dot"]).ends(0);
    }
    bench.write("pipeline.dot", "digraph g { a -> ");
    bench.glovebox(&["graph", "--format", "svg", "pipeline.dot"]).ends(3).says("dot_syntax");
}
