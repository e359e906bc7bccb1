//! The finished visits of a branch: how many there were, and the last of them.
//!
//! It does not grow with the run. The journal has all of them, and so has `trace.jsonl`.

use crate::event::NodeId;
use rpds::QueueSync;

/// Visits that are kept.
const VISITS_KEPT_MAX: usize = 256;

/// Finished visits in order, failed ones included, exits not (design §9 #29).
#[derive(Debug, Clone, PartialEq)]
pub struct Visits {
    total: u64,
    kept: QueueSync<NodeId>,
    last: Option<NodeId>,
}

impl Default for Visits {
    fn default() -> Self {
        Self { total: 0, kept: QueueSync::new_sync(), last: None }
    }
}

impl Visits {
    /// All of them.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The last 256, oldest first.
    pub fn kept(&self) -> impl Iterator<Item = &NodeId> {
        self.kept.iter()
    }

    /// The last one.
    pub fn last(&self) -> Option<&NodeId> {
        self.last.as_ref()
    }

    /// None yet, after so many that are forgotten.
    pub(super) fn after(total: u64) -> Self {
        Self { total, ..Self::default() }
    }

    /// Those that are kept of the ones after the first `before`.
    pub(super) fn since(&self, before: u64) -> Vec<&NodeId> {
        let own = usize::try_from(self.total.saturating_sub(before)).unwrap_or(usize::MAX);
        let known = self.kept.len().saturating_sub(own);
        self.kept.iter().skip(known).collect()
    }

    /// Adds one. Returns how many there were before.
    pub(super) fn add(&mut self, node: &NodeId) -> u64 {
        let before = self.total;
        self.total = self.total.saturating_add(1);
        self.kept.enqueue_mut(node.clone());
        if self.kept.len() > VISITS_KEPT_MAX {
            self.kept.dequeue_mut();
        }
        self.last = Some(node.clone());
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
            assert!(visits.kept().count() <= VISITS_KEPT_MAX);
        }
        assert_eq!((visits.total(), visits.kept().count()), (10_000, VISITS_KEPT_MAX));
        assert_eq!(visits.last(), visits.kept().last());
    }
}
