//! The budget of a run, which its attempts share: the limits of the run and of nodes, minus the spend in the journal.

use glovebox_host::budget::{Budget, SpendingLimit};
use glovebox_pipeline::ir::Pipeline;
use glovebox_plan::plan::Plan;
use glovebox_record::NodeId;
use glovebox_record::spend::SpendBounds;
use glovebox_state::run_state::RunState;
use std::collections::BTreeMap;

/// Returns true if the run or one of its nodes has a bound on spending.
pub(super) fn has_spending_bounds(plan: &Plan, state: &RunState) -> bool {
    let run = run_limit(plan.bounds.spend_max, state);
    !run.most.is_unlimited() || plan.pipeline.nodes.iter().any(|node| !node.bounds.spend_max.is_unlimited())
}

/// Returns the budget of a run in this state.
pub fn budget(plan: &Plan, state: &RunState) -> Budget {
    Budget::new(plan.models.price, run_limit(plan.bounds.spend_max, state), node_limits(&plan.pipeline, state))
}

/// Returns the lower of the run's limit and the plan's.
fn run_limit(of_plan: SpendBounds, state: &RunState) -> SpendingLimit {
    let most = state.run.as_ref().map(|run| run.bounds.spend_max).unwrap_or_default();
    SpendingLimit { most: most.least(of_plan), spent: state.spending.total }
}

/// Returns the limits of the nodes that have one.
fn node_limits(pipeline: &Pipeline, state: &RunState) -> BTreeMap<NodeId, SpendingLimit> {
    let bounded = pipeline.nodes.iter().filter(|node| !node.bounds.spend_max.is_unlimited());
    let limit = |id: &NodeId, most: SpendBounds| SpendingLimit { most, spent: state.spending.of(id) };
    bounded.map(|node| (node.id.clone(), limit(&node.id, node.bounds.spend_max))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_journal::event::{Event, StageModel};
    use glovebox_record::spend::{Money, Spend};
    use glovebox_record::{Outcome, Status, Tokens};
    use glovebox_state::simulation::{Simulation, finished, pipeline, started};

    #[test]
    fn limits_are_the_lower_ones_and_what_the_journal_has_is_spent() {
        let graph = pipeline(
            "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a [max_tokens=50]; b; start -> a -> b -> exit }",
        );
        let bounds = |tokens, cost: Option<u64>| SpendBounds { tokens_max: tokens, cost_max: cost.map(Money) };
        let mut begun = started(&graph, 30, None);
        begun.bounds.spend_max = bounds(Some(100), None);
        let mut run = Simulation::new(&graph);
        run.append(vec![Event::RunStarted(Box::new(begun))]);
        run.go_on(&mut |open| {
            let paid = StageModel { tokens: Tokens { input: 7, output: 1 }, cost: Money(3), ..StageModel::default() };
            let mut ended = finished(open, Outcome::new(Status::Success));
            ended.model = paid;
            ended
        });
        let shown = |limit: &SpendingLimit| (limit.most, limit.spent);
        let both = Spend { tokens: 16, cost: Money(6) };
        for (of_plan, expected) in [
            (SpendBounds::default(), bounds(Some(100), None)),
            (bounds(Some(99), Some(5)), bounds(Some(99), Some(5))),
            (bounds(Some(101), None), bounds(Some(100), None)),
        ] {
            assert_eq!(shown(&run_limit(of_plan, &run.state)), (expected, both));
        }
        let nodes: Vec<_> =
            node_limits(&graph, &run.state).iter().map(|(id, one)| (id.to_string(), shown(one))).collect();
        assert_eq!(nodes, [("a".to_owned(), (bounds(Some(50), None), Spend { tokens: 8, cost: Money(3) }))]);
    }
}
