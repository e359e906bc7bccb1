//! Tests the loop over a real journal, with closures as stages.

use super::*;
use crate::signals::LocalSignals;
use glovebox_journal::event::{Attempt, Ending, FileChange};
use glovebox_journal::sqlite::SqliteLog;
use glovebox_record::{Failure, FailureClass, Outcome, Status};
use glovebox_state::run_state::{OpenTask, PendingDecisions, resume_state};
use glovebox_state::simulation::{finished, pipeline, started};
use serde_json::json;
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;

mod liveness;
mod quota;

const GRAPH: &str =
    "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; d [shape=diamond]; a [max_retries=1]; b; fix;
    start -> a -> b -> d; d -> exit [condition=\"outcome=success\"]; d -> fix [condition=\"outcome=fail\"]; fix -> b }";

const RUN: &str = "run";

type Failed = Box<dyn Error + Send + Sync>;

/// The result of a stage: `a` asks for a retry first, `b` fails on its first visit. It depends only on the attempt.
fn answer(claim: &Assignment) -> StageFinished {
    let Attempt { task, ordinal, .. } = &claim.attempt;
    let status = match (task.node.as_str(), task.visit, ordinal) {
        ("a", _, 1) => Status::Retry,
        ("b", 1, _) => Status::Fail,
        _ => Status::Success,
    };
    let mut outcome = Outcome::new(status);
    outcome.context_updates.insert("visits".into(), json!(task.visit));
    outcome.context_updates.insert("graph.goal".into(), json!("forged"));
    finished(&open(claim), outcome)
}

fn open(claim: &Assignment) -> OpenTask {
    OpenTask {
        task: claim.attempt.task.clone(),
        ordinal: claim.attempt.ordinal,
        due_at: None,
        ready_seq: 0,
        head: 0,
        attempt_id: Some(claim.attempt.id.clone()),
        machine: None,
        quota: None,
    }
}

async fn at_once(claim: Assignment) -> Result<AttemptResult, Failed> {
    Ok(answer(&claim).into())
}

fn driver<'a>(
    pipeline: &'a Pipeline,
    journal: &'a SqliteLog,
    signals: &'a LocalSignals,
) -> Driver<'a, SqliteLog, LocalSignals> {
    Driver { parallel_max: 4, ..Driver::new(RUN.into(), pipeline, journal, signals, "test".into(), ()) }
}

fn recorded<'a>(
    pipeline: &'a Pipeline,
    journal: &'a SqliteLog,
    signals: &'a LocalSignals,
    recorder: &Recorder,
) -> Driver<'a, SqliteLog, LocalSignals, Recorder> {
    let driver = Driver::new(RUN.into(), pipeline, journal, signals, "test".into(), recorder.clone());
    Driver { parallel_max: 4, ..driver }
}

fn journal(folder: &Path) -> SqliteLog {
    SqliteLog::open(&folder.join("journal.sqlite"), RUN.into()).unwrap()
}

fn first(pipeline: &Pipeline, wall_max_ms: Option<u64>) -> Event {
    Event::RunStarted(Box::new(started(pipeline, 50, wall_max_ms)))
}

fn names(state: &RunState) -> Vec<&str> {
    state.main().completed.kept().map(NodeId::as_str).collect()
}

/// A follower that keeps what it gets.
#[derive(Clone, Default)]
struct Recorder {
    records: Rc<RefCell<Vec<Record>>>,
    /// Number of records of each append.
    appends: Rc<RefCell<Vec<usize>>>,
}

impl Follow for Recorder {
    fn record(&mut self, record: &Record, replay: &Replay) {
        assert_eq!(replay.state.seq, record.seq, "the run after the record, not after the append");
        assert_eq!(replay.summary.head.records, record.seq);
        self.records.borrow_mut().push(record.clone());
    }

    fn appended(&mut self, records: &[Record]) -> Result<(), Fault> {
        assert!(self.records.borrow().ends_with(records), "told after each of them");
        self.appends.borrow_mut().push(records.len());
        Ok(())
    }
}

async fn replayed(log: &SqliteLog) -> (RunState, PendingDecisions) {
    resume_state(&log.read(&RUN.into(), 1, usize::MAX).await.unwrap()).unwrap()
}

fn reason(state: &RunState) -> String {
    let failure = state.verdict.as_ref().and_then(|ended| ended.failure.as_ref());
    failure.map_or("success".into(), |failure| format!("{}: {}", failure.code, failure.reason))
}

#[tokio::test]
async fn a_run_is_driven_to_its_end_and_reads_back_the_same() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(GRAPH), LocalSignals::new());
    let log = journal(folder.path());
    let recorder = Recorder::default();
    let mut driver = recorded(&pipeline, &log, &signals, &recorder);
    driver.start(first(&pipeline, None)).await.unwrap();
    driver.drive(at_once).await.unwrap();
    assert_eq!(reason(&driver.replay.state), "success");
    assert_eq!(names(&driver.replay.state), ["start", "a", "b", "d", "fix", "b", "d"]);
    assert_eq!(driver.replay.state.main().node, Some("exit".into()));
    assert_eq!(driver.replay.state.main().context.text("graph.goal"), "", "a handler cannot write engine keys");
    assert_eq!(driver.replay.state.refusals_total, 5, "one per attempt");
    let told = recorder.records.take();
    assert_eq!(told, log.read(&RUN.into(), 1, 1000).await.unwrap(), "every record was told, once and in order");
    let (replayed, _) = replayed(&log).await;
    assert_eq!(replayed, driver.replay.state);
}

#[tokio::test]
async fn every_prefix_of_the_journal_can_be_resumed() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(GRAPH), LocalSignals::new());
    let log = journal(folder.path());
    let mut whole = driver(&pipeline, &log, &signals);
    whole.start(first(&pipeline, None)).await.unwrap();
    whole.drive(at_once).await.unwrap();
    let records = log.read(&RUN.into(), 1, 1000).await.unwrap();
    for length in 1..records.len() {
        let folder = tempfile::tempdir().unwrap();
        let log = journal(folder.path());
        for record in &records[..length] {
            log.append(&RUN.into(), &[], record.at, std::slice::from_ref(&record.event)).await.unwrap();
        }
        drop(log);
        let log = journal(folder.path());
        let (state, last) = replayed(&log).await;
        let mut resumed = Driver { replay: Replay { state, ..Replay::default() }, ..driver(&pipeline, &log, &signals) };
        resumed.resume(last, RunResumed::default()).await.unwrap();
        resumed.drive(at_once).await.unwrap();
        assert_eq!(resumed.replay.state.verdict, whole.replay.state.verdict, "after record {length}");
        assert_eq!(resumed.replay.state.main().completed, whole.replay.state.main().completed);
        assert_eq!(resumed.replay.state.main().context, whole.replay.state.main().context);
        assert_eq!(resumed.replay.state.steps, whole.replay.state.steps);
        assert_eq!(replayed(&log).await.0, resumed.replay.state);
    }
}

/// Drives a run that gets a signal during attempt number `at`. With `is_cut` the attempt stops because of the signal, else it
/// ends normally.
async fn drive_and_stop(driver: &mut Driver<'_, SqliteLog, LocalSignals>, at: u32, is_cut: bool) {
    let (count, signals) = (Cell::new(0), driver.signals.clone());
    let stopped = async |claim: Assignment| {
        count.set(count.get() + 1);
        if count.get() != at {
            return Ok(answer(&claim).into());
        }
        signals.cancel("signal INT");
        while is_cut && !claim.stop.load(Ordering::SeqCst) {
            tokio::task::yield_now().await;
        }
        // A component may return after its command was killed. The result must have no effect.
        let changed = FileChange {
            path: glovebox_record::path::ScopePath::parse("half.txt").unwrap(),
            op: glovebox_journal::event::ChangeOp::Mkdir,
            digest: None,
            bytes: 0,
            executable: false,
            mode: None,
            target: None,
        };
        let mut cut = finished(&open(&claim), Outcome::new(Status::Fail));
        cut.files.changes.push(changed);
        cut.model.turns_used = 7;
        Ok(if is_cut { cut } else { answer(&claim) }.into())
    };
    driver.drive(stopped).await.unwrap();
}

#[tokio::test]
async fn a_run_that_a_signal_stopped_goes_on_and_ends_as_if_it_had_not_been() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(GRAPH), LocalSignals::new());
    let log = journal(folder.path());
    let mut whole = driver(&pipeline, &log, &signals);
    whole.start(first(&pipeline, None)).await.unwrap();
    whole.drive(at_once).await.unwrap();
    for (at, is_cut) in (1..=6).flat_map(|at| [(at, true), (at, false)]) {
        let (folder, signals) = (tempfile::tempdir().unwrap(), LocalSignals::new());
        let log = journal(folder.path());
        let mut stopped = driver(&pipeline, &log, &signals);
        stopped.start(first(&pipeline, None)).await.unwrap();
        drive_and_stop(&mut stopped, at, is_cut).await;
        if at == 6 {
            assert_eq!(reason(&stopped.replay.state), "success", "there are five attempts");
            continue;
        }
        assert_eq!(reason(&stopped.replay.state), "run/canceled: canceled by signal INT", "{at} {is_cut}");
        assert!(!stopped.replay.state.is_over() && !stopped.replay.state.main().changes.contains_key("half.txt"));
        let (state, last) = replayed(&log).await;
        assert_eq!(state, stopped.replay.state, "{at} {is_cut}");
        let signals = LocalSignals::new();
        let mut resumed = Driver { replay: Replay { state, ..Replay::default() }, ..driver(&pipeline, &log, &signals) };
        resumed.resume(last, RunResumed::default()).await.unwrap();
        assert!(resumed.replay.state.stopped.is_none() && resumed.replay.state.canceled.is_none());
        resumed.drive(at_once).await.unwrap();
        assert_eq!(resumed.replay.state.verdict, whole.replay.state.verdict, "{at} {is_cut}");
        assert_eq!(resumed.replay.state.main().completed, whole.replay.state.main().completed, "{at} {is_cut}");
        assert_eq!(resumed.replay.state.main().context, whole.replay.state.main().context, "{at} {is_cut}");
        assert_eq!(
            (resumed.replay.state.steps, &resumed.replay.state.main().nodes),
            (whole.replay.state.steps, &whole.replay.state.main().nodes),
            "{at} {is_cut}"
        );
        assert_eq!(replayed(&log).await.0, resumed.replay.state);
    }
}

#[tokio::test]
async fn a_run_that_was_canceled_for_good_stays_so() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(GRAPH), LocalSignals::new());
    let log = journal(folder.path());
    let mut canceled = driver(&pipeline, &log, &signals);
    canceled.start(first(&pipeline, None)).await.unwrap();
    signals.cancel("glovebox cancel");
    canceled.drive(at_once).await.unwrap();
    assert!(canceled.replay.state.is_over() && replayed(&log).await.0.is_over());
}

#[tokio::test]
async fn an_attempt_of_a_driver_that_was_overtaken_stores_nothing() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(GRAPH), LocalSignals::new());
    let log = journal(folder.path());
    let recorder = Recorder::default();
    let mut zombie = recorded(&pipeline, &log, &signals, &recorder);
    zombie.start(first(&pipeline, None)).await.unwrap();
    let result = zombie
        .drive(async |claim: Assignment| {
            // Before the attempt ends, another driver takes the run over, claims the same attempt and drives the run to its end.
            let (state, last) = replayed(&log).await;
            let mut successor =
                Driver { replay: Replay { state, ..Replay::default() }, ..driver(&pipeline, &log, &signals) };
            successor.resume(last, RunResumed::default()).await.unwrap();
            let open = successor.replay.state.main().open().cloned().unwrap();
            log.done(&Delivery { run: RUN.into(), task: open.task, ready_seq: open.head - 1 }).await.unwrap();
            successor.drive(at_once).await.unwrap();
            let mut late = answer(&claim);
            late.model.turns_used = 99;
            Ok(late.into())
        })
        .await;
    result.unwrap();
    let records = log.read(&RUN.into(), 1, 100).await.unwrap();
    assert!(
        !records.iter().any(|record| matches!(&record.event, Event::StageFinished(one) if one.model.turns_used == 99))
    );
    let told = recorder.records.take();
    assert_eq!(told, records, "what the other driver appended is told too, once and in order");
    assert_eq!(replayed(&log).await.0, zombie.replay.state);
}

#[tokio::test]
async fn a_cancel_stops_the_attempt_and_the_run() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(GRAPH), LocalSignals::new());
    let log = journal(folder.path());
    let mut driver = driver(&pipeline, &log, &signals);
    driver.start(first(&pipeline, None)).await.unwrap();
    let listening = async |claim: Assignment| {
        signals.cancel("signal INT");
        while !claim.stop.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let failure = Failure::new(FailureClass::Canceled, "run/canceled", "asked to");
        Ok(StageFinished { ending: Ending::Canceled, ..finished(&open(&claim), Outcome::failed(failure)) }.into())
    };
    driver.drive(listening).await.unwrap();
    assert_eq!(reason(&driver.replay.state), "run/canceled: canceled by signal INT");
    let kinds: Vec<_> = log.read(&RUN.into(), 1, 100).await.unwrap().iter().map(|record| record.event.kind()).collect();
    let expected = ["run.canceled", "stage.finished", "branch.exited", "run.finished"];
    assert_eq!(kinds[kinds.len() - 4..], expected, "no edge was chosen");
}

#[tokio::test]
async fn an_attempt_that_does_not_listen_is_given_up() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(GRAPH), LocalSignals::new());
    let log = journal(folder.path());
    let mut driver = driver(&pipeline, &log, &signals);
    driver.grace = Duration::from_millis(20);
    driver.start(first(&pipeline, None)).await.unwrap();
    let deaf = async |_: Assignment| {
        signals.cancel("signal TERM");
        std::future::pending().await
    };
    driver.drive(deaf).await.unwrap();
    assert_eq!(reason(&driver.replay.state), "run/canceled: canceled by signal TERM");
    assert!(driver.replay.state.main().changes.is_empty());
}

#[tokio::test]
async fn a_cancel_before_anything_is_under_way_ends_the_run() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(GRAPH), LocalSignals::new());
    let log = journal(folder.path());
    let mut driver = driver(&pipeline, &log, &signals);
    driver.start(first(&pipeline, None)).await.unwrap();
    signals.cancel("signal INT");
    let calls = Cell::new(0);
    let counted = async |claim: Assignment| {
        calls.set(calls.get() + 1);
        at_once(claim).await
    };
    driver.drive(counted).await.unwrap();
    assert_eq!((calls.get(), reason(&driver.replay.state).as_str()), (0, "run/canceled: canceled by signal INT"));
}

#[tokio::test]
async fn the_runs_time_ends_an_attempt_and_a_wait() {
    let graph = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a [max_retries=9, retry_policy=patient]; start -> a -> exit }";
    let pipeline = pipeline(graph);
    for waits in [false, true] {
        let (folder, signals) = (tempfile::tempdir().unwrap(), LocalSignals::new());
        let log = journal(folder.path());
        let mut driver = driver(&pipeline, &log, &signals);
        driver.start(first(&pipeline, Some(60))).await.unwrap();
        let stage = async |claim: Assignment| {
            if waits {
                return Ok(finished(&open(&claim), Outcome::new(Status::Retry)).into());
            }
            while !claim.stop.load(Ordering::SeqCst) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            let failure = Failure::new(FailureClass::Canceled, "run/canceled", "asked to");
            Ok(StageFinished { ending: Ending::Canceled, ..finished(&open(&claim), Outcome::failed(failure)) }.into())
        };
        driver.drive(stage).await.unwrap();
        let failure = driver.replay.state.verdict.as_ref().unwrap().failure.as_ref().unwrap();
        assert_eq!(
            (failure.class, failure.code.as_str()),
            (FailureClass::Budget, "limit/max_wall_time"),
            "{failure:?}"
        );
    }
}

#[tokio::test]
async fn a_fault_of_the_runtime_leaves_a_run_that_can_be_resumed() {
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(GRAPH), LocalSignals::new());
    let log = journal(folder.path());
    let mut driver = driver(&pipeline, &log, &signals);
    driver.start(first(&pipeline, None)).await.unwrap();
    let broken = async |_: Assignment| Err("the disk is full".into());
    let error = driver.drive(broken).await.unwrap_err();
    assert_eq!(error.to_string(), "could not execute node `a`");
    drop(driver);
    drop(log);
    let log = journal(folder.path());
    let (state, last) = replayed(&log).await;
    let mut resumed =
        Driver { replay: Replay { state, ..Replay::default() }, ..self::driver(&pipeline, &log, &signals) };
    resumed.resume(last, RunResumed::default()).await.unwrap();
    resumed.drive(at_once).await.unwrap();
    assert_eq!(reason(&resumed.replay.state), "success");
}

#[tokio::test]
async fn what_a_run_keeps_in_memory_does_not_grow_with_its_length() {
    let graph = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a; start -> a; a -> a; a -> exit [condition=\"outcome=fail\"] }";
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(graph), LocalSignals::new());
    let log = journal(folder.path());
    let mut driver = driver(&pipeline, &log, &signals);
    driver.start(Event::RunStarted(Box::new(started(&pipeline, 1_000, None)))).await.unwrap();
    let changing = async |claim: Assignment| {
        let path = format!("file{}", claim.attempt.task.visit % 3);
        let change = FileChange {
            path: glovebox_record::path::ScopePath::parse(&path).unwrap(),
            op: glovebox_journal::event::ChangeOp::Mkdir,
            digest: None,
            bytes: 0,
            executable: false,
            mode: None,
            target: None,
        };
        let mut changed = finished(&open(&claim), Outcome::new(Status::Success));
        changed.files.changes.push(change);
        Ok(changed.into())
    };
    driver.drive(changing).await.unwrap();
    let branch = driver.replay.state.main();
    assert_eq!((branch.changes.size(), branch.nodes.size()), (3, 2));
    assert_eq!((branch.completed.total(), branch.completed.kept().count()), (driver.replay.state.steps, 256));
}

#[tokio::test]
async fn a_loop_without_stages_is_appended_in_parts_and_goes_on_from_each() {
    let graph = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; c [shape=diamond]; d [shape=diamond, max_visits=400];
        start -> c -> d; d -> c [weight=2]; d -> exit [condition=\"outcome=fail\"] }";
    let (folder, pipeline, signals) = (tempfile::tempdir().unwrap(), pipeline(graph), LocalSignals::new());
    let log = journal(folder.path());
    let recorder = Recorder::default();
    let mut whole = recorded(&pipeline, &log, &signals, &recorder);
    whole.start(Event::RunStarted(Box::new(started(&pipeline, 100_000, None)))).await.unwrap();
    whole.drive(at_once).await.unwrap();
    assert_eq!(reason(&whole.replay.state), "limit/max_visits: node `d` exceeded `max_visits` (400).");
    let parts = recorder.appends.take();
    assert!(parts.len() > 6 && parts.iter().all(|part| *part <= 257), "{parts:?}");
    let records = log.read(&RUN.into(), 1, usize::MAX).await.unwrap();
    assert_eq!(replayed(&log).await.0, whole.replay.state);
    for length in [255, 256, 257, 300, records.len() - 1] {
        let folder = tempfile::tempdir().unwrap();
        let log = journal(folder.path());
        for part in records[..length].chunk_by(|one, next| one.at == next.at) {
            let events: Vec<Event> = part.iter().map(|record| record.event.clone()).collect();
            log.append(&RUN.into(), &[], part[0].at, &events).await.unwrap();
        }
        let (state, last) = replayed(&log).await;
        let mut resumed = Driver { replay: Replay { state, ..Replay::default() }, ..driver(&pipeline, &log, &signals) };
        resumed.resume(last, RunResumed::default()).await.unwrap();
        resumed.drive(at_once).await.unwrap();
        assert_eq!(resumed.replay.state.verdict, whole.replay.state.verdict, "after record {length}");
        assert_eq!(resumed.replay.state.steps, whole.replay.state.steps);
        assert_eq!(resumed.replay.state.main().completed, whole.replay.state.main().completed);
    }
}
