//! Small blobs as database rows, inserted in the transaction of the append that follows them.
//!
//! New rows of `blob` are adjacent and share pages. Entries of the index by digest (`blob_place`) are not adjacent:
//! each new one would change a separate page, and more pages as the run grows. So index entries are written in batches,
//! and the few rows without an index entry are searched by a scan.

use super::{PendingBlobs, corrupt};
use crate::event::Digest;
use crate::ports::PortError;
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Tables that are added to a journal's database. `blob_placed` has at most one row: the id of the last blob with an index entry.
pub(crate) const TABLES: &str = "
CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE TABLE blob_place (
    digest BLOB PRIMARY KEY,
    id INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE blob_placed (
    id INTEGER PRIMARY KEY
) STRICT;
";
/// Number of rows that are indexed in one batch. In a larger batch, more entries share a changed page.
const PLACED_AT_ONCE: usize = 2_048;
/// Maximum number of rows without an index entry. A valid journal never has so many, because one group of appends adds far fewer.
const UNPLACED_MAX: usize = 64 * PLACED_AT_ONCE;

/// A connection for reading; `None` once the journal is closed.
pub(crate) type SharedReader = Arc<Mutex<Option<Connection>>>;

/// The small blobs in a journal's database.
pub(crate) struct BlobRows {
    reader: SharedReader,
    unplaced: Mutex<Unplaced>,
}

impl BlobRows {
    pub(crate) fn new(reader: SharedReader) -> Self {
        Self { reader, unplaced: Mutex::default() }
    }

    /// Returns the unverified bytes of a blob, or `None` if the database does not contain it.
    pub(super) fn read(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, PortError> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = reader.as_ref().ok_or_else(|| PortError::Unavailable("the journal is closed".into()))?;
        self.find(reader, digest).map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => corrupt(digest, &error.to_string()),
            _ => PortError::Unavailable(error.to_string()),
        })
    }

    fn find(&self, reader: &Connection, digest: &Digest) -> rusqlite::Result<Option<Arc<[u8]>>> {
        // One snapshot for both tables: a row may get its index entry between the two reads.
        let snapshot = reader.unchecked_transaction()?;
        let id = match place(&snapshot, digest)? {
            Some(id) => Some(id),
            None => {
                let mut unplaced = self.unplaced.lock().unwrap_or_else(PoisonError::into_inner);
                unplaced.follow(&snapshot)?;
                unplaced.ids.get(digest).copied()
            }
        };
        let Some(id) = id else { return Ok(None) };
        let mut statement = snapshot.prepare_cached("SELECT bytes FROM blob WHERE id = ?1")?;
        let bytes: Option<Vec<u8>> = statement.query_row([id], |row| row.get(0)).optional()?;
        Ok(bytes.map(Into::into))
    }
}

/// Returns the row id of a blob, or `None` if it has no index entry.
fn place(connection: &Connection, digest: &Digest) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM blob_place WHERE digest = ?1")?;
    statement.query_row([digest.as_bytes()], |row| row.get(0)).optional()
}

/// Returns the id of the last row with an index entry, or 0 if there is none.
fn last_placed(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT max(id) FROM blob_placed")?;
    Ok(statement.query_row([], |row| row.get::<_, Option<i64>>(0))?.unwrap_or_default())
}

/// The rows without an index entry.
#[derive(Default)]
struct Unplaced {
    ids: HashMap<Digest, i64>,
    /// Id of the last row with an index entry, as of the last update.
    placed: i64,
    /// Id of the last row that was read.
    seen: i64,
}

impl Unplaced {
    /// Adds the rows that were stored since the last update, and removes those that have an index entry now.
    fn follow(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let placed = last_placed(connection)?;
        if placed != self.placed {
            self.ids.retain(|_, id| *id > placed);
            self.placed = placed;
        }
        self.seen = self.seen.max(placed);
        let mut statement = connection.prepare_cached("SELECT id, digest FROM blob WHERE id > ?1 ORDER BY id")?;
        let mut rows = statement.query([self.seen])?;
        while let Some(row) = rows.next()? {
            let id = row.get(0)?;
            if self.ids.len() == UNPLACED_MAX || id <= self.seen {
                return Err(damaged("too many of its blobs have no row in `blob_place`"));
            }
            let digest = <[u8; 32]>::try_from(row.get::<_, Vec<u8>>(1)?);
            let digest = digest.map_err(|_| damaged("the digest of a blob is not 32 bytes long"))?;
            self.ids.insert(Digest::from_bytes(digest), id);
            self.seen = id;
        }
        Ok(())
    }
}

fn damaged(what: &str) -> rusqlite::Error {
    let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
    rusqlite::Error::SqliteFailure(code, Some(what.to_owned()))
}

/// The blob index of a journal's writer.
#[derive(Default)]
pub(crate) struct StoredBlobs {
    unplaced: Unplaced,
}

impl StoredBlobs {
    /// Clears the index after a transaction that may have failed.
    pub(crate) fn forget(&mut self) {
        self.unplaced = Unplaced::default();
    }

    /// Stores blobs in a transaction. A blob that is already stored is skipped.
    pub(crate) fn store(&mut self, connection: &Connection, parcel: &PendingBlobs) -> rusqlite::Result<()> {
        let mut blobs = parcel.blobs().peekable();
        if blobs.peek().is_none() {
            return Ok(());
        }
        let unplaced = &mut self.unplaced;
        // The write transaction has begun, so no other writer can add rows after this read.
        unplaced.follow(connection)?;
        for (digest, bytes) in blobs {
            if unplaced.ids.contains_key(digest) || place(connection, digest)?.is_some() {
                continue;
            }
            let mut statement = connection.prepare_cached("INSERT INTO blob (digest, bytes) VALUES (?1, ?2)")?;
            let id = statement.insert((digest.as_bytes(), bytes))?;
            unplaced.ids.insert(*digest, id);
            unplaced.seen = id;
        }
        if unplaced.ids.len() >= PLACED_AT_ONCE { unplaced.write_places(connection) } else { Ok(()) }
    }
}

impl Unplaced {
    fn write_places(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        // Sorted in the order of the table, so that each of its pages is changed only once.
        let mut places: Vec<(Digest, i64)> = self.ids.drain().collect();
        places.sort_unstable();
        let mut statement =
            connection.prepare_cached("INSERT OR IGNORE INTO blob_place (digest, id) VALUES (?1, ?2)")?;
        for (digest, id) in places {
            statement.execute((digest.as_bytes(), id))?;
        }
        self.placed = self.seen;
        connection.prepare_cached("DELETE FROM blob_placed")?.execute([])?;
        connection.prepare_cached("INSERT INTO blob_placed (id) VALUES (?1)")?.execute([self.placed])?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobs::Outbox;

    fn database() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute_batch(TABLES).unwrap();
        connection
    }

    fn parcel(blobs: impl IntoIterator<Item = u32>) -> PendingBlobs {
        let outbox = Outbox::default();
        for blob in blobs {
            let bytes = blob.to_le_bytes();
            outbox.offer(&digest(blob), &bytes).unwrap();
        }
        outbox.parcel().unwrap()
    }

    fn digest(blob: u32) -> Digest {
        Digest::hash(&blob.to_le_bytes())
    }

    fn count(connection: &Connection, table: &str) -> usize {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get::<_, u32>(0)).unwrap() as usize
    }

    #[test]
    fn a_blob_is_stored_once_with_and_without_a_place() {
        let connection = database();
        let mut writer = StoredBlobs::default();
        for _ in 0..2 {
            writer.store(&connection, &parcel(0..3)).unwrap();
            assert_eq!(count(&connection, "blob"), 3);
        }
        writer.unplaced.write_places(&connection).unwrap();
        for mut writer in [writer, StoredBlobs::default()] {
            writer.store(&connection, &parcel(1..5)).unwrap();
            assert_eq!(count(&connection, "blob"), 5);
        }
    }

    #[test]
    fn places_are_written_for_a_batch_of_rows() {
        let connection = database();
        let mut writer = StoredBlobs::default();
        let batch = u32::try_from(PLACED_AT_ONCE).unwrap();
        writer.store(&connection, &parcel(1..batch)).unwrap();
        assert_eq!(count(&connection, "blob_place"), 0);
        writer.store(&connection, &parcel([0])).unwrap();
        assert_eq!((count(&connection, "blob_place"), count(&connection, "blob_placed")), (PLACED_AT_ONCE, 1));
        writer.store(&connection, &parcel([batch])).unwrap();
        writer.unplaced.write_places(&connection).unwrap();
        assert_eq!((count(&connection, "blob_place"), count(&connection, "blob_placed")), (PLACED_AT_ONCE + 1, 1));
    }

    #[test]
    fn a_follower_keeps_only_the_rows_without_a_place() {
        let connection = database();
        let (mut writer, mut follower) = (StoredBlobs::default(), Unplaced::default());
        writer.store(&connection, &parcel(0..3)).unwrap();
        follower.follow(&connection).unwrap();
        assert_eq!(follower.ids.len(), 3);
        writer.unplaced.write_places(&connection).unwrap();
        writer.store(&connection, &parcel([3])).unwrap();
        for _ in 0..2 {
            follower.follow(&connection).unwrap();
            assert_eq!(follower.ids, HashMap::from([(digest(3), 4)]));
        }
    }

    #[test]
    fn after_a_rollback_the_rows_are_stored_again() {
        let connection = database();
        let mut writer = StoredBlobs::default();
        let transaction = connection.unchecked_transaction().unwrap();
        writer.store(&transaction, &parcel(0..3)).unwrap();
        transaction.rollback().unwrap();
        writer.forget();
        writer.store(&connection, &parcel(0..3)).unwrap();
        assert_eq!(count(&connection, "blob"), 3);
    }

    #[test]
    fn damaged_rows_are_corrupt_and_a_closed_journal_is_unavailable() {
        let connection = database();
        StoredBlobs::default().store(&connection, &parcel(0..3)).unwrap();
        connection.execute("UPDATE blob SET digest = x'00' WHERE id = 2", []).unwrap();
        let rows = BlobRows::new(Arc::new(Mutex::new(Some(connection))));
        let error = rows.read(&digest(2)).unwrap_err();
        assert!(matches!(error, PortError::Corrupt { .. }), "{error}");
        rows.reader.lock().unwrap().as_ref().unwrap().execute_batch("DROP TABLE blob").unwrap();
        assert!(matches!(rows.read(&digest(2)), Err(PortError::Unavailable(_))));
        *rows.reader.lock().unwrap() = None;
        assert!(matches!(rows.read(&digest(2)), Err(PortError::Unavailable(_))));
    }

    #[test]
    fn too_many_rows_without_a_place_are_damage() {
        let connection = database();
        let insert = format!(
            "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < {UNPLACED_MAX})
             INSERT INTO blob (digest, bytes) SELECT CAST(printf('%032d', n) AS BLOB), x'' FROM number"
        );
        connection.execute(&insert, []).unwrap();
        let mut follower = Unplaced::default();
        follower.follow(&connection).unwrap();
        assert_eq!(follower.ids.len(), UNPLACED_MAX);
        connection.execute("INSERT INTO blob (digest, bytes) VALUES (zeroblob(32), x'')", []).unwrap();
        assert!(follower.follow(&connection).is_err());
    }
}
