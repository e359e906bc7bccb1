//! Tests the journal: appends are exclusive, atomic and in order.

use super::{Adapter, note, ready, task};
use glovebox_journal::event::{Attempt, Digest, Event, StageStarted, StreamKey, canonical, chain, whole_milliseconds};
use glovebox_journal::ports::{Next, PortError};
use jiff::Timestamp;
use std::sync::Arc;

const WRITERS: usize = 16;

pub(crate) async fn what_is_appended_is_what_is_read<L: Adapter>() {
    let under = L::empty().await;
    assert!(under.records().await.is_empty());
    let events = [note("a"), ready("n", None), note("ü \"quoted\"\n")];
    let stored = under.append(&[(StreamKey::Run, 0)], &events).await.unwrap();
    assert_eq!(stored.iter().map(|one| one.seq).collect::<Vec<_>>(), [1, 2, 3]);
    under.append(&[(StreamKey::Run, 3), (StreamKey::Task(task("n")), 2)], &[note("b")]).await.unwrap();
    let records = under.records().await;
    assert_eq!(records.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert!(records.iter().zip(&events).all(|(record, event)| record.event == *event));
    assert!(records.iter().zip(&stored).all(|(record, one)| (record.prev, record.hash) == (one.prev, one.hash)));
    assert_eq!(under.log.read(&under.run, 3, 1).await.unwrap(), records[2..3]);
    assert!(under.log.read(&under.run, 5, 10).await.unwrap().is_empty(), "nothing behind the end");
}

/// A journal can be moved between adapters only if all adapters compute the same hashes.
pub(crate) async fn the_chain_is_the_same_in_every_adapter<L: Adapter>() {
    let under = L::empty().await;
    let at = Timestamp::now();
    let events = [note("a"), ready("n", Some(at))];
    under.log.append(&under.run, &[], at, &events).await.unwrap();
    let mut prev = Digest::ZERO;
    for record in under.records().await {
        assert_eq!((record.at, record.prev), (whole_milliseconds(at), prev));
        prev = chain(&prev, record.seq, record.at, &canonical(&record.event).unwrap());
        assert_eq!(record.hash, prev);
    }
}

pub(crate) async fn of_sixteen_writers_with_one_expectation_one_is_stored<L: Adapter>() {
    let under = L::empty().await;
    for round in 0..20u64 {
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| {
                let (log, run) = (Arc::clone(&under.log), under.run.clone());
                let events = [note(&format!("{round}/{writer}"))];
                tokio::spawn(
                    async move { log.append(&run, &[(StreamKey::Run, round)], Timestamp::now(), &events).await },
                )
            })
            .collect();
        let mut winners = 0;
        for writer in writers {
            match writer.await.unwrap() {
                Ok(stored) => {
                    winners += 1;
                    assert_eq!(stored[0].seq, round + 1);
                }
                Err(PortError::Conflict { expected, head, .. }) => assert_eq!((expected, head), (round, round + 1)),
                Err(other) => panic!("{other}"),
            }
        }
        assert_eq!(winners, 1);
    }
    assert_eq!(under.records().await.len(), 20);
}

fn started(worker: &str) -> Event {
    let attempt = Attempt { task: task("n"), ordinal: 1, id: worker.into() };
    Event::StageStarted(StageStarted { attempt, worker: worker.into(), machine: None, moved: None })
}

pub(crate) async fn a_stale_token_stores_nothing_of_its_batch<L: Adapter>() {
    let under = L::empty().await;
    under.append(&[(StreamKey::Run, 0)], &[ready("n", None)]).await.unwrap();
    let task_head = |head: u64| (StreamKey::Task(task("n")), head);
    let stale = under.append(&[task_head(1)], &[started("zombie")]).await.unwrap()[0].seq;
    let fresh = under.append(&[task_head(stale)], &[started("successor")]).await.unwrap()[0].seq;
    let before = under.records().await;
    let zombie = [note("a"), ready("m", None), note("b")];
    let refused = under.append(&[task_head(stale)], &zombie).await;
    assert!(matches!(refused, Err(PortError::Conflict { head, .. }) if head == fresh));
    // One failed expectation is enough to refuse the whole batch.
    assert!(under.append(&[(StreamKey::Run, 0), task_head(stale)], &zombie).await.is_err());
    assert_eq!(under.records().await, before);
    assert_eq!(under.append(&[(StreamKey::Run, 0), task_head(fresh)], &zombie).await.unwrap().len(), 3);
}

/// An adapter may store the journals of many runs or refuse all but one.
pub(crate) async fn a_second_run_sees_nothing_of_the_first<L: Adapter>() {
    let under = L::empty().await;
    under.append(&[], &[note("a"), ready("n", None)]).await.unwrap();
    let (other, now) = ("other".into(), Timestamp::now());
    match under.log.read(&other, 1, 10).await {
        Ok(records) => assert!(records.is_empty()),
        Err(error) => assert!(matches!(error, PortError::Unavailable(_)), "{error}"),
    }
    assert!(!matches!(under.log.next(&other, now, 1000).await, Ok(Next::Due(_))));
    if under.log.append(&other, &[(StreamKey::Run, 0)], now, &[note("b")]).await.is_ok() {
        assert_eq!(under.log.read(&other, 1, 10).await.unwrap().len(), 1);
    }
    assert_eq!(under.records().await.len(), 2);
}
