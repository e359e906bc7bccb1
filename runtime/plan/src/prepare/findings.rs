//! What was found in a file, and how findings of several checks become one list.

use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Severity};
use glovebox_pipeline::span::Span;

/// The rule about what this version does not execute or enforce.
const NOT_ENFORCED: &str = "not_enforced";

/// A file's diagnostics with the text that they point into.
#[derive(Debug)]
pub struct Findings {
    /// The file as the user named it.
    pub file: String,
    /// Its text.
    pub source: String,
    /// What was found, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Findings {
    /// The text that the spans refer to.
    pub fn source(&self) -> Source<'_> {
        Source::new(&self.source)
    }

    /// Counts the findings of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }
}

/// Adds the findings of a binding to those of a file. What a run refuses is an error in both, and each finding is listed once.
pub fn merged(of_file: Vec<Diagnostic>, of_binding: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut all = of_file;
    let most = DIAGNOSTICS_MAX.max(all.len());
    for found in all.iter_mut().filter(|found| found.rule == NOT_ENFORCED) {
        found.severity = Severity::Error;
    }
    for found in of_binding {
        let is_same =
            |known: &Diagnostic| (&known.rule, known.span, &known.message) == (&found.rule, found.span, &found.message);
        if !all.iter().any(is_same) {
            all.push(found);
        }
    }
    // The binding knows which types exist; the language alone can only guess.
    let unknown: Vec<Span> = all.iter().filter(|found| found.rule == "type_unknown").map(|found| found.span).collect();
    all.retain(|found| found.rule != "type_known" || !unknown.contains(&found.span));
    all.sort_by_key(|found| (found.severity, found.span));
    all.truncate(most);
    all.sort_by_key(|found| (found.span.start, found.severity));
    all
}
