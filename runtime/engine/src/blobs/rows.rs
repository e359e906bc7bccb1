//! Small blobs as rows: stored in the transaction of the append that comes after them.
//!
//! Journals of before there were such rows have no table of them; all their blobs are files.

use super::{Parcel, corrupt};
use crate::event::Digest;
use crate::ports::PortError;
use rusqlite::{Connection, ErrorCode, OptionalExtension};
use std::sync::{Arc, Mutex, PoisonError};

/// Added to the tables of a journal. In the order of their arrival, new blobs share pages; in the order of their digests each would be
/// a page of its own, more of them the longer the run is.
pub(crate) const TABLE: &str = "
CREATE TABLE blob (
    id INTEGER PRIMARY KEY,
    digest BLOB NOT NULL,
    bytes BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX blob_digest ON blob (digest);
";
/// What journals of before have instead. The same statements read and write it.
pub(crate) const OLD_TABLE: &str =
    "CREATE TABLE blob ( digest BLOB PRIMARY KEY, bytes BLOB NOT NULL ) STRICT, WITHOUT ROWID";

/// A connection for reading, until its journal is closed.
pub(crate) type SharedReader = Arc<Mutex<Option<Connection>>>;

/// The small blobs in a journal's database.
pub(crate) struct BlobRows(pub(crate) SharedReader);

impl BlobRows {
    /// The bytes under a digest, unverified; none when the database does not have them.
    pub(super) fn read(&self, digest: &Digest) -> Result<Option<Arc<[u8]>>, PortError> {
        let reader = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let reader = reader.as_ref().ok_or_else(|| PortError::Unavailable("the journal is closed".into()))?;
        let read = || -> rusqlite::Result<Option<Arc<[u8]>>> {
            let sql = "SELECT bytes FROM blob WHERE digest = ?1";
            let mut statement = match reader.prepare_cached(sql) {
                Err(_) if !has_table(reader)? => return Ok(None),
                prepared => prepared?,
            };
            let bytes: Option<Vec<u8>> = statement.query_row([digest.as_bytes()], |row| row.get(0)).optional()?;
            Ok(bytes.map(Into::into))
        };
        read().map_err(|error| match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt) => corrupt(digest, &error.to_string()),
            _ => PortError::Unavailable(error.to_string()),
        })
    }
}

/// Stores blobs. One that is there already stays as it is.
pub(crate) fn store(connection: &Connection, parcel: &Parcel) -> rusqlite::Result<()> {
    for (digest, bytes) in parcel.blobs() {
        let mut statement = connection.prepare_cached("INSERT OR IGNORE INTO blob (digest, bytes) VALUES (?1, ?2)")?;
        statement.execute((digest.as_bytes(), bytes))?;
    }
    Ok(())
}

fn has_table(connection: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'blob'";
    connection.query_row(sql, [], |row| Ok(row.get::<_, i64>(0)? > 0))
}
