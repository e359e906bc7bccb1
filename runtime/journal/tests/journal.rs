//! Black-box tests of the SQLite journal: exclusive appends, fencing, group commit, corruption, and a process killed
//! during an append.

mod blobs;
mod damage;
mod disk;
mod foreign;
mod kill;
mod pages;
mod tables;

use glovebox_journal::event::{
    BranchId, Event, NodeId, Record, RunCanceled, StagePassed, StageReady, StreamKey, Task, Work,
};
use glovebox_journal::ports::{ClaimQueue, PortError, RunLog};
use glovebox_journal::sqlite::SqliteLog;
use glovebox_record::Status;
use jiff::Timestamp;
use std::path::PathBuf;

/// A journal in a temporary folder.
pub(crate) struct Place {
    _folder: tempfile::TempDir,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.sqlite");
        Self { _folder: folder, path }
    }

    pub(crate) fn open(&self) -> SqliteLog {
        SqliteLog::open(&self.path, RUN.into()).unwrap()
    }
}

pub(crate) fn note(text: &str) -> Event {
    Event::RunCanceled(RunCanceled { by: text.to_owned() })
}

/// The run id of every journal in these tests.
pub(crate) const RUN: &str = "run";

pub(crate) fn task(node: &str) -> Task {
    Task { generation: 0, branch: BranchId::main(), node: node.into(), visit: 1, work: Work::Handler }
}

pub(crate) fn ready(node: &str) -> Event {
    Event::StageReady(StageReady { task: task(node), ordinal: 1, due_at: None })
}

/// Appends events with an expectation about the head of the run, and reads the stored records.
pub(crate) async fn append(log: &SqliteLog, head: u64, events: Vec<Event>) -> Result<Vec<Record>, PortError> {
    let stored = log.append(&RUN.into(), &[(StreamKey::Run, head)], Timestamp::now(), &events).await?;
    log.read(&RUN.into(), stored[0].seq, stored.len()).await
}

/// Returns every record of a journal.
pub(crate) async fn records(log: &SqliteLog) -> Vec<Record> {
    log.read(&RUN.into(), 1, usize::MAX).await.unwrap()
}

#[tokio::test]
async fn what_was_appended_is_read_by_the_next_process() {
    let place = Place::make();
    let log = place.open();
    let appended = append(&log, 0, vec![note("a"), ready("n"), note("ü \"quoted\"\n")]).await.unwrap();
    drop(log);
    assert_eq!(records(&place.open()).await, appended);
}

#[tokio::test]
async fn a_journal_serves_one_run() {
    let place = Place::make();
    let log = place.open();
    let other = "other".into();
    let refused = [
        log.append(&other, &[], Timestamp::now(), &[note("a")]).await.err(),
        log.read(&other, 1, 10).await.err(),
        log.next(&other, Timestamp::now(), 1).await.err(),
    ];
    for error in refused {
        assert!(matches!(error, Some(PortError::Unavailable(_))), "{error:?}");
    }
    assert!(records(&log).await.is_empty());
}

#[tokio::test]
async fn the_next_process_knows_which_branches_have_records() {
    let place = Place::make();
    let passed = |branch: &str| {
        let (branch, node) = (BranchId::new(branch), NodeId::from("n"));
        Event::StagePassed(StagePassed { generation: 0, branch, node, visit: 1, status: Status::Success })
    };
    let branch = |name: &str, head: u64| [(StreamKey::Branch(BranchId::new(name)), head)];
    for process in 0..2 {
        let log = place.open();
        let append = async |expect: &[(StreamKey, u64)], event| {
            log.append(&RUN.into(), expect, Timestamp::now(), &[event]).await.map(|stored| stored[0].seq)
        };
        if process == 0 {
            assert_eq!(append(&branch("f-a", 0), passed("f-a")).await.unwrap(), 1);
            assert_eq!(append(&[(StreamKey::Run, 0)], note("a")).await.unwrap(), 2);
        }
        // Checked in the process that wrote the record and in the next one.
        let again = append(&branch("f-a", 0), passed("f-a")).await;
        assert!(matches!(again, Err(PortError::Conflict { head: 1, .. })), "{again:?}");
    }
    let log = place.open();
    for (name, head, seq) in [("f-b", 0, 3), ("f-a", 1, 4), ("f-a", 4, 5), ("f", 0, 6)] {
        let stored = log.append(&RUN.into(), &branch(name, head), Timestamp::now(), &[passed(name)]).await.unwrap();
        assert_eq!(stored[0].seq, seq);
    }
}
