//! Conditions that meet in one step, and proofs that end with the visit that made them.

use super::*;
use crate::simulation::receipt;
use glovebox_journal::event::StageStarted;
use glovebox_record::CommandEnding;

/// A run whose first attempt is under way.
fn under_way(pipeline: &Pipeline) -> Simulation<'_> {
    let mut run = Simulation::new(pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(pipeline, 20, None)))]);
    let open = run.state.main().open().cloned().unwrap();
    let attempt = finished(&open, Outcome::new(Status::Success)).attempt;
    run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "test".into() })]);
    run
}

#[test]
fn a_cancel_wins_over_a_budget_that_is_spent_in_the_same_step() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> b -> exit }}"));
    for is_canceled in [true, false] {
        let mut run = under_way(&pipeline);
        if is_canceled {
            run.append(vec![Event::RunCanceled(RunCanceled { by: "signal INT".into() })]);
        }
        let open = run.state.main().open().cloned().unwrap();
        let mut last = finished(&open, Outcome::new(Status::Fail));
        last.outcome.failure = Some(Failure::new(FailureClass::Budget, FailureCode::RUN_TOKENS, "no tokens are left"));
        run.append(vec![Event::StageFinished(Box::new(last))]);
        let expected = if is_canceled {
            "fail run/canceled: canceled by signal INT"
        } else {
            "fail limit/max_tokens: no tokens are left"
        };
        assert_eq!(run.verdict(), expected);
    }
}

#[test]
fn a_receipt_satisfies_a_gate_for_its_own_visit_only() {
    let pipeline = pipeline(&format!(
        "digraph g {{ {FRAME} a [goal_gate=true, gate_requires=receipt]; start -> a; a -> b [label=again]; a -> exit [weight=2]; b -> a }}"
    ));
    // Whether each visit of `a` has a receipt, and what comes of it.
    for (receipts, verdict) in [([false, true], "success exit"), ([true, false], "fail"), ([false, false], "fail")] {
        let mut visits = receipts.into_iter();
        let run = Simulation::run(&pipeline, 20, &mut |open| {
            let mut last = finished(open, Outcome::new(Status::Success));
            if open.task.node.as_str() == "a" {
                last.handler = "verify".into();
                let is_first = open.task.visit == 1;
                last.outcome.preferred_label = is_first.then(|| "again".to_owned());
                let has_receipt = visits.next().unwrap_or_default();
                last.receipts.extend(has_receipt.then(|| receipt(Some(0), CommandEnding::Exited)));
            }
            last
        });
        assert!(run.verdict().starts_with(verdict), "{receipts:?}: {}", run.verdict());
    }
}
