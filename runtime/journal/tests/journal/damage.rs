//! Every change that was made to a journal outside of the program is found when the journal is opened, and reported
//! with its sequence number.

use super::{Place, RUN, append, note};
use glovebox_journal::event::{Digest, canonical, chain};
use glovebox_journal::ports::PortError;
use glovebox_journal::sqlite::{SqliteLog, SqliteReader, VerifiedJournal};
use jiff::Timestamp;
use std::path::Path;

async fn journal(records: usize) -> Place {
    let place = Place::make();
    let log = place.open();
    append(&log, 0, (0..records).map(|index| note(&format!("event {index}"))).collect()).await.unwrap();
    place
}

fn read(path: &Path) -> Result<VerifiedJournal, PortError> {
    SqliteReader::open(path)?.read_verified(None)
}

#[track_caller]
fn check(place: &Place, damage: &str, expected: &str) {
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    assert!(connection.execute(damage, []).unwrap() > 0, "`{damage}` changes something");
    drop(connection);
    for error in [SqliteLog::open(&place.path, RUN.into()).err(), read(&place.path).err()] {
        let Some(PortError::Corrupt { what, .. }) = error else { panic!("`{damage}` went unseen") };
        assert_eq!(what, expected);
    }
}

#[tokio::test]
async fn a_flipped_byte_is_found_wherever_it_is() {
    for (damage, expected) in [
        ("UPDATE record SET event = replace(event, 'event 4', 'event 5') WHERE seq = 5", "journal record 5"),
        ("UPDATE record SET at = at + 1 WHERE seq = 3", "journal record 3"),
        ("UPDATE record SET at = 9223372036854775807 WHERE seq = 3", "journal record 3"),
        ("UPDATE record SET prev = zeroblob(32) WHERE seq = 4", "journal record 4"),
        ("UPDATE record SET hash = zeroblob(32) WHERE seq = 9", "journal record 9"),
        ("UPDATE record SET hash = zeroblob(31) WHERE seq = 2", "journal record 2"),
        ("DELETE FROM record WHERE seq = 6", "journal record 6"),
        ("DELETE FROM record WHERE seq = 1", "journal record 1"),
        ("UPDATE record SET seq = 100 WHERE seq = 9", "journal record 9"),
    ] {
        check(&journal(9).await, damage, expected);
    }
}

/// Each record is valid on its own. Only the link between the two records shows the damage.
#[tokio::test]
async fn a_record_with_a_hash_of_its_own_that_does_not_follow_the_one_before_is_found() {
    for previous in [Digest::ZERO, Digest::hash(b"a record of another run")] {
        let place = journal(4).await;
        let connection = rusqlite::Connection::open(&place.path).unwrap();
        let at: i64 = connection.query_row("SELECT at FROM record WHERE seq = 4", [], |row| row.get(0)).unwrap();
        let event = canonical(&note("another event")).unwrap();
        let hash = chain(&previous, 4, Timestamp::from_millisecond(at).unwrap(), &event);
        let changed = connection
            .execute(
                "UPDATE record SET prev = ?1, hash = ?2, event = ?3 WHERE seq = 4",
                rusqlite::params![previous.as_bytes(), hash.as_bytes(), event],
            )
            .unwrap();
        assert_eq!(changed, 1);
        for error in [SqliteLog::open(&place.path, RUN.into()).err(), read(&place.path).err()] {
            let Some(PortError::Corrupt { what, .. }) = error else { panic!("the record went unseen") };
            assert_eq!(what, "journal record 4");
        }
    }
}

#[tokio::test]
async fn every_bit_of_a_record_counts() {
    let place = journal(1).await;
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let text: String = connection.query_row("SELECT event FROM record", [], |row| row.get(0)).unwrap();
    for index in 0..text.len() {
        let mut damaged = text.clone().into_bytes();
        damaged[index] ^= 1;
        let Ok(damaged) = String::from_utf8(damaged) else { continue };
        connection.execute("UPDATE record SET event = ?1", [&damaged]).unwrap();
        assert!(matches!(read(&place.path), Err(PortError::Corrupt { .. })), "{damaged}");
    }
    connection.execute("UPDATE record SET event = ?1", [&text]).unwrap();
    assert_eq!(read(&place.path).unwrap().records.len(), 1);
}

#[tokio::test]
async fn a_record_filed_under_another_subject_is_found_when_it_is_read() {
    let place = journal(2).await;
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    connection.execute("UPDATE record SET stream = 'task.n#1' WHERE seq = 2", []).unwrap();
    assert!(matches!(read(&place.path), Err(PortError::Corrupt { what, .. }) if what == "journal record 2"));
}

#[test]
fn another_database_is_no_journal() {
    let place = Place::make();
    rusqlite::Connection::open(&place.path).unwrap().execute("CREATE TABLE t (a)", []).unwrap();
    assert!(matches!(SqliteLog::open(&place.path, RUN.into()), Err(PortError::Corrupt { .. })));
    std::fs::write(&place.path, "not a database, but long enough to be taken for one ".repeat(100)).unwrap();
    assert!(matches!(SqliteLog::open(&place.path, RUN.into()), Err(PortError::Corrupt { .. })));
}

#[tokio::test]
async fn a_journal_of_another_version_is_refused_with_both_versions() {
    let place = journal(1).await;
    rusqlite::Connection::open(&place.path).unwrap().pragma_update(None, "user_version", 0).unwrap();
    let expected =
        "the journal has version 0, expected 1; the version of glovebox that began the run can read it".to_owned();
    assert_eq!(SqliteLog::open(&place.path, RUN.into()).err().map(|error| error.to_string()), Some(expected.clone()));
    assert_eq!(SqliteReader::open(&place.path).err().map(|error| error.to_string()), Some(expected));
}

#[tokio::test]
async fn a_journal_of_a_later_version_is_refused_as_such_and_not_as_damage() {
    let place = journal(1).await;
    let later = "CREATE TABLE future (a); PRAGMA user_version = 9";
    rusqlite::Connection::open(&place.path).unwrap().execute_batch(later).unwrap();
    let refused = SqliteReader::open(&place.path).err();
    assert!(matches!(refused, Some(PortError::Version { found: 9, expected: 1 })), "{refused:?}");
    assert!(matches!(SqliteLog::open(&place.path, RUN.into()), Err(PortError::Version { .. })));
}

#[test]
fn looking_never_makes_a_journal() {
    let place = Place::make();
    assert!(matches!(SqliteReader::open(&place.path), Err(PortError::Unavailable(_))));
    assert!(!place.path.exists());
}

/// The author of a forged journal can hash any text. An event with line breaks must not add lines to `progress.ndjson`.
#[tokio::test]
async fn lines_within_an_event_are_not_taken_over() {
    let texts = |place: &Place| {
        let records = place.open();
        async move {
            super::records(&records).await.into_iter().map(|record| format!("{:?}", record.text)).collect::<Vec<_>>()
        }
    };
    let place = journal(1).await;
    assert_eq!(texts(&place).await, ["known"]);
    let connection = rusqlite::Connection::open(&place.path).unwrap();
    let row = |row: &rusqlite::Row<'_>| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
    let (at, text) = connection.query_row("SELECT at, event FROM record", [], row).unwrap();
    let at = Timestamp::from_millisecond(at).unwrap();
    let lines = text.replacen('{', "{\"x\":\n{\"seq\":1}\n,", 1);
    let hash = chain(&Digest::ZERO, 1, at, &lines);
    connection.execute("UPDATE record SET event = ?1, hash = ?2", (&lines, hash.as_bytes())).unwrap();
    drop(connection);
    assert_eq!(texts(&place).await, ["unknown"]);
}
