//! The history of a node. Its size does not grow with the number of visits.

use super::repetition::{Repetition, SignatureCounts};
use super::verify_failures::VerifyFailures;
use glovebox_journal::event::{Digest, Work};
use glovebox_record::{Failure, Outcome};
use std::sync::Arc;

/// The history of a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeHistory {
    /// The last outcome, without its context updates.
    pub outcome: Option<Arc<Outcome>>,
    /// True if the last visit ended with `skipped`, which is not recorded as an outcome.
    pub skipped: bool,
    /// True if a receipt proves that a verifier's command passed in the last visit.
    pub proven: bool,
    /// Commands of the verify contract that the last visit skipped.
    pub dropped: Arc<[String]>,
    /// Number of visits that began.
    pub visits: u32,
    /// Number of visits to which `max_visits` applies: all except those that were undone by a rewind or cut off by a
    /// limit of the run.
    pub counted: u32,
    /// Number of retries since the last success (`node_retries` of a checkpoint).
    pub retries: u32,
    /// Number of finished attempts over all generations, without verifications.
    pub attempts: u32,
    /// Number of attempts of the last visit that were repeated because they changed nothing.
    pub unchanged: u32,
    /// The part of the last visit whose attempt was repeated because its sandbox was lost; `None` if none was.
    pub lost_sandbox: Option<Work>,
    /// Number of model turns of all attempts and verifications, which is the position in a script.
    pub turns: u64,
    /// Number of visits that ended with the same failure as the last visit.
    pub repetition: Repetition,
    /// The failures of the node's verification since it last passed; `None` if no limit applies to them.
    pub verify_failures: Option<Arc<VerifyFailures>>,
    /// Number of visits by their failure signature.
    pub(crate) signatures: SignatureCounts,
    /// The number of visits that finished before the node's last one; `None` unless the last outcome is a failure.
    pub(crate) failing_at: Option<u64>,
}

impl NodeHistory {
    pub(crate) fn count_signature(&mut self, signature: Option<Digest>) {
        self.repetition = self.signatures.count(self.repetition, signature);
    }

    /// Returns the failure of the last visit; `None` if it succeeded.
    pub(crate) fn last_failure(&self) -> Option<&Failure> {
        let outcome = self.outcome.as_ref().filter(|outcome| !outcome.status.satisfies_gate())?;
        outcome.failure.as_ref()
    }
}
