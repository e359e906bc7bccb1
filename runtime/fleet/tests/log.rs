//! Appends of several machines to one run: exclusive, atomic and whole.

use crate::bench::{Bench, address, append, can_run, joined, machine, note, run, texts};
use glovebox_journal::event::{BranchId, Event, StageReady, StreamKey, Task, Work};
use glovebox_journal::ports::{BlobStore as _, ClaimQueue as _, Next, PortError, RunLog as _};
use jiff::Timestamp;
use std::sync::Arc;

const WRITERS: usize = 16;

fn task(node: &str) -> Task {
    Task { generation: 0, branch: BranchId::main(), node: node.into(), visit: 1, work: Work::Handler }
}

fn ready(node: &str) -> Event {
    Event::StageReady(StageReady { task: task(node), ordinal: 1, due_at: None })
}

/// Returns the numbers of messages on a subject.
async fn messages(bench: &Bench, subject: &str) -> serde_json::Value {
    let client = async_nats::connect(bench.servers.addresses()).await.unwrap();
    let query = serde_json::json!({ "subjects_filter": subject }).to_string();
    let answer = client.request("$JS.API.STREAM.INFO.gb", query.into()).await.unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap();
    answer["state"]["subjects"].clone()
}

async fn one_of_sixteen_machines_is_stored(servers: usize) {
    let bench = Bench::start(servers).await;
    let mut logs = Vec::new();
    for _ in 0..WRITERS {
        logs.push(Arc::new(bench.log().await));
    }
    for round in 0..10u64 {
        let writers: Vec<_> = logs
            .iter()
            .map(|log| {
                let log = Arc::clone(log);
                // All write equal events: only the nonce tells whose frame is stored.
                tokio::spawn(async move { append(&log, &[(StreamKey::Run, round)], &[note(round.to_string())]).await })
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
        assert_eq!(winners, 1, "round {round}");
    }
    assert_eq!(bench.records().await.len(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_sixteen_machines_with_one_expectation_one_is_stored() {
    if can_run("16 machines and one NATS server") {
        one_of_sixteen_machines_is_stored(1).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_sixteen_machines_at_a_cluster_one_is_stored() {
    if can_run("16 machines and three NATS servers") {
        one_of_sixteen_machines_is_stored(3).await;
    }
}

/// Without an expectation every append is stored, each on the head that it finds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn machines_that_expect_nothing_are_all_stored() {
    if !can_run("machines that expect nothing") {
        return;
    }
    let bench = Bench::start(1).await;
    let mut writers = Vec::new();
    for writer in 0..4 {
        let log = bench.log().await;
        writers.push(tokio::spawn(async move {
            for number in 0..10 {
                append(&log, &[], &[note(format!("{writer}/{number}"))]).await.unwrap();
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let records = bench.records().await;
    let mut found = texts(&records);
    found.sort_unstable();
    let mut expected: Vec<String> = (0..40).map(|one| format!("{}/{}", one / 10, one % 10)).collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_ready_task_has_a_pointer_in_the_same_batch() {
    if !can_run("pointers to ready tasks") {
        return;
    }
    let bench = Bench::start(1).await;
    let (log, zombie) = (bench.log().await, bench.log().await);
    append(&zombie, &[], &[note("a")]).await.unwrap();
    append(&log, &[(StreamKey::Run, 1)], &[ready("n"), ready("m")]).await.unwrap();
    let pointers = messages(&bench, "gb.q.>").await;
    let names: Vec<&String> = pointers.as_object().unwrap().keys().collect();
    assert_eq!(names.len(), 3, "the run and two tasks: {names:?}");
    assert!(names.iter().any(|name| *name == "gb.q.drive.run"));
    // The other machine believes in its old head: nothing of its batch is stored.
    let refused = append(&zombie, &[(StreamKey::Run, 1)], &[ready("o"), ready("p"), note("b")]).await;
    assert_eq!(refused.unwrap()[0].seq, 4, "the run's own stream has not moved, so it is stored after the others");
    let refused = append(&zombie, &[(StreamKey::Task(task("n")), 7)], &[ready("q")]).await;
    assert!(matches!(refused, Err(PortError::Conflict { head: 2, .. })), "{refused:?}");
    assert_eq!(messages(&bench, "gb.q.stage.>").await.as_object().unwrap().len(), 4);
    assert_eq!(bench.records().await.len(), 6);
}

/// A fan-out makes more tasks ready than a batch has messages.
#[tokio::test]
async fn more_tasks_than_a_batch_has_messages_become_ready() {
    if !can_run("more ready tasks than a batch has messages") {
        return;
    }
    let bench = Bench::start(1).await;
    let log = bench.log().await;
    let events: Vec<Event> = (0..1100).map(|number| ready(&format!("n{number}"))).collect();
    append(&log, &[], &events).await.unwrap();
    assert_eq!(messages(&bench, "gb.q.stage.>").await.as_object().unwrap().len(), 1100);
    assert_eq!(messages(&bench, "gb.r.>").await["gb.r.run"], 1, "one append is one message");
    assert_eq!(bench.records().await.len(), 1100);
}

#[tokio::test]
async fn a_frame_that_is_too_large_for_a_message_is_a_blob() {
    if !can_run("large frames") {
        return;
    }
    let bench = Bench::start(1).await;
    let log = bench.log().await;
    let large: Vec<Event> = (0..3).map(|one| note(one.to_string().repeat(1_000_000))).collect();
    append(&log, &[(StreamKey::Run, 0)], &[note("small")]).await.unwrap();
    append(&log, &[(StreamKey::Run, 1)], &large).await.unwrap();
    append(&log, &[(StreamKey::Run, 4)], &[note("after")]).await.unwrap();
    let records = bench.records().await;
    assert_eq!(records.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert!(records[1..4].iter().zip(&large).all(|(record, event)| record.event == *event));
    assert_eq!(bench.log().await.read(&run(), 3, 2).await.unwrap(), records[2..4]);
    // A machine that cannot read the blob does not skip it.
    let elsewhere = glovebox_fleet::blobs::ObjectBlobs::in_memory().unwrap();
    let error = joined(&address(bench.servers.addresses()), machine())
        .await
        .log(elsewhere)
        .read(&run(), 1, 10)
        .await
        .unwrap_err();
    assert!(matches!(&error, PortError::Corrupt { found, .. } if found == "it is missing"), "{error}");
    assert!(bench.blobs.open(&glovebox_journal::event::Digest::hash(b"x")).is_err());
}

/// What is on the run's subject without the compare-and-set of an append is never taken for a record.
#[tokio::test]
async fn a_message_that_does_not_follow_the_chain_is_corrupt() {
    if !can_run("messages that do not follow the chain") {
        return;
    }
    let bench = Bench::start(1).await;
    let log = bench.log().await;
    append(&log, &[], &[note("a")]).await.unwrap();
    append(&log, &[], &[note("b")]).await.unwrap();
    let client = async_nats::connect(bench.servers.addresses()).await.unwrap();
    let get = client.request("$JS.API.STREAM.MSG.GET.gb", r#"{"last_by_subj":"gb.r.run"}"#.into()).await.unwrap();
    let get: serde_json::Value = serde_json::from_slice(&get.payload).unwrap();
    use base64::Engine as _;
    let frame = base64::engine::general_purpose::STANDARD.decode(get["message"]["data"].as_str().unwrap()).unwrap();
    // The same frame again, under the condition of an append: refused.
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", "2");
    let refused = client.request_with_headers("gb.r.run", headers, frame.clone().into()).await.unwrap();
    assert!(String::from_utf8_lossy(&refused.payload).contains("wrong last sequence"), "{refused:?}");
    assert_eq!(bench.records().await.len(), 2);
    // Without the condition it is stored, and read as damage by everybody.
    client.request("gb.r.run", frame.into()).await.unwrap();
    for log in [&log, &bench.log().await] {
        let error = log.read(&run(), 1, 10).await.unwrap_err();
        assert_eq!(error.to_string(), "journal record 3 is corrupt: record 2 is in its place");
        let error = append(log, &[(StreamKey::Run, 2)], &[note("c")]).await.unwrap_err();
        assert!(matches!(error, PortError::Corrupt { .. }), "{error}");
        let error = log.next(&run(), Timestamp::now(), 1000).await.unwrap_err();
        assert!(matches!(error, PortError::Corrupt { .. }), "{error}");
    }
}

#[tokio::test]
async fn a_record_that_disappears_from_the_stream_is_corrupt() {
    if !can_run("records that disappear") {
        return;
    }
    let bench = Bench::start(1).await;
    let log = bench.log().await;
    for text in ["a", "b", "c"] {
        append(&log, &[], &[note(text)]).await.unwrap();
    }
    let client = async_nats::connect(bench.servers.addresses()).await.unwrap();
    let info: serde_json::Value =
        serde_json::from_slice(&client.request("$JS.API.STREAM.INFO.gb", "".into()).await.unwrap().payload).unwrap();
    let last = info["state"]["last_seq"].as_u64().unwrap();
    let delete = serde_json::json!({ "seq": last - 1 }).to_string();
    client.request("$JS.API.STREAM.MSG.DELETE.gb", delete.into()).await.unwrap();
    let error = log.read(&run(), 1, 10).await.unwrap_err();
    assert_eq!(error.to_string(), "journal record 2 is corrupt: it is not in the stream any more");
    let error = bench.log().await.read(&run(), 1, 10).await.unwrap_err();
    assert_eq!(error.to_string(), "journal record 2 is corrupt: record 3 is in its place");
}

/// A new machine reads a long journal in parts, also where replicas do not answer for the leader.
async fn a_long_journal_is_read(servers: usize, replicas_answer: bool) {
    let bench = Bench::start(servers).await;
    let client = async_nats::connect(bench.servers.addresses()).await.unwrap();
    if !replicas_answer {
        let info = client.request("$JS.API.STREAM.INFO.gb", "".into()).await.unwrap();
        let info: serde_json::Value = serde_json::from_slice(&info.payload).unwrap();
        let mut config = info["config"].clone();
        config["allow_direct"] = false.into();
        let updated = client.request("$JS.API.STREAM.UPDATE.gb", config.to_string().into()).await.unwrap();
        assert!(!String::from_utf8_lossy(&updated.payload).contains("\"error\""), "{updated:?}");
    }
    let log = bench.log().await;
    for number in 0..450u64 {
        append(&log, &[], &[note(number.to_string())]).await.unwrap();
    }
    let records = bench.records().await;
    assert_eq!(texts(&records), (0..450).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(log.read(&run(), 1, usize::MAX).await.unwrap(), records);
}

#[tokio::test]
async fn a_long_journal_is_read_from_a_cluster() {
    if can_run("a long journal on three NATS servers") {
        a_long_journal_is_read(3, true).await;
    }
}

#[tokio::test]
async fn a_long_journal_is_read_from_the_leader() {
    if can_run("a long journal on one NATS server") {
        a_long_journal_is_read(1, false).await;
    }
}

#[tokio::test]
async fn no_call_creates_a_stream() {
    if !can_run("a fleet without a stream") {
        return;
    }
    let bench = Bench::start(1).await;
    let client = async_nats::connect(bench.servers.addresses()).await.unwrap();
    let mut quick = address(bench.servers.addresses());
    quick.patience = std::time::Duration::from_secs(2);
    let used = joined(&quick, machine()).await.log(bench.blobs.clone());
    let new = joined(&quick, machine()).await.log(bench.blobs.clone());
    append(&used, &[], &[note("a")]).await.unwrap();
    for stream in ["gb", "gb-mail"] {
        client.request(format!("$JS.API.STREAM.DELETE.{stream}"), "".into()).await.unwrap();
    }
    for log in [&new, &used] {
        let error = append(log, &[(StreamKey::Run, 0)], &[note("b")]).await.unwrap_err().to_string();
        assert!(
            error.contains("the stream `gb` does not exist\nhelp: create it once: `glovebox fleet init`"),
            "{error}"
        );
        let error = log.read(&run(), 1, 1).await.unwrap_err().to_string();
        assert!(error.contains("glovebox fleet init"), "{error}");
    }
    let error = append(&used, &[(StreamKey::Run, 1)], &[note("b")]).await.unwrap_err().to_string();
    assert!(error.contains("glovebox fleet init"), "{error}");
    let names = client.request("$JS.API.STREAM.NAMES", "".into()).await.unwrap();
    let names: serde_json::Value = serde_json::from_slice(&names.payload).unwrap();
    assert_eq!(names["total"], 0, "{names}");
}

#[tokio::test]
async fn a_second_machine_sees_what_the_first_made_ready() {
    if !can_run("the queue of a second machine") {
        return;
    }
    let bench = Bench::start(1).await;
    let (first, second) = (bench.log().await, bench.log().await);
    let now = Timestamp::now();
    assert_eq!(second.next(&run(), now, 1000).await.unwrap(), Next::Empty);
    append(&first, &[], &[ready("n")]).await.unwrap();
    let later = Timestamp::now();
    let Next::Due(delivery) = second.next(&run(), later, 1000).await.unwrap() else { panic!("it is ready") };
    assert_eq!((delivery.task, delivery.ready_seq), (task("n"), 1));
}
