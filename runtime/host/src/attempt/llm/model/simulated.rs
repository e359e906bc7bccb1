//! The specification's answer if no model is configured: a text that names the stage, or a value that matches the stage's schema.

use glovebox_models::chat::{Answer, text_part};
use glovebox_record::NodeId;
use glovebox_schema::Schema;

pub(super) fn answer(node: &NodeId, schema: Option<&Schema>) -> Answer {
    let text = schema.and_then(Schema::example).map(|example| example.to_string());
    let parts = vec![text_part(text.unwrap_or_else(|| format!("[Simulated] Response for stage: {node}")))];
    Answer { parts, ..Answer::default() }
}
