//! Small blobs as rows: stored in the transaction of the append that comes after them.
//!
//! New rows follow each other, and share pages. Their places by digest would not: each new one would change a page of its own, more of
//! them the longer the run is. So places are written many at once, and the few rows that have none yet are looked through.

use super::{Parcel, corrupt};
use crate::event::Digest;
use crate::ports::PortError;
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Added to the tables of a journal. `blob_placed` has one row, once there are places: the last blob that has one.
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
/// Rows that get their places at once. The more they are, the more of them share a page that changes.
const PLACED_AT_ONCE: usize = 2_048;
/// Most rows without a place. A journal never has so many: one group of appends adds far fewer.
const UNPLACED_MAX: usize = 64 * PLACED_AT_ONCE;

/// A connection for reading, until its journal is closed.
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

    /// The bytes under a digest, unverified; none when the database does not have them.
    pub(super) fn read(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, PortError> {
        let reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = reader.as_ref().ok_or_else(|| PortError::Unavailable("the journal is closed".into()))?;
        self.find(reader, digest).map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => corrupt(digest, &error.to_string()),
            _ => PortError::Unavailable(error.to_string()),
        })
    }

    fn find(&self, reader: &Connection, digest: &Digest) -> rusqlite::Result<Option<Arc<[u8]>>> {
        // Places and rows of one moment: a row may get its place in between.
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

/// The row of a blob, once it is written.
fn place(connection: &Connection, digest: &Digest) -> rusqlite::Result<Option<i64>> {
    let mut statement = connection.prepare_cached("SELECT id FROM blob_place WHERE digest = ?1")?;
    statement.query_row([digest.as_bytes()], |row| row.get(0)).optional()
}

/// The last row that has a place; 0 before there is one.
fn last_placed(connection: &Connection) -> rusqlite::Result<i64> {
    let mut statement = connection.prepare_cached("SELECT max(id) FROM blob_placed")?;
    Ok(statement.query_row([], |row| row.get::<_, Option<i64>>(0))?.unwrap_or_default())
}

/// The rows without a place.
#[derive(Default)]
struct Unplaced {
    ids: HashMap<Digest, i64>,
    /// The last row with a place, when it was asked last.
    placed: i64,
    /// The last row that was looked at.
    seen: i64,
}

impl Unplaced {
    /// Takes in what was stored since it was asked last, and lets go of what has a place now.
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
                return Err(damaged("it has too many blobs without a place"));
            }
            let digest = <[u8; 32]>::try_from(row.get::<_, Vec<u8>>(1)?);
            let digest = digest.map_err(|_| damaged("the digest of a blob is not 32 bytes long"))?;
            self.ids.insert(Digest::from(digest), id);
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
    /// Forgets what was stored in a transaction that may have failed.
    pub(crate) fn forget(&mut self) {
        self.unplaced = Unplaced::default();
    }

    /// Stores blobs in a transaction. One that is there already stays as it is.
    pub(crate) fn store(&mut self, connection: &Connection, parcel: &Parcel) -> rusqlite::Result<()> {
        let mut blobs = parcel.blobs().peekable();
        if blobs.peek().is_none() {
            return Ok(());
        }
        let unplaced = &mut self.unplaced;
        // The transaction has begun, so no other writer can add rows after this look.
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
        // In the order of the table, so that each of its pages is changed once.
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
