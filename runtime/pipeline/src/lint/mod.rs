//! The rules for lowered pipelines (spec §7). Each rule is a pure function from a [`LintContext`] to diagnostics.
//!
//! The table [`RULES`] has the name, the severity and the documentation of every rule, by topic (`rules`). Some rules are
//! reported by the parser, the lowering or `scripts`. The table contains them without a function, so that it explains every
//! diagnostic.

mod attributes;
mod context;
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
mod targets;
mod unknown_keys;
mod unverified;
mod words;

use crate::diagnostic::{Diagnostic, Severity};
use crate::ir::Pipeline;
use crate::span::Span;
pub use context::LintContext;
pub use page::reference;
use rule_findings::RuleFindings;
pub use rules::RULES;
pub use scripts::{ScriptFinding, scripts};
pub use words::Script;

/// One rule of the table.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// Stable name of the rule, which is also in the `rule` field of a diagnostic.
    pub id: &'static str,
    /// Severity of the rule's findings.
    pub severity: Severity,
    /// What the rule requires, in one line.
    pub summary: &'static str,
    /// How to fix a finding. It is the `help:` of findings that have no more exact help.
    pub help: &'static str,
    /// The failure at run time that the rule prevents.
    pub why: &'static str,
    /// A small file with the mistake: a script if it begins with `#!`, otherwise a pipeline. A first line `// --set k=v` sets an
    /// input. The file ends with a line feed.
    pub bad: &'static str,
    /// The file without the mistake.
    pub good: &'static str,
    check: Option<Check>,
}

type Check = fn(&Rule, &LintContext<'_>) -> RuleFindings;

impl Rule {
    /// Returns the rule with this name.
    pub fn named(id: &str) -> Option<&'static Rule> {
        RULES.iter().find(|rule| rule.id == id)
    }

    /// Creates a finding of this rule, with the rule's help.
    fn found(&self, message: impl Into<String>, span: Span) -> Diagnostic {
        Diagnostic::new(self.id, self.severity, message, span).with_help(self.help)
    }
}

/// Runs all rules. Each rule returns at most one finding more than a file may show.
pub fn run(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let context = LintContext::new(pipeline);
    RULES.iter().filter_map(|rule| rule.check.map(|check| check(rule, &context))).flatten().collect()
}

/// Reports attributes and handlers that this version does not enforce, as warnings. Binding a plan turns these warnings into
/// errors, so `glovebox run` refuses the file.
pub fn not_enforced(pipeline: &Pipeline) -> Vec<Diagnostic> {
    let rule = Rule::named("not_enforced").expect("the table contains the rule, as a test checks");
    not_enforced::found(rule, pipeline).into_iter().collect()
}
