//! The finished visits of a branch: their number, and the last of them.
//!
//! The memory use is bounded. The journal and `trace.jsonl` contain all visits.

use glovebox_journal::event::NodeId;
use rpds::VectorSync;

/// Maximum number of visits that are kept.
const VISITS_KEPT_MAX: usize = 256;

/// The finished visits in order. Failed visits are included, exits are not (decision completed-nodes).
#[derive(Debug, Clone)]
pub struct Visits {
    total: u64,
    /// The kept visits, and at most as many older ones. Dropping older ones in batches makes most additions cheap.
    recent: VectorSync<NodeId>,
}

impl Default for Visits {
    fn default() -> Self {
        Self { total: 0, recent: VectorSync::new_sync() }
    }
}

/// Compares the total and the kept visits. Older visits in `recent` do not matter.
impl PartialEq for Visits {
    fn eq(&self, other: &Self) -> bool {
        self.total == other.total && self.kept().eq(other.kept())
    }
}

impl Visits {
    /// Returns the number of all visits.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the last 256 visits, oldest first.
    pub fn kept(&self) -> impl DoubleEndedIterator<Item = &NodeId> {
        self.recent.iter().skip(self.recent.len().saturating_sub(VISITS_KEPT_MAX))
    }

    /// Returns the last visit.
    pub fn last(&self) -> Option<&NodeId> {
        self.recent.last()
    }

    /// Creates a list without visits that counts `total` earlier ones.
    pub(super) fn after(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// Returns the kept visits without the first `before` of all visits.
    pub(super) fn since(&self, before: u64) -> Vec<&NodeId> {
        let own = usize::try_from(self.total.saturating_sub(before)).unwrap_or(usize::MAX);
        let known = self.recent.len().saturating_sub(own.min(VISITS_KEPT_MAX));
        self.recent.iter().skip(known).collect()
    }

    /// Adds a visit. Returns the number of visits before it.
    pub(super) fn add(&mut self, node: &NodeId) -> u64 {
        let before = self.total;
        self.total = self.total.saturating_add(1);
        if self.recent.len() >= 2 * VISITS_KEPT_MAX {
            self.recent = self.kept().cloned().collect();
        }
        self.recent.push_back_mut(node.clone());
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_does_not_grow_with_the_visits() {
        let mut visits = Visits::default();
        for visit in 0..10_000_u64 {
            assert_eq!(visits.add(&NodeId::new(format!("n{}", visit % 7))), visit);
            assert!(visits.kept().count() <= VISITS_KEPT_MAX && visits.recent.len() <= 2 * VISITS_KEPT_MAX);
            assert_eq!(visits.since(visit).len(), 1);
        }
        assert_eq!((visits.total(), visits.kept().count()), (10_000, VISITS_KEPT_MAX));
        assert_eq!(visits.last(), visits.kept().last());
    }
}
