//! Steering messages that people sent to a running agent, passed from the driver of the run to the conversation with the model.

use glovebox_record::SteeringMessage;
use std::sync::{Arc, Mutex, PoisonError};

/// The messages for one attempt, in order. Clones share one list.
#[derive(Debug, Clone, Default)]
pub struct Steering(Arc<Mutex<Vec<Arc<SteeringMessage>>>>);

impl Steering {
    /// Appends a message.
    pub fn push(&self, message: SteeringMessage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(message));
    }

    /// Returns the messages after the first `count` ones.
    pub fn after(&self, count: usize) -> Vec<SteeringMessage> {
        self.all().iter().skip(count).map(|message| (**message).clone()).collect()
    }

    /// Returns the number of messages so far.
    pub fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns all messages so far.
    pub(crate) fn all(&self) -> Vec<Arc<SteeringMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Arc::clone).collect()
    }
}
