//! A graph that somebody else may change between reading and validation (spec §9).
//!
//! [`SettledGraph`] is what goes out and comes back: inputs, goal and prompt files are put in, style sheet and defaults spread
//! out, so nothing in it is looked up again. [`apply`] believes nothing of what comes back: it is written as text, read by the
//! same parser and lowered like any file, and what did not survive that is refused. The result keeps the places of the user's
//! file, where a reader looks for them; linting it is the caller's next step and is never left out. Nobody's code runs here.

mod changes;
mod graph;
mod places;

pub use changes::{Change, ChangeOp, ChangePlace, changes};
pub use graph::SettledGraph;

use crate::diagnostic::Diagnostic;
use crate::ir::Pipeline;
use crate::{Lowered, dot, lower};
use places::Statements;

/// The graph attribute that names hold-outs: decided before prompts are read, so nobody may change it afterwards.
const SCENARIOS: &str = "scenarios";

/// A changed graph, read again.
#[derive(Debug, Clone)]
pub struct Applied {
    /// Canonical text: one statement for each line. [`reread`] makes the same of it.
    pub text: String,
    /// What the text says, with places in the user's file. With an error among its findings it must not run.
    pub lowered: Lowered,
}

/// Reads the answer to `before` as a graph.
///
/// # Errors
/// Why it is none, or none that may take the place of `before`: in the answer's words, so to be escaped.
pub fn apply(before: &Pipeline, answer: &SettledGraph) -> Result<Applied, String> {
    if answer.attributes.get(SCENARIOS).map(String::as_str)
        != before.attributes.get(SCENARIOS).map(|attribute| attribute.value.as_str())
    {
        return Err(format!(
            "the graph's `{SCENARIOS}` is changed, and hold-outs are settled before prompts are read: `{SCENARIOS}` is \
             expected to stay as the file has it"
        ));
    }
    let text = graph::to_text(answer, before);
    let lowered = reread(&text, before);
    if !lowered.has_errors() {
        graph::agree(answer, &lowered.pipeline)?;
    }
    Ok(Applied { text, lowered })
}

/// Reads canonical text that [`apply`] wrote: every value as it stands, none looked up. Places are those of `original`, the
/// pipeline it came from: of what is new there, the graph's name.
pub fn reread(text: &str, original: &Pipeline) -> Lowered {
    let (ast, mut diagnostics) = dot::parse(text);
    let is_read = !diagnostics.iter().any(Diagnostic::is_error);
    let is_cut = ast.left_out > 0;
    let (mut pipeline, found) = lower::lower_settled(text, ast);
    diagnostics.extend(found);
    let statements = Statements::of(text, &pipeline);
    pipeline.scenarios_found = original.scenarios_found;
    places::relocate(&mut pipeline, original);
    for diagnostic in &mut diagnostics {
        diagnostic.span = statements.place(diagnostic.span, &pipeline);
    }
    diagnostics.iter_mut().for_each(without_edits);
    Lowered { pipeline, diagnostics, is_read, is_cut, given: Vec::new() }
}

/// Takes away what speaks of a text the user does not have.
pub fn without_edits(diagnostic: &mut Diagnostic) {
    diagnostic.fix = None;
    diagnostic.labels.clear();
}

#[cfg(test)]
mod tests;
