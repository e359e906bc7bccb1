//! Tests that one driver replaces another: the first one is fenced, and of two that take over at once only one succeeds.

use super::run::{claim, driver, fold, pipeline, started, succeed};
use super::{Adapter, Under};
use glovebox_engine::driver::{Assignment, Driver, RunError};
use glovebox_engine::signals::LocalSignals;
use glovebox_journal::event::{Event, Record, RunCanceled, RunId, StreamKey};
use glovebox_journal::ports::{ClaimQueue, Delivery, Next, PortError, RunLog, Stored};
use glovebox_journal::rewind::Fold;
use glovebox_pipeline::ir::Pipeline;
use glovebox_state::evidence::Replay;
use glovebox_state::run_state::{LastEvents, RunState};
use jiff::Timestamp;
use std::sync::atomic::{AtomicBool, Ordering};

/// Folds the journal as a process that takes the run over.
pub(crate) fn read(records: &[Record]) -> (Replay, LastEvents) {
    let (mut replay, mut last) = (Replay::default(), LastEvents::default());
    for record in records {
        replay.apply(record);
        last.note(record.clone(), &replay.state);
    }
    (replay, last)
}

/// Creates a driver on a machine, with what it has read of the journal.
pub(crate) async fn successor<'a, L: RunLog>(
    pipeline: &'a Pipeline,
    log: &'a L,
    signals: &'a LocalSignals,
    machine: &str,
) -> (Driver<'a, L, LocalSignals>, LastEvents) {
    let (replay, last) = read(&log.read(&"run".into(), 1, usize::MAX).await.unwrap());
    (Driver { replay, worker: machine.to_owned(), ..driver(pipeline, log, signals) }, last)
}

/// Returns the machine of the driver that replaced another one.
pub(crate) fn machine(error: RunError) -> String {
    match error {
        RunError::TakenOver { machine } => machine,
        other => panic!("{other}"),
    }
}

pub(crate) async fn a_driver_that_was_replaced_stores_nothing_more<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let mut stale = driver(&pipeline, &*under.log, &signals);
    stale.start(started()).await.unwrap();
    let stage = async |assignment: Assignment| {
        let (mut successor, last) = successor(&pipeline, &*under.log, &signals, "m2").await;
        let taken = successor.take_over(last).await.unwrap();
        assert_eq!(taken.iter().map(|record| record.event.kind()).collect::<Vec<_>>(), ["run.taken_over"]);
        succeed(assignment).await
    };
    let error = stale.drive(stage).await.unwrap_err();
    assert_eq!(error.to_string(), "another driver took the run over, on `m2`");
    let records = under.records().await;
    assert_eq!(records.last().map(|record| record.event.kind()), Some("run.taken_over"));
    let state = fold(&records);
    let open = state.main().open().unwrap();
    assert!(open.attempt_id.is_some(), "the attempt is in progress, unlike after a resume");
    let error = stale.note(vec![note("late")]).await.unwrap_err();
    assert_eq!(machine(error), "m2");
    assert_eq!(under.records().await, records);
}

fn note(by: &str) -> Event {
    Event::RunCanceled(RunCanceled { by: by.to_owned() })
}

pub(crate) async fn of_two_drivers_that_take_over_one_does<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let mut first = driver(&pipeline, &*under.log, &signals);
    first.start(started()).await.unwrap();
    // Both have read the same records, and the driver before appends one more.
    let (mut one, of_one) = successor(&pipeline, &*under.log, &signals, "m").await;
    let (mut other, of_other) = successor(&pipeline, &*under.log, &signals, "m").await;
    claim(&*under.log, &under.run).await;
    let taken = one.take_over(of_one).await.unwrap();
    let kinds: Vec<&str> = taken.iter().map(|record| record.event.kind()).collect();
    assert_eq!(kinds, ["stage.started", "run.taken_over"], "what was appended since is read first");
    assert_eq!(machine(other.take_over(of_other).await.unwrap_err()), "m");
    let records = under.records().await;
    assert_eq!((fold(&records), records.len()), (one.replay.state.clone(), one.replay.state.seq as usize));
    let (mut third, last) = successor(&pipeline, &*under.log, &signals, "m3").await;
    third.take_over(last).await.unwrap();
    let records = under.records().await;
    let previous = records.iter().filter_map(|record| record.event.run_taken_over()).map(|one| one.previous.as_deref());
    assert_eq!(previous.collect::<Vec<_>>(), [None, Some("m")]);
    assert_eq!(machine(one.note(vec![note("late")]).await.unwrap_err()), "m3");
}

/// An adapter that loses one append, and whose answer is lost too. Instead, another driver of the same machine takes the run
/// over and appends equal events.
struct Replaced<'l, L> {
    log: &'l L,
    /// True until the append is lost.
    is_armed: AtomicBool,
}

impl<L: Adapter> ClaimQueue for Replaced<'_, L> {
    async fn next(&self, run: &RunId, now: Timestamp, lease_ms: u64) -> Result<Next, PortError> {
        self.log.next(run, now, lease_ms).await
    }

    async fn extend(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<bool, PortError> {
        self.log.extend(delivery, now, lease_ms).await
    }

    async fn hold(&self, delivery: &Delivery, now: Timestamp, lease_ms: u64) -> Result<(), PortError> {
        self.log.hold(delivery, now, lease_ms).await
    }

    async fn done(&self, delivery: &Delivery) -> Result<(), PortError> {
        self.log.done(delivery).await
    }
}

impl<L: Adapter> RunLog for Replaced<'_, L> {
    async fn append(
        &self,
        run: &RunId,
        expect: &[(StreamKey, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> Result<Vec<Stored>, PortError> {
        if !self.is_armed.swap(false, Ordering::SeqCst) {
            return self.log.append(run, expect, at, events).await;
        }
        let (pipeline, signals) = (pipeline(), LocalSignals::new());
        let (mut other, last) = successor(&pipeline, self.log, &signals, "m").await;
        other.take_over(last).await.unwrap();
        if !matches!(events, [Event::RunTakenOver(_)]) {
            self.log.append(run, &[], at, events).await.unwrap();
        }
        Err(PortError::Ambiguous("an append".into()))
    }

    async fn read(&self, run: &RunId, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
        self.log.read(run, from, records_max).await
    }
}

pub(crate) async fn equal_events_of_another_driver_are_not_those_of_a_lost_append<L: Adapter>() {
    let is_over = |state: &RunState| state.verdict.is_some();
    for takes_over in [false, true] {
        let (under, pipeline, signals): (Under<L>, _, _) = (L::empty().await, pipeline(), LocalSignals::new());
        let log = Replaced { log: &*under.log, is_armed: AtomicBool::new(false) };
        let mut first = driver(&pipeline, &log, &signals);
        first.start(started()).await.unwrap();
        let (mut replaced, last) = successor(&pipeline, &log, &signals, "m").await;
        log.is_armed.store(true, Ordering::SeqCst);
        let error = match takes_over {
            true => replaced.take_over(last).await.unwrap_err(),
            false => replaced.note(vec![note("ada")]).await.unwrap_err(),
        };
        assert_eq!(machine(error), "m", "the machine has the same name, but it is another driver");
        let records = under.records().await;
        let equal = records.iter().filter(|record| record.event == note("ada")).count();
        assert_eq!((equal, is_over(&fold(&records))), (usize::from(!takes_over), !takes_over));
        assert!(!is_over(&replaced.replay.state), "nothing of it is applied");
    }
}

pub(crate) async fn a_run_that_has_ended_is_not_taken_over<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let mut first = driver(&pipeline, &*under.log, &signals);
    first.start(started()).await.unwrap();
    let (mut late, last) = successor(&pipeline, &*under.log, &signals, "m").await;
    first.drive(succeed).await.unwrap();
    let ended = under.records().await;
    let error = late.take_over(last).await.unwrap_err();
    assert!(matches!(error, RunError::Ended { .. }), "{error}");
    assert_eq!(under.records().await, ended);
}
