//! Lost answers, killed servers and killed leaders: what was acknowledged is stored once, in order.

use crate::bench::{Bench, address, append, can_run, joined, machine, note, run, texts};
use crate::proxy::Proxy;
use glovebox_fleet::statement::Role;
use glovebox_journal::event::StreamKey;
use glovebox_journal::ports::{PortError, RunLog as _};
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Appends number after number until `count` are stored. Each append expects the one before it.
async fn write(log: &impl glovebox_journal::ports::RunLog, count: u64, stored: &AtomicU64) {
    for number in 0..count {
        let appended = loop {
            let expect = [(StreamKey::Run, number)];
            match log.append(&run(), &expect, Timestamp::now(), &[note(number.to_string())]).await {
                Ok(appended) => break appended,
                // Nothing was stored, or the server is down for longer than the adapter waits.
                Err(PortError::Unavailable(_)) => {}
                Err(other) => panic!("append {number}: {other}"),
            }
        };
        assert_eq!(appended[0].seq, number + 1);
        stored.store(number + 1, Ordering::SeqCst);
    }
}

async fn until(stored: &AtomicU64, count: u64) {
    while stored.load(Ordering::SeqCst) < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

fn numbers(count: u64) -> Vec<String> {
    (0..count).map(|number| number.to_string()).collect()
}

async fn an_answer_that_is_lost_is_resolved(servers: usize) {
    let bench = Bench::start(servers).await;
    let proxy = Proxy::start(&bench.servers.addresses()[0]).await;
    let fleet = joined(&address(vec![proxy.address.clone()]), machine()).await;
    let log = fleet.log(bench.blobs.clone());
    append(&log, &[(StreamKey::Run, 0)], &[note("0")]).await.unwrap();
    for number in 1..6u64 {
        // The next answer is that to the append: the admission of this machine was looked at just now.
        fleet.require(&[Role::Drive]).await.unwrap();
        proxy.lose_next();
        let stored = append(&log, &[(StreamKey::Run, number)], &[note(number.to_string())]).await.unwrap();
        assert_eq!(stored[0].seq, number + 1, "stored once, and known as its own");
        assert!(!proxy.will_lose(), "the answer was lost");
    }
    assert_eq!(texts(&bench.records().await), numbers(6));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_is_lost_is_resolved_by_the_same_frame() {
    if can_run("lost answers of one NATS server") {
        an_answer_that_is_lost_is_resolved(1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_a_cluster_loses_is_resolved_by_the_same_frame() {
    if can_run("lost answers of three NATS servers") {
        an_answer_that_is_lost_is_resolved(3).await;
    }
}

/// A server without power never says that its connections have ended. A request waits for 30 seconds in all.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_falls_silent_is_left_for_another_one() {
    if !can_run("a silent NATS server") {
        return;
    }
    let bench = Bench::start(1).await;
    let server = &bench.servers.addresses()[0];
    let proxies = [Proxy::start(server).await, Proxy::start(server).await];
    let fleet = joined(&address(proxies.iter().map(|proxy| proxy.address.clone()).collect()), machine()).await;
    let log = fleet.log(bench.blobs.clone());
    append(&log, &[], &[note("0")]).await.unwrap();
    // The client has chosen one of both. Each is silent once, so it must leave the one that it has.
    for (number, silent) in proxies.iter().enumerate() {
        silent.fall_silent();
        if number == 0 {
            append(&log, &[], &[note("1")]).await.unwrap();
            silent.speak();
        }
    }
    append(&log, &[], &[note("2")]).await.unwrap();
    assert_eq!(texts(&bench.records().await), numbers(3));
}

/// The answer is lost, and before the writer can ask, another driver appends to the run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_answer_and_another_driver_are_told_apart() {
    if !can_run("a lost answer and another driver") {
        return;
    }
    let bench = Bench::start(1).await;
    let proxy = Proxy::start(&bench.servers.addresses()[0]).await;
    let (log, other) = (bench.log_at(vec![proxy.address.clone()]).await, bench.log().await);
    append(&log, &[], &[note("0")]).await.unwrap();
    proxy.lose_next();
    let late = async {
        // The other driver writes equal events as soon as the first frame is stored.
        loop {
            match append(&other, &[(StreamKey::Run, 2)], &[note("1")]).await {
                Ok(stored) => break stored[0].seq,
                Err(PortError::Conflict { .. }) => {}
                Err(error) => panic!("{error}"),
            }
        }
    };
    let expect = [(StreamKey::Run, 1)];
    let events = [note("1")];
    let (own, others) = tokio::join!(append(&log, &expect, &events), late);
    assert_eq!((own.unwrap()[0].seq, others), (2, 3));
    assert_eq!(texts(&bench.records().await), ["0", "1", "1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_killed_loses_nothing_that_it_acknowledged() {
    if !can_run("a killed NATS server") {
        return;
    }
    let mut bench = Bench::start(1).await;
    let (log, stored) = (Arc::new(bench.log().await), Arc::new(AtomicU64::new(0)));
    let writer = tokio::spawn({
        let (log, stored) = (Arc::clone(&log), Arc::clone(&stored));
        async move { write(&*log, 150, &stored).await }
    });
    for kill_after in [30, 60, 90] {
        until(&stored, kill_after).await;
        bench.servers.kill(0);
        let acknowledged = stored.load(Ordering::SeqCst);
        bench.servers.restart(0);
        let kept = bench.records().await;
        assert!(kept.len() as u64 >= acknowledged, "{} of {acknowledged} are stored", kept.len());
    }
    writer.await.unwrap();
    assert_eq!(texts(&bench.records().await), numbers(150));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_leader_is_killed_goes_on_and_loses_nothing() {
    if !can_run("a killed leader of three NATS servers") {
        return;
    }
    let mut bench = Bench::start(3).await;
    let (log, stored) = (Arc::new(bench.log().await), Arc::new(AtomicU64::new(0)));
    let writer = tokio::spawn({
        let (log, stored) = (Arc::clone(&log), Arc::clone(&stored));
        async move { write(&*log, 90, &stored).await }
    });
    for kill_after in [20, 50] {
        until(&stored, kill_after).await;
        let leader = bench.servers.leader();
        bench.servers.kill(leader);
        // It goes on while the server is down.
        until(&stored, kill_after + 5).await;
        bench.servers.restart(leader);
    }
    writer.await.unwrap();
    assert_eq!(texts(&bench.records().await), numbers(90));
}

/// The server is away for longer than the adapter waits. What the last append did is then unknown, and said so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stays_away_makes_an_append_ambiguous() {
    if !can_run("a NATS server that stays away") {
        return;
    }
    let mut bench = Bench::start(1).await;
    let mut address = address(bench.servers.addresses());
    (address.answer_wait, address.patience) = (Duration::from_millis(300), Duration::from_secs(1));
    let log = joined(&address, machine()).await.log(bench.blobs.clone());
    append(&log, &[], &[note("0")]).await.unwrap();
    bench.servers.kill(0);
    let unknown = append(&log, &[(StreamKey::Run, 1)], &[note("1")]).await;
    assert!(matches!(unknown, Err(PortError::Ambiguous(_))), "{unknown:?}");
    let away = log.read(&run(), 1, 10).await;
    assert!(matches!(away, Err(PortError::Unavailable(_))), "{away:?}");
    bench.servers.restart(0);
    // The head tells what became of it.
    let head = log.read(&run(), 1, 10).await.unwrap().len() as u64;
    append(&log, &[(StreamKey::Run, head)], &[note("2")]).await.unwrap();
    let records = bench.records().await;
    assert_eq!((records.len() as u64, texts(&records).last()), (head + 1, Some(&"2")));
}
