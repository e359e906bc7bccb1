//! Writes a run as scan results: what failed, what was refused or quarantined, and what was not verified, each at the
//! line of its node.

use super::{Report, Verdict};
use crate::exit::{Exit, Stop};
use crate::terminal::diagnostics::Findings;
use crate::terminal::{machine, visible};
use glovebox_pipeline::diagnostic::{Diagnostic, Severity};
use glovebox_pipeline::span::Span;
use glovebox_record::NodeId;
use glovebox_state::evidence::ExitClass;
use std::path::Path;

/// The kinds of results, with severity and meaning.
const RULES: [(&str, Severity, &str); 6] = [
    ("stage_failed", Severity::Error, "A stage failed, or did not pass its verification."),
    ("run_failed", Severity::Error, "The run did not succeed: a bound, a policy or an unmet goal gate ended it."),
    ("refused", Severity::Warning, "A stage asked for something that it was not granted, and did not get it."),
    (
        "set_aside",
        Severity::Warning,
        "A stage changed a file outside of its write scope; the change is in the quarantine.",
    ),
    ("unverified", Severity::Info, "A stage passed on its own word: no command verified it."),
    ("partial", Severity::Warning, "A stage passed with `partial_success`: commands of its own did not pass."),
];

/// Returns the report as JSON.
pub(super) fn render(report: &Report) -> Result<String, Stop> {
    let summary = &report.summary;
    let mut found = Vec::new();
    let failed = report.stages.iter().filter(|stage| stage.has_failed());
    found.extend(failed.map(|stage| at(report, 0, &stage.node, format!("`{}`: {}", stage.name(), stage.reason()))));
    let is_told = summary
        .end
        .failed_node
        .as_ref()
        .is_some_and(|node| report.stages.iter().any(|stage| stage.node == *node && stage.has_failed()));
    if summary.end.exit != ExitClass::Ok && !is_told {
        let reason = summary.end.failure.as_ref().map(|failure| format!(": {}", failure.reason)).unwrap_or_default();
        let message = format!("exit {} ({}){reason}", summary.end.exit.code(), summary.end.exit.name());
        let node = summary.end.failed_node.as_ref().unwrap_or(&report.pipeline.pipeline.start);
        found.push(at(report, 1, node, message));
    }
    for refused in &summary.access.refused {
        let (refusal, times) = (&refused.refusal, refused.times);
        let again = if times > 1 { format!(", {times} times") } else { String::new() };
        let help = if refusal.help.is_empty() { String::new() } else { format!("\nhelp: {}", refusal.help) };
        found.push(at(report, 2, &refused.node, format!("`{}`: {refusal}{again}{help}", refused.node)));
    }
    for file in &summary.files.quarantined {
        found.push(at(report, 3, &file.node, format!("`{}` changed `{}`: {}", file.node, file.path, file.reason)));
    }
    for stage in &report.stages {
        let verdict = report.verdict(stage);
        let is_partial = matches!(verdict, Verdict::Partial(_) | Verdict::Dropped);
        if let (true, Some(reason)) = (is_partial, verdict.reservation(stage)) {
            found.push(at(report, 5, &stage.node, format!("`{}` {reason}", stage.name())));
        }
    }
    for unverified in &summary.proof.unverified {
        let message = format!("`{}` passed on its own word: no command verified it", unverified.node);
        found.push(at(report, 4, &unverified.node, message));
    }
    let findings = Findings {
        file: relative(&report.pipeline.file).to_string_lossy().into_owned(),
        source: report.pipeline.text.clone(),
        diagnostics: found,
    };
    let log = machine::sarif_of(&RULES, &findings);
    serde_json::to_string_pretty(&log).map_err(|error| Stop::new(Exit::Internal, format!("write SARIF: {error}")))
}

/// Returns the path of a file relative to the current folder, as code scanning expects it.
fn relative(file: &Path) -> &Path {
    let here = std::env::current_dir().ok();
    here.and_then(|here| file.strip_prefix(here).ok()).unwrap_or(file)
}

/// Returns a result at the line of a node. For a node of a child pipeline, it is the line of the node that runs the
/// child.
fn at(report: &Report, rule: usize, node: &NodeId, message: String) -> Diagnostic {
    let (name, severity, _) = RULES[rule];
    let known = |id: &NodeId| report.pipeline.pipeline.node(id);
    let outermost = std::iter::successors(known(node), |node| node.child_of.as_ref().and_then(known)).last();
    let span = outermost.map_or_else(|| Span::new(0, 0), |node| node.span);
    let message = Message(message).plain();
    match severity {
        Severity::Error => Diagnostic::error(name, message, span),
        Severity::Warning => Diagnostic::warning(name, message, span),
        Severity::Info => Diagnostic::info(name, message, span),
    }
}

/// A message that contains texts of stages.
struct Message(String);

impl Message {
    /// Returns the message with control characters escaped. Brackets are escaped too, because viewers render
    /// `[text](target)` as a link (SARIF 2.1.0, §3.11.6).
    fn plain(&self) -> String {
        visible::block(&self.0).replace('\\', "\\\\").replace('[', "\\[").replace(']', "\\]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_of_a_stage_is_no_link_and_moves_no_cursor() {
        assert_eq!(
            Message("a [x](https://a.example) \u{1b}[2J\u{202e}\nb".to_owned()).plain(),
            "a \\[x\\](https://a.example) \\\\x1b\\[2J\\\\u{202e}\nb"
        );
    }
}
