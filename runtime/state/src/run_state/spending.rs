//! What the model calls of a run have cost so far, in all of its branches and generations, and whether a bound stopped it.
//!
//! A stage that a bound of the run stopped counts as cut: with a higher bound it begins again. What it had spent stays spent.

use super::RunState;
use glovebox_journal::event::StageFinished;
use glovebox_record::spend::Spend;
use glovebox_record::{Failure, FailureClass, FailureCode, NodeId};
use rpds::RedBlackTreeMapSync;

/// The run's own and that of each node which spent anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Spending {
    /// Of all nodes.
    pub total: Spend,
    /// Of each node.
    pub nodes: RedBlackTreeMapSync<NodeId, Spend>,
}

impl Default for Spending {
    fn default() -> Self {
        Self { total: Spend::default(), nodes: RedBlackTreeMapSync::new_sync() }
    }
}

impl Spending {
    /// The spending of a node.
    pub fn of(&self, node: &NodeId) -> Spend {
        self.nodes.get(node).copied().unwrap_or_default()
    }

    fn add(&mut self, node: &NodeId, spend: Spend) {
        if spend != Spend::default() {
            self.total = self.total.plus(spend);
            let sum = self.of(node).plus(spend);
            self.nodes.insert_mut(node.clone(), sum);
        }
    }
}

impl RunState {
    /// Counts what an attempt spent, also of one that was asked to stop.
    pub(super) fn note_spending(&mut self, finished: &StageFinished) {
        self.spending.add(&finished.attempt.task.node, Spend::new(finished.model.tokens, finished.model.cost));
        let met = finished.outcome.failure.as_ref().filter(|failure| is_of_budget(failure));
        self.overspent = met.cloned().or_else(|| self.overspent.take());
    }
}

/// True for a bound on what the whole run may spend.
pub(crate) fn is_of_budget(failure: &Failure) -> bool {
    failure.class == FailureClass::Budget && [FailureCode::RUN_TOKENS, FailureCode::RUN_COST].contains(&failure.code)
}

/// True for a bound of the whole run that ended an attempt in its middle: a resume with a higher one makes it again.
pub(super) fn is_bound_of_run(failure: &Failure) -> bool {
    is_of_budget(failure) || failure.class == FailureClass::Budget && failure.code == FailureCode::RUN_WALL_TIME
}
