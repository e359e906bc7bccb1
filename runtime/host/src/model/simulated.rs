//! The specification's answer when no model is configured: a text that says which stage it stands in for.

use super::Answer;

pub(super) fn answer(node_id: &str) -> Answer {
    Answer { text: format!("[Simulated] Response for stage: {node_id}"), ..Answer::default() }
}
