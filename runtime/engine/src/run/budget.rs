//! The budget of a run, which its attempts share: the limits of the run and of nodes, minus the spend in the journal.

use super::Run;
use glovebox_host::budget::{Budget, SpendingLimit};
use glovebox_record::NodeId;
use glovebox_record::spend::SpendBounds;
use std::collections::BTreeMap;

impl Run {
    pub(super) fn budget(&self) -> Budget {
        let (plan, state) = (&self.executor.plan, self.session.state());
        let most = state.run.as_ref().map(|run| run.bounds.spend_max).unwrap_or_default();
        let run = SpendingLimit { most: most.least(plan.bounds.spend_max), spent: state.spending.total };
        let bounded = plan.pipeline.nodes.iter().filter(|node| !node.bounds.spend_max.is_unlimited());
        let purse = |id: &NodeId, most: SpendBounds| SpendingLimit { most, spent: state.spending.of(id) };
        let nodes: BTreeMap<_, _> =
            bounded.map(|node| (node.id.clone(), purse(&node.id, node.bounds.spend_max))).collect();
        Budget::new(plan.models.price, run, nodes)
    }
}
