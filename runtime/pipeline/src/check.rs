//! Checks a pipeline file in three steps that a caller can also take one by one: parse, lower, validate.
//!
//! Each step takes the result of the previous step, so none can be skipped. For every text the result is a list of
//! diagnostics, never a panic.

use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Edit};
use crate::dot::{self, Name};
use crate::files::References;
use crate::inputs::Inputs;
use crate::ir::Pipeline;
use crate::key::Key;
use crate::lint;
use crate::lower::Draft;
use crate::source::Source;
use crate::span::Span;

/// The result of a check.
#[derive(Debug, Clone)]
pub struct CheckResult {
    /// The pipeline. `None` if a diagnostic is an error.
    pub pipeline: Option<Pipeline>,
    /// The findings in file order, at most [`DIAGNOSTICS_MAX`]. If there are more, syntax errors are kept first, then other errors.
    pub diagnostics: Vec<Diagnostic>,
    /// True if there are more findings than `diagnostics` contains.
    pub is_cut: bool,
}

/// Parses, lowers and lints one file. Never panics, whatever the text.
pub fn check(source: Source<'_>, inputs: &Inputs) -> CheckResult {
    parse(source).check(inputs)
}

/// Parses one file, so that the caller can load the files that it refers to before the check.
pub fn parse(source: Source<'_>) -> ParsedFile<'_> {
    let mut draft = Draft::new(source);
    let (ast, diagnostics) = dot::parse_each(source, |statement| draft.add(statement));
    ParsedFile { name: ast.name, span: ast.span, left_out: ast.left_out, cut_off: ast.cut_off, draft, diagnostics }
}

/// A parsed file that is not lowered yet.
pub struct ParsedFile<'a> {
    name: Option<Name<'a>>,
    span: Span,
    left_out: usize,
    cut_off: Option<usize>,
    draft: Draft<'a>,
    diagnostics: Vec<Diagnostic>,
}

impl ParsedFile<'_> {
    /// Returns the files that this file refers to.
    pub fn references(&self, inputs: &Inputs) -> References {
        self.draft.references(inputs)
    }

    /// Converts every value to its type. Never panics, whatever the text.
    pub fn lower(self, inputs: &Inputs) -> LoweredFile {
        let Self { name, span, left_out, cut_off, draft, mut diagnostics } = self;
        let is_parsed = !diagnostics.iter().any(Diagnostic::is_error);
        let (pipeline, found) = draft.lower(name.as_ref(), span, inputs);
        diagnostics.extend(found.into_iter().filter(|found| cut_off.is_none_or(|at| found.span.start < at)));
        let overridden =
            inputs.set.keys().filter_map(|key| pipeline.attributes.get(Key::new(key))).map(|attribute| attribute.span);
        LoweredFile { overridden: overridden.collect(), pipeline, diagnostics, is_parsed, is_cut: left_out > 0 }
    }

    /// Lowers and lints the file.
    pub fn check(self, inputs: &Inputs) -> CheckResult {
        validate(self.lower(inputs))
    }
}

/// A lowered file that is not linted yet.
#[derive(Debug, Clone)]
pub struct LoweredFile {
    /// The lowered pipeline. It may lack a start node or have edges to undeclared nodes; [`validate`] checks that.
    pub pipeline: Pipeline,
    /// The findings of the steps so far.
    pub diagnostics: Vec<Diagnostic>,
    /// False for a file with syntax errors.
    pub(crate) is_parsed: bool,
    /// True if the parser left out findings.
    pub(crate) is_cut: bool,
    /// The spans of values that an input replaces.
    pub(crate) overridden: Vec<Span>,
}

impl LoweredFile {
    /// Returns true if the file already has errors.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Lints a lowered file. Skips a file with syntax errors, because text that the parser skipped would be reported as missing.
pub fn validate(lowered: LoweredFile) -> CheckResult {
    let LoweredFile { pipeline, mut diagnostics, is_parsed, is_cut, overridden } = lowered;
    if is_parsed {
        diagnostics.extend(lint::run(&pipeline));
    }
    let valid = !diagnostics.iter().any(Diagnostic::is_error);
    drop_overridden_fixes(&overridden, &mut diagnostics);
    let is_cut = is_cut || diagnostics.len() > DIAGNOSTICS_MAX;
    CheckResult { pipeline: valid.then_some(pipeline), diagnostics: in_order(diagnostics), is_cut }
}

/// Removes fixes inside values that `--set` overrides, because a diagnostic there is about the input and not about the
/// file.
fn drop_overridden_fixes(overridden: &[Span], diagnostics: &mut [Diagnostic]) {
    for span in overridden {
        let is_inside = |edit: &Edit| span.start <= edit.span.start && edit.span.end <= span.end;
        for diagnostic in diagnostics.iter_mut().filter(|found| found.fix.as_ref().is_some_and(is_inside)) {
            diagnostic.fix = None;
        }
    }
}

/// Keeps the [`DIAGNOSTICS_MAX`] most severe findings, in file order.
fn in_order(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|diagnostic| (diagnostic.severity, diagnostic.rule != "dot_syntax", diagnostic.span));
    diagnostics.truncate(DIAGNOSTICS_MAX);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
    diagnostics
}
