//! The spending of attempts that wait for a quota.
//!
//! Such an attempt is not recorded. When it is executed again, the answers in its log of exchanges are charged again, so
//! their first charge is refunded at that moment. Until then it counts, so that nobody spends the same money.

use glovebox_host::budget::Account;
use glovebox_journal::event::{Attempt, StageFinished, Task};
use glovebox_record::Failure;
use glovebox_record::spend::Spend;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The spending of each attempt that failed because of a quota and was not executed again since.
#[derive(Debug, Default)]
pub struct HeldSpending(Mutex<BTreeMap<(Task, u32), Spend>>);

impl HeldSpending {
    /// Remembers what an attempt has spent, if it failed because of a quota.
    pub(super) fn note(&self, finished: &StageFinished) {
        if finished.outcome.failure.as_ref().is_some_and(Failure::is_of_quota) {
            let spent = Spend::new(finished.model.tokens, finished.model.cost);
            self.lock().insert(key(&finished.attempt), spent);
        }
    }

    /// Refunds what the attempt has spent before, if it is executed again.
    pub(super) fn refund(&self, attempt: &Attempt, account: &Account) {
        if let Some(spent) = self.lock().remove(&key(attempt)) {
            account.refund(spent);
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<(Task, u32), Spend>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(attempt: &Attempt) -> (Task, u32) {
    (attempt.task.clone(), attempt.ordinal)
}
