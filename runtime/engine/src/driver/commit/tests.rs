//! Tests that a failed append leaves the state unchanged, and that an append is decided again after records of another driver.

use super::*;
use glovebox_journal::event::{CacheFilled, RunCanceled, RunId};
use glovebox_journal::memory::MemoryLog;
use glovebox_journal::ports::Stored;
use glovebox_state::run_state::resume_state;
use glovebox_state::simulation::{pipeline, started};
use std::sync::Mutex;
use std::time::Duration;

const RUN: &str = "run";
const GRAPH: &str = "digraph g { start [shape=Mdiamond]; exit [shape=Msquare]; a; start -> a -> exit }";

/// How the next append fails.
enum Fault {
    Unavailable,
    /// The head of another subject seems to have moved, but there are no new records.
    Conflict,
    /// The result of the append is lost, and the events are not stored.
    LostBefore,
    /// The result of the append is lost, and the events are stored.
    LostAfter,
}

/// A journal whose next append fails.
struct Faulty {
    log: MemoryLog,
    next: Mutex<Option<Fault>>,
}

impl Faulty {
    fn new() -> Self {
        Self { log: MemoryLog::default(), next: Mutex::new(None) }
    }
}

impl RunLog for Faulty {
    async fn append(
        &self,
        run: &RunId,
        expect: &[(StreamKey, u64)],
        at: Timestamp,
        events: &[Event],
    ) -> Result<Vec<Stored>, PortError> {
        let fault = self.next.lock().unwrap().take();
        match fault {
            None => self.log.append(run, expect, at, events).await,
            Some(Fault::Unavailable) => Err(PortError::Unavailable("no route".into())),
            Some(Fault::Conflict) => Err(PortError::Conflict { stream: StreamKey::Run, expected: 1, head: 9 }),
            Some(Fault::LostBefore) => Err(PortError::Ambiguous("it".into())),
            Some(Fault::LostAfter) => {
                self.log.append(run, expect, at, events).await?;
                Err(PortError::Ambiguous("it".into()))
            }
        }
    }

    async fn read(&self, run: &RunId, from: u64, records_max: usize) -> Result<Vec<Record>, PortError> {
        self.log.read(run, from, records_max).await
    }
}

fn driver<'a>(pipeline: &'a Pipeline, journal: &'a Faulty) -> Driver<'a, Faulty, ()> {
    let driver = Driver::new(RUN.into(), pipeline, journal, &(), "test".into(), ());
    Driver { grace: Duration::ZERO, parallel_max: 4, ..driver }
}

fn filled(node: &str) -> Vec<Event> {
    vec![Event::CacheFilled(Box::new(CacheFilled { node: node.into(), receipts: Vec::new() }))]
}

async fn replayed(journal: &Faulty) -> RunState {
    resume_state(&journal.read(&RUN.into(), 1, 100).await.unwrap()).unwrap().0
}

#[tokio::test]
async fn an_append_that_was_not_stored_leaves_no_trace() {
    let pipeline = pipeline(GRAPH);
    let journal = Faulty::new();
    let mut driver = driver(&pipeline, &journal);
    driver.start(Event::RunStarted(Box::new(started(&pipeline, 9, None)))).await.unwrap();
    let before = driver.replay.state.clone();
    for fault in [Fault::Unavailable, Fault::Conflict, Fault::LostBefore] {
        *journal.next.lock().unwrap() = Some(fault);
        driver.note(filled("a")).await.unwrap_err();
        assert_eq!(driver.replay.state, before);
        assert_eq!(driver.replay.state, replayed(&journal).await);
    }
    assert_eq!(driver.note(filled("a")).await.unwrap().len(), 1);
    assert_eq!(driver.replay.state, replayed(&journal).await);
}

#[tokio::test]
async fn an_append_whose_answer_was_lost_is_found_by_reading() {
    let pipeline = pipeline(GRAPH);
    let journal = Faulty::new();
    let mut driver = driver(&pipeline, &journal);
    *journal.next.lock().unwrap() = Some(Fault::LostAfter);
    let records = driver.start(Event::RunStarted(Box::new(started(&pipeline, 9, None)))).await.unwrap();
    assert_eq!(records, journal.read(&RUN.into(), 1, 100).await.unwrap());
    assert_eq!(driver.replay.state, replayed(&journal).await);
}

#[tokio::test]
async fn after_a_conflict_the_decision_is_made_again_on_what_others_appended() {
    let pipeline = pipeline(GRAPH);
    let journal = Faulty::new();
    let mut driver = driver(&pipeline, &journal);
    driver.start(Event::RunStarted(Box::new(started(&pipeline, 9, None)))).await.unwrap();
    let other = RunCanceled { by: "glovebox cancel".into() };
    journal.append(&RUN.into(), &[], Timestamp::now(), &[Event::RunCanceled(other)]).await.unwrap();
    let records = driver.note(filled("a")).await.unwrap();
    let kinds: Vec<_> = records.iter().map(|record| record.event.kind()).collect();
    assert_eq!(
        kinds,
        ["run.canceled", "cache.filled", "branch.exited", "run.finished"],
        "the cancel is seen and ends the run"
    );
    assert_eq!(driver.replay.state, replayed(&journal).await);
}
