//! Several conditions that apply in the same step, and proofs that expire with the visit that made them.

use super::model::{answered, violate};
use super::*;
use crate::simulation::receipt;
use glovebox_journal::event::{RecoveryAction, StageStarted};
use glovebox_record::CommandEnding;

/// Returns a run whose first attempt is running.
fn under_way(pipeline: &Pipeline) -> Simulation<'_> {
    let mut run = Simulation::new(pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(pipeline, 20, None)))]);
    let open = run.state.main().open().cloned().unwrap();
    let attempt = finished(&open, Outcome::new(Status::Success)).attempt;
    run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "test".into(), machine: None, moved: None })]);
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
    // Whether each visit of `a` has a receipt, and the expected verdict.
    for (receipts, verdict) in [([false, true], "success exit"), ([true, false], "fail"), ([false, false], "fail")] {
        let mut visits = receipts.into_iter();
        let run = Simulation::run(&pipeline, 20, &mut |open| {
            let mut last = finished(open, Outcome::new(Status::Success));
            if open.task.node.as_str() == "a" {
                last.handler = "verify".into();
                let is_first = open.task.visit == 1;
                last.outcome.preferred_label = is_first.then(|| "again".to_owned());
                let has_receipt = visits.next().unwrap_or_default();
                last.commands.receipts.extend(has_receipt.then(|| receipt(Some(0), CommandEnding::Exited)));
            }
            last
        });
        assert!(run.verdict().starts_with(verdict), "{receipts:?}: {}", run.verdict());
    }
}

#[test]
fn a_spent_budget_ends_a_run_only_where_it_waits_for_no_attempt() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> b -> exit }}"));
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 20, None)))]);
    let ready = run.records.iter().map(|record| &record.event).find(|event| event.stage_ready().is_some()).unwrap();
    let passed = run.records.iter().map(|record| &record.event).find(|event| event.stage_passed().is_some()).unwrap();
    let mut state = run.state.clone();
    state.overspent = Some(Failure::new(FailureClass::Budget, FailureCode::RUN_TOKENS, "no tokens are left"));
    let kinds = |cause: &Event| decide(&pipeline, &state, cause).iter().map(Event::kind).collect::<Vec<_>>();
    for waits in [ready, &Event::RunResumed(Box::default())] {
        assert_eq!(kinds(waits), [] as [&str; 0], "{}", waits.kind());
    }
    assert_eq!(kinds(passed), ["branch.exited", "run.finished"]);
}

#[test]
fn after_an_attempt_its_failure_and_its_verification_decide_what_follows() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> b -> exit }}"));
    let run = under_way(&pipeline);
    let open = run.state.main().open().cloned().unwrap();
    let follow = |change: &dyn Fn(&mut StageFinished)| {
        let mut last = finished(&open, Outcome::new(Status::Success));
        change(&mut last);
        let decided = decide(&pipeline, &run.state, &Event::StageFinished(Box::new(last)));
        decided.iter().find_map(|event| event.stage_ready()).map(|ready| (ready.task.node.to_string(), ready.task.work))
    };
    assert_eq!(follow(&|_| ()), None, "first the route to the next stage");
    assert_eq!(follow(&|last| last.follow_up.verifying = true), Some(("a".to_owned(), Work::Verify)));
    let spent = |last: &mut StageFinished| {
        let failure = Failure::new(FailureClass::Budget, FailureCode::RUN_TOKENS, "no tokens are left");
        last.outcome = Outcome::failed(failure);
    };
    // A resume has raised the limit: the stage that reached it is executed again.
    assert_eq!(follow(&spent), Some(("a".to_owned(), Work::Handler)));
}

#[test]
fn a_person_decides_about_writes_outside_of_a_scope_before_the_stage_is_left() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> b -> exit }}"));
    for (action, next) in
        [(RecoveryAction::Allow, Some("b")), (RecoveryAction::Discard, Some("b")), (RecoveryAction::Deny, None)]
    {
        let mut run = under_way(&pipeline);
        let open = run.state.main().open().cloned().unwrap();
        let mut last = finished(&open, Outcome::new(Status::Success));
        violate(&mut last, 1);
        run.append(vec![Event::StageFinished(Box::new(last))]);
        let question = run.state.questions().next().expect("a person is asked").asked.clone();
        assert!(question.recovery.is_some() && run.state.verdict.is_none(), "{question:?}");
        let choice = question.choices.iter().find(|choice| choice.key == action.as_str()).unwrap();
        run.append(vec![answered(&question, choice.clone())]);
        let decided = run.records.iter().find_map(|record| match &record.event {
            Event::RecoveryDecided(decided) => Some((decided.action, decided.changes.len())),
            _ => None,
        });
        assert_eq!(decided, Some((action, usize::from(action == RecoveryAction::Allow))));
        assert_eq!(run.state.main().open().map(|open| open.task.node.as_str()), next, "{action}");
    }
}

#[test]
fn an_exit_whose_verification_passed_ends_the_run_with_success() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} exit [verify_command=x]; start -> a -> exit }}"));
    for (code, verdict) in [(0, "success exit"), (1, "fail claim/unproven")] {
        let run = Simulation::run(&pipeline, 20, &mut |open| {
            let mut last = finished(open, Outcome::new(Status::Success));
            last.commands
                .receipts
                .extend((open.task.work == Work::Verify).then(|| receipt(Some(code), CommandEnding::Exited)));
            last
        });
        assert_eq!(run.attempts(), "a exit");
        assert!(run.verdict().starts_with(verdict), "{}", run.verdict());
    }
}
