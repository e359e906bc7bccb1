//! The SQLite journal from outside: exclusive appends, fencing, group commit, corruption, and a process killed in mid-append.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on says so")]

mod damage;
mod fencing;
mod kill;

use glovebox_engine::event::{BranchId, Event, Record, RunCanceled, StageReady, Subject, Task, Work};
use glovebox_engine::ports::{PortError, RunLog};
use glovebox_engine::sqlite::SqliteLog;
use jiff::Timestamp;
use std::path::PathBuf;

/// A journal in a folder of its own.
pub struct Place {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl Place {
    pub fn make() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal.sqlite");
        Self { _folder: folder, path }
    }

    pub fn open(&self) -> SqliteLog {
        SqliteLog::open(&self.path).unwrap()
    }
}

pub fn note(text: &str) -> Event {
    Event::RunCanceled(RunCanceled { by: text.to_owned() })
}

pub fn task(node: &str) -> Task {
    Task { generation: 0, branch: BranchId::main(), node: node.into(), visit: 1, work: Work::Handler }
}

pub fn ready(node: &str) -> Event {
    Event::StageReady(StageReady { task: task(node), ordinal: 1, due_at: None })
}

pub async fn append(log: &SqliteLog, head: u64, events: Vec<Event>) -> Result<Vec<Record>, PortError> {
    log.append(vec![(Subject::Run, head)], Timestamp::now(), events).await
}

#[tokio::test]
async fn what_is_appended_is_what_is_read() {
    let place = Place::make();
    let log = place.open();
    assert!(log.read(1, 10).unwrap().is_empty());
    let mut appended = append(&log, 0, vec![note("a"), ready("n"), note("ü \"quoted\"\n")]).await.unwrap();
    appended.extend(append(&log, 3, vec![note("b")]).await.unwrap());
    assert_eq!(appended.iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(log.read(1, 10).unwrap(), appended);
    assert_eq!(log.read(3, 1).unwrap(), appended[2..3]);
    assert_eq!(log.head(&Subject::Run).unwrap(), 4);
    assert_eq!(log.head(&Subject::Task(task("n"))).unwrap(), 2);
    assert_eq!(*log.follow().borrow(), 4);
    drop(log);
    assert_eq!(place.open().read(1, 10).unwrap(), appended);
}
