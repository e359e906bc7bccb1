//! Text to checked pipeline.
//!
//! `text -parse-> Ast -lower-> Pipeline + [Diagnostic]`, and what a running pipeline asks of its graph: which edge next.
//! Pure: no IO, no clock, no async. Reading order: [`span`], [`diagnostic`], [`dot`], [`lower`], [`ir`], [`condition`],
//! [`lint`], [`route`], [`graph`].

#![forbid(unsafe_code)]

pub mod condition;
pub mod diagnostic;
pub mod dot;
pub mod graph;
pub mod ir;
pub mod lint;
pub mod lower;
pub mod route;
pub mod span;

use diagnostic::Diagnostic;
use ir::Pipeline;
use std::collections::BTreeMap;

/// What the caller adds to a file.
///
/// `--set key=value`: replaces `$key` in the goal and in prompts, and the graph attribute `key` where the file has one. A key
/// that the file knows in neither way is an error (`input_declared`): a value that goes nowhere is a mistake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The values by key.
    pub set: BTreeMap<String, String>,
}

/// What became of a file.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The pipeline; none when any diagnostic is an error.
    pub pipeline: Option<Pipeline>,
    /// The findings in file order, [`diagnostic::DIAGNOSTICS_MAX`] at most; errors are the last to be left out.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses, lowers and lints one file. Any text ends in diagnostics, none in a panic.
pub fn check(source: &str, inputs: &Inputs) -> Checked {
    let (ast, mut diagnostics) = dot::parse(source);
    let (pipeline, found) = lower::lower(source, &ast, inputs);
    diagnostics.extend(found);
    diagnostics.extend(lint::run(&pipeline));
    let valid = !diagnostics.iter().any(Diagnostic::is_error);
    Checked { pipeline: valid.then_some(pipeline), diagnostics }
}
