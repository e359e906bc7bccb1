//! Journals that came with a project, that another user signed, or that grew since they were verified.

use super::{Place, RUN, append, note, ready, records};
use glovebox_journal::event::{Attempt, Digest, Event, Record, RunStarted, StageFinished, StageModel};
use glovebox_journal::ports::{PortError, RunLog};
use glovebox_journal::reading::{self, ReadRecords};
use glovebox_journal::sqlite::{OpenJournal, Owner, SqliteLog, SqliteReader};
use glovebox_record::spend::{Money, SpendTotals};
use glovebox_record::{Outcome, Status, Tokens};
use glovebox_workspace::user_key::UserKey;
use jiff::Timestamp;
use std::path::Path;

fn key(byte: u8) -> UserKey {
    UserKey::from_bytes([byte; 32])
}

fn open(place: &Place, key: Option<UserKey>) -> Result<SqliteLog, PortError> {
    SqliteLog::open_signed(&place.path, RUN.into(), key)
}

#[tokio::test]
async fn nothing_is_appended_to_a_journal_that_the_key_does_not_vouch_for() {
    for (written_with, opened_with, refused) in [
        (Some(7), Some(7), None),
        (None, None, None),
        (Some(7), Some(8), Some(1)),
        (Some(7), None, Some(1)),
        (None, Some(7), Some(1)),
    ] {
        let place = Place::make();
        append(&open(&place, written_with.map(key)).unwrap(), 0, vec![note("a"), note("b")]).await.unwrap();
        let found = match open(&place, opened_with.map(key)).err() {
            None => None,
            Some(PortError::Foreign { seq }) => Some(seq),
            Some(other) => panic!("{other}"),
        };
        assert_eq!(found, refused, "{written_with:?} {opened_with:?}");
    }
    assert!(open(&Place::make(), Some(key(7))).is_ok(), "a new journal is nobody else's");
}

fn begun() -> Event {
    let first = include_str!("../golden/journal.jsonl").lines().next().unwrap();
    let first: Record = serde_json::from_str(first).unwrap();
    let started = first.event.run_started().unwrap().clone();
    Event::RunStarted(Box::new(RunStarted { run_id: RUN.into(), ..started }))
}

#[tokio::test]
async fn a_journal_that_grew_since_it_was_verified_is_taken_up_with_all_of_its_signatures() {
    let place = Place::make();
    append(&open(&place, Some(key(7))).unwrap(), 0, vec![begun(), note("a")]).await.unwrap();
    let verified = SqliteReader::open(&place.path).unwrap().read_start_and_resumes(Some(&key(7))).unwrap();
    let reopen = || SqliteLog::reopen(&place.path, Some(key(7)), &verified);
    let (log, has_grown) = reopen().unwrap();
    assert!(!has_grown);
    append(&log, 2, vec![note("b")]).await.unwrap();
    drop(log);
    let (log, has_grown) = reopen().unwrap();
    assert!(has_grown);
    assert_eq!(records(&log).await.len(), 3);
    assert_eq!(log.tip().unwrap(), records(&log).await[2].hash);
    drop(log);
    let change = |sql: &str| {
        assert!(rusqlite::Connection::open(&place.path).unwrap().execute(sql, []).unwrap() > 0);
    };
    change("UPDATE record SET mac = NULL WHERE seq = 3");
    assert!(matches!(reopen().err(), Some(PortError::Foreign { seq: 3 })));
    change("UPDATE record SET hash = zeroblob(32) WHERE seq = 2");
    assert!(matches!(reopen().err(), Some(PortError::Corrupt { what, .. }) if what == "journal record 2"));
}

#[tokio::test]
async fn the_next_process_knows_the_last_record_of_the_run() {
    let place = Place::make();
    append(&place.open(), 0, vec![note("a")]).await.unwrap();
    let refused = append(&place.open(), 0, vec![note("b")]).await;
    assert!(matches!(refused, Err(PortError::Conflict { head: 1, .. })), "{refused:?}");
}

#[tokio::test]
async fn a_look_at_a_journal_reads_its_ends_its_tip_and_what_was_spent() {
    let place = Place::make();
    let log = place.open();
    let stage = |ordinal: u32, input: u64, is_estimated: bool| {
        let attempt = Attempt { task: super::task("n"), ordinal, id: "x".into() };
        let tokens = Tokens { input, output: 1 };
        let model = StageModel { tokens, is_estimated, cost: Money(3), ..StageModel::default() };
        let ended = StageFinished::new(attempt, Outcome::new(Status::Success));
        Event::StageFinished(Box::new(StageFinished { model, ..ended }))
    };
    let now = Timestamp::now();
    let append = async |events: &[Event]| log.append(&RUN.into(), &[], now, events).await.unwrap();
    append(&[note("a"), ready("n"), stage(1, 7, false)]).await;
    let reader = SqliteReader::open(&place.path).unwrap();
    assert!(!reader.spent().unwrap().is_estimated);
    append(&[stage(2, 5, true)]).await;
    assert_eq!(reader.ends().unwrap().iter().map(|record| record.seq).collect::<Vec<_>>(), [1, 4]);
    assert_eq!(reader.tip().unwrap(), (4, records(&log).await[3].hash));
    let spent = SpendTotals { tokens: Tokens { input: 12, output: 2 }, cost: Money(6), is_estimated: true };
    assert_eq!(reader.spent().unwrap(), spent);
    drop(log);
    let empty = Place::make();
    drop(empty.open());
    let reader = SqliteReader::open(&empty.path).unwrap();
    assert_eq!((reader.ends().unwrap().len(), reader.tip().unwrap()), (0, (0, Digest::ZERO)));
    assert_eq!(reader.spent().unwrap(), SpendTotals::default());
}

fn refusal(path: &Path) -> String {
    let error = SqliteReader::open(path).err().expect("it is refused");
    assert!(matches!(error, PortError::Corrupt { .. }), "{error:?}");
    error.to_string()
}

#[tokio::test]
async fn a_database_has_the_tables_of_a_journal_and_nothing_else() {
    let place = Place::make();
    append(&place.open(), 0, vec![note("a")]).await.unwrap();
    let run = |sql: &str| rusqlite::Connection::open(&place.path).unwrap().execute_batch(sql).unwrap();
    run("CREATE VIEW more AS SELECT\n 1");
    let said = refusal(&place.path);
    assert!(said.contains("an entry that no journal has: `CREATE VIEW more AS SELECT 1`"), "{said}");
    run("DROP VIEW more; CREATE TRIGGER t AFTER INSERT ON record BEGIN SELECT 1; END");
    assert!(refusal(&place.path).contains("CREATE TRIGGER t AFTER INSERT"));
    run("DROP TRIGGER t");
    assert!(SqliteReader::open(&place.path).is_ok());
    // One statement creates all views, because a database of this size is slow to create otherwise.
    let views = |from: u32, to: u32| {
        run(&format!(
            "PRAGMA writable_schema = ON; WITH RECURSIVE n(i) AS (SELECT {from} UNION ALL SELECT i + 1 FROM n WHERE i < {to})
             INSERT INTO sqlite_schema SELECT 'view', 'v' || i, 'v' || i, 0, 'CREATE VIEW v' || i || ' AS SELECT 1' FROM n"
        ));
    };
    views(0, 500);
    assert!(refusal(&place.path).contains("an entry that no journal has"), "so many are read");
    views(501, 40_000);
    assert!(refusal(&place.path).contains("far larger than that of a journal"));
}

#[tokio::test]
async fn a_database_that_is_no_plain_file_is_refused_before_it_is_opened() {
    let place = Place::make();
    append(&place.open(), 0, vec![note("a")]).await.unwrap();
    let link = place.path.with_file_name("link.sqlite");
    std::os::unix::fs::symlink(&place.path, &link).unwrap();
    refusal(&link);
    let refused = SqliteLog::open(&link, RUN.into()).err();
    assert!(matches!(refused, Some(PortError::Corrupt { .. })), "{refused:?}");
}

#[test]
fn a_run_is_driven_as_long_as_its_owner_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("owner.sqlite");
    assert!(!Owner::is_held(&path), "there is none yet");
    let owner = Owner::acquire(&path).unwrap();
    assert!(Owner::is_held(&path));
    drop(owner);
    assert!(!Owner::is_held(&path));
}

/// The sequence numbers of the records that a fold got, and the number of rewinds.
#[derive(Default)]
struct Seen(Vec<u64>, usize);

impl glovebox_journal::rewind::Fold for Seen {
    type Past = Self;

    fn apply(&mut self, record: &Record) {
        self.0.push(record.seq);
    }

    fn go_back(&mut self, _: Self) {
        self.1 += 1;
    }
}

#[tokio::test]
async fn the_first_record_of_a_journal_goes_back_to_nothing() {
    let place = Place::make();
    let back = glovebox_journal::event::WentBack { visit: 1, generation: 0, seq: 1 };
    let resumed = glovebox_journal::event::RunResumed { back: Some(back), ..Default::default() };
    append(&place.open(), 0, vec![Event::RunResumed(Box::new(resumed)), note("a")]).await.unwrap();
    let reader = SqliteReader::open(&place.path).unwrap();
    let journal = OpenJournal { verified: reader.read_start_and_resumes(None).unwrap(), reader };
    let mut seen = Seen::default();
    reading::fold(&journal, &mut seen).unwrap();
    assert_eq!((seen.0, seen.1), (vec![1, 2], 0));
    assert_eq!(journal.last_seq(), 2);
}
