//! The specification's answer when no model is configured: a text that says which stage it stands in for.

use super::Answer;
use glovebox_record::NodeId;

pub(super) fn answer(node: &NodeId) -> Answer {
    Answer { text: format!("[Simulated] Response for stage: {node}"), ..Answer::default() }
}
