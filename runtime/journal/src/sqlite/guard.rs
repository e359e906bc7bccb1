//! Checks a journal's database before a record is read, because an untrusted project can contain a database.
//!
//! A database can contain code: a view in place of a table may never end, and a trigger may write. So the database must
//! have only the tables of a journal, each created by the same statement as in this program. The size of a value and
//! the number of virtual machine instructions that read the schema are bounded.

use super::{connection, port_error};
use crate::blobs::rows;
use crate::ports::PortError;
use glovebox_workspace::run_folder::check_database;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::{Connection, ErrorCode};
use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::Path;

/// Maximum size in bytes of a record or blob in a journal, many times the largest that a stage can cause.
const VALUE_BYTES_MAX: i32 = 128 * 1024 * 1024;
/// Maximum number of progress callbacks, one per [`STEPS`] virtual machine instructions, while SQLite reads the schema.
/// A journal needs less than one.
const PAUSES_MAX: u32 = 100;
const STEPS: i32 = 1_000;

/// Refuses symbolic links, and special files such as a FIFO, on which SQLite would block.
pub(super) fn check_files(path: &Path) -> Result<(), PortError> {
    check_database(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => corrupt(error.to_string()),
        _ => PortError::Unavailable(error.to_string()),
    })
}

/// Refuses a database that contains anything except the tables of a journal. Returns the number of tables: 0 if the
/// journal was never created.
pub(super) fn check_content(connection: &mut Connection) -> Result<usize, PortError> {
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_BYTES_MAX).map_err(port_error)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0).map_err(port_error)?;
    connection.set_limit(Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 0).map_err(port_error)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false).map_err(port_error)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true).map_err(port_error)?;
    let mut pauses = 0;
    let is_too_long = move || {
        pauses += 1;
        pauses > PAUSES_MAX
    };
    connection.progress_handler(STEPS, Some(is_too_long)).map_err(port_error)?;
    let found = connection::check_version(connection).map(|()| made_by(connection));
    connection.progress_handler(0, None::<fn() -> bool>).map_err(port_error)?;
    let found = found?.map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => corrupt("its schema is far larger than that of a journal".to_owned()),
        _ => port_error(error),
    })?;
    let known = known();
    match found.iter().find(|sql| !known.contains(*sql)) {
        Some(other) => Err(corrupt(format!("its schema has an entry that no journal has: `{}`", shown(other)))),
        None => Ok(found.len()),
    }
}

/// Returns the statements that created the contents of the database.
fn made_by(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT coalesce(sql, name) FROM sqlite_schema")?;
    let texts = statement.query_map([], |row| row.get::<_, String>(0))?;
    texts.map(|text| text.map(|text| in_one_line(&text))).collect()
}

/// Returns the statements that create a journal.
fn known() -> BTreeSet<String> {
    let tables = [connection::TABLES, rows::TABLES].into_iter();
    tables.flat_map(|text| text.split(';')).map(in_one_line).filter(|text| !text.is_empty()).collect()
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the beginning of a statement, for a message.
fn shown(sql: &str) -> String {
    const CHARACTERS_MAX: usize = 80;
    sql.chars().take(CHARACTERS_MAX).map(|one| if one.is_control() { '?' } else { one }).collect()
}

fn corrupt(found: String) -> PortError {
    PortError::Corrupt { what: "the journal's database".into(), found }
}
