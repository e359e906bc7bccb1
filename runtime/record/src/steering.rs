//! Messages of a person to an agent at work, and their delivery to its model.

use crate::MessageId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Most bytes of one message.
pub const STEERING_BYTES_MAX: usize = 16 << 10;
/// Most messages to one attempt.
pub const STEERING_MAX: usize = 64;

/// One message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SteeringMessage {
    /// Id of the message.
    pub id: MessageId,
    /// The text for the model.
    pub text: String,
}

/// Delivery of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SteeringDelivery {
    /// The message.
    pub message: MessageId,
    /// The first turn of the attempt, from 1, whose question had it and was answered; absent if no such question did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<u32>,
}
