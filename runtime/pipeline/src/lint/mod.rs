//! Rules over a lowered pipeline (spec §7), each a pure function from a [`Subject`] to diagnostics.
//!
//! The table ([`RULES`], by topic in `rules`) is the only home of a rule's name, severity and page. Rules of the reader, the
//! lowering and of scripts stand in it without a function, so that every name in a diagnostic can be looked up here.

mod attributes;
mod execution;
mod found;
mod guardrails;
mod holdouts;
mod isolation;
mod mending;
mod not_enforced;
mod page;
mod routes;
mod rules;
mod scripts;
mod structure;
mod subject;
mod targets;
mod unverified;
mod words;

use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::Pipeline;
use crate::span::Span;
use found::Found;
pub use page::reference;
pub use rules::RULES;
pub use scripts::{ScriptFinding, scripts};
pub use subject::Subject;

/// One rule of the table.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable name, as in a diagnostic's `rule`.
    pub id: &'static str,
    /// How bad its findings are.
    pub severity: Severity,
    /// What it demands, one line.
    pub summary: &'static str,
    /// How its findings are mended, in general.
    pub help: &'static str,
    /// What goes wrong at run time without it, and where that is known from.
    pub why: &'static str,
    /// A small file (a script where it begins with `#!`) with the mistake. A first line `// --set k=v` gives an input.
    pub bad: &'static str,
    /// The same file without it.
    pub good: &'static str,
    check: Option<Check>,
}

type Check = fn(&Rule, &Subject<'_>) -> Found;

impl Rule {
    /// The rule of that name.
    pub fn named(id: &str) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.id == id)
    }

    /// Starts a finding of this rule, with the rule's help.
    fn found(&self, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic::new(self.id, self.severity, message, span).with_help(self.help)
    }
}

/// Runs every rule; of each the first findings, as many as a file may show.
pub fn run(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let subject = Subject::new(pipeline);
    RULES.iter().filter_map(|rule| rule.check.map(|check| check(rule, &subject))).flatten().collect()
}

/// What `glovebox run` refuses in this version because it would not enforce it: warnings here, made errors by whoever binds a plan.
pub fn not_enforced(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let subject = Subject::new(pipeline);
    let rule = Rule::named("not_enforced").expect("the table holds it: a test looks");
    not_enforced::check(rule, &subject).into_iter().collect()
}
