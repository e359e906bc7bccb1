//! The end of a canceled run: each branch exits where it stands, whatever the policies of its parallel node say.

use super::FRAME;
use crate::run_state::{OpenTask, resume_state};
use crate::simulation::{Simulation, finished, pipeline, started};
use glovebox_journal::event::{BranchId, Ending, Event, ExitPoint, RunCanceled, StageFinished, StageStarted};
use glovebox_pipeline::ir::Pipeline;
use glovebox_record::{Failure, FailureClass, FailureCode, Outcome, Status};

fn begun(pipeline: &Pipeline) -> Simulation<'_> {
    let mut run = Simulation::new(pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(pipeline, 50, None)))]);
    run
}

fn open(run: &Simulation<'_>, node: &str) -> OpenTask {
    let mut opens = run.state.branches.values().filter_map(|branch| branch.open());
    opens.find(|open| open.task.node == node).cloned().expect("the node waits for an attempt")
}

fn start(run: &mut Simulation<'_>, node: &str) {
    let attempt = finished(&open(run, node), Outcome::new(Status::Success)).attempt;
    run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
}

fn cancel(run: &mut Simulation<'_>, by: &str) {
    run.append(vec![Event::RunCanceled(RunCanceled { by: by.into() })]);
}

fn cut(run: &mut Simulation<'_>, node: &str) {
    let failure = Failure::new(FailureClass::Canceled, FailureCode::CANCELED, "the run was asked to stop");
    let ended = finished(&open(run, node), Outcome::failed(failure));
    run.append(vec![Event::StageFinished(Box::new(StageFinished { ending: Ending::Canceled, ..ended }))]);
}

/// Returns the events after the request to cancel: `BRANCH NODE POINT` for an exit, `BRANCH OUTCOME` for an end.
fn after_cancel(run: &Simulation<'_>) -> Vec<String> {
    let events = run.records.iter().map(|record| &record.event);
    let after = events.skip_while(|event| !matches!(event, Event::RunCanceled(_))).skip(1);
    let told = after.map(|event| match event {
        Event::BranchExited(exit) => {
            assert!(exit.reason.starts_with("canceled by "), "{}", exit.reason);
            let point: String = serde_json::to_value(exit.point).unwrap().as_str().unwrap().to_owned();
            format!("{} {} {point}", exit.branch, exit.node.as_ref().map_or("-", |node| node.as_str()))
        }
        Event::BranchFinished(end) => format!("{} {}", end.branch, end.outcome.as_str()),
        event => event.kind().to_owned(),
    });
    told.collect()
}

#[test]
fn every_branch_exits_whatever_the_policies_say() {
    let mut matrix = String::new();
    for join in ["wait_all", "first_success", "k_of_n, k=2", "quorum"] {
        for error in ["continue", "fail_fast", "ignore"] {
            for by in ["signal TERM", "a person"] {
                let pipeline = pipeline(&format!(
                    "digraph g {{ {FRAME} f [shape=component, max_parallel=2, join_policy={join}, error_policy={error}]; \
                     j [shape=tripleoctagon]; start -> f; f -> a -> b -> j; f -> c -> j; f -> d -> j; j -> exit }}"
                ));
                let mut run = begun(&pipeline);
                start(&mut run, "a");
                cancel(&mut run, by);
                assert!(run.state.verdict.is_none(), "an attempt is under way");
                cut(&mut run, "a");
                let told = after_cancel(&run);
                assert_eq!(
                    told,
                    [
                        "stage.finished",
                        "f-a a in_stage",
                        "f-a canceled",
                        "f-c c before_stage",
                        "f-c canceled",
                        "main f at_join",
                        "run.finished"
                    ]
                );
                assert_eq!(run.verdict(), format!("fail run/canceled: canceled by {by}"));
                matrix.push_str(&format!("{join:<12} {error:<10} {by:<12} {}\n", told.join(", ")));
            }
        }
    }
    println!("{matrix}");
}

#[test]
fn a_nested_branch_ends_before_the_branch_that_it_was_split_from() {
    let pipeline = pipeline(&format!(
        "digraph g {{ {FRAME} f [shape=component]; g [shape=component]; k [shape=tripleoctagon]; j [shape=tripleoctagon]; \
         start -> f; f -> a -> j; f -> g; g -> b -> k; g -> c -> k; k -> j; j -> exit }}"
    ));
    let mut run = begun(&pipeline);
    cancel(&mut run, "signal HUP");
    let told = after_cancel(&run);
    let at = |text: &str| told.iter().position(|one| one == text).unwrap_or_else(|| panic!("{text}: {told:?}"));
    let inner = told.iter().position(|one| one.ends_with("b before_stage")).unwrap();
    assert!(inner < at("f-g g at_join") && at("f-g canceled") < at("main f at_join"), "{told:?}");
    assert_eq!(told.iter().filter(|one| one.ends_with(" canceled")).count(), 4);
    assert_eq!(told.last().unwrap(), "run.finished");
}

#[test]
fn an_exit_names_the_point_at_which_the_branch_stood() {
    let point = |graph: &str, prepare: &dyn Fn(&mut Simulation<'_>)| {
        let pipeline = pipeline(&format!("digraph g {{ {FRAME} {graph} }}"));
        let mut run = begun(&pipeline);
        prepare(&mut run);
        cancel(&mut run, "signal QUIT");
        let exits = run.records.iter().filter_map(|record| match &record.event {
            Event::BranchExited(exit) => Some(exit.point),
            _ => None,
        });
        exits.collect::<Vec<_>>()
    };
    assert_eq!(point("start -> a -> exit", &|_| ()), [ExitPoint::BeforeStage]);
    let question = "h [shape=hexagon]; start -> h; h -> exit [label=yes]; h -> a [label=no]; a -> exit";
    assert_eq!(point(question, &|_| ()), [ExitPoint::AtQuestion]);
    let retried = |run: &mut Simulation<'_>| {
        start(run, "a");
        let pipeline = run.pipeline;
        let mut ended = finished(&open(run, "a"), Outcome::new(Status::Retry));
        crate::decide::finalize_attempt(pipeline, None, &run.state, false, &mut ended);
        run.append(vec![Event::StageFinished(Box::new(ended))]);
    };
    assert_eq!(point("a [max_retries=3]; start -> a -> exit", &retried), [ExitPoint::BeforeRetry]);
}

#[test]
fn a_stage_that_ended_well_in_the_same_step_is_left_before_its_edge_and_the_resume_goes_on_there() {
    let pipeline = pipeline(&format!("digraph g {{ {FRAME} start -> a -> b -> exit }}"));
    let mut run = begun(&pipeline);
    start(&mut run, "a");
    let ended = finished(&open(&run, "a"), Outcome::new(Status::Success));
    let canceled = Event::RunCanceled(RunCanceled { by: "signal INT".into() });
    run.append(vec![canceled, Event::StageFinished(Box::new(ended))]);
    assert_eq!(after_cancel(&run), ["stage.finished", "main a before_edge", "run.finished"]);
    let (_, pending) = resume_state(&run.records).unwrap();
    let kinds: Vec<_> = pending.0.iter().map(Event::kind).collect();
    assert_eq!(kinds, ["stage.finished"], "the decision after the stage is still to be made");
}

#[test]
fn a_stopped_run_has_its_branches_again_when_it_is_resumed() {
    let pipeline = pipeline(&format!(
        "digraph g {{ {FRAME} f [shape=component]; j [shape=tripleoctagon]; start -> f; f -> a -> j; f -> b -> j; j -> exit }}"
    ));
    let mut run = begun(&pipeline);
    start(&mut run, "a");
    cancel(&mut run, "signal TERM");
    cut(&mut run, "a");
    assert_eq!(run.state.branches.len(), 1);
    let stopped = run.state.stopped.as_deref().expect("a signal stopped the run");
    let ids: Vec<_> = stopped.branches.keys().map(BranchId::as_str).collect();
    assert_eq!(ids, ["f-a", "f-b", "main"]);
    run.append(vec![Event::RunResumed(Box::default())]);
    assert_eq!(run.state.branches.len(), 3);
    run.go_on(&mut |open| finished(open, Outcome::new(Status::Success)));
    assert_eq!(run.verdict(), "success exit");
}
