//! Collects the findings of one rule in file order, at most one more than a file may show. The extra finding shows that there are
//! more.
//!
//! A rule creates its findings one by one and stops when there are enough, so a file with 100,000 mistakes does not cost 100,000
//! messages. Another module ranks the findings of all rules.

use crate::diagnostic::{DIAGNOSTICS_MAX, Diagnostic};

/// Maximum number of findings of one rule.
const FOUND_MAX: usize = DIAGNOSTICS_MAX + 1;

/// The findings of one rule, at most [`FOUND_MAX`]. Collect an iterator into it, or push findings until it
/// [`is_full`](Self::is_full).
#[derive(Debug, Default)]
pub(super) struct RuleFindings(Vec<Diagnostic>);

impl RuleFindings {
    /// Returns no findings.
    pub(super) fn none() -> Self {
        Self::default()
    }

    /// Returns a single finding.
    pub(super) fn one(finding: Diagnostic) -> Self {
        Self(vec![finding])
    }

    /// Adds a finding, unless there are already enough.
    pub(super) fn push(&mut self, finding: Diagnostic) {
        if !self.is_full() {
            self.0.push(finding);
        }
    }

    /// Returns true if there are no findings.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if another finding would not be shown.
    pub(super) fn is_full(&self) -> bool {
        self.0.len() >= FOUND_MAX
    }
}

impl FromIterator<Diagnostic> for RuleFindings {
    fn from_iter<I: IntoIterator<Item = Diagnostic>>(findings: I) -> Self {
        Self(findings.into_iter().take(FOUND_MAX).collect())
    }
}

impl IntoIterator for RuleFindings {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::Span;

    #[test]
    fn an_endless_rule_stops_at_the_maximum() {
        let endless = (0..).map(|at| Diagnostic::info("x", "y", Span::new(at, at)));
        let found: Vec<Diagnostic> = endless.collect::<RuleFindings>().into_iter().collect();
        assert_eq!((found.len(), found.last().unwrap().span.start), (FOUND_MAX, FOUND_MAX - 1));
        let mut pushed = RuleFindings::none();
        (0..99).for_each(|at| pushed.push(Diagnostic::info("x", "y", Span::new(at, at))));
        assert!(pushed.is_full() && pushed.into_iter().count() == FOUND_MAX);
    }
}
