//! Tests that reading a journal needs the memory of a few records and not of all records. This test has its own
//! process, so that the memory of other tests is not measured.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

use glovebox_journal::event::{Event, RunCanceled};
use glovebox_journal::ports::RunLog;
use glovebox_journal::sqlite::{OpenJournal, SqliteLog, SqliteReader};
use glovebox_state::evidence::RunSummary;
use jiff::Timestamp;

const RECORDS: u64 = 3_000;
const RECORD_BYTES: usize = 6 * 1024;
/// Half of the journal. A page is a twelfth of it.
const PEAK_BYTES_MAX: u64 = RECORDS * RECORD_BYTES as u64 / 2;

/// Returns the peak memory since the last reset.
fn peak_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

#[tokio::test]
async fn a_summary_needs_the_memory_of_a_few_records() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sqlite");
    let log = SqliteLog::open(&path, "run".into()).unwrap();
    for at in 0..RECORDS / 50 {
        let by = |one: u64| format!("{at} {one} {}", "x".repeat(RECORD_BYTES));
        let events: Vec<Event> = (0..50).map(|one| Event::RunCanceled(RunCanceled { by: by(one) })).collect();
        log.append(&"run".into(), &[], Timestamp::now(), &events).await.unwrap();
    }
    drop(log);
    let reader = SqliteReader::open(&path).unwrap();
    let journal = OpenJournal { verified: reader.read_start_and_resumes(None).unwrap(), reader };
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak_bytes();
    let mut bytes = 0;
    let read = RunSummary::read(&journal, |record| {
        bytes += serde_json::to_string(&record.event).unwrap().len();
    });
    read.unwrap();
    assert!(bytes > RECORDS as usize * RECORD_BYTES);
    let more = peak_bytes() - before;
    assert!(more < PEAK_BYTES_MAX, "{more} bytes for a journal of {bytes} bytes");
}
