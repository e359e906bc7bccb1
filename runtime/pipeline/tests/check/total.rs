//! Properties that every text must have: it is parsed or gets diagnostics, and the parsed graph keeps its meaning.
//!
//! This module has only the checks. The property tests of this crate and the fuzz targets in `fuzz/` supply the texts.

use glovebox_pipeline::Source;
use glovebox_pipeline::condition::Condition;
use glovebox_pipeline::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, fixed};
use glovebox_pipeline::dot::SourceMap;
use glovebox_pipeline::format::format;
use glovebox_pipeline::graph::{to_dot, to_json};
use glovebox_pipeline::ir::NodeId;
use glovebox_pipeline::span::Span;
use glovebox_pipeline::stylesheet::Stylesheet;
use glovebox_pipeline::{CheckResult, Inputs, dot, lower};

fn run(source: &str) -> CheckResult {
    glovebox_pipeline::check(Source::new(source), &Inputs::default())
}

fn check_spans(source: &str, found: &Diagnostic) {
    let check = |span: Span| assert!(source.get(span.start..span.end).is_some(), "{span:?} in {source:?}");
    check(found.span);
    found.labels.iter().for_each(|label| check(label.span));
    found.fix.iter().for_each(|fix| check(fix.span));
}

/// Checks any text: there is no panic, spans are inside the text, there is a pipeline if and only if there is no error,
/// and canonical DOT parses to the same graph.
pub(crate) fn check(source: &str) {
    let checked = run(source);
    assert!(checked.diagnostics.len() <= DIAGNOSTICS_MAX);
    checked.diagnostics.iter().for_each(|found| check_spans(source, found));
    assert!(checked.diagnostics.windows(2).all(|pair| pair[0].span.start <= pair[1].span.start), "file order");
    assert_eq!(checked.pipeline.is_none(), checked.diagnostics.iter().any(Diagnostic::is_error));
    // The fixed text is treated like any other text: it is parsed or gets diagnostics.
    fixed(Source::new(source), &checked.diagnostics).iter().for_each(|text| drop(run(text)));
    if let Some(pipeline) = checked.pipeline {
        let dot = to_dot(&pipeline);
        let again = run(&dot);
        let found = again.diagnostics;
        let again = again.pipeline.unwrap_or_else(|| panic!("canonical DOT is refused: {dot}\n{found:?}"));
        assert_eq!(to_json(&pipeline), to_json(&again), "{dot}");
        assert_eq!(to_dot(&again), dot);
    }
}

/// Checks that formatting a valid file gives a valid file with the same meaning, and that formatting twice changes nothing.
pub(crate) fn check_format(source: &str) {
    let Ok(once) = format(Source::new(source)) else { return };
    assert_eq!(
        format(Source::new(&once)).as_deref(),
        Ok(once.as_str()),
        "formatting twice changes nothing: {source:?}"
    );
    assert_eq!(meaning(source), meaning(&once), "the meaning stays: {source:?}\n{once}");
}

/// Returns the canonical DOT of a text, valid or not: every node and edge with every attribute, without spans.
fn meaning(source: &str) -> String {
    let (pipeline, _) = lower::lower(Source::new(source), dot::parse(Source::new(source)).0, &Inputs::default());
    to_dot(&pipeline)
}

/// Checks that the spans of a condition's diagnostics are inside the condition.
pub(crate) fn check_condition(text: &str) {
    let source = dot::quote(text);
    let places = SourceMap::new(Source::new(&source), Span::new(0, source.len()));
    match Condition::parse(text, &places) {
        Ok(condition) => {
            assert!(condition.clauses.iter().all(|clause| source.get(clause.span.start..clause.span.end).is_some()))
        }
        Err(found) => check_spans(&source, &found),
    }
}

/// Checks that the spans of a style sheet's diagnostics are inside the style sheet, and that its valid rules can be applied.
pub(crate) fn check_stylesheet(text: &str) {
    let source = dot::quote(text);
    let (stylesheet, found) =
        Stylesheet::parse(text, &SourceMap::new(Source::new(&source), Span::new(0, source.len())));
    found.iter().for_each(|found| check_spans(&source, found));
    drop(stylesheet.apply(&NodeId::new("a"), "box", &["b", "c"]));
}
