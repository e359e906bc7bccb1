//! The tables of a journal: signatures next to records, and blobs with and without an index entry.

use super::{Place, RUN, append, note};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use glovebox_journal::event::Digest;
use glovebox_journal::ports::{BlobStore, PortError};
use glovebox_journal::sqlite::{Provenance, SqliteLog, SqliteReader};
use glovebox_workspace::user_key::UserKey;
use rusqlite::Connection;

fn key() -> UserKey {
    UserKey::from_bytes([7; 32])
}

fn folder(place: &Place) -> Dir {
    Dir::open_ambient_dir(place.path.parent().unwrap(), ambient_authority()).unwrap()
}

fn signed(place: &Place) -> SqliteLog {
    SqliteLog::open_signed(&place.path, RUN.into(), Some(key())).unwrap()
}

/// Reads a blob as another process would.
fn read(place: &Place, digest: &Digest, bytes: u64) -> Result<Vec<u8>, PortError> {
    SqliteReader::open(&place.path)?.into_blobs(&folder(place))?.read_all(digest, bytes)
}

fn count(place: &Place, what: &str) -> i64 {
    let connection = Connection::open(&place.path).unwrap();
    connection.query_row(&format!("SELECT count(*) FROM {what}"), [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn signatures_say_whose_a_journal_is() {
    let place = Place::make();
    let log = signed(&place);
    append(&log, 0, vec![note("a"), note("b"), note("c")]).await.unwrap();
    drop(log);
    let says = |key: Option<&UserKey>| SqliteReader::open(&place.path).unwrap().provenance(key).unwrap();
    let change = |sql: &str| assert!(Connection::open(&place.path).unwrap().execute(sql, []).unwrap() > 0);
    assert_eq!((says(Some(&key())), says(None)), (Provenance::Own, Provenance::Foreign { seq: 1 }));
    assert_eq!(says(Some(&UserKey::from_bytes([8; 32]))), Provenance::Foreign { seq: 1 });
    change("UPDATE record SET mac = NULL WHERE seq = 1");
    assert_eq!(says(Some(&key())), Provenance::Foreign { seq: 1 }, "others are signed");
    change("UPDATE record SET mac = NULL");
    assert_eq!((says(Some(&key())), says(None)), (Provenance::Unsigned, Provenance::Unsigned));
}

#[tokio::test]
async fn blobs_with_a_place_and_without_one_are_found_and_stored_once() {
    let place = Place::make();
    let mut log = place.open();
    let text = |number: usize| format!("blob {number}").into_bytes();
    let mut digests = Vec::new();
    // A reader that was opened early sees that rows get their index entries.
    append(&log, 0, vec![note("begin")]).await.unwrap();
    let early = SqliteReader::open(&place.path).unwrap().into_blobs(&folder(&place)).unwrap();
    for round in 0..5 {
        if round == 3 {
            drop(log);
            log = place.open();
        }
        let blobs = log.blobs(&folder(&place)).unwrap();
        for number in round * 900..(round + 1) * 900 {
            digests.push(blobs.put_bytes(&text(number)).unwrap());
        }
        // Blobs of the previous round, some of which have an index entry by now.
        for (number, digest) in digests.iter().enumerate().take(round * 900).skip((round.max(1) - 1) * 900) {
            assert_eq!(blobs.put_bytes(&text(number)).unwrap(), *digest);
        }
        append(&log, round as u64 + 1, vec![note("round")]).await.unwrap();
        for number in [0, round * 900, round * 900 + 899] {
            assert_eq!(early.read_all(&digests[number], 99).unwrap(), text(number), "round {round}");
        }
    }
    drop(log);
    assert_eq!((count(&place, "blob"), count(&place, "blob_placed")), (4_500, 1));
    let placed = count(&place, "blob_place");
    assert!(placed > 2_048 && placed < 4_500, "{placed}");
    for (number, digest) in digests.iter().enumerate().step_by(100) {
        assert_eq!(read(&place, digest, 99).unwrap(), text(number));
    }
    assert!(matches!(read(&place, &Digest::hash(b"nowhere"), 1), Err(PortError::Corrupt { .. })));
    let change = |sql: &str| assert!(Connection::open(&place.path).unwrap().execute(sql, []).unwrap() > 0);
    // Index entries are outside of every hash. A wrong one leads to other bytes, which are refused.
    change("UPDATE blob_place SET id = id % 7 + 1");
    assert!(digests.iter().step_by(100).all(|digest| match read(&place, digest, 99) {
        Ok(bytes) => Digest::hash(&bytes) == *digest,
        Err(error) => matches!(error, PortError::Corrupt { .. }),
    }));
    change("DELETE FROM blob_place");
    assert!(matches!(read(&place, &digests[0], 99), Err(PortError::Corrupt { .. })));
}
