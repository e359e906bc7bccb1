//! Rules over a lowered pipeline (spec §7), each a pure function from a [`Subject`] to diagnostics.
//!
//! The table [`RULES`] holds the name, the severity and the page of every rule, by topic (`rules`). The parser, the lowering and
//! `scripts` report some rules themselves. The table contains these without a function, so that it explains every diagnostic.

mod attributes;
mod diff_limits;
mod execution;
mod fixability_rule;
mod gates;
mod guardrails;
mod holdout_naming;
mod holdout_reach;
mod isolation;
mod not_enforced;
mod page;
mod parallel;
mod required_tool;
mod restarts;
mod routes;
mod rule_findings;
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
pub use page::reference;
use rule_findings::RuleFindings;
pub use rules::RULES;
pub use scripts::{ScriptFinding, scripts};
pub use subject::Subject;
pub use words::Script;

/// One rule of the table.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The stable name, which a diagnostic has in `rule`.
    pub id: &'static str,
    /// The severity of its findings.
    pub severity: Severity,
    /// The requirement, in one line.
    pub summary: &'static str,
    /// The correction, as `help:` of a finding without a more exact one.
    pub help: &'static str,
    /// The failure at run time that the rule prevents.
    pub why: &'static str,
    /// A small file with the mistake: a script if it begins with `#!`, else a pipeline. A first line `// --set k=v` sets an input.
    /// It ends with a line feed.
    pub bad: &'static str,
    /// The same file without the mistake.
    pub good: &'static str,
    check: Option<Check>,
}

type Check = fn(&Rule, &Subject<'_>) -> RuleFindings;

impl Rule {
    /// Finds the rule with this name.
    pub fn named(id: &str) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.id == id)
    }

    /// Makes a finding of this rule, with the rule's help.
    fn found(&self, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic::new(self.id, self.severity, message, span).with_help(self.help)
    }
}

/// Runs every rule. A rule returns at most one finding more than a file may show.
pub fn run(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let subject = Subject::new(pipeline);
    RULES.iter().filter_map(|rule| rule.check.map(|check| check(rule, &subject))).flatten().collect()
}

/// Reports what this version does not enforce, as warnings. Binding a plan turns them into errors, so `glovebox run` refuses them.
pub fn not_enforced(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let subject = Subject::new(pipeline);
    let rule = Rule::named("not_enforced").expect("the table contains the rule, as a test checks");
    not_enforced::check(rule, &subject).into_iter().collect()
}
