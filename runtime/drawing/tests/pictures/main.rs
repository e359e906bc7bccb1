//! Pictures of the graphs in `graphs/`, compared with the files in `expected/`, which people can view.
//!
//! `UPDATE_PICTURES=1` rewrites the expected files. The other modules check that every SVG is well-formed and contains
//! no script or reference, and that the published schema matches the written JSON.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod corpus;
mod well_formed;

use glovebox_drawing::{DrawnGraph, NodeProgress, Overlay, draw, to_json, to_list, to_svg};
use glovebox_pipeline::Source;
use glovebox_pipeline::ir::{EdgeIndex, NodeId, Pipeline, Status};
use glovebox_pipeline::{Inputs, dot, lower};
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/pictures").join(name)
}

/// Reads a graph by name. The lint of the graph does not matter here.
fn pipeline(name: &str) -> Pipeline {
    read(&std::fs::read_to_string(folder("graphs").join(format!("{name}.dot"))).unwrap())
}

fn read(source: &str) -> Pipeline {
    let (ast, diagnostics) = dot::parse(Source::new(source));
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    lower::lower(Source::new(source), ast, &Inputs::default()).0
}

const GRAPHS: [&str; 15] = [
    "shapes",
    "fix-loop",
    "chain",
    "fan",
    "loops",
    "wide",
    "tongues",
    "hostile",
    "parallel-edges",
    "failures",
    "direction-bt",
    "direction-rl",
    "skip",
    "subgraphs",
    "subgraphs-sideways",
];

/// Compares a text with the expected file, or writes the file.
fn check_file(name: &str, text: &str) {
    let file = folder("expected").join(name);
    if std::env::var_os("UPDATE_PICTURES").is_some() {
        std::fs::create_dir_all(folder("expected")).unwrap();
        std::fs::write(&file, text).unwrap();
    }
    let on_file = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(on_file == text, "{name} has changed: look at it, then run with UPDATE_PICTURES=1");
}

fn check(name: &str, pipeline: &Pipeline, overlay: Option<&Overlay>) {
    let svg = to_svg(&draw(pipeline, overlay));
    well_formed::check(&svg);
    check_file(&format!("{name}.svg"), &svg);
    check_file(&format!("{name}.txt"), &to_list(pipeline, overlay));
}

#[test]
fn the_pictures_are_those_that_were_looked_at() {
    for name in GRAPHS {
        check(name, &pipeline(name), None);
    }
}

#[test]
fn a_run_shows_what_was_reached() {
    let pipeline = pipeline("fix-loop");
    let mut overlay = Overlay::default();
    let ended = NodeProgress::Ended;
    for (node, progress, visits) in [
        ("start", ended(Status::Success), 1),
        ("implement", NodeProgress::Running, 3),
        ("test", ended(Status::Fail), 2),
        ("review", ended(Status::PartialSuccess), 1),
    ] {
        overlay.nodes.insert(NodeId::new(node), (progress, visits));
    }
    for (edge, times) in [(0, 1), (1, 2), (2, 1), (3, 1)] {
        overlay.edges.insert(EdgeIndex(edge), times);
    }
    overlay.jumps.insert((NodeId::new("review"), NodeId::new("implement")), 1);
    overlay.jumps.insert((NodeId::new("nobody"), NodeId::new("nowhere")), 1);
    check("run", &pipeline, Some(&overlay));
}

#[test]
fn a_list_has_every_node_of_a_large_graph() {
    let graph = |stages: usize| {
        let mut text = "digraph many { graph [goal=\"much\"] start [shape=Mdiamond] done [shape=Msquare]\n".to_owned();
        for index in 0..stages {
            writeln!(text, "w{index} [label=\"Work {index}\"] t{index} [shape=parallelogram, label=\"Test {index}\"]")
                .unwrap();
            writeln!(text, "w{index} -> t{index}\nt{index} -> w{index} [condition=\"outcome=fail\"]").unwrap();
            let next = if index + 1 < stages { format!("w{}", index + 1) } else { "done".to_owned() };
            writeln!(text, "t{index} -> {next} [condition=\"outcome=success\"]").unwrap();
        }
        read(&(text + "start -> w0 }"))
    };
    check("sixty", &graph(29), None);
    assert!(to_list(&graph(50), None).starts_with("many: 102 nodes, 151 edges\n"));
}

#[test]
fn the_published_schema_is_current() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/graph.schema.json");
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(DrawnGraph)).unwrap() + "\n";
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&file, &schema).unwrap();
    }
    assert!(std::fs::read_to_string(&file).unwrap_or_default() == schema, "run with UPDATE_SCHEMAS=1");
}

#[test]
fn json_has_a_place_for_everything() {
    let pipeline = pipeline("loops");
    let file = to_json(&pipeline, &draw(&pipeline, None));
    assert_eq!((file.layout.nodes.len(), file.layout.edges.len()), (file.graph.nodes.len(), file.graph.edges.len()));
    for (index, (place, edge)) in file.layout.edges.iter().zip(&file.graph.edges).enumerate() {
        assert_eq!((place.edge, &place.from, &place.to), (Some(index), &edge["from"], &edge["to"]));
        assert_eq!(place.label.is_some(), edge.contains_key("label") || edge.contains_key("condition"));
        assert!(!place.steps.is_empty() && place.steps.iter().all(|step| [2, 6].contains(&step.len())));
    }
}
