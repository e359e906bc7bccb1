//! Hold-outs: `scenarios` and `scenario_feedback` of the graph, and a node's ways out.

use super::reader::Findings;
use super::scope::Attributes;
use crate::diagnostic::Diagnostic;
use crate::holdouts::{FEEDBACKS, Feedback, NodeHoldouts};
use crate::ir::PathList;

/// The folders of `scenarios`, each with a final slash; none when the file does not say. An empty list is an error: it would
/// open what a folder of the usual name hides.
pub(super) fn scenarios(graph: &Attributes, findings: &mut Findings<'_>) -> Option<PathList> {
    let attribute = graph.get("scenarios")?;
    if attribute.value.trim().is_empty() {
        let error = Diagnostic::error("path_list", "scenarios contains empty entry", attribute.span);
        findings.push(error.with_help("name the folders with hold-outs, or leave the attribute out"));
        return None;
    }
    let paths = findings.paths(graph, "scenarios")?;
    Some(PathList(paths.0.iter().map(|path| format!("{}/", path.trim_end_matches('/'))).collect()))
}

/// The graph's `scenario_feedback`, which nodes inherit.
pub(super) fn feedback(graph: &Attributes, findings: &mut Findings<'_>) -> Feedback {
    findings.choice(graph, "scenario_feedback", FEEDBACKS).unwrap_or_default()
}

/// What a node says.
pub(super) fn node(from: &Attributes, inherited: Feedback, findings: &mut Findings<'_>) -> NodeHoldouts {
    NodeHoldouts {
        allow_read: findings.boolean(from, "codex.allow_read_scenarios"),
        block_read: findings.paths(from, "codex.block_read_paths").map(|paths| paths.0),
        feedback: findings.choice(from, "scenario_feedback", FEEDBACKS).unwrap_or(inherited),
    }
}
