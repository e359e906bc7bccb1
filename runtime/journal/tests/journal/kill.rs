//! If a process is killed during an append, no acknowledged record is lost, and its lock is released.

use super::{Place, RUN, note, ready, records};
use glovebox_journal::event::Event;
use glovebox_journal::ports::RunLog;
use glovebox_journal::sqlite::{Owner, SqliteLog};
use jiff::Timestamp;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Environment variable with the path of the journal for the child process, which is this test program too.
const CHILD: &str = "GLOVEBOX_TEST_JOURNAL";

/// In the child: appends batches of three until it is killed, and prints each that was acknowledged.
#[test]
fn child() {
    let Some(path) = std::env::var_os(CHILD) else { return };
    let path = Path::new(&path);
    let _owner = Owner::acquire(&path.with_file_name("owner.sqlite")).unwrap();
    let log = SqliteLog::open(path, RUN.into()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for batch in runtime.block_on(records(&log)).len() / 3.. {
        let events = vec![note(&format!("{batch}")), ready(&format!("n{batch}")), note(&"x".repeat(2000))];
        runtime.block_on(log.append(&RUN.into(), &[], Timestamp::now(), &events)).unwrap();
        // The text begins with a line break, because the test harness writes text without one before it.
        println!("\nacknowledged {batch}");
    }
}

#[test]
fn what_was_acknowledged_outlives_a_kill_and_batches_stay_whole() {
    let place = Place::make();
    let mut acknowledged = 0;
    for round in 0..6u64 {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "journal::kill::child", "--nocapture", "--test-threads=1"])
            .env(CHILD, &place.path)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let said = |line: String| line.strip_prefix("acknowledged ").and_then(|batch| batch.parse::<usize>().ok());
        // The test waits for some batches and a short time, so that the kill happens at any point of an append.
        acknowledged = lines.by_ref().filter_map(said).nth(3).expect("the child appends") + 1;
        std::thread::sleep(Duration::from_micros(700 * round));
        child.kill().unwrap();
        child.wait().unwrap();
        acknowledged = lines.filter_map(said).last().map_or(acknowledged, |batch| batch + 1);

        let _owner = Owner::acquire(&place.path.with_file_name("owner.sqlite")).expect("the lock died with the child");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let records = runtime.block_on(records(&place.open()));
        assert!(records.len() >= acknowledged * 3, "{} records, {acknowledged} batches acknowledged", records.len());
        assert_eq!(records.len() % 3, 0, "a batch is there completely or not at all");
        for (batch, chunk) in records.chunks(3).enumerate() {
            assert!(matches!(&chunk[0].event, Event::RunCanceled(note) if note.by == batch.to_string()));
        }
    }
    assert!(acknowledged >= 24);
}
