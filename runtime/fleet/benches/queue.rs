//! Measures the stores of a fleet without machines: an append of one record, a blob, and a queue of 10,000 runs.
//!
//! `cargo bench --workspace --bench queue` prints a table for one server and for three, all on this machine; it needs `cargo xtask nats`.
//! The baseline is a flush of 4 KiB, which each server makes at least once for each record. No result passes or fails.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A benchmark may panic.

#[path = "../tests/bench.rs"]
#[allow(dead_code)] // The tests need more of it.
mod bench;
#[path = "../../../tests/workbench/nats.rs"]
#[allow(dead_code)] // The tests need more of it.
mod nats;
#[path = "../../../tests/workbench/not_run.rs"]
mod not_run;
#[path = "../../../benches/table.rs"]
mod table;

use bench::{Bench, address, append, can_run, joined, machine, note};
use glovebox_fleet::blobs::ObjectBlobs;
use glovebox_fleet::drive::{DriveQueue, TurnEnd};
use glovebox_fleet::log::NatsLog;
use glovebox_journal::event::RunId;
use glovebox_journal::ports::{BlobStore as _, RunLog as _};
use jiff::Timestamp;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};
use table::{count, head, median, print};
use tokio::task::JoinSet;

const RUNS: usize = 10_000;
/// Number of runs that begin at the same time.
const AT_ONCE: usize = 64;
const SAMPLES: usize = 201;
const MEBIBYTE: f64 = 1_048_576.0;
const FLUSH: &str = "a flush of 4 KiB";

fn main() {
    if !can_run("queue of a fleet") {
        return;
    }
    head();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        measure_blobs();
        for servers in [1, 3] {
            let bench = Bench::start(servers).await;
            measure_appends(&bench, servers).await;
            measure_queue(&bench, servers).await;
        }
    });
}

async fn measure_appends(bench: &Bench, servers: usize) {
    let log = bench.log().await;
    let flushes = Flushes::new();
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..SAMPLES {
        let begun = Instant::now();
        append(&log, &[], &[note(number.to_string())]).await.unwrap();
        ours.push(begun.elapsed());
        theirs.push(flushes.one());
    }
    print(&format!("append of one record, {servers} servers"), median(ours), median(theirs), FLUSH);
}

/// Measures blobs of 1 KiB in a folder on this machine.
fn measure_blobs() {
    let folder = tempfile::tempdir().unwrap();
    let (blobs, flushes) = (ObjectBlobs::in_folder(folder.path()).unwrap(), Flushes::new());
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for number in 0..SAMPLES {
        let bytes = format!("{number:01024}");
        let begun = Instant::now();
        blobs.put_bytes(bytes.as_bytes()).unwrap();
        ours.push(begun.elapsed());
        theirs.push(flushes.one());
    }
    print("blob of 1 KiB, store in a folder", median(ours), median(theirs), FLUSH);
}

/// Begins runs, and takes them from the queue.
async fn measure_queue(bench: &Bench, servers: usize) {
    let (log, flushes) = (Arc::new(bench.log().await), Flushes::new());
    let before = resident(std::process::id());
    let begun = Instant::now();
    let mut beginning = JoinSet::new();
    for part in 0..AT_ONCE {
        let log = Arc::clone(&log);
        beginning.spawn(async move {
            for number in (part..RUNS).step_by(AT_ONCE) {
                begin(&log, number).await;
            }
        });
    }
    beginning.join_all().await;
    let queued = begun.elapsed();
    let flushed: Duration = (0..RUNS).map(|_| flushes.one()).sum();
    print(&format!("{RUNS} runs begin, {servers} servers"), queued, flushed, &format!("{RUNS} flushes of 4 KiB"));
    let fleet = joined(&address(bench.servers.addresses()), machine()).await;
    let queue = DriveQueue::open(&fleet).await.unwrap();
    let (mut taken, mut theirs) = (Vec::new(), Vec::new());
    while taken.len() < RUNS {
        let begun = Instant::now();
        let Some(turn) = queue.next().await else { continue };
        taken.push(begun.elapsed());
        queue.end(&turn, &TurnEnd::Done).await;
        if taken.len() % 50 == 0 {
            theirs.push(flushes.one());
        }
    }
    print(&format!("a driver takes one of {RUNS} runs, {servers} servers"), median(taken), median(theirs), FLUSH);
    let grown = resident(std::process::id()) - before;
    count("memory of the process that began and took them", grown / MEBIBYTE, "MiB more than before");
    for server in 0..servers {
        count(&format!("memory of server {server}"), resident(bench.servers.pid(server)) / MEBIBYTE, "MiB");
    }
}

async fn begin(log: &NatsLog, number: usize) {
    let run = RunId::from(format!("queued-{number}").as_str());
    log.append(&run, &[], Timestamp::now(), &[note("begun")]).await.unwrap();
}

/// Returns the resident memory of a process, in bytes.
fn resident(pid: u32) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
}

/// The baseline.
struct Flushes(File);

impl Flushes {
    fn new() -> Self {
        Self(tempfile::tempfile().unwrap())
    }

    fn one(&self) -> Duration {
        let begun = Instant::now();
        self.0.write_all_at(&[7; 4096], 0).unwrap();
        self.0.sync_data().unwrap();
        begun.elapsed()
    }
}
