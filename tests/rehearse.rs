//! `glovebox plugin rehearse`: the smallest grants with which a plugin does the same work.

use crate::guests;
use crate::workbench::Workbench;
use glovebox_host::inspect::embed;
use serde_json::Value;

const PIPELINE: &str = "digraph g {
  start [shape=Mdiamond]; done [shape=Msquare]
  stage [type=\"acme.copy\", allowed_write_paths=\"out/\"]
  start -> stage -> done
}
";

/// Copies `src/a.txt` to `out/sum/x.txt`; traps if it cannot read.
const COPIES: &str = r#"
  (import "glovebox:plugin/files@0.1.0" "read" (func $read (param i32 i32 i64 i32 i32)))
  (import "glovebox:plugin/files@0.1.0" "write" (func $write (param i32 i32 i32 i32 i32)))
  (data (i32.const 1024) "src/a.txt")
  (data (i32.const 1100) "out/sum/x.txt")
  (func $execute
    (call $read (i32.const 1024) (i32.const 9) (i64.const 0) (i32.const 100) (i32.const 128))
    (if (i32.load8_u (i32.const 128)) (then (unreachable)))
    (call $write (i32.const 1100) (i32.const 13) (i32.load (i32.const 132)) (i32.load (i32.const 136))
      (i32.const 160)))
"#;

/// Creates a project with a plugin that wants much more than it needs. The operator grants nothing yet.
fn bench(body: &str) -> Workbench {
    let wants = r#""filesystem":"posix","read":["./"],"write":["./"],"commands":["cargo","git"],"model":true"#;
    let manifest = format!(r#"{{"name":"acme.copy","version":"0.1.0","description":"Copies.","wants":{{{wants}}}}}"#);
    let bench = Workbench::with_pipeline(PIPELINE);
    let bytes = embed(&guests::component(body), &manifest).unwrap();
    std::fs::write(bench.project().join("copy.wasm"), bytes).unwrap();
    bench.write("glovebox.toml", "[plugins.\"acme.copy\"]\npath = \"copy.wasm\"\n");
    for path in ["src/a.txt", "src/b.txt", "src/deep/c.txt", "docs/d.txt", "README.md"] {
        bench.write(path, "text");
    }
    bench
}

#[test]
fn only_what_the_plugin_needs_is_proposed_and_nothing_is_written() {
    let bench = bench(COPIES);
    let before = bench.snapshot();
    let shown = bench.glovebox(&["plugin", "rehearse", "acme.copy", "--accept"]);
    shown.ends(0).says("unused   model").says("unused   run cargo").says("needed   read ./: without it, ");
    assert_eq!(bench.snapshot(), before);
    let (_, table) = shown.stdout.split_once("[plugins").unwrap();
    let found: toml::Value = toml::from_str(&format!("[plugins{table}")).unwrap();
    let grants = &found["plugins"]["acme.copy"]["grants"];
    assert_eq!(grants["filesystem"].as_str(), Some("workspace"), "{grants}");
    assert_eq!(grants["read"].as_array().unwrap()[0].as_str(), Some("src/"), "{grants}");
    assert_eq!(grants["write"].as_array().unwrap()[0].as_str(), Some("out/"), "{grants}");
    assert_eq!((grants.get("commands"), grants["model"].as_bool()), (None, Some(false)), "{grants}");
    // The proposal works.
    bench.write("glovebox.toml", &format!("[plugins{table}"));
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    assert_eq!(bench.run_text("r", "workspace/out/sum/x.txt"), "text");
    let document: Value = bench.glovebox(&["plugin", "rehearse", "acme.copy", "--accept", "--json"]).ends(0).json();
    assert_eq!(document["grants"]["read"], serde_json::json!(["src/"]));
}

#[test]
fn a_rehearsal_runs_only_what_this_machine_can_run() {
    let bench = bench(COPIES);
    bench.write("pipeline.dot", &PIPELINE.replace("allowed_write_paths", "runs_on=gpu, allowed_write_paths"));
    let rehearse = ["plugin", "rehearse", "acme.copy", "--accept"];
    bench.glovebox(&rehearse).ends(6).says("`stage` needs label `gpu`").never_says("needed ");
    bench.glovebox(&[&rehearse[..], &["--label", "gpu"]].concat()).ends(0).says("needed   read ./");
}

#[test]
fn a_rehearsal_without_the_plugin_or_with_too_few_runs_says_so() {
    let bench = bench(COPIES);
    bench.glovebox(&["plugin", "rehearse", "acme.other"]).ends(2).says("`acme.other` is not a plugin of this project");
    bench
        .glovebox(&["plugin", "rehearse", "acme.copy", "--accept", "--runs", "3"])
        .ends(5)
        .says("3 runs were not enough");
    bench.write("pipeline.dot", "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; start -> done }\n");
    bench.glovebox(&["plugin", "rehearse", "acme.copy", "--accept"]).ends(1).says("executed no stage of `acme.copy`");
    bench.write("pipeline.dot", "digraph g {");
    bench.glovebox(&["plugin", "rehearse", "acme.copy", "--accept"]).ends(3);
}

/// It reads a file if it may, and says nothing about it: the refused request shows that it wants to.
#[test]
fn what_a_plugin_asks_for_in_vain_is_needed() {
    let bench = bench(
        r#"
  (import "glovebox:plugin/files@0.1.0" "read" (func $read (param i32 i32 i64 i32 i32)))
  (data (i32.const 1024) "src/b.txt")
  (func $execute
    (call $read (i32.const 1024) (i32.const 9) (i64.const 0) (i32.const 100) (i32.const 128)))
"#,
    );
    let shown = bench.glovebox(&["plugin", "rehearse", "acme.copy", "--accept"]);
    shown.ends(0).says("without it, it asks to read `src/b.txt`").says("read = [\"src/\"]");
}

/// A rehearsal grants more than the operator does, so somebody must agree to it first.
#[test]
fn nothing_runs_before_somebody_agreed_to_everything_that_the_plugin_wants() {
    let bench = bench(COPIES);
    let asked = bench.glovebox(&["plugin", "rehearse", "acme.copy"]);
    asked.ends(6).says("run `cargo …` in the sandbox").says("nothing was run").says("--accept");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["plugin", "rehearse", "acme.copy"]).ends(6).says("nothing was run");
}

/// A tool provider has no stages: its calls are compared.
#[test]
fn a_tool_provider_is_rehearsed_with_the_calls_of_a_script() {
    let tools = guests::tools(&[("find", "Finds.", r#"{"type":"object"}"#)]);
    let reads = "(import \"glovebox:plugin/files@0.1.0\" \"read\" (func $read (param i32 i32 i64 i32 i32)))\n\
        (data (i32.const 600) \"src/a.txt\")\n\
        (func $call (call $read (i32.const 600) (i32.const 9) (i64.const 0) (i32.const 1000) (i32.const 128))\n\
        (call $answer (i32.load (i32.const 132)) (i32.load (i32.const 136))))\n";
    let bytes = guests::provider(&format!("{reads}{tools}(func $definitions (call $listed))\n"));
    let manifest =
        r#"{"name":"acme.copy","version":"0.1.0","description":"","wants":{"filesystem":"workspace","read":["./"]}}"#;
    let bench = bench(COPIES);
    std::fs::write(bench.project().join("copy.wasm"), embed(&bytes, manifest).unwrap()).unwrap();
    bench.write("glovebox.toml", "[plugins.\"acme.copy\"]\npath = \"copy.wasm\"\ntools = [\"find\"]\n");
    let stage = "work [prompt=\"x\", allowed_write_paths=\"\", tools=\"acme.copy\"]\n  start -> work -> done";
    let (head, _) = PIPELINE.split_once("  stage [").unwrap();
    bench.write("pipeline.dot", &format!("{head}  {stage}\n}}\n"));
    let end = "[[node.work]]\ntext = \"OUTCOME: SUCCESS\"\n";
    let call = "[[node.work]]\ntool = [{ name = \"plugin__acme-copy__find\", arguments = { a = \"x\" } }]\n";
    bench.write("silent.toml", end);
    bench.write("model.toml", &format!("{call}{end}"));
    let rehearse = |script: &str| {
        bench.glovebox(&["plugin", "rehearse", "acme.copy", "pipeline.dot", "--accept", "--script", script])
    };
    rehearse("silent.toml").ends(1).says("no agent called a tool of `acme.copy`").says("--script");
    let shown = rehearse("model.toml");
    shown.ends(0).says("needed   read ./").says("tools = [\"find\"]");
    let (_, table) = shown.stdout.split_once("[plugins").unwrap();
    let found: toml::Value = toml::from_str(&format!("[plugins{table}")).unwrap();
    assert_eq!(
        found["plugins"]["acme.copy"]["grants"]["read"].as_array().unwrap()[0].as_str(),
        Some("src/"),
        "{table}"
    );
    bench.write("glovebox.toml", &format!("[plugins{table}"));
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "r"]).ends(0);
    assert!(bench.run_text("r", "work/transcript.ndjson").contains("\"text\":\"text\""));
}
