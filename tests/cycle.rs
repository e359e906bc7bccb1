//! A loop in which a stage fails again and again in the same way is ended. A loop that makes progress is not.

use crate::workbench::Workbench;
use serde_json::json;

/// Creates a pipeline with a check that succeeds on visit `passes` and fails before. On a failure it runs `printed`, in
/// which `$n` is the number of the visit.
fn bench(graph: &str, passes: u32, printed: &str) -> Workbench {
    let command = format!(
        "mkdir -p out; n=$(cat out/n 2>/dev/null || echo 0); n=$((n+1)); echo $n > out/n; \
                           test $n -ge {passes} && exit 0; {printed}; exit 1"
    );
    let text = format!(
        "digraph g {{\n graph [max_steps=60{graph}]\n start [shape=Mdiamond]\n done [shape=Msquare]\n \
         check [shape=parallelogram, tool_command={}, allowed_write_paths=\"out/\"]\n fix [prompt=fix, allowed_write_paths=\"src/\"]\n \
         start -> check\n check -> done [condition=\"outcome=success\"]\n check -> fix [condition=\"outcome=fail\"]\n fix -> check\n}}\n",
        json!(command)
    );
    Workbench::with_pipeline(&text)
}

fn visits(bench: &Workbench) -> usize {
    let shown = bench.glovebox(&["show", "x", "--json"]);
    let visited = shown.ends(0).json()["visited"].clone();
    visited.as_array().unwrap().iter().filter(|visit| visit["node"] == "check").count()
}

const RUN: [&str; 6] = ["run", "pipeline.dot", "--simulate", "--run-id", "x", "-q"];

#[test]
fn the_third_failure_of_the_same_kind_ends_the_run_and_names_the_bound() {
    // Failures that differ only in numbers, hashes and white space are treated as the same failure.
    let bench = bench("", 50, "echo \"FAILED  in 0.${n}s at commit 1a2b3c${n}d4e\" >&2");
    bench.glovebox(&RUN).ends(1);
    assert_eq!(visits(&bench), 3);
    let failure = bench.glovebox(&["show", "x", "--json"]).ends(0).json()["failure"].clone();
    assert_eq!((&failure["class"], &failure["code"]), (&json!("deterministic"), &json!("loop/signature_limit")));
    let reason = "node `check` failed 3 times in the same way, `loop_restart_signature_limit` is 3: tool_exit_code_1";
    assert_eq!(failure["reason"], reason);
    // A resume repeats the stage and keeps the count of failures.
    bench.glovebox(&["resume", "x", "-q"]).ends(1).says("failed 4 times in the same way");
    assert_eq!(visits(&bench), 4);
}

#[test]
fn a_loop_whose_failures_differ_goes_on() {
    let letters = "echo \"test $(echo abcdefgh | cut -c$n) failed\"";
    let bench = bench("", 7, letters);
    bench.glovebox(&RUN).ends(0);
    assert_eq!(visits(&bench), 7);
}

#[test]
fn the_bound_is_the_graphs_and_at_least_one() {
    let raised = bench(", loop_restart_signature_limit=6", 6, "echo same");
    raised.glovebox(&RUN).ends(0);
    assert_eq!(visits(&raised), 6);
    let lowered = bench(", loop_restart_signature_limit=1", 6, "echo same");
    lowered.glovebox(&RUN).ends(1);
    assert_eq!(visits(&lowered), 1);
    bench(", loop_restart_signature_limit=0", 6, "echo same").glovebox(&["check", "pipeline.dot"]).ends(3);
}
