//! Applies the changes that a rule plugin makes to a graph between lowering and validation (spec §9).
//!
//! A plugin gets and returns a [`SettledGraph`], in which all values are final: inputs, goal and prompt files are
//! inserted, and the style sheet and defaults are applied. [`apply`] does not trust the graph that the plugin returned.
//! It writes this graph as text, parses and lowers the text like any file, and refuses the graph if anything is lost.
//! The result has the spans of the user's file. The caller must lint the result. This module does not run plugin code.

mod changes;
mod graph;
mod relocate;
mod report;

pub use changes::{ChangePlace, GraphChange, GraphChangeOp, changes};
pub use graph::SettledGraph;
pub use report::{RuleRecord, RuleReport};

use crate::check::LoweredFile;
use crate::diagnostic::Diagnostic;
use crate::ir::Pipeline;
use crate::key::{self, Key};
use crate::source::Source;
use crate::{dot, lower};
use relocate::Statements;
pub(crate) use relocate::place;

/// The graph attribute that names hold-outs. It is fixed before prompts are read, so a plugin must not change it.
const SCENARIOS: Key<'static> = key::SCENARIOS;

/// A changed graph that has been parsed.
#[derive(Debug, Clone)]
pub struct TransformedGraph {
    /// Canonical text, with one statement per line. [`reread`] returns the same pipeline for it.
    pub text: String,
    /// The lowered text, with spans in the user's file. It must not run if it has errors.
    pub lowered: LoweredFile,
}

/// Parses and lowers the graph that a plugin returned for `before`.
///
/// # Errors
/// Returns the reason why `answer` is not a valid graph, or must not replace `before`. The reason may quote `answer`,
/// so the caller must escape it.
pub fn apply(before: &Pipeline, answer: &SettledGraph) -> Result<TransformedGraph, String> {
    if answer.attributes.get(SCENARIOS.as_str()).map(String::as_str)
        != before.attributes.get(SCENARIOS).map(|attribute| attribute.value.as_str())
    {
        return Err(format!(
            "the graph's `{SCENARIOS}` has changed; it must stay as in the file, because hold-outs are fixed before prompts \
             are read"
        ));
    }
    let text = graph::to_text(answer, before);
    let lowered = reread(Source::new(&text), before);
    if !lowered.has_errors() {
        graph::agree(answer, &lowered.pipeline)?;
    }
    Ok(TransformedGraph { text, lowered })
}

/// Parses the canonical text of [`apply`], in which every value is final. The spans are those of `original`, the pipeline before
/// the change; a new element has the span of the graph's name.
pub fn reread(text: Source<'_>, original: &Pipeline) -> LoweredFile {
    let (ast, mut diagnostics) = dot::parse(text);
    let is_parsed = !diagnostics.iter().any(Diagnostic::is_error);
    let is_cut = ast.left_out > 0;
    let (mut pipeline, found) = lower::lower_settled(text, ast);
    diagnostics.extend(found);
    let statements = Statements::new(text, &pipeline);
    pipeline.scenarios_found = original.scenarios_found;
    pipeline.sources.clone_from(&original.sources);
    pipeline.set_verifiers(original.verifiers.clone());
    relocate::relocate(&mut pipeline, original);
    for diagnostic in &mut diagnostics {
        diagnostic.span = statements.original_span(diagnostic.span, &pipeline);
    }
    diagnostics.iter_mut().for_each(without_edits);
    LoweredFile { pipeline, diagnostics, is_parsed, is_cut, overridden: Vec::new() }
}

/// Removes the fix and the labels, which refer to a text that the user does not have.
pub fn without_edits(diagnostic: &mut Diagnostic) {
    diagnostic.fix = None;
    diagnostic.labels.clear();
}

#[cfg(test)]
mod tests;
