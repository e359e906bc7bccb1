//! Connections to a journal's database, set up so that an acknowledged record survives a power cut.
//!
//! WAL with `synchronous=FULL`: SQLite's defaults would lose the last commits (measured: 12 of 54,177). Knows tables and
//! pragmas, nothing of events.

use super::{guard, port_error};
use crate::blobs::rows;
use crate::ports::PortError;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::time::Duration;

/// Marks the file as a journal ("GBXJ"), so that no other database is mistaken for one.
const APPLICATION_ID: i32 = 0x4742_584A;
const BUSY_WAIT: Duration = Duration::from_secs(5);
/// Version of the tables, `user_version` of the database.
const VERSION: i32 = 1;
/// Pages in the log after which they are brought into the database. The log is written from its beginning again then, in place.
pub(super) const LOG_PAGES: u32 = 512;
/// More statements than there are here.
const STATEMENTS_MAX: usize = 32;

pub(super) const TABLES: &str = "
CREATE TABLE record (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    subject TEXT NOT NULL,
    prev BLOB NOT NULL,
    hash BLOB NOT NULL,
    mac BLOB,
    event TEXT NOT NULL
) STRICT;
";
/// Opens the database for the one writer; creates it when it is not there.
pub(super) fn writable(path: &Path) -> Result<Connection, PortError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    guard::check_files(path)?;
    let mut connection = Connection::open_with_flags(path, flags).map_err(port_error)?;
    connection.busy_timeout(BUSY_WAIT).map_err(port_error)?;
    guard::check_content(&mut connection)?;
    connection.pragma_update(None, "journal_mode", "WAL").map_err(port_error)?;
    connection.pragma_update(None, "synchronous", "FULL").map_err(port_error)?;
    connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES).map_err(port_error)?;
    // Otherwise a statement is prepared again for other values.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map_err(port_error)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    create_tables(&mut connection).map_err(port_error)?;
    check_marks(&connection)?;
    Ok(connection)
}

/// Opens the database for looking only.
pub(super) fn read_only(path: &Path) -> Result<Connection, PortError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    guard::check_files(path)?;
    let mut connection = Connection::open_with_flags(path, flags).map_err(port_error)?;
    connection.busy_timeout(BUSY_WAIT).map_err(port_error)?;
    // Between making the file and its tables a process may be killed: that is no damage, there never was a journal.
    if guard::check_content(&mut connection)? == 0 {
        return Err(PortError::Unavailable(format!("nothing was ever written to `{}`", path.display())));
    }
    check_marks(&connection)?;
    Ok(connection)
}

/// Tables and marks in one transaction: a kill between them must not leave a database without a mark.
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

/// Refuses a journal that a later version of this program wrote. Its tables are unknown here, but the journal is not damaged.
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
