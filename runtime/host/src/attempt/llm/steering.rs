//! Steering messages of people on their way from the driver of the run to the agent's model.

use glovebox_record::SteeringMessage;
use std::sync::{Arc, Mutex, PoisonError};

/// The messages to one attempt, in order. Clones are the same list.
#[derive(Debug, Clone, Default)]
pub struct Steering(Arc<Mutex<Vec<Arc<SteeringMessage>>>>);

impl Steering {
    /// Adds a message behind the others.
    pub fn push(&self, message: SteeringMessage) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::new(message));
    }

    /// Returns all of them so far.
    pub(crate) fn all(&self) -> Vec<Arc<SteeringMessage>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Arc::clone).collect()
    }
}
