//! Messages of a person to a working agent, and their delivery to its model.

use crate::MessageId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Maximum length of one message, in bytes.
pub const STEERING_BYTES_MAX: usize = 16 << 10;
/// Maximum number of messages to one attempt.
pub const STEERING_MAX: usize = 64;

/// One message to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SteeringMessage {
    /// Id of the message.
    pub id: MessageId,
    /// The text for the model.
    pub text: String,
}

/// The delivery of a steering message to the model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteeringDelivery {
    /// Id of the message.
    pub message: MessageId,
    /// The first turn of the attempt, counted from 1, whose request contained the message and was answered; absent if
    /// there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}
