//! Blobs in a journal's database: damaged blobs are refused, and a run whose journal has no blob rows can be read and continued.

use super::{Place, RUN, append, note, ready, records, task};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_journal::blobs::{DirBlobs, SMALL_BYTES_MAX};
use glovebox_journal::event::Digest;
use glovebox_journal::ports::{BlobStore, ClaimQueue, Next, PortError};
use glovebox_journal::sqlite::{SqliteLog, SqliteReader};
use jiff::Timestamp;
use rusqlite::Connection;
use std::io::{ErrorKind, Read};

fn folder(place: &Place) -> Dir {
    Dir::open_ambient_dir(place.path.parent().unwrap(), ambient_authority()).unwrap()
}

fn reading(place: &Place) -> DirBlobs {
    SqliteReader::open(&place.path).unwrap().into_blobs(&folder(place)).unwrap()
}

#[tokio::test]
async fn a_row_that_rotted_is_refused() {
    let place = Place::make();
    let log = place.open();
    let digest = log.blobs(&folder(&place)).unwrap().put_bytes(b"hello").unwrap();
    append(&log, 0, vec![note("a")]).await.unwrap();
    drop(log);
    assert_eq!(reading(&place).read_all(&digest, 5).unwrap(), b"hello");
    let changed = Connection::open(&place.path).unwrap().execute("UPDATE blob SET bytes = CAST('hallo' AS BLOB)", []);
    assert_eq!(changed.unwrap(), 1);
    assert!(matches!(reading(&place).open(&digest), Err(PortError::Corrupt { .. })));
    let log = place.open();
    assert!(matches!(log.blobs(&folder(&place)).unwrap().open(&digest), Err(PortError::Corrupt { .. })));
}

#[tokio::test]
async fn what_no_append_followed_is_not_there_and_what_is_only_read_takes_nothing() {
    let place = Place::make();
    let log = place.open();
    append(&log, 0, vec![note("a")]).await.unwrap();
    let blobs = log.blobs(&folder(&place)).unwrap();
    let digest = blobs.put_bytes(b"hello").unwrap();
    assert!(matches!(reading(&place).open(&digest), Err(PortError::Corrupt { .. })), "nothing says that it is durable");
    assert!(reading(&place).put_bytes(b"other").is_err(), "nothing would make it durable");
    drop(log);
    assert!(blobs.put_bytes(b"other").is_err(), "its journal is closed");
}

#[tokio::test]
async fn a_journal_that_is_closed_is_one_file() {
    let place = Place::make();
    let log = place.open();
    log.lengthen(&folder(&place)).unwrap();
    let digest = log.blobs(&folder(&place)).unwrap().put_bytes(b"hello").unwrap();
    append(&log, 0, vec![note("a"), note("b")]).await.unwrap();
    drop(log);
    let names = ["journal.sqlite-wal", "journal.sqlite-shm"].map(|name| place.path.with_file_name(name));
    assert!(names.iter().all(|name| !name.exists()), "nothing is left beside it");
    let copy = Place::make();
    std::fs::copy(&place.path, &copy.path).unwrap();
    let log = SqliteLog::open(&copy.path, RUN.into()).unwrap();
    assert_eq!(records(&log).await.len(), 2);
    assert_eq!(log.blobs(&folder(&copy)).unwrap().read_all(&digest, 5).unwrap(), b"hello");
}

/// The lengthened log only saves time: if it cannot be lengthened, records are stored nevertheless.
#[tokio::test]
async fn a_log_that_cannot_be_lengthened_refuses_no_record() {
    let place = Place::make();
    let log = place.open();
    log.lengthen(&folder(&place)).unwrap();
    let file = place.path.with_file_name("journal.sqlite-wal");
    let (away, first) = (place.path.with_file_name("away"), std::fs::metadata(&file).unwrap().len());
    // The database has the file open, but no other code finds it under its name.
    std::fs::rename(&file, &away).unwrap();
    for head in 0..9 {
        append(&log, head, vec![note("a")]).await.unwrap();
    }
    std::fs::rename(&away, &file).unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), first, "it was not lengthened");
    drop(log);
    assert_eq!(records(&place.open()).await.len(), 9);
}

#[tokio::test]
async fn a_log_that_was_lengthened_is_written_in_place() {
    let place = Place::make();
    let log = place.open();
    log.lengthen(&folder(&place)).unwrap();
    let file = place.path.with_file_name("journal.sqlite-wal");
    let length = || std::fs::metadata(&file).unwrap().len();
    let mut lengths = vec![length()];
    let text = "x".repeat(4000);
    for head in 0..400 {
        append(&log, head, vec![note(&text)]).await.unwrap();
        lengths.push(length());
    }
    let first = lengths[0];
    assert!((1 << 16..1 << 19).contains(&first), "a short run makes a short log");
    let whole = lengths[lengths.iter().position(|length| *length != first).unwrap()];
    assert!(whole > 1 << 20);
    assert!(lengths.iter().all(|length| [first, whole].contains(length)) && lengths.is_sorted(), "{lengths:?}");
    assert_eq!(SqliteReader::open(&place.path).unwrap().read_verified(None).unwrap().records.len(), 400);
}

/// Returns the names of the blob files. The name of a temporary file is reduced to its first character.
fn files(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path.with_file_name("blobs")).unwrap().map(|entry| entry.unwrap());
    let mut names = Vec::new();
    for entry in entries {
        match entry.file_type().unwrap().is_dir() {
            true => names.extend(std::fs::read_dir(entry.path()).unwrap().map(|entry| entry.unwrap().file_name())),
            false => names.push(".".into()),
        }
    }
    names.into_iter().map(|name| name.into_string().unwrap()).collect()
}

#[tokio::test]
async fn a_small_blob_is_a_row_and_a_large_one_is_a_file_that_the_append_makes_durable() {
    let place = Place::make();
    let log = place.open();
    let blobs = log.blobs(&folder(&place)).unwrap();
    let bytes = |length| vec![7; length];
    let [small, large] = [SMALL_BYTES_MAX, SMALL_BYTES_MAX + 1].map(bytes);
    let [row, file] = [&small, &large].map(|bytes| blobs.put(&mut &bytes[..]).unwrap());
    assert_eq!(files(&place), ["."], "the small one waits in memory, and the large one as a temporary file");
    append(&log, 0, vec![note("a")]).await.unwrap();
    assert_eq!(files(&place), [file.hex()]);
    for blobs in [blobs, reading(&place)] {
        for (digest, bytes) in [(&row, &small), (&file, &large)] {
            let mut found = Vec::new();
            blobs.open_unverified(digest).unwrap().read_to_end(&mut found).unwrap();
            assert!(found == *bytes);
            blobs.verify(digest, bytes.len() as u64).unwrap();
        }
        assert_eq!(blobs.open_unverified(&Digest::hash(b"")).err().unwrap().kind(), ErrorKind::NotFound);
    }
}

/// While another connection is open, SQLite does not empty the log itself.
#[tokio::test]
async fn a_journal_that_is_closed_while_it_is_read_is_one_file() {
    let place = Place::make();
    let log = place.open();
    append(&log, 0, vec![note("a"), note("b")]).await.unwrap();
    let reader = SqliteReader::open(&place.path).unwrap();
    drop(log);
    let copy = Place::make();
    std::fs::copy(&place.path, &copy.path).unwrap();
    assert_eq!(records(&copy.open()).await.len(), 2);
    assert_eq!(reader.read_verified(None).unwrap().records.len(), 2);
}

#[tokio::test]
async fn after_an_append_that_failed_halfway_the_next_one_stores_its_blobs_too() {
    for table in ["record", "blob"] {
        let place = Place::make();
        let log = place.open();
        append(&log, 0, vec![note("a"), ready("n")]).await.unwrap();
        let outside = Connection::open(&place.path).unwrap();
        let trigger =
            format!("CREATE TRIGGER refuse BEFORE INSERT ON {table} BEGIN SELECT RAISE(ABORT, 'refused'); END");
        outside.execute_batch(&trigger).unwrap();
        let digest = log.blobs(&folder(&place)).unwrap().put_bytes(b"hello").unwrap();
        let refused = append(&log, 1, vec![note("b")]).await;
        assert!(matches!(refused, Err(PortError::Ambiguous(_))), "{table}: {refused:?}");
        assert_eq!(records(&log).await.len(), 2);
        outside.execute_batch("DROP TRIGGER refuse").unwrap();
        let next = log.next(&RUN.into(), Timestamp::now(), 1).await.unwrap();
        assert!(matches!(&next, Next::Due(delivery) if delivery.task == task("n")), "{next:?}");
        let stored = append(&log, 1, vec![note("b")]).await.unwrap();
        assert_eq!((stored[0].seq, records(&log).await.len()), (3, 3));
        drop(log);
        assert_eq!(reading(&place).read_all(&digest, 5).unwrap(), b"hello");
    }
}
