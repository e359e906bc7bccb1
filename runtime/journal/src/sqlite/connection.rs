//! Connections to a journal's database, configured so that an acknowledged record survives a power failure.
//!
//! The journal mode is WAL with `synchronous=FULL`. SQLite's defaults would lose the last commits (measured: 12 of
//! 54,177). This module knows tables and pragmas, but no events.

use super::{guard, port_error};
use crate::blobs::rows;
use crate::ports::PortError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// The `application_id` of a journal's database ("GBXJ"). No other database is mistaken for a journal.
const APPLICATION_ID: i32 = 0x4742_584A;
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Version of the tables; the `user_version` of the database.
const VERSION: i32 = 1;
/// Number of pages in the write-ahead log that triggers a checkpoint. After it, the log is overwritten from its beginning.
pub(super) const LOG_PAGES: u32 = 512;
/// Capacity of the statement cache. It is larger than the number of different statements.
const STATEMENTS_MAX: usize = 32;

pub(super) const TABLES: &str = "
CREATE TABLE record (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    stream TEXT NOT NULL,
    prev BLOB NOT NULL,
    hash BLOB NOT NULL,
    mac BLOB,
    event TEXT NOT NULL
) STRICT;
";
/// Opens the database for the only writer, and creates it if it does not exist.
pub(super) fn writable(path: &Path) -> Result<Connection, PortError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    guard::check_files(path)?;
    let mut connection = Connection::open_with_flags(path, flags).map_err(port_error)?;
    connection.busy_timeout(BUSY_WAIT).map_err(port_error)?;
    guard::check_content(&mut connection)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(port_error)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(port_error)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES).map_err(port_error)?;
    // Otherwise SQLite may prepare a statement again when its parameters change.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(port_error)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    create_tables(&mut connection).map_err(port_error)?;
    check_marks(&connection)?;
    Ok(connection)
}

/// Opens the database for reading only.
pub(super) fn read_only(path: &Path) -> Result<Connection, PortError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    guard::check_files(path)?;
    let mut connection = Connection::open_with_flags(path, flags).map_err(port_error)?;
    connection.busy_timeout(BUSY_WAIT).map_err(port_error)?;
    // A process may be killed after it created the file and before it created the tables. The file is then not damaged;
    // the journal never existed.
    if guard::check_content(&mut connection)? == 0 {
        return Err(PortError::Unavailable(format!("nothing was ever written to `{}`", path.display())));
    }
    check_marks(&connection)?;
    Ok(connection)
}

/// Creates the tables, the application id and the version in one transaction, so that a kill cannot leave a database
/// with only some of them.
fn create_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let tables: i64 = transaction.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables == 0 {
        transaction.execute_batch(TABLES)?;
        transaction.execute_batch(rows::TABLES)?;
        transaction.pragma_update(None, "application_id", APPLICATION_ID)?;
        transaction.pragma_update(None, "user_version", VERSION)?;
    }
    transaction.commit()
}

/// Refuses a journal that a later version of this program wrote. Such a journal is not damaged, but its tables are unknown.
pub(super) fn check_version(connection: &Connection) -> Result<(), PortError> {
    let mark = |name| connection.pragma_query_value(None, name, |row| row.get(0)).map_err(port_error);
    match (mark("application_id")?, mark("user_version")?) {
        (APPLICATION_ID, found) if found > VERSION => Err(PortError::Version { found, expected: VERSION }),
        _ => Ok(()),
    }
}

fn check_marks(connection: &Connection) -> Result<(), PortError> {
    let mark = |name| connection.pragma_query_value(None, name, |row| row.get(0)).map_err(port_error);
    let id: i32 = mark("application_id")?;
    if id != APPLICATION_ID {
        let found = format!("`application_id` is {id}, expected {APPLICATION_ID}");
        return Err(PortError::Corrupt { what: "the journal's database".into(), found });
    }
    match mark("user_version")? {
        VERSION => Ok(()),
        found => Err(PortError::Version { found, expected: VERSION }),
    }
}
