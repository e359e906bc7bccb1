//! `runs_on`: stages that only some machines may run, and what happens on a machine that lacks something.
//!
//! The witness that nothing was started is the folder of runs.

use crate::serve::client::Served;
use crate::workbench::{Answer, Workbench};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;

/// Returns a pipeline with a tool stage `train` and these additional attributes.
fn pipeline(graph: &str, stage: &str) -> String {
    format!(
        "digraph g {{\n  graph [{graph}]\n  start; exit\n  train [shape=parallelogram, tool_command=\"true\", \
         allowed_write_paths=\"\"{stage}]\n  start -> train -> exit\n}}\n"
    )
}

fn bench(graph: &str, stage: &str) -> Workbench {
    Workbench::with_pipeline(&pipeline(graph, stage))
}

/// Runs the pipeline with these additional arguments.
fn run(bench: &Workbench, more: &[&str]) -> Answer {
    bench.glovebox(&[&["run", "pipeline.dot"][..], more].concat())
}

fn plan(bench: &Workbench, more: &[&str]) -> Value {
    bench.glovebox(&[&["plan", "pipeline.dot", "--json"][..], more].concat()).ends(0).json()
}

fn needs_of(plan: &Value, node: &str) -> Value {
    let nodes = plan["nodes"].as_array().unwrap();
    nodes.iter().find(|found| found["id"] == node).unwrap().get("runs_on").cloned().unwrap_or_default()
}

/// Returns the name of an architecture that this machine does not have.
fn other_arch() -> &'static str {
    if cfg!(target_arch = "x86_64") { "arm64" } else { "amd64" }
}

#[test]
fn a_machine_without_a_label_runs_nothing() {
    let bench = bench("", ", runs_on=\"gpu, ssd\"");
    run(&bench, &[])
        .ends(6)
        .says("`train` needs label `gpu`, label `ssd`")
        .says("add `--label gpu` `--label ssd`, if this machine has it");
    run(&bench, &["--label", "gpu"]).ends(6).says("`train` needs label `ssd`").never_says("label `gpu`");
    assert!(!bench.has(".glovebox"), "a refused run creates nothing");
    run(&bench, &["--label", "ssd", "--label", "gpu", "--label", "more", "--run-id", "r"]).ends(0);
    run(&bench, &["--label", "GPU"]).ends(2).says("`GPU` is not a label");
    run(&bench, &["--label", "arm64"]).ends(2).says("`arch=aarch64` is expected");
}

#[test]
fn an_architecture_is_found_and_not_claimed() {
    let own = std::env::consts::ARCH;
    run(&bench("", &format!(", runs_on=\"arch={own}\"")), &[]).ends(0);
    let other = bench(&format!("runs_on=\"arch={}\"", other_arch()), ", runs_on=gpu");
    run(&other, &["--label", "gpu"])
        .ends(6)
        .says(&format!("(this machine is `{own}`)"))
        .says("run it on a machine with");
    run(&other, &[]).ends(6).says("label `gpu`, arch `");
    assert!(!other.has(".glovebox"));
}

#[test]
fn a_program_is_looked_for_where_commands_find_it() {
    run(&bench("", ", runs_on=\"program=sh\""), &[]).ends(0);
    let bench = bench("runs_on=\"program=only-there\"", ", runs_on=\"program=sh, program=nowhere\"");
    let tools = bench.outside().join("tools");
    std::fs::create_dir(&tools).unwrap();
    std::fs::write(tools.join("only-there"), "").unwrap();
    run(&bench, &[])
        .ends(6)
        .says("`train` needs program `nowhere`, program `only-there`")
        .says("those of `toolchains`, `venv` and `path` under `[exec]` in glovebox.toml");
    bench.write("glovebox.toml", &format!("[exec]\npath = [{tools:?}]\n"));
    run(&bench, &[]).ends(6).says("program `only-there`");
    std::fs::set_permissions(tools.join("only-there"), std::fs::Permissions::from_mode(0o755)).unwrap();
    run(&bench, &[]).ends(6).says("`train` needs program `nowhere`").never_says("only-there");
    assert!(!bench.has(".glovebox"));
    assert_eq!(needs_of(&plan(&bench, &[]), "train"), json!(["program=nowhere", "program=only-there", "program=sh"]));
}

/// A stage without commands has the need too, and a run without a sandbox has no tier.
#[test]
fn a_tier_counts_for_every_stage() {
    let agent = "digraph g { start; exit; n [prompt=p, allowed_write_paths=\"\", runs_on=\"tier=landlock\"] start -> n -> exit }";
    let bench = Workbench::with_pipeline(agent);
    run(&bench, &["--dangerously-no-sandbox"])
        .ends(6)
        .says("`n` needs tier `landlock` (commands run without a sandbox)")
        .says("glovebox doctor");
    assert!(!bench.has(".glovebox"));
    run(&bench, &[]).ends(0);
}

#[test]
fn project_graph_and_node_are_added_up() {
    let bench = bench("runs_on=\"disk\"", ", runs_on=\"gpu, tier=landlock\"");
    bench.write("glovebox.toml", "[fleet]\nruns_on = [\"eu\", \"tier=landlock\"]\n");
    let planned = plan(&bench, &["--label", "disk"]);
    assert_eq!(needs_of(&planned, "train"), json!(["disk", "eu", "gpu", "tier=landlock"]));
    assert_eq!(needs_of(&planned, "start"), Value::Null);
    assert_eq!(planned["lacking"], json!([{ "node": "train", "lacks": ["label `eu`", "label `gpu`"] }]));
    bench
        .glovebox(&["plan", "pipeline.dot", "--label", "disk"])
        .ends(0)
        .says("  runs on  disk, eu, gpu, tier=landlock\n")
        .says("not on this machine: train needs label `eu`, label `gpu`; `glovebox run` refuses it\n");
    let labels = ["--label", "disk", "--label", "eu", "--label", "gpu"];
    assert_eq!(plan(&bench, &labels).get("lacking"), None);
    run(&bench, &labels).ends(0);
}

/// The digest covers what stages need, and not what the machine of the command has.
#[test]
fn another_need_is_another_plan() {
    let digest = |bench: &Workbench, more: &[&str]| plan(bench, more)["digest"].clone();
    let bench = bench("", ", runs_on=gpu");
    let first = digest(&bench, &[]);
    assert_eq!(digest(&bench, &["--label", "gpu"]), first);
    bench.write("pipeline.dot", &pipeline("", ", runs_on=\" gpu \""));
    assert_eq!(digest(&bench, &[]), first, "the same need in other words");
    bench.write("pipeline.dot", &pipeline("", ", runs_on=\"gpu, tier=landlock\""));
    assert_ne!(digest(&bench, &[]), first);
    bench.write("pipeline.dot", &pipeline("", ""));
    let none = digest(&bench, &[]);
    assert_ne!(none, first);
    bench.write("glovebox.toml", "[fleet]\nruns_on = [\"gpu\"]\n");
    assert_eq!(digest(&bench, &[]), first, "wherever it is written");
}

#[test]
fn what_nothing_can_meet_is_invalid() {
    let conflict = bench("runs_on=\"arch=arm64\"", ", runs_on=\"arch=amd64\"");
    for command in [["check", "pipeline.dot"], ["plan", "pipeline.dot"], ["run", "pipeline.dot"]] {
        conflict
            .glovebox(&command)
            .ends(3)
            .says("the graph and `train` need `arch=aarch64` and `arch=x86_64`, and no machine has both");
    }
    let of_project = bench("", ", runs_on=\"arch=amd64\"");
    of_project.write("glovebox.toml", "[fleet]\nruns_on = [\"arch=arm64\"]\n");
    for command in [["check", "pipeline.dot"], ["plan", "pipeline.dot"], ["run", "pipeline.dot"]] {
        of_project.glovebox(&command).ends(3).says("`[fleet]` in glovebox.toml and `runs_on` of `train` need");
    }
    for (list, says) in [
        ("[\"GPU\"]", "`fleet.runs_on`: `GPU` is not a label"),
        ("[\"gpu, ssd\"]", "`gpu, ssd` is not a label"),
        ("\"gpu\"", "a list of strings is expected"),
        ("[\"arch=arm64\", \"arch=amd64\"]", "no machine has both"),
        ("[]\nrun_on = 1", "did you mean `runs_on`?"),
    ] {
        of_project.write("glovebox.toml", &format!("[fleet]\nruns_on = {list}\n"));
        run(&of_project, &[]).ends(3).says(says);
    }
    assert!(!of_project.has(".glovebox") && !conflict.has(".glovebox"));
}

/// Every process that goes on with a run must have what the rest of it needs.
#[test]
fn a_resume_and_a_fork_ask_again() {
    let bench = Workbench::with_pipeline(&pipeline("", ", runs_on=gpu").replace("\"true\"", "\"test -e good\""));
    run(&bench, &["--label", "gpu", "--run-id", "r"]).ends(1);
    let records = bench.run_text("r", "progress.ndjson");
    bench.glovebox(&["resume", "r"]).ends(6).says("`train` needs label `gpu`");
    assert_eq!(bench.run_text("r", "progress.ndjson"), records);
    bench.glovebox(&["resume", "r", "--label", "gpu"]).ends(1).never_says("needs label");
    bench.glovebox(&["fork", "r", "train", "--run-id", "f"]).ends(6).says("`train` needs label `gpu`");
    assert!(!bench.run_folder("f").exists(), "a refused fork creates nothing");
    bench.glovebox(&["fork", "r", "train", "--run-id", "f", "--label", "gpu"]).ends(1).never_says("needs label");
}

#[test]
fn stages_of_a_child_pipeline_need_what_their_node_needs() {
    let outer = |needs: &str| {
        format!(
            "digraph g {{ graph [runs_on=eu]; start; exit\n\
             build [type=subpipeline, \"stack.child_dotfile\"=\"child.dot\", runs_on=\"{needs}\"]\n\
             start -> build -> exit }}"
        )
    };
    let bench = Workbench::with_pipeline(&outer("gpu"));
    bench.write("child.dot", &pipeline("runs_on=\"disk, arch=arm64\"", ", runs_on=ssd"));
    let planned = plan(&bench, &[]);
    assert_eq!(needs_of(&planned, "build__train"), json!(["disk", "eu", "gpu", "ssd", "arch=aarch64"]));
    assert_eq!(needs_of(&planned, "build"), Value::Null, "a node that runs a child makes no attempt itself");
    bench.write("pipeline.dot", &outer("arch=amd64"));
    bench
        .glovebox(&["check", "pipeline.dot"])
        .ends(3)
        .says("and `train` in `child.dot` need")
        .says("no machine has both");
}

#[test]
fn a_need_that_is_gone_is_a_looser_plan() {
    let bench = bench("", ", runs_on=\"gpu, tier=bwrap\"");
    bench.write("old.dot", &bench.read("pipeline.dot"));
    let widened = ["plan", "pipeline.dot", "--against", "old.dot", "--deny", "widened"];
    bench.glovebox(&widened).ends(0);
    bench.write("pipeline.dot", &pipeline("", ", runs_on=\"gpu, ssd, tier=full\""));
    bench.glovebox(&widened).ends(0);
    bench.write("pipeline.dot", &pipeline("", ", runs_on=\"tier=landlock\""));
    bench
        .glovebox(&widened)
        .ends(6)
        .says("node `train`: no longer runs only on machines with gpu")
        .says("node `train`: no longer runs only on machines with tier=bwrap");
}

/// A server and the agents that it serves start runs on its own machine, with the labels that its operator named.
#[test]
fn a_server_starts_only_what_its_machine_can_run() {
    let submitted = json!({ "dot": pipeline("", ", runs_on=gpu") });
    let bench = Workbench::new();
    let served = Served::started(&bench, &[]);
    let refused = served.post("/pipelines", &submitted);
    assert!(refused.body.contains("`train` needs label `gpu`"), "{refused:?}");
    assert_eq!(refused.json()["exit"], 6, "{refused:?}");
    assert!(!bench.has(".glovebox/runs"), "a refused run creates nothing");
    drop(served);
    let with_label = Served::started(&bench, &["--label", "gpu"]);
    let started = with_label.post("/pipelines", &submitted);
    assert!(started.json()["id"].is_string(), "{started:?}");
}
