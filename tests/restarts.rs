//! Edges with `loop_restart`: the context of a new generation, its files and commands, and which edges may not restart.

use crate::workbench::Workbench;
use serde_json::{Value, json};

/// Creates a pipeline with a review that starts new generations until it is satisfied. `attributes` are graph
/// attributes.
fn bench(attributes: &str, rounds: usize) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{\n graph [goal=\"polish\"{attributes}]\n start [shape=Mdiamond]\n done [shape=Msquare]\n \
         count [shape=parallelogram, tool_command=\"echo again >> out/log; wc -l < out/log\", allowed_write_paths=\"out/\"]\n \
         review [prompt=\"review\", allowed_write_paths=\"\"]\n start -> count -> review\n \
         review -> done [condition=\"context.more!=yes\"]\n review -> count [condition=\"context.more=yes\", loop_restart=true]\n}}\n"
    ));
    let mut script = String::new();
    for round in 1..=rounds {
        let more = if round == rounds { "no" } else { "yes" };
        script += &format!(
            "[[node.review]]\ntext = \"done\"\noutcome = {{ status = \"success\", context_updates = {{ more = \"{more}\", \
             round = \"{round}\", scratch = \"{round}\" }} }}\n"
        );
    }
    bench.write("script.toml", &script);
    bench.write("out/log", "");
    bench
}

const RUN: [&str; 7] = ["run", "pipeline.dot", "--script", "script.toml", "--run-id", "x", "-q"];

fn failure(bench: &Workbench) -> Value {
    bench.glovebox(&["show", "x", "--json"]).ends(0).json()["failure"].clone()
}

fn restarts(bench: &Workbench) -> Vec<Value> {
    let text = bench.run_text("x", "progress.ndjson");
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
    records.filter(|event| event["kind"] == "loop.restarted").collect()
}

#[test]
fn a_generation_begins_afresh_with_the_files_as_they_are() {
    let bench = bench(", loop_restart_persist_keys=\"round, unknown\"", 3);
    bench.glovebox(&RUN).ends(0);
    let lineage: Vec<Value> =
        restarts(&bench).iter().map(|one| json!([one["generation"], one["from"], one["to"], one["status"]])).collect();
    assert_eq!(lineage, [json!([1, "review", "count", "success"]), json!([2, "review", "count", "success"])]);
    let files = ["count/status.json", "generations/1/count/status.json", "generations/2/review/status.json"];
    for (generation, file) in files.iter().enumerate() {
        let status = bench.run_json("x", file);
        assert_eq!(status["status_owner_run_generation"], generation, "{file}");
    }
    assert_eq!(bench.run_text("x", "workspace/out/log").lines().count(), 3);
    let checkpoint = bench.run_json("x", "checkpoint.json");
    assert_eq!(
        (&checkpoint["run_generation"], &checkpoint["completed_nodes"]),
        (&json!(2), &json!(["count", "review"]))
    );
    assert_eq!(bench.run_json("x", "final.json")["run_generation"], 2);
    // The trace has the context at the start of each generation: the kept key, the goal, and the node that the restart
    // came from.
    let trace = bench.run_text("x", "trace.jsonl");
    let begun: Vec<Value> = trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let begun: Vec<&Value> =
        begun.iter().filter(|line| line["type"] == "LoopRestarted").map(|line| &line["context"]).collect();
    for (index, context) in begun.iter().enumerate() {
        let of_engine = (&context["loop_restart.iteration_count"], &context["loop_restart.from_node"]);
        assert_eq!(of_engine, (&json!(index + 1), &json!("review")));
        assert_eq!((&context["round"], &context["graph.goal"]), (&json!((index + 1).to_string()), &json!("polish")));
        assert!(
            context["scratch"].is_null() && context["more"].is_null() && context["last_stage"].is_null(),
            "{context}"
        );
    }
    assert_eq!(begun.len(), 2);
}

#[test]
fn the_commands_show_generations() {
    let bench = bench("", 2);
    bench.glovebox(&RUN).ends(0);
    let shown = bench.glovebox(&["show", "x", "--json"]).ends(0).json();
    let visited: Vec<Value> = shown["visited"]
        .as_array()
        .unwrap()
        .iter()
        .map(|visit| json!([visit["node"], visit["generation"], visit["visit"]]))
        .collect();
    let first = [json!(["count", null, 1]), json!(["review", null, 1])];
    let second = [json!(["count", 1, 1]), json!(["review", 1, 1])];
    assert_eq!(visited, [first, second].concat());
    bench.glovebox(&["show", "x"]).ends(0).says("count generation 1: success");
    bench
        .glovebox(&["show", "x", "count"])
        .ends(0)
        .says("1 of visit 1: success")
        .says("1 of visit 1 generation 1: success");
    bench
        .glovebox(&["logs", "x", "count"])
        .ends(0)
        .says("==> count visit 1: ")
        .says("==> count visit 1 generation 1: ");
    bench.glovebox(&["why", "x"]).ends(0).says("generation 1 begins at `count`").says("review generation 1\n");
    let why = bench.glovebox(&["why", "x", "--json"]).ends(0).json();
    let steps = why["steps"].as_array().unwrap();
    let restarted = steps.iter().position(|step| !step["restarted"].is_null()).unwrap();
    assert_eq!(steps[restarted]["restarted"], json!({ "begins": 1, "at": "count" }));
    assert!(steps[..=restarted].iter().all(|step| step["generation"].is_null()), "{why}");
    assert!(steps[restarted + 1..].iter().all(|step| step["generation"] == 1), "{why}");
}

#[test]
fn the_bound_on_restarts_names_itself() {
    let bench = bench(", max_restarts=2", 9);
    bench.glovebox(&RUN).ends(5);
    assert_eq!(restarts(&bench).len(), 2);
    let failure = failure(&bench);
    assert_eq!((&failure["class"], &failure["code"]), (&json!("budget"), &json!("limit/max_restarts")));
    assert_eq!(failure["reason"], "loop_restart limit exceeded (2 restarts, `max_restarts` is 2)");
}

#[test]
fn a_key_of_the_engine_is_not_a_stages_to_write() {
    let bench = bench("", 2);
    let script = bench.read("script.toml").replacen("scratch = \"1\"", "\"loop_restart.iteration_count\" = \"7\"", 1);
    bench.write("script.toml", &script);
    let answer = bench.glovebox(&RUN);
    assert_eq!(answer.code, 0, "{}", answer.stderr);
    assert_eq!(bench.run_json("x", "checkpoint.json")["context"]["loop_restart.iteration_count"], 1);
    bench.glovebox(&["show", "x", "review"]).ends(0).says("loop_restart.iteration_count");
}

/// Creates a stage that is restarted after a failure.
fn failing(stage: &str, condition: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph g {{\n start [shape=Mdiamond]\n done [shape=Msquare]\n work [{stage}, allowed_write_paths=\"out/\"]\n start -> work\n \
         work -> done [condition=\"outcome=success\"]\n work -> work [condition=\"{condition}\", loop_restart=true]\n}}\n"
    ))
}

#[test]
fn only_a_transient_failure_restarts_and_any_other_keeps_its_reason() {
    let bench = failing("shape=parallelogram, tool_command=\"exit 3\"", "outcome=fail");
    bench.glovebox(&["check", "pipeline.dot"]).ends(0).says("loop_restart_failure_class_guard");
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "x", "-q"]).ends(1);
    assert!(restarts(&bench).is_empty());
    let failure = failure(&bench);
    assert_eq!((&failure["class"], &failure["code"]), (&json!("deterministic"), &json!("loop/restart_blocked")));
    let reason = failure["reason"].as_str().unwrap();
    let begins = "loop_restart blocked: failure_class=deterministic (requires transient), node=work, failure_reason=";
    assert!(reason.strip_prefix(begins).is_some_and(|cause| cause.contains('3')), "{reason}");
}

#[test]
fn conditions_read_the_class_of_a_failure_in_either_engines_words() {
    for word in ["transient_infra", "transient"] {
        let stage = "shape=box, prompt=work, \"test.outcome_sequence\"=\"retry,retry,success\"";
        let bench = failing(stage, &format!("outcome=fail && context.failure_class={word}"));
        bench.glovebox(&["check", "pipeline.dot"]).ends(0).never_says("loop_restart_failure_class_guard");
        bench.glovebox(&["run", "pipeline.dot", "--simulate", "--run-id", "x", "-q"]).ends(0);
        let restarts = restarts(&bench);
        assert_eq!(restarts.len(), 2, "{word}");
        assert_eq!(restarts[0]["failure"]["class"], "transient");
        assert!(bench.run_json("x", "checkpoint.json")["context"]["failure_class"].is_null(), "the last stage passed");
    }
}

#[test]
fn a_failure_that_stays_the_same_ends_a_loop_over_generations() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n fix [prompt=fix, allowed_write_paths=\"src/\"]\n \
         check [shape=parallelogram, tool_command=\"echo broken >&2; exit 1\"]\n start -> check\n \
         check -> done [condition=\"outcome=success\"]\n check -> fix [condition=\"outcome=fail\"]\n fix -> check [loop_restart=true]\n}\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--simulate", "--run-id", "x", "-q"]).ends(1);
    assert_eq!(failure(&bench)["code"], "loop/signature_limit");
    assert_eq!(restarts(&bench).len(), 2);
}

#[test]
fn visits_count_afresh_and_a_gate_of_an_earlier_generation_is_unmet() {
    let limited = bench(", max_visits=1", 3);
    limited.glovebox(&RUN).ends(0);
    let bench = bench("", 2);
    let text = bench.read("pipeline.dot").replace(
        "start -> count",
        "plan [prompt=plan, goal_gate=true, allowed_write_paths=\"\"]\n start -> plan -> count",
    );
    bench.write("pipeline.dot", &text);
    bench.write("script.toml", &(bench.read("script.toml") + "[[node.plan]]\ntext = \"done\"\n"));
    bench.glovebox(&RUN).ends(4);
    assert!(failure(&bench)["reason"].as_str().unwrap().contains("goal gate `plan` was never visited"));
}

#[test]
fn a_branch_cannot_restart_the_run() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n fork [shape=component]\n join [shape=tripleoctagon]\n \
         a [prompt=a, allowed_write_paths=\"\"]\n b [prompt=b, allowed_write_paths=\"\"]\n start -> fork\n fork -> a\n fork -> b\n \
         a -> a [condition=\"context.again=yes\", loop_restart=true]\n a -> join\n b -> join\n join -> done\n}\n",
    );
    bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("loop_restart_in_branch").says("`a -> a` restarts the run");
}

/// A parallel node in two generations: its branches have different names and folders in each.
#[test]
fn a_fork_begins_again_in_each_generation() {
    let bench = Workbench::with_pipeline(
        "digraph g {\n start [shape=Mdiamond]\n done [shape=Msquare]\n fork [shape=component]\n join [shape=tripleoctagon]\n \
         a [shape=parallelogram, tool_command=\"echo a >> out/a\", allowed_write_paths=\"out/\"]\n \
         b [shape=parallelogram, tool_command=\"echo b >> out/b\", allowed_write_paths=\"out/\"]\n \
         review [prompt=review, allowed_write_paths=\"\"]\n start -> fork\n fork -> a\n fork -> b\n a -> join\n b -> join\n join -> review\n \
         review -> done [condition=\"context.more!=yes\"]\n review -> fork [condition=\"context.more=yes\", loop_restart=true]\n}\n",
    );
    let script = "[[node.review]]\ntext = \"x\"\noutcome = { status = \"success\", context_updates = { more = \"yes\" } }\n\
                  [[node.review]]\ntext = \"x\"\noutcome = { status = \"success\" }\n";
    bench.write("script.toml", script);
    bench.write("out/keep", "");
    bench.glovebox(&RUN).ends(0);
    assert_eq!(bench.run_text("x", "workspace/out/a"), "a\na\n");
    assert!(bench.run_json("x", "generations/1/branches/1-fork-a/a/status.json")["outcome"] == "success");
}
