//! A person told an agent something while it was at work.

use super::{Attempt, time_format};
use glovebox_record::{MessageId, SteeringMessage};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A message of a person to the agent of an attempt that was under way. Whether its model heard it is in `stage.finished`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StageSteered {
    /// The attempt.
    #[serde(flatten)]
    pub attempt: Attempt,
    /// The message; several attempts get the same one if their branches are at the same node.
    pub message: MessageId,
    /// The name of the sender.
    pub by: String,
    /// When.
    #[serde(with = "time_format")]
    #[schemars(with = "String")]
    pub said_at: Timestamp,
    /// The text.
    pub text: String,
}

impl From<&StageSteered> for SteeringMessage {
    fn from(steered: &StageSteered) -> Self {
        Self { id: steered.message.clone(), text: steered.text.clone() }
    }
}
