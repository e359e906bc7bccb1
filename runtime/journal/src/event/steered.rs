//! The event of a steering message: a person sent a message to an agent at work.

use super::{Attempt, time_format};
use glovebox_record::{MessageId, SteeringMessage};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A person sent a message to the agent of a running attempt. Its delivery to the model is recorded in `stage.finished`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageSteered {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The id of the message. Several attempts get the same message if their branches are at the same node.
    pub message: MessageId,
    /// The name of the sender.
    pub by: String,
    /// The time when the message was sent.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub sent_at: Timestamp,
    /// The text.
    pub text: String,
}

impl From<&StageSteered> for SteeringMessage {
    fn from(steered: &StageSteered) -> Self {
        Self { id: steered.message.clone(), text: steered.text.clone() }
    }
}
