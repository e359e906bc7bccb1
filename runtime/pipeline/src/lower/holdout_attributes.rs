//! Converts the attributes about hold-outs to types: the folders and the feedback of the graph, the opt-outs of a node,
//! and its program under test.

use super::reader::Findings;
use super::scope::Attributes;
use crate::diagnostic::Diagnostic;
use crate::ir::holdouts::{COPIES, Copies, FEEDBACKS, Feedback, HoldoutSelection, NodeHoldouts, WRITES};
use crate::ir::{Subject, Text};
use crate::key;
use glovebox_record::scope::Entry;

/// Returns the folders of `scenarios`. `None` if the attribute is absent. An empty list is an error, because it would expose the
/// default folder.
pub(super) fn scenarios(graph: &Attributes, findings: &mut Findings<'_>) -> Option<Vec<Entry>> {
    let attribute = graph.get(key::SCENARIOS)?;
    if attribute.value.trim().is_empty() {
        let error = Diagnostic::error("path_list", "scenarios contains empty entry", attribute.span);
        findings.push(error.with_help("name the folders with hold-outs, or remove the attribute"));
        return None;
    }
    let paths = findings.paths(graph, key::SCENARIOS)?;
    Some(paths.iter().map(Entry::as_folder).collect())
}

/// Returns the graph's `scenario_feedback`, which nodes inherit.
pub(super) fn feedback(graph: &Attributes, findings: &mut Findings<'_>) -> Feedback {
    findings.choice(graph, key::SCENARIO_FEEDBACK, FEEDBACKS).unwrap_or_default()
}

/// Returns the graph's `scenario_copies`.
pub(super) fn copies(graph: &Attributes, findings: &mut Findings<'_>) -> Copies {
    findings.choice(graph, key::SCENARIO_COPIES, COPIES).unwrap_or_default()
}

/// Returns the hold-out settings of a node.
pub(super) fn node(from: &Attributes, inherited: Feedback, findings: &mut Findings<'_>) -> NodeHoldouts {
    NodeHoldouts {
        named: named(from, findings),
        allow_read: findings.boolean(from, key::CODEX_ALLOW_READ_SCENARIOS),
        block_read: findings.paths(from, key::CODEX_BLOCK_READ_PATHS),
        feedback: findings.choice(from, key::SCENARIO_FEEDBACK, FEEDBACKS).unwrap_or(inherited),
        writes: findings.choice(from, key::SCENARIO_WRITES, WRITES).unwrap_or_default(),
    }
}

/// Returns the value of `holdouts`: `true`, `false`, or a list of folders.
fn named(from: &Attributes, findings: &mut Findings<'_>) -> Option<HoldoutSelection> {
    match from.get(key::HOLDOUTS)?.value.trim() {
        "true" => Some(HoldoutSelection::All),
        "false" => Some(HoldoutSelection::Folders(Vec::new())),
        _ => findings.paths(from, key::HOLDOUTS).map(HoldoutSelection::Folders),
    }
}

/// Returns the program under test of a node.
pub(super) fn subject(from: &Attributes, findings: &mut Findings<'_>) -> Subject {
    let port = findings.integer(from, key::VERIFY_SUBJECT_PORT, 1, u16::MAX.into());
    Subject {
        command: findings.text(from, key::VERIFY_SUBJECT).map(Text::new),
        port: port.and_then(|port| u16::try_from(port).ok()),
    }
}
