//! Text to checked pipeline.
//!
//! `text -parse-> Ast -lower-> Pipeline + [Diagnostic]`, and the selection of the next edge for a running pipeline.
//! Pure: no IO, no clock, no async. Reading order: [`span`], [`diagnostic`], [`dot`], [`files`], [`lower`], [`ir`], [`keyed`], [`attributes`], [`condition`],
//! [`stylesheet`], [`holdout_roles`], [`fixability`], [`transform`], [`lint`], [`route`], [`graph`].

#![forbid(unsafe_code)]

pub mod attributes;
pub mod condition;
pub mod diagnostic;
pub mod dot;
pub mod files;
pub mod fixability;
pub mod format;
pub mod graph;
pub mod holdout_roles;
pub mod ir;
pub mod keyed;
pub mod lint;
pub mod lower;
pub mod nearest;
pub mod route;
pub mod span;
pub mod stylesheet;
pub mod transform;

use diagnostic::Diagnostic;
use ir::Pipeline;
use lower::Draft;
use std::collections::BTreeMap;

/// The inputs of a file from its caller.
///
/// `--set key=value` replaces `$key` in the goal and in prompts, and the value of the graph attribute `key`. A key that the file does not
/// use is an error (`input_declared`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The values by key.
    pub set: BTreeMap<String, String>,
    /// The texts of the files that the pipeline refers to, which [`ParsedFile::references`] lists. A missing text is an error.
    pub files: files::Files,
    /// True if the caller found a folder with hold-outs. A file may also name one itself.
    pub scenarios_found: bool,
}

/// The result of a check.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The pipeline; none if a diagnostic is an error.
    pub pipeline: Option<Pipeline>,
    /// The findings in file order, at most [`diagnostic::DIAGNOSTICS_MAX`]. Syntax errors have precedence, then other errors.
    pub diagnostics: Vec<Diagnostic>,
    /// True if there are more findings than these.
    pub is_cut: bool,
}

/// Parses, lowers and lints one file. Never panics, whatever the text.
pub fn check(source: &str, inputs: &Inputs) -> Checked {
    parse(source).check(inputs)
}

/// Parses one file, so that the caller can load the files that it refers to before the check.
pub fn parse(source: &str) -> ParsedFile<'_> {
    let mut draft = Draft::new(source);
    let (ast, diagnostics) = dot::parse_each(source, |statement| draft.add(statement));
    ParsedFile { name: ast.name, span: ast.span, left_out: ast.left_out, cut_off: ast.cut_off, draft, diagnostics }
}

/// A parsed file that is not lowered yet.
pub struct ParsedFile<'a> {
    name: Option<dot::Name<'a>>,
    span: span::Span,
    left_out: usize,
    cut_off: Option<usize>,
    draft: Draft<'a>,
    diagnostics: Vec<Diagnostic>,
}

impl ParsedFile<'_> {
    /// Lists the files that it refers to.
    pub fn references(&self, inputs: &Inputs) -> files::References {
        files::references(&self.draft, inputs)
    }

    /// Gives every value its type. Never panics, whatever the text.
    pub fn lower(self, inputs: &Inputs) -> Lowered {
        let Self { name, span, left_out, cut_off, draft, mut diagnostics } = self;
        let is_parsed = !diagnostics.iter().any(Diagnostic::is_error);
        let (pipeline, found) = draft.lower(name.as_ref(), span, inputs);
        diagnostics.extend(found.into_iter().filter(|found| cut_off.is_none_or(|at| found.span.start < at)));
        let overridden =
            inputs.set.keys().filter_map(|key| pipeline.attributes.get(key)).map(|attribute| attribute.span);
        Lowered { overridden: overridden.collect(), pipeline, diagnostics, is_parsed, is_cut: left_out > 0 }
    }

    /// Lowers and lints it.
    pub fn check(self, inputs: &Inputs) -> Checked {
        validate(self.lower(inputs))
    }
}

/// A lowered file that is not linted yet.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// The draft of the pipeline, possibly without a start or with undeclared targets; [`validate`] checks it.
    pub pipeline: Pipeline,
    /// The findings so far.
    pub diagnostics: Vec<Diagnostic>,
    /// False for a file with syntax errors.
    is_parsed: bool,
    /// True if the parser dropped findings.
    is_cut: bool,
    /// The spans of values that an input replaces.
    overridden: Vec<span::Span>,
}

impl Lowered {
    /// True if it has errors already.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Lints a lowered file. Does not lint a file with syntax errors, because unread text would be reported as missing.
pub fn validate(lowered: Lowered) -> Checked {
    let Lowered { pipeline, mut diagnostics, is_parsed, is_cut, overridden } = lowered;
    if is_parsed {
        diagnostics.extend(lint::run(&pipeline));
    }
    let valid = !diagnostics.iter().any(Diagnostic::is_error);
    drop_overridden_fixes(&overridden, &mut diagnostics);
    let is_cut = is_cut || diagnostics.len() > diagnostic::DIAGNOSTICS_MAX;
    Checked { pipeline: valid.then_some(pipeline), diagnostics: in_order(diagnostics), is_cut }
}

/// Drops fixes inside values overridden by `--set`: the diagnostic is about the input, not the file.
fn drop_overridden_fixes(overridden: &[span::Span], diagnostics: &mut [Diagnostic]) {
    for span in overridden {
        let is_inside = |edit: &diagnostic::Edit| span.start <= edit.span.start && edit.span.end <= span.end;
        for diagnostic in diagnostics.iter_mut().filter(|found| found.fix.as_ref().is_some_and(is_inside)) {
            diagnostic.fix = None;
        }
    }
}

/// Keeps the most severe [`diagnostic::DIAGNOSTICS_MAX`], in file order.
fn in_order(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|diagnostic| (diagnostic.severity, diagnostic.rule != "dot_syntax", diagnostic.span));
    diagnostics.truncate(diagnostic::DIAGNOSTICS_MAX);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
    diagnostics
}
