//! Tests a run over an adapter: duplicate deliveries, suspended workers, lost results of appends, and a cancel at a bad
//! moment.

use super::{Adapter, Under};
use glovebox_engine::driver::{Assignment, AttemptResult, Driver, Fault, Follow};
use glovebox_engine::signals::LocalSignals;
use glovebox_journal::event::{
    Attempt, Event, Record, RunFinished, RunId, RunResumed, StageFinished, StageStarted, StreamKey, Task, Verdict,
};
use glovebox_journal::memory::MemoryLog;
use glovebox_journal::ports::{ClaimQueue, Delivery, Next, PortError, RunLog, Signals, Stored};
use glovebox_pipeline::{Inputs, Source, check, ir::Pipeline};
use glovebox_record::{Outcome, Status};
use glovebox_state::evidence::Replay;
use glovebox_state::run_state::{RunState, resume_state};
use jiff::Timestamp;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

const GRAPH: &str =
    "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a [prompt=a, max_retries=1]; b [prompt=b];
    start -> a -> b -> exit }";

/// Counts the records that it gets.
#[derive(Clone, Default)]
struct Counter(Rc<Cell<usize>>);

impl Follow for Counter {
    fn record(&mut self, _record: &Record, _replay: &Replay) {
        self.0.set(self.0.get() + 1);
    }

    fn appended(&mut self, _records: &[Record]) -> Result<(), Fault> {
        Ok(())
    }
}

pub(crate) fn pipeline() -> Pipeline {
    check(Source::new(GRAPH), &Inputs::default()).pipeline.unwrap()
}

pub(crate) fn started() -> Event {
    let digest = glovebox_journal::event::Digest::ZERO;
    let started = serde_json::json!({
        "schema_version": 1, "engine_version": "0.1.0", "run_id": "run", "generation": 0, "pipeline_name": "g", "goal": "",
        "pipeline_path": "pipeline.dot", "pipeline_digest": digest, "plan_digest": digest, "base_digest": digest,
        "capabilities_digest": digest,
        "source_dir": "/project", "model": "simulated", "sandbox_tier": "none", "steps_max": 50,
    });
    Event::RunStarted(serde_json::from_value(started).unwrap())
}

fn answer(attempt: &Attempt) -> StageFinished {
    StageFinished::new(attempt.clone(), Outcome::new(Status::Success))
}

/// Creates the event with which a task ends successfully.
pub(crate) fn finished(task: &Task) -> Event {
    Event::StageFinished(Box::new(answer(&Attempt { task: task.clone(), ordinal: 1, id: "A".into() })))
}

/// Creates the event with which the run ends.
pub(crate) fn ended() -> Event {
    Event::RunFinished(RunFinished {
        status: Verdict::Success,
        exit_node: None,
        failure: None,
        resumes_at: None,
        artifact: None,
    })
}

pub(crate) async fn succeed(assignment: Assignment) -> Result<AttemptResult, Fault> {
    Ok(answer(&assignment.attempt).into())
}

pub(crate) fn driver<'a, L>(
    pipeline: &'a Pipeline,
    log: &'a L,
    signals: &'a LocalSignals,
) -> Driver<'a, L, LocalSignals> {
    Driver { parallel_max: 4, ..Driver::new(RunId::new("run"), pipeline, log, signals, "w".to_owned(), ()) }
}

pub(crate) fn fold(records: &[Record]) -> RunState {
    resume_state(records).unwrap().0
}

fn finishes(records: &[Record]) -> usize {
    records.iter().filter(|record| matches!(record.event, Event::StageFinished(_))).count()
}

pub(crate) async fn a_run_is_driven_to_its_end<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let mut driver = driver(&pipeline, &*under.log, &signals);
    driver.start(started()).await.unwrap();
    driver.drive(succeed).await.unwrap();
    let records = under.records().await;
    assert_eq!(driver.replay.state.verdict.as_ref().map(|verdict| verdict.status), Some(Verdict::Success));
    assert_eq!((finishes(&records), fold(&records)), (2, driver.replay.state));
}

/// An adapter that behaves as badly as the ports allow: each delivery comes a second time, and the result of an append
/// may be lost.
struct FaultyAdapter<'l, L> {
    log: &'l L,
    last: Mutex<Option<Delivery>>,
    loses_answers: bool,
    appends: AtomicUsize,
    /// After the first claim, another driver takes the run over and ends it, and the result of the claim is lost.
    overtakes: AtomicBool,
    /// Another worker claims the first task just before the driver under test does.
    claims_first: AtomicBool,
    /// Number of claims that were refused because the head had moved.
    claims_refused: AtomicUsize,
}

impl<'l, L> FaultyAdapter<'l, L> {
    fn new(log: &'l L, loses_answers: bool) -> Self {
        Self {
            log,
            last: Mutex::default(),
            loses_answers,
            appends: AtomicUsize::new(0),
            overtakes: AtomicBool::new(false),
            claims_first: AtomicBool::new(false),
            claims_refused: AtomicUsize::new(0),
        }
    }
}

/// Takes the run over from an attempt that was just claimed, and drives it to its end.
async fn overtake<L: Adapter>(log: &L, run: &RunId) {
    let (pipeline, signals) = (pipeline(), LocalSignals::new());
    let (state, last) = resume_state(&log.read(run, 1, usize::MAX).await.unwrap()).unwrap();
    let open = state.main().open().cloned().unwrap();
    let mut successor = Driver { replay: Replay { state, ..Replay::default() }, ..driver(&pipeline, log, &signals) };
    successor.resume(last, RunResumed::default()).await.unwrap();
    log.done(&Delivery { run: run.clone(), task: open.task, ready_seq: open.ready_seq }).await.unwrap();
    successor.drive(succeed).await.unwrap();
}

/// Claims the open attempt as another worker, and does nothing else.
pub(crate) async fn claim<L: Adapter>(log: &L, run: &RunId) {
    let (state, _) = resume_state(&log.read(run, 1, usize::MAX).await.unwrap()).unwrap();
    let open = state.main().open().cloned().unwrap();
    let attempt = Attempt { task: open.task.clone(), ordinal: open.ordinal, id: "another".into() };
    let started = Event::StageStarted(StageStarted { attempt, worker: "another".into(), machine: None, moved: None });
    log.append(run, &[(StreamKey::from(&open.task), open.head)], Timestamp::now(), &[started]).await.unwrap();
}

impl<L: Adapter> RunLog for FaultyAdapter<'_, L> {
    async fn append(
        &self,
        run: &RunId,
        expect: &[(StreamKey, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> Result<Vec<Stored>, PortError> {
        self.appends.fetch_add(1, Ordering::SeqCst);
        let is_claim = matches!(events, [Event::StageStarted(_)]);
        if is_claim && self.claims_first.swap(false, Ordering::SeqCst) {
            claim(self.log, run).await;
        }
        let stored = self.log.append(run, expect, at, events).await.inspect_err(|error| {
            let is_refused = is_claim && matches!(error, PortError::Conflict { .. });
            self.claims_refused.fetch_add(usize::from(is_refused), Ordering::SeqCst);
        })?;
        if is_claim && self.overtakes.swap(false, Ordering::SeqCst) {
            overtake(self.log, run).await;
            return Err(PortError::Ambiguous("a claim".into()));
        }
        if self.loses_answers { Err(PortError::Ambiguous("an append".into())) } else { Ok(stored) }
    }

    async fn read(&self, run: &RunId, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
        self.log.read(run, from, records_max).await
    }
}

impl<L: Adapter> ClaimQueue for FaultyAdapter<'_, L> {
    /// Every delivery comes a second time, whether or not it was handled.
    async fn next(&self, run: &RunId, now: Timestamp, lease_ms: u64) -> Result<Next, PortError> {
        if let Some(again) = self.last.lock().unwrap().take() {
            return Ok(Next::Due(again));
        }
        let next = self.log.next(run, now, lease_ms).await?;
        if let Next::Due(delivery) = &next {
            *self.last.lock().unwrap() = Some(delivery.clone());
        }
        Ok(next)
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

pub(crate) async fn a_delivery_that_comes_twice_is_worked_on_once<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let unkind = FaultyAdapter::new(&*under.log, false);
    let mut driver = driver(&pipeline, &unkind, &signals);
    driver.start(started()).await.unwrap();
    let attempts = Cell::new(0);
    let counted = async |assignment: Assignment| {
        attempts.set(attempts.get() + 1);
        succeed(assignment).await
    };
    driver.drive(counted).await.unwrap();
    assert_eq!((attempts.get(), finishes(&under.records().await)), (2, 2));
}

/// The claim of the next attempt is part of the commit of the previous one.
pub(crate) async fn a_stage_after_a_stage_costs_one_append<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let counting = FaultyAdapter::new(&*under.log, false);
    let mut driver = driver(&pipeline, &counting, &signals);
    driver.start(started()).await.unwrap();
    driver.drive(succeed).await.unwrap();
    let records = under.records().await;
    let kinds: Vec<&str> = records.iter().map(|record| record.event.kind()).collect();
    let from = kinds.iter().position(|kind| *kind == "stage.finished").unwrap();
    assert_eq!(kinds[from..from + 4], ["stage.finished", "route.taken", "stage.ready", "stage.started"]);
    assert_eq!(counting.appends.load(Ordering::SeqCst), 4, "the start, one claim, and two commits");
}

pub(crate) async fn an_answer_that_was_lost_is_found_in_the_journal<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let unkind = FaultyAdapter::new(&*under.log, true);
    let mut driver = driver(&pipeline, &unkind, &signals);
    driver.start(started()).await.unwrap();
    driver.drive(succeed).await.unwrap();
    let records = under.records().await;
    assert_eq!((finishes(&records), fold(&records)), (2, driver.replay.state), "every append was stored once");
}

pub(crate) async fn a_worker_that_paused_too_long_stores_nothing<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let counter = Counter::default();
    let run = under.run.clone();
    let mut paused = Driver::new(run, &pipeline, &*under.log, &signals, "w".to_owned(), counter.clone());
    paused.start(started()).await.unwrap();
    let result = paused.drive(async |assignment: Assignment| {
        overtake(&*under.log, &under.run).await;
        let mut late = answer(&assignment.attempt);
        late.model.turns_used = 99;
        Ok(late.into())
    });
    result.await.unwrap();
    let records = under.records().await;
    assert!(
        !records.iter().any(|record| matches!(&record.event, Event::StageFinished(one) if one.model.turns_used == 99))
    );
    assert_eq!(
        (fold(&records), counter.0.get()),
        (paused.replay.state, records.len()),
        "each record was reported once"
    );
}

pub(crate) async fn a_claim_that_was_overtaken_before_it_was_known_executes_nothing<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let unkind = FaultyAdapter { overtakes: AtomicBool::new(true), ..FaultyAdapter::new(&*under.log, false) };
    let mut driver = driver(&pipeline, &unkind, &signals);
    driver.start(started()).await.unwrap();
    let executed = Cell::new(0);
    let counted = async |assignment: Assignment| {
        executed.set(executed.get() + 1);
        succeed(assignment).await
    };
    driver.drive(counted).await.unwrap();
    assert_eq!(
        (executed.get(), fold(&under.records().await)),
        (0, driver.replay.state),
        "the other driver made both attempts"
    );
}

/// The head of a task is the fencing token: a claim that another worker made in between is not replaced.
pub(crate) async fn a_claim_expects_the_head_that_it_saw<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let unkind = FaultyAdapter { claims_first: AtomicBool::new(true), ..FaultyAdapter::new(&*under.log, false) };
    let mut driver = driver(&pipeline, &unkind, &signals);
    driver.start(started()).await.unwrap();
    driver.drive(succeed).await.unwrap();
    assert_eq!(unkind.claims_refused.load(Ordering::SeqCst), 1);
}

pub(crate) async fn a_delivery_of_an_earlier_attempt_claims_nothing<L: Adapter>() {
    let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let unkind = FaultyAdapter::new(&*under.log, false);
    let mut driver = driver(&pipeline, &unkind, &signals);
    driver.start(started()).await.unwrap();
    let begun = Cell::new(None);
    let retried = async |assignment: Assignment| {
        let Attempt { task, ordinal, .. } = &assignment.attempt;
        if task.node != "a" {
            return succeed(assignment).await;
        }
        if *ordinal == 2 {
            begun.set(Some(Timestamp::now()));
            return succeed(assignment).await;
        }
        Ok(StageFinished { outcome: Outcome::new(Status::Retry), ..answer(&assignment.attempt) }.into())
    };
    driver.drive(retried).await.unwrap();
    let records = under.records().await;
    let due = records.iter().find_map(|record| match &record.event {
        Event::StageReady(ready) if ready.ordinal == 2 => ready.due_at,
        _ => None,
    });
    assert!(
        begun.get().unwrap() >= due.unwrap(),
        "the delivery that came twice did not begin the second attempt early"
    );
}

pub(crate) async fn a_cancel_and_a_commit_race_and_one_order_is_stored<L: Adapter>() {
    for is_before in [true, false] {
        let (under, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
        let mut driver = driver(&pipeline, &*under.log, &signals);
        driver.start(started()).await.unwrap();
        let stage = async |assignment: Assignment| {
            if is_before {
                // Another process cancels the run while the attempt is in progress, so the commit is decided again.
                let canceled = Event::RunCanceled(glovebox_journal::event::RunCanceled { by: "the operator".into() });
                under.append(&[], &[canceled]).await.unwrap();
            } else {
                signals.cancel("the operator");
            }
            succeed(assignment).await
        };
        driver.drive(stage).await.unwrap();
        let records = under.records().await;
        let kinds: Vec<&str> = records.iter().map(|record| record.event.kind()).collect();
        let expected = ["run.canceled", "stage.finished", "branch.exited", "run.finished"];
        assert_eq!(kinds[kinds.len() - 4..], expected, "{is_before}");
        assert_eq!(fold(&records), driver.replay.state);
    }
}

pub(crate) async fn a_journal_that_moves_to_another_adapter_folds_the_same<L: Adapter>() {
    let (from, pipeline, signals) = (L::empty().await, pipeline(), LocalSignals::new());
    let mut first = driver(&pipeline, &*from.log, &signals);
    first.start(started()).await.unwrap();
    let records = from.records().await;
    let to: Under<MemoryLog> = MemoryLog::empty().await;
    for record in &records {
        to.log.append(&to.run, &[], record.at, std::slice::from_ref(&record.event)).await.unwrap();
    }
    assert_eq!(to.records().await, records, "the same records with the same hashes");
    let (state, last) = resume_state(&to.records().await).unwrap();
    assert_eq!(state, first.replay.state);
    let mut second = Driver { replay: Replay { state, ..Replay::default() }, ..driver(&pipeline, &*to.log, &signals) };
    second.resume(last, RunResumed::default()).await.unwrap();
    second.drive(succeed).await.unwrap();
    assert_eq!(finishes(&to.records().await), 2, "the queue moved with the journal");
}
