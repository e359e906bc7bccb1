//! Rewinds a run to an earlier visit, with the state, context and files of that time. Spent steps, time and money stay
//! spent, and no two attempts get the same name.

use super::{Branch, RunState};
use glovebox_journal::event::{BranchId, Record};
use glovebox_journal::rewind::Fold;
use std::sync::Arc;

impl Fold for RunState {
    type Past = Self;

    fn apply(&mut self, record: &Record) {
        Self::apply(self, record);
    }

    fn go_back(&mut self, past: Self) {
        Self::go_back(self, &past);
    }
}

impl RunState {
    /// Restores the state `past`. Steps, time, money and generations keep counting.
    pub fn go_back(&mut self, past: &Self) {
        self.continue_stopped();
        (self.verdict, self.canceled) = (None, None);
        let mut main = Branch::clone(past.main());
        main.count_on_from(self.main());
        self.grants = past.grants.clone();
        self.branches = [(BranchId::main(), Arc::new(main))].into();
    }
}

impl Branch {
    /// Continues the visit numbers after the highest ones that were used. Only visits before the rewind count for
    /// `max_visits`.
    fn count_on_from(&mut self, last: &Self) {
        self.head = last.head;
        for (node, history) in &last.nodes {
            self.update(node, |own| own.visits = own.visits.max(history.visits));
        }
    }
}
