//! The properties of the journal on disk: writers share commits, the queue and timers outlive their process, and there
//! is one owner.

use super::{Place, RUN, note, ready, records, task};
use glovebox_journal::event::{Attempt, Event, RunFinished, RunResumed, StageFinished, Verdict};
use glovebox_journal::ports::{ClaimQueue, Next, RunLog};
use glovebox_journal::sqlite::Owner;
use glovebox_record::{Outcome, Status};
use jiff::Timestamp;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

const WRITERS: usize = 16;

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
                log.append(&RUN.into(), &[], Timestamp::now(), &[event]).await.unwrap();
            }
        })
    });
    for producer in producers.collect::<Vec<_>>() {
        producer.await.unwrap();
    }
    let commits = commits(&std::fs::read(&wal).unwrap()) - before;
    assert_eq!(records(&log).await.len(), WRITERS * 8);
    assert!(commits <= WRITERS * 4, "{commits} commits for {} appends", WRITERS * 8);
}

/// The test polls the future itself: no other thread could complete the append, and nothing wakes the task.
#[test]
fn one_producer_appends_on_its_own_thread() {
    let place = Place::make();
    let log = place.open();
    let (run, events) = (RUN.into(), [ready("n")]);
    let mut append = std::pin::pin!(log.append(&run, &[], Timestamp::now(), &events));
    let mut turn = || append.as_mut().poll(&mut Context::from_waker(Waker::noop()));
    assert!(turn().is_pending(), "others are let in before a commit");
    assert!(matches!(turn(), Poll::Ready(Ok(stored)) if stored.len() == 1));
}

/// A producer that is dropped before its batch is committed stores nothing, because no caller could learn whether the
/// records were stored.
#[tokio::test]
async fn who_gives_up_before_the_commit_stores_nothing() {
    let place = Place::make();
    let log = place.open();
    let (run, given_up) = (RUN.into(), [note("given up")]);
    {
        let mut append = std::pin::pin!(log.append(&run, &[], Timestamp::now(), &given_up));
        assert!(append.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    log.append(&run, &[], Timestamp::now(), &[note("kept")]).await.unwrap();
    let events: Vec<Event> = records(&log).await.into_iter().map(|record| record.event).collect();
    assert_eq!(events, [note("kept")]);
}

/// Returns the number of commit frames in a write-ahead log. The header of such a frame contains a database size
/// (SQLite file format §4.1).
fn commits(wal: &[u8]) -> usize {
    let word = |at: usize| u32::from_be_bytes(wal[at..at + 4].try_into().unwrap());
    let frame = 24 + word(8) as usize;
    (32..).step_by(frame).take_while(|at| at + frame <= wal.len()).filter(|at| word(at + 4) != 0).count()
}

#[tokio::test]
async fn another_process_finds_what_was_out_with_the_first() {
    let (place, run, now) = (Place::make(), RUN.into(), Timestamp::now());
    let log = place.open();
    log.append(&run, &[], now, &[ready("n")]).await.unwrap();
    assert!(matches!(log.next(&run, now, 100).await.unwrap(), Next::Due(_)));
    drop(log);
    let Next::Due(delivery) = place.open().next(&run, now, 100).await.unwrap() else { panic!("it is ready") };
    assert_eq!((delivery.task, delivery.ready_seq), (task("n"), 1));
}

#[tokio::test]
async fn a_timer_survives_its_process() {
    let (place, run, now) = (Place::make(), RUN.into(), Timestamp::now());
    let due = Timestamp::from_millisecond(now.as_millisecond() + 60_000).unwrap();
    let Event::StageReady(mut timer) = ready("n") else { unreachable!("ready makes no other") };
    timer.due_at = Some(due);
    place.open().append(&run, &[], now, &[Event::StageReady(timer)]).await.unwrap();
    let log = place.open();
    assert_eq!(log.next(&run, now, 100).await.unwrap(), Next::At(due));
    assert!(matches!(log.next(&run, due, 100).await.unwrap(), Next::Due(_)));
}

#[tokio::test]
async fn a_delivery_is_held_until_its_lease_ends() {
    let (place, run, begin) = (Place::make(), RUN.into(), Timestamp::UNIX_EPOCH);
    let at = |ms: i64| Timestamp::from_millisecond(ms).unwrap();
    let log = place.open();
    log.append(&run, &[], begin, &[ready("n")]).await.unwrap();
    let Next::Due(delivery) = log.next(&run, begin, 100).await.unwrap() else { panic!("it is ready") };
    assert_eq!(log.next(&run, begin, 100).await.unwrap(), Next::At(at(100)));
    assert!(log.extend(&delivery, at(50), 100).await.unwrap());
    assert_eq!(log.next(&run, at(149), 100).await.unwrap(), Next::At(at(150)));
    assert!(!log.extend(&delivery, at(150), 100).await.unwrap(), "its lease has ended");
    assert_eq!(log.next(&run, at(150), 100).await.unwrap(), Next::Due(delivery.clone()));
    log.done(&delivery).await.unwrap();
    log.hold(&delivery, at(150), 20).await.unwrap();
    assert_eq!(log.next(&run, at(160), 100).await.unwrap(), Next::At(at(170)));
    log.done(&delivery).await.unwrap();
    assert_eq!(log.next(&run, at(160), 100).await.unwrap(), Next::Due(delivery), "nobody holds it any more");
}

/// Checked in the process that appends and in the next one.
#[tokio::test]
async fn what_has_ended_is_delivered_no_more() {
    let failure = None;
    let over = RunFinished { status: Verdict::Fail, exit_node: None, failure, resumes_at: None, artifact: None };
    let from = |from: Option<&str>| RunResumed { from: from.map(Into::into), ..RunResumed::default() };
    let attempt = Attempt { task: task("n"), ordinal: 1, id: "x".into() };
    let ended = StageFinished::new(attempt, Outcome::new(Status::Success));
    for (event, is_due) in [
        (Event::StageFinished(Box::new(ended)), false),
        (Event::RunFinished(over), false),
        (Event::RunResumed(Box::new(from(Some("n")))), false),
        (Event::RunResumed(Box::new(from(None))), true),
        (note("a"), true),
    ] {
        let (place, run, now) = (Place::make(), RUN.into(), Timestamp::now());
        let log = place.open();
        log.append(&run, &[], now, &[ready("n")]).await.unwrap();
        log.append(&run, &[], now, std::slice::from_ref(&event)).await.unwrap();
        assert_eq!(matches!(log.next(&run, now, 100).await.unwrap(), Next::Due(_)), is_due, "{}", event.kind());
        drop(log);
        let next = place.open().next(&run, now, 100).await.unwrap();
        assert_eq!(matches!(next, Next::Due(_)), is_due, "{} in the next process", event.kind());
    }
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

/// A process that asks whether a run is driven holds a shared lock for a moment. That must not refuse the driver.
#[test]
fn a_look_at_the_lock_does_not_refuse_an_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("owner.sqlite");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE t(x)").unwrap();
    let looking = rusqlite::Connection::open(&path).unwrap();
    looking.execute_batch("BEGIN; SELECT count(*) FROM t").unwrap();
    let looked = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(looking);
    });
    Owner::acquire(&path).unwrap();
    looked.join().unwrap();
}
