//! How often a node failed in the same way. The cycle breaker, the limits on repetitions and the messages use the same
//! counts.

use glovebox_journal::event::{Digest, NodeId};
use rpds::RedBlackTreeMapSync;

/// Maximum number of different failures of a node that are counted. Any further failure is treated as new each time, so
/// that only other limits end such a loop.
const SIGNATURES_MAX: usize = 256;

/// How often the last failure occurred.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Repetition {
    /// The failure signature of the last failure; `None` if it has none, or after a success.
    pub signature: Option<Digest>,
    /// Number of consecutive failures with this signature, up to the last one; 0 without a signature.
    pub in_a_row: u32,
    /// Number of all failures with this signature; 0 without a signature. Neither a success nor another failure in
    /// between resets the count.
    pub total: u32,
}

impl Repetition {
    /// Returns the counts after one more end. `known` is the number of earlier failures with this signature.
    pub(crate) fn after(before: Self, signature: Option<Digest>, known: u32) -> Self {
        let Some(signature) = signature else { return Self::default() };
        let in_a_row = if before.signature == Some(signature) { before.in_a_row } else { 0 };
        Self { signature: Some(signature), in_a_row: in_a_row.saturating_add(1), total: known.saturating_add(1) }
    }

    /// Describes the consecutive failures of a node. `None` if the last failure was the first of its kind.
    pub(crate) fn describe_row(self, node: &NodeId) -> Option<String> {
        let times = self.in_a_row;
        (times > 1).then(|| format!("`{node}` failed {times} times in a row in the same way"))
    }

    /// Describes all failures of a node that are the same as the last one.
    pub(crate) fn describe_total(self, node: &NodeId) -> String {
        format!("node `{node}` failed {} times in the same way", self.total)
    }
}

/// Number of failures by their signature.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct SignatureCounts(RedBlackTreeMapSync<Digest, u32>);

impl SignatureCounts {
    /// Counts one more end, and returns the counts of its failure.
    pub(crate) fn count(&mut self, before: Repetition, signature: Option<Digest>) -> Repetition {
        let known = signature.and_then(|signature| self.0.get(&signature)).copied().unwrap_or(0);
        let after = Repetition::after(before, signature, known);
        let has_room = known > 0 || self.0.size() < SIGNATURES_MAX;
        if let Some(signature) = signature.filter(|_| has_room) {
            self.0.insert_mut(signature, after.total);
        }
        after
    }
}
