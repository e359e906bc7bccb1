//! Decisions for an edge with `loop_restart`: a new generation, or the end of a run that may not restart.
//!
//! Only a failure that may disappear without a change restarts a run. After any other failure, the same stage would
//! fail again until a limit is reached.

use super::{BranchDecision, cause_of};
use glovebox_journal::event::{Event, LoopRestarted, RouteTaken};
use glovebox_pipeline::ir::EdgeIndex;
use glovebox_record::{Failure, FailureClass, Outcome, Status};

impl BranchDecision<'_> {
    pub(super) fn follow_route(&self, route: &RouteTaken) -> Vec<Event> {
        match route.edge.filter(|edge| self.pipeline.is_restart(EdgeIndex(*edge))) {
            Some(edge) => self.restart(route, edge),
            None => self.arrive(&route.to),
        }
    }

    fn restart(&self, RouteTaken { from, to, .. }: &RouteTaken, edge: usize) -> Vec<Event> {
        let outcome = self.branch.outcome(from);
        if let Some(failure) = self.restart_refused(from, outcome) {
            return self.fail(failure);
        }
        let (generation, branch) = self.place();
        vec![Event::LoopRestarted(Box::new(LoopRestarted {
            generation: generation + 1,
            branch,
            from: from.clone(),
            to: to.clone(),
            edge,
            status: outcome.map_or(Status::Success, |outcome| outcome.status),
            failure: outcome.and_then(|outcome| outcome.failure.as_ref()).cloned(),
            kept: self.pipeline.restarts.kept.iter().map(ToString::to_string).collect(),
        }))]
    }

    fn restart_refused(&self, from: &super::NodeId, outcome: Option<&Outcome>) -> Option<Failure> {
        if self.branch.origin.is_some() {
            let reason =
                format!("loop_restart blocked: `{from}` is in branch `{}`, expected an edge after the fan-in", self.id);
            return Some(Failure::new(FailureClass::Contract, "loop/restart_in_branch", reason));
        }
        let failed = outcome.filter(|outcome| matches!(outcome.status, Status::Fail | Status::Retry));
        if let Some(cause) = failed.map(|outcome| cause_of(from, outcome))
            && cause.class != FailureClass::Transient
        {
            let (class, reason) = (cause.class.as_str(), &cause.reason);
            let reason = format!(
                "loop_restart blocked: failure_class={class} (requires transient), node={from}, failure_reason={reason}"
            );
            return Some(Failure::new(cause.class, "loop/restart_blocked", reason));
        }
        let (restarts, most) = (self.state.generation(), self.pipeline.restarts.most);
        let reason = || format!("loop_restart limit exceeded ({restarts} restarts, `max_restarts` is {most})");
        (restarts >= most).then(|| Failure::new(FailureClass::Budget, "limit/max_restarts", reason()))
    }
}
