//! Questions to a person, at a gate and about writes outside of a scope, and the consequences of the answers.

use super::model::{answered, violate};
use super::*;
use glovebox_journal::event::{ChangeOp, FileChange, QuestionAsked, RefusedChange, StageStarted};
use glovebox_record::path::ScopePath;
use jiff::SignedDuration;

/// Returns the question that a run waits for.
fn asked(run: &Simulation<'_>) -> Arc<QuestionAsked> {
    run.state.questions().next().expect("a person is asked").asked.clone()
}

#[test]
fn the_answer_of_a_person_chooses_the_edge() {
    let pipeline = pipeline(&format!(
        "digraph g {{ {FRAME} p [shape=hexagon, timeout=\"5s\"]; start -> p; p -> a [label=\"[Y] Yes\"]; p -> b [label=\"[N] No\"]; a -> exit; b -> exit }}"
    ));
    for (index, node) in [(0, "a"), (1, "b")] {
        let mut run = Simulation::new(&pipeline);
        run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 20, None)))]);
        let question = asked(&run);
        assert_eq!(question.due_at, Some(Timestamp::UNIX_EPOCH + SignedDuration::from_secs(5)));
        run.append(vec![answered(&question, question.choices[index].clone())]);
        assert_eq!(run.state.main().open().map(|open| open.task.node.as_str()), Some(node));
    }
}

/// Returns a run that waits for a decision about writes outside of the scope of `a`.
fn violated<'p>(pipeline: &'p Pipeline, change: &dyn Fn(&mut StageFinished)) -> Simulation<'p> {
    let mut run = Simulation::new(pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(pipeline, 20, None)))]);
    let open = run.state.main().open().cloned().unwrap();
    let mut last = finished(&open, Outcome::new(Status::Success));
    run.append(vec![Event::StageStarted(StageStarted {
        attempt: last.attempt.clone(),
        worker: "w".into(),
        machine: None,
        moved: None,
    })]);
    violate(&mut last, 1);
    change(&mut last);
    run.append(vec![Event::StageFinished(Box::new(last))]);
    run
}

fn quarantined(path: String) -> RefusedChange {
    RefusedChange { path, reason: "not in the write scope; add it".to_owned() }
}

fn graph() -> Pipeline {
    pipeline(&format!("digraph g {{ {FRAME} start -> a -> exit }}"))
}

#[test]
fn the_question_names_every_file_that_allow_commits() {
    let pipeline = graph();
    let run = violated(&pipeline, &|last| {
        last.files.quarantined =
            vec![quarantined("lock1".into()), quarantined("out/x".into()), quarantined("out/y".into())];
        last.files.quarantined.push(quarantined("one".into()));
        let change = FileChange::bare(ScopePath::parse("lock1").unwrap(), ChangeOp::Write);
        let digest = glovebox_journal::event::Digest::hash(b"lock");
        last.files.recoverable.as_mut().unwrap().proposed[0].change =
            FileChange { digest: Some(digest), bytes: 4, ..change };
    });
    let question = asked(&run);
    insta::assert_snapshot!(question.text);
    let choices: Vec<(&str, bool)> =
        question.choices.iter().map(|choice| (choice.key.as_str(), choice.declines)).collect();
    assert_eq!(choices, [("allow", false), ("discard", false), ("deny", true)]);
}

#[test]
fn where_nothing_can_be_allowed_allow_is_no_choice() {
    let pipeline = graph();
    let run = violated(&pipeline, &|last| {
        last.files.recoverable.as_mut().unwrap().proposed.clear();
        last.files.quarantined = (0..12).map(|folder| quarantined(format!("folder{folder}/x"))).collect();
    });
    let question = asked(&run);
    insta::assert_snapshot!(question.text);
    let choices: Vec<&str> = question.choices.iter().map(|choice| choice.key.as_str()).collect();
    assert_eq!(choices, ["discard", "deny"]);
}

#[test]
fn a_question_lists_eight_groups_and_counts_the_files_of_the_others_only_if_there_are_any() {
    let pipeline = graph();
    let text = |groups: usize| {
        let files = (0..groups).map(|folder| quarantined(format!("folder{folder}/x")));
        asked(&violated(&pipeline, &|last| last.files.quarantined = files.clone().collect())).text.clone()
    };
    assert!(text(8).contains("folder7/x (1 file)") && !text(8).contains("more files"), "{}", text(8));
    assert!(text(9).contains("\n- 1 more files"), "{}", text(9));
}

/// Returns an attempt after `finalize_attempt`, with writes that a person might decide about.
fn settled(graph: &str, stopping: bool, change: &dyn Fn(&mut StageFinished)) -> StageFinished {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} {graph}; start -> a -> exit }}"));
    let mut run = Simulation::new(&pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(&pipeline, 20, None)))]);
    let open = run.state.main().open().cloned().unwrap();
    let mut last = finished(&open, Outcome::new(Status::Success));
    last.files.stored_values = ["k".to_owned()].into();
    violate(&mut last, 1);
    change(&mut last);
    finalize_attempt(&pipeline, None, &run.state, stopping, &mut last);
    last
}

#[test]
fn a_person_decides_only_about_an_attempt_that_ended_by_itself_and_for_its_writes() {
    let kept = settled("a", false, &|_| ());
    assert!(kept.files.recoverable.is_some() && !kept.files.stored_values.is_empty());
    let other = Failure::new(FailureClass::Scope, "scope/read", "it read");
    let budget = Failure::new(FailureClass::Budget, FailureCode::RUN_TOKENS, "no tokens are left");
    let time = Failure::new(FailureClass::Budget, FailureCode::NODE_WALL_TIME, "no time is left");
    for (is_kept, stopping, change) in [
        (false, true, Box::new(|_: &mut StageFinished| ()) as Box<dyn Fn(&mut StageFinished)>),
        (false, false, Box::new(|last| last.ending = Ending::Canceled)),
        (false, false, Box::new(|last| last.attempt.task.work = Work::Join)),
        (false, false, Box::new(move |last| last.outcome.failure = Some(other.clone()))),
        (false, false, Box::new(move |last| own(last).failure = Some(budget.clone()))),
        (true, false, Box::new(move |last| own(last).failure = Some(time.clone()))),
    ] {
        let last = settled("a", stopping, &change);
        assert_eq!(
            (last.files.recoverable.is_some(), last.files.stored_values.is_empty()),
            (is_kept, !is_kept),
            "{last:?}"
        );
    }
}

fn own(last: &mut StageFinished) -> &mut Outcome {
    &mut last.files.recoverable.as_mut().unwrap().outcome
}

#[test]
fn the_stage_s_own_outcome_is_final_before_a_person_is_asked() {
    let decided = |graph: &str, status: Status| {
        let last = settled(graph, false, &|last| own(last).status = status);
        let recoverable = last.files.recoverable.expect("a person decides");
        (recoverable.outcome.status, recoverable.verifying)
    };
    assert_eq!(decided("a", Status::Retry), (Status::Fail, false));
    assert_eq!(decided("a", Status::PartialSuccess), (Status::PartialSuccess, false));
    assert_eq!(decided("a [allow_partial=true]", Status::Retry), (Status::PartialSuccess, false));
    assert_eq!(decided("a [verify_command=x]", Status::Success), (Status::Success, true));
    assert_eq!(decided("a [verify_command=x]", Status::Skipped), (Status::Skipped, false));
}
