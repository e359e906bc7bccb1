//! The cost of a run's model calls so far, over all branches and generations, and the limit on spending that stopped a
//! stage.
//!
//! A stage that a limit of the run stopped is treated as canceled: with a higher limit it is executed again. The budget
//! still includes what the stage has spent.

use super::RunState;
use glovebox_journal::event::StageFinished;
use glovebox_record::spend::Spend;
use glovebox_record::{Failure, FailureClass, FailureCode, NodeId};
use rpds::RedBlackTreeMapSync;

/// The spending of the run and of each node that spent anything.
#[derive(Debug, Clone, PartialEq)]
pub struct Spending {
    /// The spending of all nodes.
    pub total: Spend,
    /// The spending of each node.
    pub nodes: RedBlackTreeMapSync<NodeId, Spend>,
}

impl Default for Spending {
    fn default() -> Self {
        Self { total: Spend::default(), nodes: RedBlackTreeMapSync::new_sync() }
    }
}

impl Spending {
    /// Returns the spending of a node.
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
    /// Adds the spending of an attempt, including one that was canceled.
    pub(super) fn note_spending(&mut self, finished: &StageFinished) {
        self.spending.add(&finished.attempt.task.node, Spend::new(finished.model.tokens, finished.model.cost));
        let met = finished.outcome.failure.as_ref().filter(|failure| is_of_budget(failure));
        self.overspent = met.cloned().or_else(|| self.overspent.take());
    }
}

/// Returns true for a failure because of a limit on what the whole run may spend.
pub(crate) fn is_of_budget(failure: &Failure) -> bool {
    failure.class == FailureClass::Budget && [FailureCode::RUN_TOKENS, FailureCode::RUN_COST].contains(&failure.code)
}

/// Returns true for a failure because of a limit of the whole run that canceled a running attempt. A resume with a
/// higher limit executes the attempt again.
pub(crate) fn is_bound_of_run(failure: &Failure) -> bool {
    is_of_budget(failure) || failure.class == FailureClass::Budget && failure.code == FailureCode::RUN_WALL_TIME
}
