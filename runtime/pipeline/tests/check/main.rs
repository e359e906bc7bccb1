//! Tests the crate through its public interface. There is one module for each feature, most of them with a table and
//! one `check(..)`.
//!
//! The functions below create a file, check it, and show each finding as one line: rule, the text under the span, message.

mod agent_programs;
mod condition;
mod edits;
mod examples;
mod files;
mod fixability;
mod format;
mod fuzz;
mod graph;
mod holdout_rules;
mod lint;
mod lower;
mod node_settings;
mod pages;
mod placement;
mod properties;
mod reader;
mod route;
mod schemas;
mod scripts;
mod stylesheet;
mod tool_paths;
mod total;
mod unverified;
mod verification;

use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::{Diagnostic, Severity};
use glovebox_pipeline::ir::{Edge, Node, NodeId, Pipeline};
use glovebox_pipeline::{CheckResult, Inputs, check, dot, lower as lowering};

fn run(source: &str) -> CheckResult {
    check(Source::new(source), &Inputs::default())
}

/// Returns the pipeline of a file. Fails if the file has errors.
fn accept(source: &str) -> Pipeline {
    let checked = run(source);
    let errors = checked.diagnostics.iter().filter(|found| found.is_error());
    let errors: Vec<String> = errors.map(|found| line(source, found)).collect();
    assert!(errors.is_empty(), "{source}\n{errors:#?}");
    checked.pipeline.unwrap_or_else(|| panic!("no errors, yet no pipeline: {source}"))
}

/// Lowers a file, even one with errors.
fn lowered(source: &str) -> Pipeline {
    let (ast, _) = dot::parse(Source::new(source));
    lowering::lower(Source::new(source), ast, &Inputs::default()).0
}

/// Returns the findings of one severity, one per line.
fn found(source: &str, severity: Severity) -> String {
    let checked = run(source);
    let lines = checked.diagnostics.iter().filter(|found| found.severity == severity).map(|found| line(source, found));
    lines.collect::<Vec<_>>().join("\n")
}

fn errors(source: &str) -> String {
    let text = found(source, Severity::Error);
    assert_eq!(text.is_empty(), run(source).pipeline.is_some(), "a pipeline if and only if no error: {source}");
    text
}

/// Returns `rule «text under the span» message`, followed by the fix.
fn line(source: &str, found: &Diagnostic) -> String {
    let fix = found.fix.as_ref().map(|fix| format!(" ~> «{}»", fix.replacement)).unwrap_or_default();
    format!(
        "{} «{}» {}{fix}",
        found.rule,
        Source::new(source).at(found.span).replace('\n', "⏎").replace('\0', "␀"),
        found.message
    )
}

/// Returns a file with a start, an exit and this body.
fn with(body: &str) -> String {
    format!("digraph G {{ start [shape=Mdiamond] exit [shape=Msquare] {body} }}")
}

/// Returns a file in which the node `n`, with these attributes, is between start and exit.
fn with_node(attributes: &str) -> String {
    with(&format!("n [prompt=\"p\", allowed_write_paths=\"src/\", {attributes}] start -> n -> exit"))
}

/// Returns a file in which the graph has these attributes.
fn with_graph(attributes: &str) -> String {
    with(&format!("graph [{attributes}] start -> exit"))
}

fn node<'a>(pipeline: &'a Pipeline, id: &str) -> &'a Node {
    pipeline.node(&NodeId::new(id)).unwrap_or_else(|| panic!("no node {id}"))
}

fn edge<'a>(pipeline: &'a Pipeline, from: &str, to: &str) -> &'a Edge {
    let mut edges = pipeline.edges.iter().filter(|edge| edge.from.as_str() == from && edge.to.as_str() == to);
    edges.next().unwrap_or_else(|| panic!("no edge {from} -> {to}"))
}
