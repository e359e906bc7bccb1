//! Budget for the model calls of a run, shared by all of its attempts.
//!
//! A call reserves its maximum cost under one lock before it is made, and settles its real cost afterwards. Therefore concurrent
//! attempts cannot exceed a bound together. Bounds of the run are checked before those of a node. If the attempts of a run are
//! made on several machines, a [`Till`] on the machine that drives the run decides.

use glovebox_models::chat::Usage;
use glovebox_record::spend::{CachedTokens, Money, Price, Spend, SpendBounds};
use glovebox_record::{Failure, FailureClass, FailureCode, NodeId};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bounds on spending, and the amount spent.
#[derive(Debug, Clone, Copy, Default)]
pub struct SpendingLimit {
    /// Maximum amounts.
    pub most: SpendBounds,
    /// Amount spent so far, including reservations.
    pub spent: Spend,
}

/// The place where the budget of a run is, if that is another machine.
pub trait Till: std::fmt::Debug + Send + Sync {
    /// Reserves an amount for a call of a node. Blocks.
    ///
    /// # Errors
    /// The amount would exceed a bound, and nothing was reserved.
    fn reserve(&self, node: &NodeId, wanted: Spend) -> Result<(), Failure>;

    /// Replaces a reservation by the amount spent.
    fn settle(&self, node: &NodeId, reserved: Spend, spent: Spend);
}

/// The budget of a run.
#[derive(Debug, Default)]
pub struct Budget {
    price: Option<Price>,
    purses: Mutex<SpendingLimits>,
    /// The budget is here and not in `purses`. `None` if this machine has it.
    till: Option<Arc<dyn Till>>,
}

#[derive(Debug, Default)]
struct SpendingLimits {
    run: SpendingLimit,
    nodes: BTreeMap<NodeId, SpendingLimit>,
}

/// Access of one node's attempts to the budget of the run.
#[derive(Debug, Clone)]
pub struct Account {
    budget: Arc<Budget>,
    node: NodeId,
    price: Option<Price>,
}

impl Budget {
    /// Creates a budget from the limits of the run and of nodes. A node without a limit of its own is bounded only by
    /// the limit of the run.
    pub fn new(price: Option<Price>, run: SpendingLimit, nodes: BTreeMap<NodeId, SpendingLimit>) -> Self {
        Self { price, purses: Mutex::new(SpendingLimits { run, nodes }), till: None }
    }

    /// Creates the budget of a run whose limits another machine keeps.
    pub fn elsewhere(price: Option<Price>, till: Arc<dyn Till>) -> Self {
        Self { price, till: Some(till), ..Self::default() }
    }

    /// Returns the account of a node.
    pub fn account(self: &Arc<Self>, node: &NodeId) -> Account {
        Account { budget: Arc::clone(self), node: node.clone(), price: self.price }
    }

    #[cfg(test)]
    pub(crate) fn spent_by_run(&self) -> Spend {
        self.purses.lock().unwrap_or_else(PoisonError::into_inner).run.spent
    }
}

impl Account {
    /// Sets the price, for a node that asks another model.
    pub fn priced(self, price: Option<Price>) -> Self {
        Self { price, ..self }
    }

    /// Returns the cost of an exchange: the one that the provider states, or the price of the tokens.
    pub(crate) fn cost(&self, usage: Usage) -> Money {
        let cached = CachedTokens { read: usage.cache_read, write: usage.cache_write };
        let by_price = || self.price.map(|price| price.cost_cached(usage.tokens(), cached)).unwrap_or_default();
        usage.cost_usd.unwrap_or_else(by_price)
    }

    /// Reserves the cost of a call in the budgets of the run and the node. If that would exceed a bound, reserves
    /// nothing and returns the failure.
    pub(crate) fn reserve(&self, usage: Usage) -> Result<Spend, Failure> {
        let wanted = Spend::new(usage.tokens(), self.cost(usage));
        self.budget.reserve(&self.node, wanted)?;
        Ok(wanted)
    }

    /// Subtracts the amount that an attempt has spent, because the attempt is executed again and spends it again.
    pub fn refund(&self, spent: Spend) {
        self.settle(spent, Spend::default());
    }

    /// Replaces a reservation by the amount spent.
    pub(crate) fn settle(&self, reserved: Spend, spent: Spend) {
        self.budget.settle(&self.node, reserved, spent);
    }
}

impl Till for Budget {
    fn reserve(&self, node: &NodeId, wanted: Spend) -> Result<(), Failure> {
        if let Some(till) = &self.till {
            return till.reserve(node, wanted);
        }
        let mut purses = self.purses.lock().unwrap_or_else(PoisonError::into_inner);
        let run = purses.run.with(wanted).map_err(|over| over.of_run())?;
        if let Some(purse) = purses.nodes.get_mut(node) {
            purse.spent = purse.with(wanted).map_err(|over| over.of_node(node))?;
        }
        purses.run.spent = run;
        Ok(())
    }

    fn settle(&self, node: &NodeId, reserved: Spend, spent: Spend) {
        if let Some(till) = &self.till {
            return till.settle(node, reserved, spent);
        }
        let mut purses = self.purses.lock().unwrap_or_else(PoisonError::into_inner);
        let SpendingLimits { run, nodes } = &mut *purses;
        for purse in nodes.get_mut(node).into_iter().chain([run]) {
            purse.spent = purse.spent.minus(reserved).plus(spent);
        }
    }
}

/// The bound that a call would exceed.
enum ExceededBound {
    Tokens { most: u64, spent: u64, wanted: u64 },
    Cost { most: Money, spent: Money, wanted: Money },
}

impl SpendingLimit {
    /// Returns the amount spent after one more call, or the bound that the call would exceed.
    fn with(&self, wanted: Spend) -> Result<Spend, ExceededBound> {
        let Self { most, spent } = *self;
        let sum = spent.plus(wanted);
        if let Some(most) = most.tokens_max.filter(|most| sum.tokens > *most) {
            return Err(ExceededBound::Tokens { most, spent: spent.tokens, wanted: wanted.tokens });
        }
        if let Some(most) = most.cost_max.filter(|most| sum.cost > *most) {
            return Err(ExceededBound::Cost { most, spent: spent.cost, wanted: wanted.cost });
        }
        Ok(sum)
    }
}

impl ExceededBound {
    fn of_run(self) -> Failure {
        let said = self.to_string();
        let (code, reason) = match self {
            Self::Tokens { most, .. } => (
                FailureCode::RUN_TOKENS,
                format!("Pipeline exceeded maximum tokens ({most}): {said}. Use --max-tokens to increase."),
            ),
            Self::Cost { most, .. } => (
                FailureCode::RUN_COST,
                format!("Pipeline exceeded maximum budget ({most}): {said}. Use --max-budget-usd to increase."),
            ),
        };
        Failure::new(FailureClass::Budget, code, reason)
    }

    fn of_node(self, node: &NodeId) -> Failure {
        let said = self.to_string();
        let (code, reason) = match self {
            Self::Tokens { most, .. } => {
                ("limit/node_max_tokens", format!("node `{node}` exceeded `max_tokens` ({most}): {said}"))
            }
            Self::Cost { most, .. } => {
                ("limit/node_max_budget_usd", format!("node `{node}` exceeded `max_budget_usd` ({most}): {said}"))
            }
        };
        Failure::new(FailureClass::Budget, code, reason)
    }
}

impl std::fmt::Display for ExceededBound {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tokens { spent, wanted, .. } => write!(f, "{spent} are spent, and the next call may take {wanted}"),
            Self::Cost { spent, wanted, .. } => write!(f, "{spent} is spent, and the next call may cost {wanted}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounded(tokens_max: u64) -> SpendingLimit {
        SpendingLimit { most: SpendBounds { tokens_max: Some(tokens_max), cost_max: None }, spent: Spend::default() }
    }

    fn usage(tokens: u64) -> Usage {
        Usage { input: tokens, ..Usage::default() }
    }

    #[test]
    fn calls_at_the_same_time_never_cross_a_bound_together() {
        let budget = Arc::new(Budget::new(None, bounded(1_000), BTreeMap::new()));
        let taken: u64 = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..8)
                .map(|_| {
                    let account = budget.account(&NodeId::from("n"));
                    scope.spawn(move || (0..100).filter(|_| account.reserve(usage(7)).is_ok()).count() as u64 * 7)
                })
                .collect();
            callers.into_iter().map(|caller| caller.join().unwrap()).sum()
        });
        assert_eq!(taken, 142 * 7);
    }

    #[test]
    fn what_was_not_spent_goes_back_and_a_node_has_its_own_bound() {
        let budget = Arc::new(Budget::new(None, bounded(100), BTreeMap::from([("n".into(), bounded(50))])));
        let (account, other) = (budget.account(&"n".into()), budget.account(&NodeId::from("m")));
        let reserved = account.reserve(usage(50)).unwrap();
        assert_eq!(account.reserve(usage(1)).unwrap_err().code.as_str(), "limit/node_max_tokens");
        account.settle(reserved, Spend { tokens: 10, ..Spend::default() });
        assert!(account.reserve(usage(40)).is_ok() && other.reserve(usage(50)).is_ok());
        let over = other.reserve(usage(1)).unwrap_err();
        assert_eq!(over.code, FailureCode::RUN_TOKENS);
        assert!(over.reason.contains("(100): 100 are spent, and the next call may take 1"), "{}", over.reason);
    }

    #[test]
    fn the_stated_cost_counts_before_the_price_of_the_tokens() {
        let price = |dollars: u64| Some(Price { input: Money(dollars * 1_000_000), ..Price::default() });
        let account = Arc::new(Budget::new(price(2), SpendingLimit::default(), BTreeMap::new())).account(&"n".into());
        let stated = Usage { cost_usd: Some(Money(5)), ..usage(10) };
        for (account, used, expected) in [
            (account.clone(), usage(10), 20),
            (account.clone(), stated, 5),
            (account.clone().priced(price(3)), usage(10), 30),
            (account.clone().priced(None), usage(10), 0),
            (account.priced(None), stated, 5),
        ] {
            assert_eq!(account.cost(used), Money(expected));
        }
    }

    #[test]
    fn a_bound_may_be_reached_and_the_one_that_is_exceeded_is_named() {
        let paid = |cost: u64| Usage { cost_usd: Some(Money(cost)), ..usage(1) };
        let cost_max = |cost: u64| SpendingLimit {
            most: SpendBounds { tokens_max: None, cost_max: Some(Money(cost)) },
            spent: Spend { tokens: 0, cost: Money(100_000) },
        };
        let check = |run: SpendingLimit, node: SpendingLimit, wanted: Usage, expected: Option<(&str, &str)>| {
            let budget = Arc::new(Budget::new(None, run, BTreeMap::from([("n".into(), node)])));
            let refused = budget.account(&"n".into()).reserve(wanted).err();
            let found = refused.as_ref().map(|failure| (failure.code.as_str(), failure.reason.as_str()));
            assert_eq!(found, expected);
            assert!(refused.is_none_or(|failure| failure.class == FailureClass::Budget));
        };
        let open = SpendingLimit::default;
        check(open(), open(), paid(u64::MAX), None);
        check(bounded(7), bounded(7), usage(7), None);
        check(cost_max(500_000), cost_max(500_000), paid(400_000), None);
        let run_tokens = "Pipeline exceeded maximum tokens (7): 0 are spent, and the next call may take 8. Use --max-tokens to increase.";
        check(bounded(7), bounded(7), usage(8), Some(("limit/max_tokens", run_tokens)));
        let node_tokens = "node `n` exceeded `max_tokens` (7): 0 are spent, and the next call may take 8";
        check(open(), bounded(7), usage(8), Some(("limit/node_max_tokens", node_tokens)));
        let said = "$0.1 is spent, and the next call may cost $0.400001";
        let run_cost = format!("Pipeline exceeded maximum budget ($0.5): {said}. Use --max-budget-usd to increase.");
        check(cost_max(500_000), cost_max(1), paid(400_001), Some(("limit/max_budget_usd", &run_cost)));
        let node_cost = format!("node `n` exceeded `max_budget_usd` ($0.5): {said}");
        check(open(), cost_max(500_000), paid(400_001), Some(("limit/node_max_budget_usd", &node_cost)));
    }

    #[test]
    fn a_refund_is_subtracted_from_both_purses() {
        let nodes = BTreeMap::from([("n".into(), bounded(50))]);
        let budget = Arc::new(Budget::new(None, bounded(100), nodes));
        let account = budget.account(&"n".into());
        let spent = account.reserve(usage(50)).unwrap();
        assert!(account.reserve(usage(1)).is_err());
        account.refund(spent);
        assert!(budget.spent_by_run() == Spend::default() && account.reserve(usage(50)).is_ok());
    }

    #[test]
    fn the_amount_spent_replaces_the_reservation_in_both_purses() {
        let budget = Arc::new(Budget::new(
            None,
            SpendingLimit::default(),
            BTreeMap::from([("n".into(), SpendingLimit::default())]),
        ));
        let account = budget.account(&"n".into());
        let reserved = account.reserve(Usage { cost_usd: Some(Money(90)), ..usage(50) }).unwrap();
        account.settle(reserved, Spend { tokens: 10, cost: Money(7) });
        budget.account(&"m".into()).reserve(usage(3)).unwrap();
        let purses = budget.purses.lock().unwrap();
        assert_eq!(purses.nodes[&NodeId::from("n")].spent, Spend { tokens: 10, cost: Money(7) });
        assert_eq!(purses.run.spent, Spend { tokens: 13, cost: Money(7) });
    }
}
