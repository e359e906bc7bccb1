//! What came of a node so far. It does not grow with its visits.

use super::verify_failures::VerifyFailures;
use glovebox_journal::event::Digest;
use glovebox_record::Outcome;
use rpds::RedBlackTreeMapSync;
use std::sync::Arc;

/// Different failures of a node that are counted. Further ones count as new each time: other bounds end such a loop.
const SIGNATURES_MAX: usize = 256;

/// The history of a node so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NodeHistory {
    /// Its last outcome, without its context updates.
    pub outcome: Option<Arc<Outcome>>,
    /// Visits in a row up to the last one that ended with the same failure; 0 after another outcome.
    pub alike: u32,
    /// Its last visit ended with `skipped`, which is no outcome.
    pub skipped: bool,
    /// A verifier's command passed in its last visit, as a receipt says.
    pub proven: bool,
    /// Commands of the operator's contract that its last visit dropped.
    pub dropped: Arc<[String]>,
    /// Visits begun: the number of the last one.
    pub visits: u32,
    /// Visits that count for `max_visits`: not those that a resume went back before, or that a bound of the run ended.
    pub counted: u32,
    /// Retries since it last succeeded (`node_retries` of a checkpoint).
    pub retries: u32,
    /// Finished attempts of all generations.
    pub attempts: u32,
    /// Attempts of its last visit that were repeated because they changed nothing.
    pub unchanged: u32,
    /// Model turns of these attempts: where a script goes on.
    pub turns: u64,
    /// Visits that ended with the same failure as the last one, which is counted too, by signature; 0 without a lasting failure. Neither a
    /// success nor another failure between them resets the count.
    pub same: u32,
    /// How its verification has failed since it last passed; none where nothing bounds that.
    pub verify_failures: Option<Arc<VerifyFailures>>,
    /// Visits by the signature of their failure.
    pub(crate) signatures: RedBlackTreeMapSync<Digest, u32>,
    /// Its last visit among all finished ones, while its last outcome is a failure.
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
