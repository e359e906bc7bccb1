//! The specification's answer when no model is configured: a text that says which stage it stands in for.

use glovebox_models::chat::{Answer, text_part};
use glovebox_record::NodeId;

pub(super) fn answer(node: &NodeId) -> Answer {
    let parts = vec![text_part(format!("[Simulated] Response for stage: {node}"))];
    Answer { parts, ..Answer::default() }
}
