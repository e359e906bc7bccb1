//! The findings of a file, and the merging of findings from several checks.

use glovebox_pipeline::Source;
use glovebox_pipeline::diagnostic::{DIAGNOSTICS_MAX, Diagnostic, Severity};
use glovebox_pipeline::span::Span;

/// The rule about attributes and handlers that this version does not execute or enforce.
const NOT_ENFORCED: &str = "not_enforced";

/// A file's diagnostics, with the text to which their spans refer.
#[derive(Debug)]
pub struct Findings {
    /// The file as the user named it.
    pub file: String,
    /// The text of the file.
    pub source: String,
    /// The findings, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

impl Findings {
    /// Returns the text to which the spans refer.
    pub fn source(&self) -> Source<'_> {
        Source::new(&self.source)
    }

    /// Returns the number of findings of this severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count()
    }
}

/// Adds the findings of a binding to those of a file. What a run refuses is an error in both lists. Each finding is returned once.
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
    // The binding knows which types exist. The lint alone can only guess, so its finding is removed.
    let unknown: Vec<Span> = all.iter().filter(|found| found.rule == "type_unknown").map(|found| found.span).collect();
    all.retain(|found| found.rule != "type_known" || !unknown.contains(&found.span));
    all.sort_by_key(|found| (found.severity, found.span));
    all.truncate(most);
    all.sort_by_key(|found| (found.span.start, found.severity));
    all
}
