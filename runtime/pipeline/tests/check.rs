//! Whole files through `check`: what is accepted, what is refused, and in which words.

use glovebox_pipeline::diagnostic::Diagnostic;
use glovebox_pipeline::ir::{Handler, Node, NodeId, Pipeline};
use glovebox_pipeline::{Checked, Inputs, check};

fn run(source: &str) -> Checked {
    check(source, &Inputs::default())
}

/// The pipeline of a file that must be free of errors.
fn accept(source: &str) -> Pipeline {
    let checked = run(source);
    let errors: Vec<&Diagnostic> = checked.diagnostics.iter().filter(|d| d.is_error()).collect();
    assert!(errors.is_empty(), "{source}\n{errors:#?}");
    checked.pipeline.unwrap_or_else(|| panic!("no errors, yet no pipeline: {source}"))
}

fn node<'a>(pipeline: &'a Pipeline, id: &str) -> &'a Node {
    pipeline.node(&NodeId::new(id)).unwrap_or_else(|| panic!("no node {id}"))
}

const LINEAR: &str = r#"digraph Simple {
    graph [goal="Run tests and report"]
    rankdir=LR

    start [shape=Mdiamond, label="Start"]
    exit  [shape=Msquare, label="Exit"]

    run_tests [label="Run Tests", prompt="Run the test suite and report results"]
    report    [label="Report", prompt="Summarize the test results"]

    start -> run_tests -> report -> exit
}"#;

#[test]
fn the_specification_s_linear_example_is_read() {
    let pipeline = accept(LINEAR);
    assert_eq!(pipeline.name, "Simple");
    assert_eq!(pipeline.goal, "Run tests and report");
    assert_eq!(pipeline.nodes.len(), 4);
    assert_eq!(pipeline.edges.len(), 3);
    assert_eq!(pipeline.start, NodeId::new("start"));
    assert_eq!(node(&pipeline, "run_tests").handler, Handler::Component("codergen".to_owned()));
}
