//! Tests the queue: it delivers at least once and in order of time, and never decides which worker owns a task.

use super::{Adapter, Under, after, ready, task};
use glovebox_journal::event::{Attempt, Event, NodeId, RunResumed, StageStarted, StreamKey};
use glovebox_journal::ports::{Delivery, Next, PortError};
use jiff::Timestamp;

async fn due<L: Adapter>(under: &Under<L>, now: Timestamp, lease_ms: u64) -> Delivery {
    match under.log.next(&under.run, now, lease_ms).await.unwrap() {
        Next::Due(delivery) => delivery,
        other => panic!("expected a delivery, found {other:?}"),
    }
}

pub(crate) async fn append_is_enqueue_and_a_lease_comes_back<L: Adapter>() {
    let (under, now) = (L::empty().await, Timestamp::now());
    let next = async |ms: i64| under.log.next(&under.run, after(now, ms), 100).await.unwrap();
    assert_eq!(next(0).await, Next::Empty);
    under.log.append(&under.run, &[], now, &[ready("n", None)]).await.unwrap();
    let delivery = due(&under, now, 100).await;
    assert_eq!((&delivery.task, delivery.ready_seq), (&task("n"), 1));
    assert!(matches!(next(50).await, Next::At(_)), "it is out");
    assert!(under.log.extend(&delivery, after(now, 50), 100).await.unwrap());
    assert!(matches!(next(140).await, Next::At(_)), "it was extended");
    assert!(!under.log.extend(&delivery, after(now, 200), 100).await.unwrap(), "the lease has ended");
    assert_eq!(next(200).await, Next::Due(delivery), "at least once");
}

pub(crate) async fn timers_are_due_in_their_order<L: Adapter>() {
    let (under, now) = (L::empty().await, Timestamp::now());
    let timers = [("late", 300), ("soon", 100), ("later", 200)];
    for (node, ms) in timers {
        let event = ready(node, Some(after(now, ms)));
        under.log.append(&under.run, &[], now, &[event]).await.unwrap();
    }
    let Next::At(first) = under.log.next(&under.run, now, 1000).await.unwrap() else { panic!("nothing is due yet") };
    assert_eq!(first.as_millisecond(), after(now, 100).as_millisecond());
    let mut order = Vec::new();
    for _ in timers {
        order.push(due(&under, after(now, 400), 1000).await.task.node.to_string());
    }
    assert_eq!(order, ["soon", "later", "late"]);
}

pub(crate) async fn a_finished_task_is_not_delivered_again<L: Adapter>() {
    let (under, now) = (L::empty().await, Timestamp::now());
    under.log.append(&under.run, &[], now, &[ready("n", None), ready("m", None)]).await.unwrap();
    let delivery = due(&under, now, 10).await;
    under.log.append(&under.run, &[], now, &[super::run::finished(&delivery.task)]).await.unwrap();
    under.log.done(&delivery).await.unwrap();
    assert_eq!(due(&under, after(now, 1000), 10).await.task, task("m"));
    under.log.append(&under.run, &[], now, &[super::run::ended()]).await.unwrap();
    assert_eq!(under.log.next(&under.run, after(now, 9000), 10).await.unwrap(), Next::Empty, "the run has ended");
}

/// A task that was in progress when a process was killed is not delivered after the run restarts at another node.
pub(crate) async fn what_a_run_begins_again_before_is_not_delivered<L: Adapter>() {
    let (under, now) = (L::empty().await, Timestamp::now());
    let resumed = |from: Option<&str>| {
        Event::RunResumed(Box::new(RunResumed { from: from.map(NodeId::from), ..RunResumed::default() }))
    };
    under.log.append(&under.run, &[], now, &[ready("n", None)]).await.unwrap();
    under.log.append(&under.run, &[], now, &[resumed(None)]).await.unwrap();
    assert_eq!(due(&under, now, 10).await.task, task("n"), "it goes on");
    under.log.append(&under.run, &[], now, &[resumed(Some("m")), ready("m", None)]).await.unwrap();
    let next = due(&under, after(now, 1000), 10).await;
    assert_eq!(next.task, task("m"));
    under.log.append(&under.run, &[], now, &[super::run::finished(&next.task)]).await.unwrap();
    assert_eq!(under.log.next(&under.run, after(now, 9000), 10).await.unwrap(), Next::Empty);
}

/// A task that a driver claims in the append that made it ready counts as delivered.
pub(crate) async fn a_delivery_that_is_held_is_not_handed_out<L: Adapter>() {
    let (under, now) = (L::empty().await, Timestamp::now());
    let ready_seq = under.log.append(&under.run, &[], now, &[ready("n", None)]).await.unwrap()[0].seq;
    let delivery = Delivery { run: under.run.clone(), task: task("n"), ready_seq };
    under.log.hold(&delivery, now, 90).await.unwrap();
    assert!(matches!(under.log.next(&under.run, after(now, 60), 90).await.unwrap(), Next::At(_)));
    assert!(under.log.extend(&delivery, after(now, 60), 90).await.unwrap());
    assert!(matches!(under.log.next(&under.run, after(now, 120), 90).await.unwrap(), Next::At(_)));
    assert_eq!(due(&under, after(now, 200), 90).await, delivery, "its lease has ended");
}

pub(crate) async fn a_job_of_three_leases_is_not_handed_out_twice<L: Adapter>() {
    let (under, now) = (L::empty().await, Timestamp::now());
    under.log.append(&under.run, &[], now, &[ready("n", None)]).await.unwrap();
    let delivery = due(&under, now, 90).await;
    for ms in (30..=270).step_by(30) {
        assert!(under.log.extend(&delivery, after(now, ms), 90).await.unwrap(), "after {ms} ms");
        assert!(matches!(under.log.next(&under.run, after(now, ms), 90).await.unwrap(), Next::At(_)));
    }
}

/// A worker whose clock is ahead gets a delivery that another worker already has. Its claim is refused nevertheless.
pub(crate) async fn the_clock_of_a_worker_decides_no_ownership<L: Adapter>() {
    let (under, now) = (L::empty().await, Timestamp::now());
    under.log.append(&under.run, &[], now, &[ready("n", None)]).await.unwrap();
    let (first, second) = (due(&under, now, 100).await, due(&under, after(now, 3_600_000), 100).await);
    assert_eq!(first, second);
    let claim = async |worker: &str| {
        let attempt = Attempt { task: task("n"), ordinal: 1, id: worker.into() };
        let started = Event::StageStarted(StageStarted { attempt, worker: worker.into(), machine: None, moved: None });
        under.append(&[(StreamKey::Task(task("n")), first.ready_seq)], &[started]).await
    };
    claim("first").await.unwrap();
    assert!(matches!(claim("second").await, Err(PortError::Conflict { .. })));
}
