//! A finding in the user's file: an error, a warning or a remark.
//!
//! A diagnostic is data: rule, span, message, and a fix if the fix is certain. This module never prints one, and a diagnostic is
//! never an error of the runtime. A file has at most [`DIAGNOSTICS_MAX`], in file order.

use crate::source::Source;
use crate::span::Span;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// Stable name of a rule: of a built-in rule, or `<plugin>/<rule>` for a custom rule.
pub type RuleName = Cow<'static, str>;

/// Maximum number of diagnostics of one file. More would not help the user.
pub const DIAGNOSTICS_MAX: usize = 50;

/// The severity of a finding (spec §7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The pipeline will not run.
    Error,
    /// The pipeline runs, but may not do what its author meant.
    Warning,
    /// A remark.
    Info,
}

impl Severity {
    /// Returns the name used in messages and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// Applies all fixes to a file. If two fixes overlap, only the first is applied. `None` if there is nothing to fix.
pub fn fixed(source: Source<'_>, diagnostics: &[Diagnostic]) -> Option<String> {
    let source = source.text();
    let mut edits: Vec<&Edit> = diagnostics.iter().filter_map(|diagnostic| diagnostic.fix.as_ref()).collect();
    edits.sort_by_key(|edit| (edit.span.start, edit.span.end));
    let mut text = String::with_capacity(source.len());
    let mut at = 0;
    let mut last = None;
    for edit in edits {
        let Some(kept) = source.get(at..edit.span.start) else { continue };
        if last == Some(edit) || source.get(edit.span.start..edit.span.end) == Some(edit.replacement.as_str()) {
            continue;
        }
        text.push_str(kept);
        text.push_str(&edit.replacement);
        at = edit.span.end;
        last = Some(edit);
    }
    last?;
    text.push_str(source.get(at..)?);
    Some(text)
}

/// A replacement of source text that fixes the problem.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Edit {
    /// Span of the text to replace. An empty span means an insertion.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

/// A second place in the file that explains the diagnostic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Label {
    /// The span of the place.
    pub span: Span,
    /// The text to show at the place.
    pub text: String,
}

/// One finding in a file (spec §7.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// Stable name of the rule, such as `edge_target_exists`.
    pub rule: RuleName,
    /// Severity of the finding.
    pub severity: Severity,
    /// One line that says what is wrong, where, and what was expected.
    pub message: String,
    /// Span of the finding in the file.
    pub span: Span,
    /// Short text to show at the span; empty if there is none.
    pub note: String,
    /// Other places that explain the finding.
    pub labels: Vec<Label>,
    /// How to fix the problem: a line to paste, or a sentence.
    pub help: Option<String>,
    /// The edit that fixes the problem, if the fix is certain.
    pub fix: Option<Edit>,
    /// The node that has the problem.
    pub node: Option<String>,
    /// The edge that has the problem, as (from, to).
    pub edge: Option<(String, String)>,
}

impl Diagnostic {
    /// Creates a diagnostic. The `with_` methods add the optional parts.
    pub fn new(rule: impl Into<RuleName>, severity: Severity, message: impl Into<String>, span: Span) -> Self {
        Self {
            rule: rule.into(),
            severity,
            message: message.into(),
            span,
            note: String::new(),
            labels: Vec::new(),
            help: None,
            fix: None,
            node: None,
            edge: None,
        }
    }

    /// Creates an error.
    pub fn error(rule: impl Into<RuleName>, message: impl Into<String>, span: Span) -> Self {
        Self::new(rule, Severity::Error, message, span)
    }

    /// Creates a warning.
    pub fn warning(rule: impl Into<RuleName>, message: impl Into<String>, span: Span) -> Self {
        Self::new(rule, Severity::Warning, message, span)
    }

    /// Creates a remark.
    pub fn info(rule: impl Into<RuleName>, message: impl Into<String>, span: Span) -> Self {
        Self::new(rule, Severity::Info, message, span)
    }

    /// Creates a remark about a spelling of another engine that has exactly the same meaning as Glovebox's.
    pub(crate) fn other_spelling(theirs: &str, ours: &str, span: Span) -> Self {
        let found = Self::info("other_spelling", format!("Glovebox reads `{theirs}` as `{ours}`"), span);
        found.with_help(format!("write `{ours}`")).with_fix(span, ours)
    }

    /// Sets the short text to show at the span.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Adds a second place that explains the diagnostic.
    #[must_use]
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Sets the text that says how to fix the problem.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Sets the edit that fixes the problem.
    #[must_use]
    pub fn with_fix(mut self, span: Span, replacement: impl Into<String>) -> Self {
        self.fix = Some(Edit { span, replacement: replacement.into() });
        self
    }

    /// Sets the node that has the problem.
    #[must_use]
    pub fn with_node(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// Sets the edge that has the problem.
    #[must_use]
    pub fn with_edge(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.edge = Some((from.into(), to.into()));
        self
    }

    /// Returns true if the severity is error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
