//! Two branches of one run: decisions about one branch do not depend on the other. A canceled run waits for the
//! attempts of both branches.

use crate::run_state::OpenTask;
use crate::simulation::{Simulation, finished, pipeline, started};
use glovebox_journal::event::{BranchId, Event, RunCanceled, StageReady, StageStarted, Task};
use glovebox_record::{Outcome, Status};

const GRAPH: &str =
    "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a; b; c; start -> a -> b -> exit; c -> exit }";

/// Returns a run whose main branch is at `a` and whose other branch is at `c`. Both attempts are running.
fn split(pipeline: &glovebox_pipeline::ir::Pipeline) -> Simulation<'_> {
    let mut run = Simulation::new(pipeline);
    run.append(vec![Event::RunStarted(Box::new(started(pipeline, 50, None)))]);
    let task = Task { branch: left(), ..crate::simulation::task("c") };
    run.append(vec![Event::StageReady(StageReady { task, ordinal: 1, due_at: None })]);
    for branch in [BranchId::main(), left()] {
        let attempt = finished(&open(&run, &branch), Outcome::new(Status::Success)).attempt;
        run.append(vec![Event::StageStarted(StageStarted { attempt, worker: "w".into(), machine: None, moved: None })]);
    }
    run
}

fn left() -> BranchId {
    BranchId::new("left")
}

fn open(run: &Simulation<'_>, branch: &BranchId) -> OpenTask {
    run.state.branch(branch).open().cloned().expect("the branch waits for an attempt")
}

fn finish(run: &mut Simulation<'_>, branch: &BranchId) {
    let finished = finished(&open(run, branch), Outcome::new(Status::Success));
    run.append(vec![Event::StageFinished(Box::new(finished))]);
}

#[test]
fn what_happens_on_a_branch_moves_no_other() {
    let pipeline = pipeline(GRAPH);
    let mut run = split(&pipeline);
    let before = run.state.branch(&left()).clone();
    finish(&mut run, &BranchId::main());
    assert_eq!(open(&run, &BranchId::main()).task.node, "b");
    assert_eq!(*run.state.branch(&left()), before);
    assert_eq!((before.context.text("current_node"), before.context.text("outcome")), ("c".into(), String::new()));
    assert_eq!(run.state.main().context.text("outcome"), "success");
    assert_eq!(run.state.steps, 4, "start, a, c and b count for the one run");
}

#[test]
fn each_branch_has_visits_and_heads_of_its_own() {
    let pipeline = pipeline(GRAPH);
    let run = split(&pipeline);
    let (main, left) = (run.state.main(), run.state.branch(&left()));
    assert_eq!((main.next_visit(&"c".into()), left.next_visit(&"c".into())), (1, 2));
    assert_ne!(main.open().map(|open| open.head), left.open().map(|open| open.head));
    assert!(main.head > 0 && left.head == 0, "only the main branch took a route");
}

#[test]
fn a_canceled_run_ends_with_the_last_of_its_attempts() {
    let pipeline = pipeline(GRAPH);
    let mut run = split(&pipeline);
    run.append(vec![Event::RunCanceled(RunCanceled { by: "the operator".into() })]);
    finish(&mut run, &BranchId::main());
    assert!(run.state.verdict.is_none(), "an attempt of the other branch is under way");
    finish(&mut run, &left());
    assert_eq!(run.verdict(), "fail run/canceled: canceled by the operator");
}
