//! Of two who expect the same head only one is stored, whatever the timing.

use super::{Place, append, note, ready, task};
use glovebox_engine::event::{Attempt, Event, StageStarted, Subject};
use glovebox_engine::ports::{ClaimQueue, Next, PortError, RunLog};
use glovebox_engine::sqlite::{Owner, SqliteLog};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

const WRITERS: usize = 16;

fn started(worker: &str) -> Event {
    let attempt = Attempt { task: task("n"), ordinal: 1, id: worker.into() };
    Event::StageStarted(StageStarted { attempt, worker: worker.into() })
}

async fn claim(log: &SqliteLog, expected: u64, worker: &str) -> Result<u64, PortError> {
    let expect = vec![(Subject::Task(task("n")), expected)];
    log.append(expect, Timestamp::now(), vec![started(worker)]).await.map(|records| records[0].seq)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_sixteen_writers_with_one_expectation_one_is_stored() {
    let place = Place::make();
    let log = Arc::new(place.open());
    for round in 0..20u64 {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let log = Arc::clone(&log);
                tokio::spawn(async move { append(&log, round, vec![note(&format!("{round}/{writer}"))]).await })
            })
            .collect();
        let mut winners = 0;
        for writer in writers {
            match writer.await.unwrap() {
                Ok(records) => {
                    winners += 1;
                    assert_eq!(records[0].seq, round + 1);
                }
                Err(PortError::Conflict { expected, head, .. }) => assert_eq!((expected, head), (round, round + 1)),
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(winners, 1);
    }
    assert_eq!(log.read(1, 100).unwrap().len(), 20);
}

#[tokio::test]
async fn a_stale_token_stores_nothing_of_its_batch() {
    let place = Place::make();
    let log = place.open();
    append(&log, 0, vec![ready("n")]).await.unwrap();
    let stale = claim(&log, 1, "zombie").await.unwrap();
    let fresh = claim(&log, stale, "successor").await.unwrap();
    let before = (log.read(1, 10).unwrap(), log.tip().unwrap());
    let task = Subject::Task(task("n"));
    let zombie = vec![note("a"), ready("m"), note("b")];
    let refused = log.append(vec![(task.clone(), stale)], Timestamp::now(), zombie.clone()).await;
    assert!(matches!(refused, Err(PortError::Conflict { head, .. }) if head == fresh));
    assert_eq!((log.read(1, 10).unwrap(), log.tip().unwrap()), before);
    assert_eq!(log.head(&Subject::Task(super::task("m"))).unwrap(), 0);
    // One of several expectations is enough to refuse all.
    let refused = log.append(vec![(Subject::Run, 0), (task.clone(), stale)], Timestamp::now(), zombie.clone()).await;
    assert!(refused.is_err());
    assert_eq!(log.append(vec![(Subject::Run, 0), (task, fresh)], Timestamp::now(), zombie).await.unwrap().len(), 3);
}

#[tokio::test]
async fn sixteen_producers_share_commits() {
    let place = Place::make();
    let log = Arc::new(place.open());
    let wal = place.path.with_extension("sqlite-wal");
    let before = commits(&std::fs::read(&wal).unwrap());
    let producers = (0..WRITERS).map(|producer| {
        let log = Arc::clone(&log);
        tokio::spawn(async move {
            for index in 0..8 {
                let event = ready(&format!("p{producer}_{index}"));
                log.append(Vec::new(), Timestamp::now(), vec![event]).await.unwrap();
            }
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await.unwrap();
    }
    let commits = commits(&std::fs::read(&wal).unwrap()) - before;
    assert_eq!(log.read(1, 1000).unwrap().len(), WRITERS * 8);
    assert!(commits <= WRITERS * 4, "{commits} commits for {} appends", WRITERS * 8);
}

/// Commit frames in a write-ahead log: those whose header carries a database size (SQLite file format §4.1).
fn commits(wal: &[u8]) -> usize {
    let word = |at: usize| u32::from_be_bytes(wal[at..at + 4].try_into().unwrap());
    let frame = 24 + word(8) as usize;
    (32..).step_by(frame).take_while(|at| at + frame <= wal.len()).filter(|at| word(at + 4) != 0).count()
}

#[tokio::test]
async fn append_is_enqueue_and_a_lease_comes_back() {
    let place = Place::make();
    let log = place.open();
    let now = Timestamp::now();
    let later = |ms: i64| now.checked_add(SignedDuration::from_millis(ms)).unwrap();
    assert_eq!(log.next(now, 100).unwrap(), Next::Empty);
    log.append(Vec::new(), now, vec![ready("n")]).await.unwrap();
    let Next::Due(delivery) = log.next(now, 100).unwrap() else { panic!("it is ready") };
    assert_eq!((&delivery.task, delivery.ready_seq), (&task("n"), 1));
    assert!(matches!(log.next(later(50), 100).unwrap(), Next::At(_)), "it is out");
    assert!(log.extend(&delivery, later(50), 100).unwrap());
    assert!(matches!(log.next(later(140), 100).unwrap(), Next::At(_)), "it was extended");
    assert!(!log.extend(&delivery, later(200), 100).unwrap(), "the lease has run out");
    assert_eq!(log.next(later(200), 100).unwrap(), Next::Due(delivery), "at least once");
    // Another process finds what was out with the first one.
    drop(log);
    assert!(matches!(place.open().next(now, 100).unwrap(), Next::Due(_)));
}

#[tokio::test]
async fn a_timer_survives_its_process() {
    let place = Place::make();
    let now = Timestamp::now();
    let due = Timestamp::from_millisecond(now.as_millisecond() + 60_000).unwrap();
    let Event::StageReady(mut timer) = ready("n") else { unreachable!("ready makes no other") };
    timer.due_at = Some(due);
    place.open().append(Vec::new(), now, vec![Event::StageReady(timer)]).await.unwrap();
    let log = place.open();
    assert_eq!(log.next(now, 100).unwrap(), Next::At(due));
    assert!(matches!(log.next(due, 100).unwrap(), Next::Due(_)));
}

#[test]
fn one_owner_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("owner.sqlite");
    let first = Owner::acquire(&path).unwrap();
    let refused = Owner::acquire(&path).err().expect("it is taken").to_string();
    assert!(refused.contains("another process drives this run"), "{refused}");
    drop(first);
    Owner::acquire(&path).unwrap();
}
