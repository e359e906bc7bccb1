//! Tests that a branch does not harm the rest of its run: its receipts are not a proof for files that were not taken,
//! no work is lost at a budget, no question is asked after its end, it does not fill the context, and it does not hide
//! files that builders left.

use crate::workbench::Workbench;
use serde_json::Value;

const PAUSED: i32 = 10;
const LIMIT: i32 = 5;

/// Creates a pipeline with a parallel node `f`, its fan-in `j`, and the lines of `lines`.
fn fork(graph: &str, settings: (&str, &str), lines: &str) -> Workbench {
    let (fork, join) = settings;
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ graph [max_steps=400{graph}]; start; done [shape=Msquare]\n\
         f [shape=component{fork}]; j [shape=tripleoctagon{join}]\n{lines}\n}}\n"
    ));
    bench.write("src/kept", "");
    bench
}

fn tool(name: &str, command: &str, more: &str) -> String {
    format!("{name} [shape=parallelogram, tool_command=\"{command}\", {more}]\n")
}

#[test]
fn a_goal_gate_counts_only_with_the_files_that_it_judged() {
    let lines = tool("fix", "echo good > src/x", "allowed_write_paths=\"src/\"")
        + &tool("test", "grep good src/x", "allowed_write_paths=\"\", goal_gate=true")
        + &tool("slow", "sleep 20", "allowed_write_paths=\"\"")
        + &tool("other", "sleep 1; echo bad > src/x", "allowed_write_paths=\"src/\"")
        + "start -> f; f -> fix -> test -> slow -> j; f -> other -> j; j -> done";
    let bench = fork("", (", join_policy=first_success", ""), &lines);
    let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    assert_eq!(bench.run_text("r", "workspace/src/x"), "bad\n");
    run.says("not taken    test: sh -c 'grep good src/x' exit 0").never_says("verified     test");
    run.ends(4).says("goal gate `test` was visited only in a branch whose changes were not taken");
    // Now the goal gate is visited in the branch whose files are taken.
    let taken = lines.replace("sleep 20", "true").replace("sleep 1; echo bad", "sleep 20; echo bad");
    let bench = fork("", (", join_policy=first_success", ""), &taken);
    bench
        .glovebox(&["run", "pipeline.dot", "--run-id", "r"])
        .ends(0)
        .says("verified     test")
        .says("not taken    other");
    assert_eq!(bench.run_text("r", "workspace/src/x"), "good\n");
}

#[test]
fn checks_side_by_side_count_when_nothing_was_changed() {
    let lines = tool("lint", "true", "allowed_write_paths=\"\", goal_gate=true")
        + &tool("test", "true", "allowed_write_paths=\"\", goal_gate=true")
        + "start -> f; f -> lint -> j; f -> test -> j; j -> done";
    let bench = fork("", ("", ""), &lines);
    let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    run.ends(0).says("verified     lint").says("verified     test").never_says("not taken");
    let failing = lines.replace(
        "test [shape=parallelogram, tool_command=\"true\"",
        "test [shape=parallelogram, tool_command=\"false\"",
    );
    let run = fork("", (", error_policy=ignore", ""), &failing).glovebox(&["run", "pipeline.dot"]);
    run.ends(4).says("not verified test").says("goal gate `test` ended with `fail`");
}

#[test]
fn a_branch_that_the_wall_time_cut_goes_on_with_the_resume() {
    let write = |name: &str, command: &str| {
        tool(name, &format!("{command} echo {name} > src/{name}"), "allowed_write_paths=\"src/\"")
    };
    let lines = write("a", "sleep 2;")
        + &write("b", "sleep 2;")
        + &write("c", "")
        + "start -> f; f -> a -> j; f -> b -> j; f -> c -> j; j -> done";
    let bench = fork(", max_wall_time=\"1s\"", ("", ", merge=all"), &lines);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(LIMIT).says("wall");
    bench.glovebox(&["resume", "r", "--max-wall-time", "1h"]).ends(0);
    for name in ["a", "b", "c"] {
        assert_eq!(bench.run_text("r", &format!("workspace/src/{name}")), format!("{name}\n"));
    }
    let ended = bench.run_text("r", "progress.ndjson");
    assert!(!ended.contains("\"partial_success\""), "no branch has failed: {ended}");
}

#[test]
fn the_question_of_a_branch_that_was_canceled_is_closed() {
    let lines =
        "ga [shape=hexagon, label=\"A?\"]; gc [shape=hexagon, label=\"C?\"]; last [shape=hexagon, label=\"Last?\"]\n"
            .to_owned()
            + &tool("a", "true", "allowed_write_paths=\"\"")
            + &tool("c", "true", "allowed_write_paths=\"\"")
            + "start -> f; f -> ga; ga -> a [label=Yes]; a -> j; f -> gc; gc -> c [label=Yes]; c -> j; j -> last\n\
           last -> done [label=Go]";
    let bench = fork("", (", join_policy=first_success", ""), &lines);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(PAUSED).says("f-gc/gc#1");
    bench.glovebox(&["answer", "r", "ga", "Yes"]).ends(0);
    let resumed = bench.glovebox(&["resume", "r"]);
    resumed.ends(PAUSED).says("waits for    an answer to last#1");
    let shown = bench.glovebox(&["show", "r", "--json"]).json();
    let open: Vec<&str> =
        shown["open_questions"].as_array().unwrap().iter().map(|open| open["question"].as_str().unwrap()).collect();
    assert_eq!(open, ["last#1"]);
}

#[test]
fn results_of_many_branches_fit_into_the_context() {
    let reason = "r".repeat(30_000);
    let mut lines =
        "start -> f\nlook [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n".to_owned();
    for branch in 0..100 {
        lines += &format!(
            "b{branch} [prompt=x, allowed_write_paths=\"\", \"test.outcome\"=fail, \"test.notes\"=\"{reason}\"]\nf -> b{branch} -> j\n"
        );
    }
    lines += "j -> look [condition=\"outcome=fail\"]; look -> done";
    let bench = fork(", max_visits=3", (", error_policy=ignore, max_parallel=8", ""), &lines);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let checkpoint = bench.run_json("r", "checkpoint.json");
    let results = &checkpoint["context"]["parallel.results"];
    assert_eq!(results.as_array().unwrap().len(), 100);
    assert!(results.to_string().len() < 64 * 1024, "{} bytes", results.to_string().len());
    assert!(results[0]["failure_reason"].is_string() && results[99]["outcome"] == "fail");
}

#[test]
fn a_loop_around_a_fork_that_fails_in_the_same_way_ends() {
    let lines = tool("T", "echo same; exit 1", "allowed_write_paths=\"\"")
        + &tool("U", "echo same; exit 1", "allowed_write_paths=\"\"")
        + "start -> f; f -> T -> j; f -> U -> j; j -> f [condition=\"outcome=fail\"]; j -> done [condition=\"outcome=success\"]";
    let bench = fork("", ("", ""), &lines);
    let run = bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    run.ends(1).says("(loop/signature_limit)").says("`j` failed 3 times in the same way");
}

#[test]
fn a_verdict_in_a_branch_tells_what_builders_left_in_its_caches() {
    let lines = "b [prompt=b, allowed_write_paths=\"src/\"]\n".to_owned()
        + &tool("t1", "sh src/prog.sh; true", "allowed_write_paths=\"\"")
        + &tool("t2", "sh tools/judge.sh", "allowed_write_paths=\"\"")
        + &tool("o", "true", "allowed_write_paths=\"\"")
        + "start -> b -> f; f -> t1 -> t2 -> j; f -> o -> j; j -> done";
    let bench = fork("", ("", ""), &lines);
    bench.write(".gitignore", "build/\n");
    bench.write("src/prog.sh", "true\n");
    bench.write("tools/judge.sh", "cat build/prog 2>/dev/null; exit 0\n");
    let script = "[[node.b]]\ntool = [{ name = \"write_file\", arguments = { path = \"src/prog.sh\", content = \"mkdir -p build; \
                  echo right > build/prog\\n\" } }]\n[[node.b]]\ntext = \"done\"\n";
    bench.write("s.toml", script);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--script", "s.toml"]).ends(0);
    let shown: Value = bench.glovebox(&["show", "r", "--json"]).json();
    let said = bench.glovebox(&["show", "r"]);
    said.ends(0).says("verified (with caches of builders' code) t2");
    assert!(shown["receipts"].is_array() || shown["commands"].is_array(), "{shown}");
}

#[test]
fn a_gate_that_was_skipped_is_not_taken_for_one_of_a_branch() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n \
         g [prompt=x, goal_gate=true, allowed_write_paths=\"\", \"test.outcome\"=skipped]\n start -> g -> done }\n",
    );
    let run = bench.glovebox(&["run", "pipeline.dot", "--simulate"]);
    run.ends(4).says("goal gate `g` ended with `skipped`");
}
