//! Text to checked pipeline.
//!
//! `text -parse-> Ast -lower-> Pipeline + [Diagnostic]`, and what a running pipeline asks of its graph: which edge next.
//! Pure: no IO, no clock, no async. Reading order: [`span`], [`diagnostic`], [`dot`], [`files`], [`lower`], [`ir`], [`keyed`], [`attributes`], [`condition`],
//! [`stylesheet`], [`holdouts`], [`mending`], [`transform`], [`lint`], [`route`], [`graph`].

#![forbid(unsafe_code)]

pub mod attributes;
pub mod condition;
pub mod diagnostic;
pub mod dot;
pub mod files;
pub mod format;
pub mod graph;
pub mod holdouts;
pub mod ir;
pub mod keyed;
pub mod lint;
pub mod lower;
pub mod mending;
pub mod nearest;
pub mod route;
pub mod span;
pub mod stylesheet;
pub mod transform;

use diagnostic::Diagnostic;
use ir::Pipeline;
use lower::Draft;
use std::collections::BTreeMap;

/// What the caller adds to a file.
///
/// `--set key=value`: replaces `$key` in the goal and in prompts, and the graph attribute `key` where the file has one. A key
/// that the file knows in neither way is an error (`input_declared`): a value that goes nowhere is a mistake.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The values by key.
    pub set: BTreeMap<String, String>,
    /// The texts of the files that the pipeline refers to ([`Text::wanted`] lists them); one that is absent is an error.
    pub files: files::Files,
    /// True when a folder with hold-outs exists, as far as the caller looked. A file that names one says so itself.
    pub scenarios_found: bool,
}

/// What became of a file.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The pipeline; none when any diagnostic is an error.
    pub pipeline: Option<Pipeline>,
    /// The findings in file order, [`diagnostic::DIAGNOSTICS_MAX`] at most; errors are the last to be left out, those about letters that
    /// could not be read the very last.
    pub diagnostics: Vec<Diagnostic>,
    /// True when there are more findings than were kept.
    pub is_cut: bool,
}

/// Parses, lowers and lints one file. Any text ends in diagnostics, none in a panic.
pub fn check(source: &str, inputs: &Inputs) -> Checked {
    read(source).check(inputs)
}

/// Parses one file, for whoever brings what it refers to before it is judged.
pub fn read(source: &str) -> Text<'_> {
    let mut draft = Draft::new(source);
    let (ast, diagnostics) = dot::parse_each(source, |statement| draft.take(statement));
    Text { name: ast.name, span: ast.span, left_out: ast.left_out, cut_off: ast.cut_off, draft, diagnostics }
}

/// A file that was parsed, and not judged.
pub struct Text<'a> {
    name: Option<dot::Name<'a>>,
    span: span::Span,
    left_out: usize,
    cut_off: Option<usize>,
    draft: Draft<'a>,
    diagnostics: Vec<Diagnostic>,
}

impl Text<'_> {
    /// What it refers to.
    pub fn wanted(&self, inputs: &Inputs) -> files::Wanted {
        files::wanted(&self.draft, inputs)
    }

    /// Gives every value its type. Any text ends in diagnostics, none in a panic.
    pub fn lower(self, inputs: &Inputs) -> Lowered {
        let Self { name, span, left_out, cut_off, draft, mut diagnostics } = self;
        let is_read = !diagnostics.iter().any(Diagnostic::is_error);
        let (pipeline, found) = draft.lower(name.as_ref(), span, inputs);
        diagnostics.extend(found.into_iter().filter(|found| cut_off.is_none_or(|at| found.span.start < at)));
        let given = inputs.set.keys().filter_map(|key| pipeline.attributes.get(key)).map(|attribute| attribute.span);
        Lowered { given: given.collect(), pipeline, diagnostics, is_read, is_cut: left_out > 0 }
    }

    /// Lowers and lints it.
    pub fn check(self, inputs: &Inputs) -> Checked {
        validate(self.lower(inputs))
    }
}

/// What a file says, before anybody asked whether it makes sense.
#[derive(Debug, Clone)]
pub struct Lowered {
    /// The pipeline; it may have no start and lead nowhere, so that only [`validate`] lets it out.
    pub pipeline: Pipeline,
    /// The findings so far.
    pub diagnostics: Vec<Diagnostic>,
    /// False for a file with syntax errors.
    is_read: bool,
    /// True when the reader had more findings than it kept.
    is_cut: bool,
    /// The places of values that an input stands in for.
    given: Vec<span::Span>,
}

impl Lowered {
    /// True when no finding that may come can make it valid.
    pub fn has_errors(&self) -> bool {
        self.diagnostics.iter().any(Diagnostic::is_error)
    }
}

/// Lints what was lowered. A file with syntax errors is not linted: what could not be read would be reported as missing.
pub fn validate(lowered: Lowered) -> Checked {
    let Lowered { pipeline, mut diagnostics, is_read, is_cut, given } = lowered;
    if is_read {
        diagnostics.extend(lint::run(&pipeline));
    }
    let valid = !diagnostics.iter().any(Diagnostic::is_error);
    keep_given(&given, &mut diagnostics);
    let is_cut = is_cut || diagnostics.len() > diagnostic::DIAGNOSTICS_MAX;
    Checked { pipeline: valid.then_some(pipeline), diagnostics: in_order(diagnostics), is_cut }
}

/// Takes back edits of values that an input stands in for: what the file says there is not what was judged.
fn keep_given(given: &[span::Span], diagnostics: &mut [Diagnostic]) {
    for place in given {
        let is_there = |edit: &diagnostic::Edit| place.start <= edit.span.start && edit.span.end <= place.end;
        for diagnostic in diagnostics.iter_mut().filter(|found| found.fix.as_ref().is_some_and(is_there)) {
            diagnostic.fix = None;
        }
    }
}

/// Keeps the worst [`diagnostic::DIAGNOSTICS_MAX`], in file order.
fn in_order(mut diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    diagnostics.sort_by_key(|diagnostic| (diagnostic.severity, diagnostic.rule != "dot_syntax", diagnostic.span));
    diagnostics.truncate(diagnostic::DIAGNOSTICS_MAX);
    diagnostics.sort_by_key(|diagnostic| (diagnostic.span.start, diagnostic.severity));
    diagnostics
}
