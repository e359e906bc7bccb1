//! Every command from outside: what it prints, how it ends, and that bad input names its place and its remedy.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod workbench;

use serde_json::Value;
use workbench::Workbench;

const LINEAR: &str = "digraph ship {
  graph [goal=\"say hello\"]
  start [shape=Mdiamond]
  build [shape=box, prompt=\"Do: $goal\", allowed_write_paths=\"src/\"]
  exit [shape=Msquare]
  start -> build -> exit
}
";

#[test]
fn usage_errors_end_with_2_and_say_what_is_expected() {
    let bench = Workbench::with_pipeline(LINEAR);
    for (words, said) in [
        (&[][..], "Usage: glovebox"),
        (&["frobnicate"], "unrecognized subcommand"),
        (&["run"], "<FILE>"),
        (&["run", "pipeline.dot", "--set", "novalue"], "expected KEY=VALUE"),
        (&["run", "pipeline.dot", "--max-steps", "0"], "--max-steps"),
        (&["graph", "pipeline.dot"], "--format"),
        (&["check", "absent.dot"], "read `absent.dot`"),
        (&["show", "latest"], "no runs in `.glovebox/runs`"),
        (&["resume", "nothing", "--runs-dir", "elsewhere"], "no runs in `elsewhere`"),
        (&["diff", "latest"], "no runs"),
        (&["apply", "latest"], "no runs"),
    ] {
        bench.glovebox(words).ends(2).says(said);
    }
}

#[test]
fn help_and_version_end_with_0() {
    let bench = Workbench::new();
    bench.glovebox(&["--help"]).ends(0).says("Exit codes");
    bench.glovebox(&["help", "run"]).ends(0).says("--dangerously-no-sandbox");
    bench.glovebox(&["--version"]).ends(0).says("glovebox 0.");
    let version = bench.glovebox(&["version", "--json"]).ends(0).json();
    assert_eq!(version["plugin_package"], "glovebox:plugin@0.1.0");
    let names: Vec<&str> =
        version["components"].as_array().unwrap().iter().filter_map(|c| c["name"].as_str()).collect();
    assert_eq!(names, ["codergen", "tool", "verify"]);
}

#[test]
fn a_valid_pipeline_is_checked_without_a_word_on_stdout() {
    let bench = Workbench::with_pipeline(LINEAR);
    let answer = bench.glovebox(&["check", "pipeline.dot"]);
    answer.ends(0).says("1 checked: 0 errors");
    assert_eq!(answer.stdout, "");
    assert_eq!(bench.glovebox(&["check", "pipeline.dot", "--format", "json"]).ends(0).json(), Value::Array(Vec::new()));
}

#[test]
fn check_points_at_the_place_inside_a_string() {
    let bench = Workbench::with_pipeline(
        &LINEAR.replace("build -> exit", "build; build -> exit [condition=\"outcome == success\"]"),
    );
    bench.write("good.dot", LINEAR);
    bench.glovebox(&["check", "good.dot", "pipeline.dot"]).ends(3).says("pipeline.dot:6:").says("outcome == success");
    let found = bench.glovebox(&["check", "good.dot", "pipeline.dot", "--format", "json"]).ends(3).json();
    let first = &found.as_array().unwrap()[0];
    assert_eq!(
        (&first["file"], &first["line"], &first["severity"]),
        (&"pipeline.dot".into(), &6.into(), &"error".into())
    );
    let span = &first["span"];
    let (start, end) = (span["start"].as_u64().unwrap() as usize, span["end"].as_u64().unwrap() as usize);
    assert!(bench.read("pipeline.dot")[start..end].contains('='), "the span covers the operator: {first}");
}

#[test]
fn every_file_is_reported_even_when_the_first_is_bad() {
    let bench = Workbench::new();
    bench.write("a.dot", "digraph a {");
    bench.write("b.dot", "graph b { }");
    bench.write("c.dot", "");
    bench.glovebox(&["check", "a.dot", "b.dot", "c.dot"]).ends(3).says("a.dot:").says("b.dot:").says("c.dot:");
}

#[test]
fn a_hostile_file_cannot_drive_the_terminal() {
    let bench =
        Workbench::with_pipeline("digraph g {\n  a [label=\"\u{1b}]0;owned\u{7}\u{202e}\", shape=\u{1b}[2J]\n}\n");
    let answer = bench.glovebox(&["check", "pipeline.dot"]);
    answer.ends(3).never_says("\u{1b}").never_says("\u{202e}").never_says("\u{7}");
    let mut forced = bench.command(&["check", "pipeline.dot"]);
    let coloured = workbench::Answer::of(forced.env("CLICOLOR_FORCE", "1"));
    coloured.ends(3).says("\u{1b}[").never_says("\u{1b}]0;").never_says("\u{1b}[2J");
    workbench::Answer::of(forced.env("NO_COLOR", "1")).ends(3).never_says("\u{1b}");
}

#[test]
fn files_that_are_no_text_are_refused_with_the_place() {
    let bench = Workbench::new();
    std::fs::write(bench.project().join("bytes.dot"), b"digraph \xff {}").unwrap();
    bench.glovebox(&["check", "bytes.dot"]).ends(3).says("not UTF-8 text at byte 8");
    std::fs::write(bench.project().join("huge.dot"), vec![b' '; 5 << 20]).unwrap();
    bench.glovebox(&["check", "huge.dot"]).ends(3).says("at most");
}

#[test]
fn graph_prints_nodes_and_edges_and_reads_its_own_dot() {
    let bench = Workbench::with_pipeline(LINEAR);
    let graph = bench.glovebox(&["graph", "pipeline.dot", "--format", "json"]).ends(0).json();
    let ids: Vec<&str> = graph["nodes"].as_array().unwrap().iter().filter_map(|node| node["id"].as_str()).collect();
    assert_eq!(ids, ["start", "build", "exit"]);
    assert_eq!((&graph["edges"][1]["from"], &graph["edges"][1]["to"]), (&"build".into(), &"exit".into()));
    let dot = bench.glovebox(&["graph", "pipeline.dot", "--format", "dot"]).ends(0).stdout.clone();
    bench.write("again.dot", &dot);
    assert_eq!(bench.glovebox(&["graph", "again.dot", "--format", "dot"]).ends(0).stdout, dot);
    assert_eq!(bench.glovebox(&["graph", "again.dot", "--format", "json"]).ends(0).json(), graph);
}

#[test]
fn a_component_is_inspected_and_anything_else_is_refused() {
    let bench = Workbench::new();
    let tool = workbench::root().join("target/components/tool.wasm");
    std::fs::copy(tool, bench.project().join("tool.wasm")).unwrap();
    bench.glovebox(&["plugin", "inspect", "tool.wasm"]).ends(0).says("digest    blake3:").says("glovebox:plugin/exec");
    let json = bench.glovebox(&["plugin", "inspect", "tool.wasm", "--json"]).ends(0).json();
    assert!(json["imports"].as_array().unwrap().iter().any(|import| import["name"].as_str().unwrap().contains("exec")));
    bench.write("text.wasm", "not a component");
    bench
        .glovebox(&["plugin", "inspect", "text.wasm"])
        .ends(7)
        .says("`text.wasm` is not a valid WebAssembly component");
    std::fs::write(bench.project().join("core.wasm"), wat::parse_str("(module)").unwrap()).unwrap();
    bench.glovebox(&["plugin", "inspect", "core.wasm"]).ends(7).says("a core module, expected a component");
    bench.glovebox(&["plugin", "inspect", "absent.wasm"]).ends(2).says("read `absent.wasm`");
}

#[test]
fn no_runs_is_an_empty_list() {
    let bench = Workbench::new();
    bench.glovebox(&["ls"]).ends(0).says("no runs");
    assert_eq!(bench.glovebox(&["ls", "--json"]).ends(0).json(), Value::Array(Vec::new()));
}
