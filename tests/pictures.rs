//! `glovebox graph` with the real binary: every format of a pipeline and of a run, to stdout and to a file, and refused
//! input.

use crate::workbench::{self, Workbench};

const PIPELINE: &str = "digraph ship {
  graph [goal=\"say hello\"]
  start [shape=Mdiamond]
  build [prompt=\"Do: $goal\", label=\"Bauen → <b>los</b>\", allowed_write_paths=\"src/\"]
  again [shape=diamond, label=\"Once \u{1b}[2Jmore?\"]
  exit [shape=Msquare]
  start -> build -> again
  again -> exit [condition=\"outcome=success\"]
  again -> build [condition=\"outcome=fail\"]
}
";

const SCRIPT: &str = "[[node.build]]\ntext = \"done\"\n";

#[test]
fn a_pipeline_is_drawn_in_every_format() {
    let bench = Workbench::with_pipeline(PIPELINE);
    let drawn = |format: &str| bench.glovebox(&["graph", "pipeline.dot", "--format", format]).ends(0).stdout.clone();
    let svg = drawn("svg");
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\"") && svg.ends_with("</svg>\n"), "{svg}");
    assert!(svg.contains("&lt;b&gt;los") && !svg.contains("<b>") && !svg.contains('\u{1b}'), "{svg}");
    let list = drawn("text");
    assert!(list.starts_with("ship: 4 nodes, 4 edges\n\nstart (start)\n  -> build\n"), "{list}");
    assert!(list.contains("again \"Once [2Jmore?\" (conditional)\n  -> exit  if outcome=success\n"), "{list}");
    assert!(list.contains("  -> build  if outcome=fail  (back)\n"), "{list}");
    assert!(drawn("dot").starts_with("digraph \"ship\" {"));
    assert_eq!(svg, drawn("svg"), "the same bytes twice");
}

#[test]
fn a_picture_goes_to_a_file() {
    let bench = Workbench::with_pipeline(PIPELINE);
    let answer = bench.glovebox(&["graph", "pipeline.dot", "--format", "svg", "-o", "a.svg"]);
    assert_eq!(answer.ends(0).stdout, "");
    let file = std::fs::read_to_string(bench.project().join("a.svg")).unwrap();
    assert_eq!(file, bench.glovebox(&["graph", "pipeline.dot", "--format", "svg"]).ends(0).stdout);
    bench.glovebox(&["graph", "pipeline.dot", "--format", "svg", "-o", "nowhere/a.svg"]).ends(2).says("nowhere/a.svg");
}

#[test]
fn a_png_is_refused_with_a_command_that_makes_one() {
    let bench = Workbench::with_pipeline(PIPELINE);
    let answer = bench.glovebox(&["graph", "pipeline.dot", "--format", "png", "-o", "a.png"]);
    answer.ends(2).says("`--format png` is not supported").says("resvg graph.svg graph.png");
    assert!(!bench.project().join("a.png").exists());
}

#[test]
fn the_canonical_dot_of_a_pipeline_with_defaults_passes_the_check() {
    let bench = Workbench::with_pipeline(
        "digraph g { start; exit; node [max_retries=2, max_wall_time=5m, verify_command=\"true\", allowed_write_paths=\"\"]
         split [shape=component] one [prompt=a] two [prompt=b] join [shape=tripleoctagon] end [shape=Msquare]
         start -> split -> one -> join -> exit split -> two -> join join -> end [label=end] }",
    );
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
    bench.glovebox(&["graph", "pipeline.dot", "--format", "dot", "-o", "canonical.dot"]).ends(0);
    bench.glovebox(&["check", "canonical.dot"]).ends(0);
    let again = bench.glovebox(&["graph", "canonical.dot", "--format", "dot"]).ends(0).stdout.clone();
    assert_eq!(std::fs::read_to_string(bench.project().join("canonical.dot")).unwrap(), again);
}

#[test]
fn pictures_of_characters_are_refused() {
    let bench = Workbench::with_pipeline(PIPELINE);
    for format in ["ascii", "unicode"] {
        bench
            .glovebox(&["graph", "pipeline.dot", "--format", format])
            .ends(2)
            .says("[possible values: svg, text, dot, json]");
    }
}

#[test]
fn a_run_is_drawn_over_its_own_pipeline() {
    let bench = Workbench::with_pipeline(PIPELINE);
    bench.write("script.toml", SCRIPT);
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "first"]).ends(0);
    // The picture shows the pipeline that ran, not the current file.
    bench.write("pipeline.dot", "digraph other { }");
    let svg = bench.glovebox(&["graph", "latest", "--format", "svg"]).ends(0).stdout.clone();
    assert!(svg.contains("class=\"node kind-agent status-success\""), "{svg}");
    assert!(svg.contains("class=\"node kind-exit status-success\""), "{svg}");
    assert!(svg.contains("tone-fail faint"), "{svg}");
    let list = bench.glovebox(&["graph", "first", "--format", "text"]).ends(0).stdout.clone();
    assert!(list.contains("(codergen)  [success]\n  -> again  [taken x1]\n"), "{list}");
    let json = bench.glovebox(&["graph", "fir", "--format", "json"]).ends(0).json();
    assert_eq!(json["layout"]["nodes"][1]["status"], "success");
    assert_eq!((&json["layout"]["edges"][2]["taken"], json["layout"]["edges"][3].get("taken")), (&1.into(), None));
}

#[test]
fn what_is_neither_a_file_nor_a_run_is_refused() {
    let bench = Workbench::with_pipeline(PIPELINE);
    bench.glovebox(&["graph", "latest", "--format", "svg"]).ends(2).says("no runs in");
    bench.glovebox(&["graph", "absent.dot", "--format", "svg"]).ends(2).says("read `absent.dot`");
    bench
        .glovebox(&["graph", "latest", "--format", "svg", "--set", "a=b"])
        .ends(2)
        .says("the inputs of a run cannot be changed");
    bench.write("bad.dot", "digraph {");
    bench.glovebox(&["graph", "bad.dot", "--format", "svg"]).ends(3);
}

#[test]
fn the_picture_in_the_readme_is_of_the_example() {
    let bench = Workbench::copy_of("examples/quickstart");
    let drawn = bench.glovebox(&["graph", "pipeline.dot", "--format", "svg"]).ends(0).stdout.clone();
    let shown = std::fs::read_to_string(workbench::root().join("docs/pictures/quickstart.svg")).unwrap();
    assert!(drawn == shown, "draw docs/pictures/quickstart.svg anew with `glovebox graph`");
}
