//! A finding in the user's file: an error, a warning or a remark.
//!
//! A diagnostic is data: rule, span, message and, if it is certain, the fix. It is never printed here, and it is never an error of the
//! runtime. A file has at most [`DIAGNOSTICS_MAX`], in file order.

use crate::source::Source;
use crate::span::Span;
use schemars::JsonSchema;
use serde::Serialize;
use std::borrow::Cow;

/// A rule's stable name: that of a built-in rule, or `<plugin>/<rule>` of a custom one.
pub type RuleName = Cow<'static, str>;

/// The most diagnostics of one file; more would not help the user.
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
    /// The word used in messages and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}

/// Applies all fixes to a file; of two that overlap, the first. None if there is no fix to apply.
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
    /// The text to replace; an empty span inserts.
    pub span: Span,
    /// The new text.
    pub replacement: String,
}

/// A second place in the file that explains the first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Label {
    /// Its span.
    pub span: Span,
    /// The text to show there.
    pub text: String,
}

/// One finding (spec §7.1), with its span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnostic {
    /// Stable rule name, such as `edge_target_exists`.
    pub rule: RuleName,
    /// Its severity.
    pub severity: Severity,
    /// One line: what is wrong, where, and what was expected.
    pub message: String,
    /// Its span in the file.
    pub span: Span,
    /// A short text at the span; empty for none.
    pub note: String,
    /// Other places that explain it.
    pub labels: Vec<Label>,
    /// The correction, as a line to paste or in words.
    pub help: Option<String>,
    /// The edit that fixes it, if it is certain.
    pub fix: Option<Edit>,
    /// The node with the finding.
    pub node: Option<String>,
    /// The edge with the finding, as (from, to).
    pub edge: Option<(String, String)>,
}

impl Diagnostic {
    /// Starts a diagnostic; the `with_` methods add the rest.
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

    /// Starts an error.
    pub fn error(rule: impl Into<RuleName>, message: impl Into<String>, span: Span) -> Self {
        Self::new(rule, Severity::Error, message, span)
    }

    /// Starts a warning.
    pub fn warning(rule: impl Into<RuleName>, message: impl Into<String>, span: Span) -> Self {
        Self::new(rule, Severity::Warning, message, span)
    }

    /// Starts a remark.
    pub fn info(rule: impl Into<RuleName>, message: impl Into<String>, span: Span) -> Self {
        Self::new(rule, Severity::Info, message, span)
    }

    /// Reports the spelling of another engine that has exactly the same meaning.
    pub(crate) fn other_spelling(theirs: &str, ours: &str, span: Span) -> Self {
        let found = Self::info("other_spelling", format!("Glovebox reads `{theirs}` as `{ours}`"), span);
        found.with_help(format!("write `{ours}`")).with_fix(span, ours)
    }

    /// Adds a short text at the span.
    #[must_use]
    pub fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = note.into();
        self
    }

    /// Adds a second place.
    #[must_use]
    pub fn with_label(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds how to fix it.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Adds the edit that fixes it.
    #[must_use]
    pub fn with_fix(mut self, span: Span, replacement: impl Into<String>) -> Self {
        self.fix = Some(Edit { span, replacement: replacement.into() });
        self
    }

    /// Sets the node.
    #[must_use]
    pub fn with_node(mut self, node: impl Into<String>) -> Self {
        self.node = Some(node.into());
        self
    }

    /// Sets the edge.
    #[must_use]
    pub fn with_edge(mut self, from: impl Into<String>, to: impl Into<String>) -> Self {
        self.edge = Some((from.into(), to.into()));
        self
    }

    /// True for an error.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}
