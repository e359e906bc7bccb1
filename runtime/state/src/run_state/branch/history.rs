//! The history of a node. Its size does not grow with the number of visits.

use super::verify_failures::VerifyFailures;
use glovebox_journal::event::Digest;
use glovebox_record::Outcome;
use rpds::RedBlackTreeMapSync;
use std::sync::Arc;

/// Maximum number of different failures of a node that are counted. Any further failure is treated as new each time, so
/// that only other limits end such a loop.
const SIGNATURES_MAX: usize = 256;

/// The history of a node.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeHistory {
    /// The last outcome, without its context updates.
    pub outcome: Option<Arc<Outcome>>,
    /// Number of consecutive visits, up to the last one, that ended with the same failure; 0 after another outcome.
    pub alike: u32,
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
    /// Number of model turns of all attempts and verifications, which is the position in a script.
    pub turns: u64,
    /// Number of visits whose failure has the same failure signature as the last failure, including the last one; 0 if
    /// the last failure has no signature. Neither a success nor another failure in between resets the count.
    pub same: u32,
    /// The failures of the node's verification since it last passed; `None` if no limit applies to them.
    pub verify_failures: Option<Arc<VerifyFailures>>,
    /// Number of visits by their failure signature.
    pub(crate) signatures: RedBlackTreeMapSync<Digest, u32>,
    /// The number of visits that finished before the node's last one; `None` unless the last outcome is a failure.
    pub(crate) failing_at: Option<u64>,
}

impl NodeHistory {
    pub(crate) fn count_signature(&mut self, signature: Option<Digest>) {
        let known = signature.and_then(|signature| self.signatures.get(&signature)).copied().unwrap_or(0);
        self.same = if signature.is_some() { known.saturating_add(1) } else { 0 };
        let has_room = known > 0 || self.signatures.size() < SIGNATURES_MAX;
        if let Some(signature) = signature.filter(|_| has_room) {
            self.signatures.insert_mut(signature, self.same);
        }
    }
}
