//! Tests of attempts that outlive their driver: the driver that takes the run over adopts them, and their work is done once.

use super::Adapter;
use super::machines::Machines;
use super::run::{driver, fold, pipeline, started};
use super::takeover::{machine, successor};
use glovebox_engine::driver::{Driver, Follow, RunError};
use glovebox_engine::inbox::Inbox;
use glovebox_engine::signals::LocalSignals;
use glovebox_journal::event::{Attempt, Event, MachineId, Record, RunResumed, StageFinished, Task, Verdict};
use glovebox_pipeline::{Inputs, Source, check, ir::Pipeline};
use glovebox_record::{Outcome, Status};
use glovebox_state::run_state::{RunState, resume_state};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

fn succeed(attempt: &Attempt, ms: u64) -> (Duration, StageFinished) {
    let mut finished = StageFinished::new(attempt.clone(), Outcome::new(Status::Success));
    finished.outcome.context_updates.insert(attempt.task.node.to_string(), attempt.task.visit.into());
    (Duration::from_millis(ms), finished)
}

fn quick(attempt: &Attempt) -> (Duration, StageFinished) {
    succeed(attempt, 1)
}

fn slow(attempt: &Attempt) -> (Duration, StageFinished) {
    succeed(attempt, 50)
}

fn endless(attempt: &Attempt) -> (Duration, StageFinished) {
    succeed(attempt, 600_000)
}

/// Drives a run until this many attempts have begun, and then kills the driver.
async fn drive_and_die<L: Adapter>(
    driver: &mut Driver<'_, L, LocalSignals, impl Follow>,
    machines: &Machines,
    begun: usize,
) {
    tokio::select! {
        driven = driver.drive_on(machines, Inbox::default()) => panic!("ended before: {driven:?}"),
        () = machines.until_begun(begun) => {}
    }
}

fn status(state: &RunState) -> Option<Verdict> {
    state.verdict.as_ref().map(|verdict| verdict.status)
}

/// Returns how often each attempt was finished.
fn finished(records: &[Record]) -> BTreeMap<(Task, u32), usize> {
    let mut finished = BTreeMap::new();
    for one in records.iter().filter_map(|record| record.event.stage_finished()) {
        *finished.entry((one.attempt.task.clone(), one.attempt.ordinal)).or_default() += 1;
    }
    finished
}

fn once(counts: &BTreeMap<(Task, u32), usize>) -> bool {
    counts.values().all(|count| *count == 1)
}

/// Returns the machines in the claims of attempts.
fn claimed_by(records: &[Record]) -> Vec<&str> {
    let started = records.iter().filter_map(|record| record.event.stage_started());
    started.map(|started| started.machine.as_ref().map_or("-", MachineId::as_str)).collect()
}

pub(crate) async fn a_driver_that_takes_over_adopts_attempts_in_progress<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let machines = Machines::new(&["m1", "m2"], slow);
    let mut first = driver(&pipeline, &*under.log, &signals);
    first.start(started()).await.unwrap();
    drive_and_die(&mut first, &machines, 1).await;
    let (mut second, last) = successor(&pipeline, &*under.log, &signals, "d2").await;
    second.take_over(last).await.unwrap();
    second.drive_on(&machines, Inbox::default()).await.unwrap();
    let records = under.records().await;
    assert_eq!(status(&second.replay.state), Some(Verdict::Success));
    assert_eq!((machines.made().len(), once(&machines.made())), (2, true), "no work was done twice");
    assert_eq!(finished(&records), machines.made());
    assert_eq!(fold(&records), second.replay.state);
    assert_eq!(claimed_by(&records), ["m1", "m1"], "the machine of the adopted attempt kept its seat");
    let ends = records.iter().filter_map(|record| record.event.stage_finished()?.machine.as_ref());
    assert_eq!(ends.map(MachineId::as_str).collect::<Vec<_>>(), ["m1", "m1"]);
}

pub(crate) async fn a_result_that_came_before_the_takeover_counts<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let machines = Machines::new(&["m1"], quick);
    let mut first = driver(&pipeline, &*under.log, &signals);
    first.start(started()).await.unwrap();
    drive_and_die(&mut first, &machines, 1).await;
    machines.until_idle().await;
    assert_eq!(machines.made().len(), 1, "the machine worked on without a driver");
    let (mut second, last) = successor(&pipeline, &*under.log, &signals, "d2").await;
    assert!(second.replay.state.is_under_way());
    second.take_over(last).await.unwrap();
    second.drive_on(&machines, Inbox::default()).await.unwrap();
    assert_eq!(status(&second.replay.state), Some(Verdict::Success));
    assert_eq!((machines.made().len(), once(&machines.made())), (2, true));
    assert_eq!(finished(&under.records().await), machines.made());
}

pub(crate) async fn an_attempt_whose_machine_is_lost_is_made_again_and_its_late_result_is_dropped<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let machines = Machines::new(&["m1", "m2"], slow);
    let mut stale = driver(&pipeline, &*under.log, &signals);
    stale.start(started()).await.unwrap();
    let (stale_end, ()) = {
        let mut driven = Box::pin(stale.drive_on(&machines, Inbox::default()));
        tokio::select! {
            driven = &mut driven => panic!("ended before: {driven:?}"),
            () = machines.until_begun(1) => {}
        }
        // The driver before is still there and waits for its attempt, whose machine cannot be reached by the next one.
        let (mut second, last) = successor(&pipeline, &*under.log, &signals, "d2").await;
        second.take_over(last).await.unwrap();
        machines.cut_off("m1");
        let next = async {
            second.drive_on(&machines, Inbox::default()).await.unwrap();
            assert_eq!(status(&second.replay.state), Some(Verdict::Success));
        };
        tokio::join!(driven, next)
    };
    assert_eq!(machine(stale_end.unwrap_err()), "d2");
    machines.until_idle().await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    let records = under.records().await;
    let claims: Vec<(&str, u32)> = records
        .iter()
        .filter_map(|record| record.event.stage_started())
        .map(|started| (started.attempt.task.node.as_str(), started.attempt.ordinal))
        .collect();
    assert_eq!(claims, [("a", 1), ("a", 1), ("b", 1)], "the same attempt of the task was claimed again");
    assert_eq!(claimed_by(&records)[1], "m2");
    assert!(once(&finished(&records)));
    let made = machines.made();
    assert_eq!((made.len(), made.values().sum::<usize>()), (2, 3), "the first machine worked on to no avail");
    assert_eq!(status(&fold(&records)), Some(Verdict::Success));
}

pub(crate) async fn a_resume_abandons_attempts_that_a_takeover_would_adopt<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let machines = Machines::new(&["m1", "m2"], slow);
    let mut first = driver(&pipeline, &*under.log, &signals);
    first.start(started()).await.unwrap();
    drive_and_die(&mut first, &machines, 1).await;
    let (state, last) = resume_state(&under.records().await).unwrap();
    let (mut second, _) = successor(&pipeline, &*under.log, &signals, "d2").await;
    second.replay.state = state;
    second.resume(last, RunResumed::default()).await.unwrap();
    assert!(!second.replay.state.is_under_way());
    // A process that resumes a run has a queue of its own, without the leases of the process before.
    let open = second.replay.state.main().open().cloned().unwrap();
    let delivery =
        glovebox_journal::ports::Delivery { run: under.run.clone(), task: open.task, ready_seq: open.ready_seq };
    under.log.done(&delivery).await.unwrap();
    second.drive_on(&machines, Inbox::default()).await.unwrap();
    machines.until_idle().await;
    let records = under.records().await;
    assert!(once(&finished(&records)));
    assert_eq!(claimed_by(&records), ["m1", "m2", "m2"], "made again while the first machine is still at work");
    assert_eq!(machines.made().values().sum::<usize>(), 3);
}

pub(crate) async fn adopted_attempts_of_a_canceled_run_are_stopped<L: Adapter>() {
    for is_lost in [false, true] {
        let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
        let machines = Machines::new(&["m1"], endless);
        let mut first = driver(&pipeline, &*under.log, &signals);
        first.start(started()).await.unwrap();
        drive_and_die(&mut first, &machines, 1).await;
        let canceled = Event::RunCanceled(glovebox_journal::event::RunCanceled { by: "ada".into() });
        first.note(vec![canceled]).await.unwrap();
        if is_lost {
            machines.restart("m1");
        }
        let (mut second, last) = successor(&pipeline, &*under.log, &signals, "d2").await;
        second.take_over(last).await.unwrap();
        second.drive_on(&machines, Inbox::default()).await.unwrap();
        let records = under.records().await;
        let kinds: Vec<&str> = records.iter().rev().take(4).map(|record| record.event.kind()).collect();
        assert_eq!(kinds, ["run.finished", "branch.exited", "stage.finished", "run.taken_over"], "{is_lost}");
        assert_eq!(machines.made().len(), 0);
        assert!(second.replay.state.is_over());
    }
}

pub(crate) async fn a_machine_keeps_its_seat_for_the_stages_that_it_can_make<L: Adapter>() {
    for (stages, expected) in [(&["a", "b"][..], ["m1", "m1"]), (&["a"], ["m1", "m2"])] {
        let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
        let machines = Machines::new(&["m1", "m2"], quick);
        machines.limit("m1", stages);
        let mut run = driver(&pipeline, &*under.log, &signals);
        run.start(started()).await.unwrap();
        run.drive_on(&machines, Inbox::default()).await.unwrap();
        let records = under.records().await;
        assert_eq!(claimed_by(&records), expected);
        let kinds: Vec<&str> = records.iter().map(|record| record.event.kind()).collect();
        let from = kinds.iter().position(|kind| *kind == "stage.finished").unwrap();
        assert_eq!(kinds[from..from + 4], ["stage.finished", "route.taken", "stage.ready", "stage.started"]);
    }
}

/// A graph with branches, and with a loop that is taken once.
const BRANCHED: &str = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; plan; f [shape=component];
    j [shape=tripleoctagon]; x; y; z; x2; test; fix; d [shape=diamond];
    start -> plan -> f; f -> x -> x2 -> j; f -> y -> j; f -> z -> j; j -> test -> d;
    d -> exit [condition=\"outcome=success\"]; d -> fix [condition=\"outcome=fail\"]; fix -> test }";

/// Returns what depends only on a few numbers, from a seed.
fn chance(numbers: &[u64]) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    numbers.hash(&mut hasher);
    hasher.finish()
}

/// Fails the first visit of `test`.
fn branched(attempt: &Attempt) -> (Duration, StageFinished) {
    let ms = chance(&[attempt.id.as_str().bytes().map(u64::from).sum()]) % 6;
    let (time, mut finished) = succeed(attempt, ms);
    if attempt.task.node == "test" && attempt.task.visit == 1 {
        finished.outcome.status = Status::Fail;
    }
    (time, finished)
}

/// Returns the parts of a run that do not depend on who drove it, and on which machines.
fn outcome(state: &RunState) -> impl PartialEq + std::fmt::Debug + use<> {
    let main = state.main();
    let nodes: Vec<_> =
        main.nodes.iter().map(|(node, history)| (node.clone(), history.visits, history.retries)).collect();
    let completed: Vec<_> = main.completed.kept().cloned().collect();
    (state.verdict.clone(), main.context.clone(), completed, nodes, state.steps, main.changes.clone())
}

type Stale<'d> = Pin<Box<dyn Future<Output = Result<(), RunError>> + 'd>>;

/// Drives a run with drivers that are killed or replaced, and with machines that are restarted, until it has ended. Returns
/// the number of drivers and of restarts.
async fn survive<L: Adapter>(log: &L, pipeline: &Pipeline, machines: &Machines, seed: u64) -> (usize, usize) {
    let (mut restarts, signals) = (0, LocalSignals::new());
    for number in 0..2_000 {
        let dice = |which: u64| chance(&[seed, number, which]);
        let (mut driver, last) = successor(pipeline, log, &signals, &format!("d{number}")).await;
        if driver.replay.state.verdict.is_some() {
            return (number as usize, restarts);
        }
        driver.take_over(last).await.unwrap();
        if dice(1) % 3 == 0 {
            machines.restart(["m1", "m2", "m3"][dice(2) as usize % 3]);
            restarts += 1;
        }
        let mut driven: Stale<'_> = Box::pin(driver.drive_on(machines, Inbox::default()));
        tokio::select! {
            driven = &mut driven => driven.unwrap(),
            () = tokio::time::sleep(Duration::from_millis(dice(3) % 8)) => if dice(4) % 2 == 0 {
                // The driver was suspended, not killed. It goes on after it was replaced.
                let (mut next, last) = successor(pipeline, log, &signals, "next").await;
                match next.take_over(last).await {
                    Ok(_) => assert_eq!(machine(driven.await.unwrap_err()), "next"),
                    Err(error) => assert!(matches!(error, RunError::Ended { .. }), "{error}"),
                }
            },
        }
    }
    panic!("the run did not end");
}

pub(crate) async fn each_task_is_finished_once_whatever_dies<L: Adapter>() {
    let pipeline = check(Source::new(BRANCHED), &Inputs::default()).pipeline.unwrap();
    let names = ["m1", "m2", "m3"];
    let calm = {
        let (under, signals) = (L::empty().await, LocalSignals::new());
        let mut run = driver(&pipeline, &*under.log, &signals);
        run.start(started()).await.unwrap();
        run.drive_on(&Machines::new(&names, branched), Inbox::default()).await.unwrap();
        (outcome(&run.replay.state), finished(&under.records().await))
    };
    assert!(once(&calm.1) && calm.1.len() == 8, "{:?}", calm.1);
    let (mut drivers, mut restarts) = (0, 0);
    for seed in 0..20 {
        let (under, signals) = (L::empty().await, LocalSignals::new());
        let mut first = driver(&pipeline, &*under.log, &signals);
        first.start(started()).await.unwrap();
        let machines = Machines::new(&names, branched);
        let died = survive(&*under.log, &pipeline, &machines, seed).await;
        (drivers, restarts) = (drivers + died.0, restarts + died.1);
        let records = under.records().await;
        assert_eq!((&outcome(&fold(&records)), &finished(&records)), (&calm.0, &calm.1), "seed {seed}");
        if died.1 == 0 {
            assert!(once(&machines.made()), "seed {seed}: {:?}", machines.made());
        }
        assert!(records.iter().zip(records.iter().skip(1)).all(|(one, next)| next.prev == one.hash), "seed {seed}");
    }
    assert!(drivers > 40 && restarts > 10, "{drivers} drivers, {restarts} restarts");
}
