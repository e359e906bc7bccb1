//! A message to the agents of a node, as a person sent it.

use glovebox_journal::event::{Attempt, Digest, NodeId, StageSteered, whole_milliseconds};
use glovebox_record::MessageId;
use glovebox_record::steering::STEERING_BYTES_MAX;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;

/// A message to the agents of a node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenSteering {
    /// The id of the message.
    pub message: MessageId,
    /// The node whose agents get the message.
    pub node: NodeId,
    /// The text.
    pub text: String,
    /// The name of the sender.
    pub by: String,
    /// When the message was sent.
    pub at: Timestamp,
}

impl GivenSteering {
    /// Creates a message with a new id.
    pub fn new(node: NodeId, text: String, by: String) -> Self {
        let at = whole_milliseconds(Timestamp::now());
        Self { message: MessageId::new(ulid::Ulid::generate().to_string()), node, text, by, at }
    }

    /// Returns the name of the message's file.
    pub(super) fn file_name(&self) -> String {
        format!("steer-{}.json", Digest::hash(self.message.as_str().as_bytes()).hex())
    }

    /// Returns true if the length of the text is allowed.
    pub(crate) fn is_bounded(&self) -> bool {
        (1..=STEERING_BYTES_MAX).contains(&self.text.len())
    }

    /// Orders messages by time, earlier ones first.
    pub(super) fn order(one: &Self, other: &Self) -> Ordering {
        (one.at, &one.message).cmp(&(other.at, &other.message))
    }

    /// Converts the message to an event for an attempt.
    pub(crate) fn to(&self, attempt: Attempt) -> StageSteered {
        let Self { message, text, by, at, .. } = self.clone();
        StageSteered { attempt, message, by, sent_at: at, text }
    }
}
