//! `timeout` on every kind of node, and what `auto_status` must never do.

use crate::guests;
use crate::workbench::Workbench;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Time within which a run must end. It is far below the duration of the stages and far above the start time on a busy
/// machine.
const SOON: Duration = Duration::from_secs(25);

/// Runs a pipeline of these nodes and edges, which must end within [`SOON`]. Returns the workbench and the failure,
/// which is null if there is none.
fn runs(nodes: &str, code: i32) -> (Workbench, Value) {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n start [shape=Mdiamond]\n done [shape=Msquare]\n {nodes}\n}}\n"
    ));
    let before = Instant::now();
    bench.glovebox(&["run", "pipeline.dot", "--simulate", "--run-id", "x", "-q"]).ends(code);
    assert!(before.elapsed() < SOON, "{nodes}");
    let failure = bench.glovebox(&["show", "x", "--json"]).ends(0).json()["failure"].clone();
    (bench, failure)
}

fn code(failure: &Value) -> (&str, &str) {
    (failure["class"].as_str().unwrap(), failure["code"].as_str().unwrap())
}

#[test]
fn commands_of_tools_and_judges_end_with_their_time() {
    for stage in [
        "s [shape=parallelogram, tool_command=\"sleep 60\", timeout=\"1s\"]",
        "s [shape=octagon, command=\"sleep 60\", timeout=\"1s\"]",
    ] {
        let (_, failure) = runs(&format!("{stage}\n start -> s -> done"), 5);
        assert_eq!(failure["class"], "budget", "{stage}: {failure}");
        assert!(failure["code"].as_str().unwrap().starts_with("limit/"), "{stage}: {failure}");
    }
}

#[test]
fn a_fork_ends_its_branches_with_its_time() {
    let branches = "fork [shape=component, timeout=\"1s\"]\n join [shape=tripleoctagon]\n \
         a [shape=parallelogram, tool_command=\"mkdir -p out; sleep 60; echo late > out/a\", allowed_write_paths=\"out/\"]\n \
         b [shape=parallelogram, tool_command=\"mkdir -p out; echo done > out/b\", allowed_write_paths=\"out/\"]\n \
         start -> fork\n fork -> a\n fork -> b\n a -> join\n b -> join\n join -> done [condition=\"outcome=success\"]";
    let (bench, failure) = runs(branches, 5);
    assert_eq!(code(&failure), ("budget", "limit/parallel_timeout"));
    assert_eq!(failure["reason"], "the branches of the parallel node `fork` did not end within its `timeout`");
    let journal = bench.run_text("x", "progress.ndjson");
    assert_eq!(journal.matches("\"kind\":\"parallel.expired\"").count(), 1);
    assert!(!bench.run_folder("x").join("workspace/out").exists(), "nothing of a fork that failed is taken");
    // The same branches end before the timeout.
    let text = branches.replace("sleep 60", "true").replace("\"1s\"", "\"60s\"");
    let (bench, _) = runs(&text, 0);
    assert!(!bench.run_text("x", "progress.ndjson").contains("parallel.expired"));
}

#[test]
fn the_end_of_a_forks_time_can_be_routed() {
    let (bench, failure) = runs(
        "fork [shape=component, timeout=\"1s\", retry_target=rest]\n join [shape=tripleoctagon]\n \
         a [shape=parallelogram, tool_command=\"sleep 60\"]\n b [shape=parallelogram, tool_command=\"sleep 60\"]\n \
         rest [shape=parallelogram, tool_command=\"true\"]\n start -> fork\n fork -> a\n fork -> b\n a -> join\n b -> join\n \
         join -> rest [condition=\"outcome=success\"]\n rest -> done",
        0,
    );
    assert!(failure.is_null());
    bench.glovebox(&["show", "x"]).ends(0).says("visited      rest: success");
}

#[test]
fn a_gate_waits_no_longer_than_its_time_also_in_a_branch() {
    let gate = |timeout: &str| {
        format!(
            "fork [shape=component{timeout}]\n join [shape=tripleoctagon]\n \
             ask [shape=hexagon, label=\"Ship?\", timeout=\"1s\"]\n yes [prompt=y, allowed_write_paths=\"\"]\n no [prompt=n, allowed_write_paths=\"\"]\n \
             other [prompt=o, allowed_write_paths=\"\"]\n start -> fork\n fork -> ask\n fork -> other\n ask -> yes [label=\"[Y] Yes\"]\n \
             ask -> no [label=\"[N] No\"]\n yes -> join\n no -> join\n other -> join\n join -> done [condition=\"outcome=success\"]"
        )
    };
    let (bench, _) = runs(&gate(""), 0);
    let text = bench.run_text("x", "progress.ndjson");
    assert!(text.contains("\"kind\":\"question.answered\""), "{text}");
    let slow = gate(", timeout=\"1s\"").replace("label=\"Ship?\", timeout=\"1s\"", "label=\"Ship?\", timeout=\"9s\"");
    let (_, failure) = runs(&slow, 5);
    assert_eq!(code(&failure).1, "limit/parallel_timeout");
}

#[test]
fn auto_status_never_makes_a_success_of_a_failure() {
    for stage in [
        "s [shape=parallelogram, tool_command=\"exit 3\", auto_status=true]",
        "s [shape=octagon, command=\"exit 3\", auto_status=true]",
        "s [prompt=p, allowed_write_paths=\"\", auto_status=true, \"test.outcome\"=fail]",
    ] {
        let (bench, _) = runs(&format!("{stage}\n start -> s -> done"), 1);
        assert_eq!(bench.run_json("x", "s/status.json")["outcome"], json!("fail"), "{stage}");
        bench.glovebox(&["check", "pipeline.dot"]).says("auto_status_no_effect");
    }
}

/// Runs a pipeline with this script as its model, which must end within [`SOON`]. Returns its failure.
fn asks(nodes: &str, script: &str) -> Value {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n start [shape=Mdiamond]\n done [shape=Msquare]\n {nodes}\n}}\n"
    ));
    bench.write("script.toml", script);
    ends_soon(&bench, &["--script", "script.toml"])
}

fn ends_soon(bench: &Workbench, more: &[&str]) -> Value {
    let before = Instant::now();
    bench.glovebox(&[&["run", "pipeline.dot", "--run-id", "x", "-q"], more].concat()).ends(5);
    assert!(before.elapsed() < SOON, "{:?}", before.elapsed());
    bench.glovebox(&["show", "x", "--json"]).ends(0).json()["failure"].clone()
}

#[test]
fn an_agent_ends_with_its_time_in_the_middle_of_a_call() {
    let failure = asks(
        "a [prompt=p, allowed_write_paths=\"out/\", \"tool_hooks.pre\"=\"sleep 60\", timeout=\"1s\"]\n start -> a -> done",
        "[[node.a]]\ntool = [{ name = \"write_file\", arguments = { path = \"out/a\", content = \"x\" } }]\n[[node.a]]\ntext = \"ok\"\n",
    );
    assert_eq!(code(&failure), ("budget", "limit/wall_ms"), "{failure}");
    assert!(failure["reason"].as_str().unwrap().contains("1000"), "{failure}");
}

#[test]
fn a_plugins_component_ends_with_the_time_of_its_node() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n loops [type=\"acme.loop\", timeout=\"1s\"]\n start -> loops -> done }\n",
    );
    std::fs::write(bench.project().join("loop.wasm"), guests::build("endless-loop")).unwrap();
    bench.write("glovebox.toml", "[plugins.\"acme.loop\"]\npath = \"loop.wasm\"\n");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    let failure = ends_soon(&bench, &[]);
    assert_eq!(code(&failure), ("budget", "limit/wall_ms"), "{failure}");
    assert!(failure["reason"].as_str().unwrap().contains("1000"), "{failure}");
}

#[test]
fn a_judge_at_a_fan_in_ends_with_its_time() {
    let failure = asks(
        "f [shape=component]\n j [shape=tripleoctagon, prompt=\"Which?\", timeout=\"1s\", \"tool_hooks.pre\"=\"sleep 60\"]\n \
         a [prompt=p, allowed_write_paths=\"\"]\n b [prompt=p, allowed_write_paths=\"\"]\n start -> f\n f -> a -> j\n f -> b -> j\n j -> done",
        "[[node.a]]\ntext = \"ok\"\n[[node.b]]\ntext = \"ok\"\n\
         [[node.j]]\ntool = [{ name = \"read_file\", arguments = { path = \"pipeline.dot\" } }]\n[[node.j]]\ntext = \"ok\"\n",
    );
    assert_eq!(code(&failure), ("budget", "limit/wall_ms"), "{failure}");
}

#[test]
fn a_child_ends_with_the_time_of_the_node_that_runs_it() {
    for kind in ["type=subpipeline", "shape=house"] {
        let bench = Workbench::with_pipeline(&format!(
            "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n \
             build [{kind}, \"stack.child_dotfile\"=\"child.dot\", timeout=\"1s\"]\n start -> build -> done }}\n"
        ));
        bench.write(
            "child.dot",
            "digraph c { start [shape=Mdiamond]; done [shape=Msquare]\n \
             slow [shape=parallelogram, tool_command=\"sleep 60\", allowed_write_paths=\"\"]\n start -> slow -> done }\n",
        );
        let failure = ends_soon(&bench, &[]);
        assert_eq!(code(&failure), ("budget", "limit/parallel_timeout"), "{failure}");
        let reason = failure["reason"].as_str().unwrap();
        assert_eq!(reason, "the child pipeline of `build` did not end within its `timeout`");
    }
}
