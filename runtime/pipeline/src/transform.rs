//! A graph that a plugin may change between lowering and validation (spec §9).
//!
//! A plugin receives and returns a [`SettledGraph`]: inputs, goal and prompt files are replaced, style sheet and defaults applied, so all
//! values are final. [`apply`] does not trust the answer. It writes the answer as text, parses and lowers it like any file, and refuses
//! it if anything is lost. The result keeps the spans of the user's file. The caller must lint it next. No plugin code runs here.

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

/// A changed graph after parsing.
#[derive(Debug, Clone)]
pub struct TransformedGraph {
    /// Canonical text, one statement per line. [`reread`] gives the same pipeline.
    pub text: String,
    /// The lowered text, with spans of the user's file. With an error among the diagnostics it must not run.
    pub lowered: LoweredFile,
}

/// Parses and lowers the answer to `before`.
///
/// # Errors
/// The reason why it is not a valid graph, or must not replace `before`. The text may quote the answer, so the caller must escape it.
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

/// Parses canonical text of [`apply`], with every value final. Spans are those of `original`, the pipeline before the change; a new
/// element has the span of the graph's name.
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

/// Removes fixes and labels, which refer to a text that the user does not have.
pub fn without_edits(diagnostic: &mut Diagnostic) {
    diagnostic.fix = None;
    diagnostic.labels.clear();
}

#[cfg(test)]
mod tests;
