//! Writes outside of a scope that wait for a decision, and the paths that people allowed.
//!
//! Grants are folded only from `recovery.decided`. Only a rewind to before the event removes a grant.

use super::RunState;
use super::branch::pending_outcome::{FailedStage, Unverified};
use super::branch::{Branch, Position};
use glovebox_journal::event::{NodeId, RecoveryDecided};
use glovebox_record::Status;
use glovebox_record::path::ScopePath;
use std::sync::Arc;

impl RunState {
    /// Returns the paths outside of its write scope that people allowed a node to write.
    pub fn granted(&self, node: &NodeId) -> Vec<ScopePath> {
        self.grants.get(node).map(|paths| paths.iter().cloned().collect()).unwrap_or_default()
    }

    pub(super) fn note_decided(&mut self, decided: &RecoveryDecided) {
        for path in decided.granted() {
            let mut paths = self.grants.get(decided.node()).cloned().unwrap_or_default();
            paths.insert_mut(path.clone());
            self.grants.insert_mut(decided.node().clone(), paths);
        }
    }
}

impl Branch {
    /// Ends the visit with the decided outcome, or keeps the outcome until its verification has ended.
    pub(super) fn settle_held(&mut self, decided: &RecoveryDecided) {
        let (held, node) = (self.held.take(), decided.node());
        self.at = Position::Deciding;
        decided.changes.iter().for_each(|change| self.note_change(node, change));
        if decided.verifying {
            self.unverified = Some(Arc::new(Unverified {
                ordinal: Some(decided.attempt.ordinal),
                handler: decided.handler.clone(),
                outcome: decided.outcome.clone(),
                stored: decided.stored_values.clone(),
                no_change: false,
            }));
            return;
        }
        self.record_outcome(node, &decided.outcome);
        self.note_values(&decided.handler, &decided.stored_values, &decided.outcome);
        self.update(node, |history| history.count_signature(decided.signature));
        self.complete(node);
        if decided.outcome.status != Status::Skipped {
            let of = |held: &Arc<_>| FailedStage { notes: decided.outcome.notes.clone(), ..FailedStage::new(held) };
            let failed = || held.as_ref().map_or_else(|| FailedStage::silent(node), of);
            self.last_failed = self.last_failure.as_ref().map(|_| Arc::new(failed()));
            self.note_end_in_chain(node, false);
        }
    }
}
