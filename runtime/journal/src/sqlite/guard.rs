//! What is checked of a journal's database before a record is read: it may have come with a project.
//!
//! A database is a program: a view in place of a table never ends, and a trigger writes. So it may have the tables of a journal and nothing
//! else, each exactly as this program makes it. Values have a largest size, and reading the tables a largest number of steps.

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

/// The largest record or blob in a journal, many times that of the largest that a stage can cause.
const VALUE_BYTES_MAX: i32 = 128 * 1024 * 1024;
/// How many times [`STEPS`] SQLite may need to read which tables there are. A journal needs less than one.
const PAUSES_MAX: u32 = 100;
const STEPS: i32 = 1_000;

/// Refuses files that SQLite would wait for, or that lead elsewhere.
pub(super) fn check_files(path: &Path) -> Result<(), PortError> {
    check_database(path).map_err(|error| match error.kind() {
        ErrorKind::InvalidInput => corrupt(error.to_string()),
        _ => PortError::Unavailable(error.to_string()),
    })
}

/// Refuses a database with anything but the tables of a journal. Returns how many it has: none before the journal was begun.
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
        Some(ErrorCode::OperationInterrupted) => corrupt("it has far more than the tables of a journal".to_owned()),
        _ => port_error(error),
    })?;
    let known = known();
    match found.iter().find(|sql| !known.contains(*sql)) {
        Some(other) => Err(corrupt(format!("it has something else than the tables of a journal: `{}`", shown(other)))),
        None => Ok(found.len()),
    }
}

/// The statements that made what is in the database.
fn made_by(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT coalesce(sql, name) FROM sqlite_schema")?;
    let texts = statement.query_map([], |row| row.get::<_, String>(0))?;
    texts.map(|text| text.map(|text| in_one_line(&text))).collect()
}

/// The statements that make a journal.
fn known() -> BTreeSet<String> {
    let tables = [connection::TABLES, rows::TABLES].into_iter();
    tables.flat_map(|text| text.split(';')).map(in_one_line).filter(|text| !text.is_empty()).collect()
}

fn in_one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The beginning of a statement, for a message.
fn shown(sql: &str) -> String {
    const CHARACTERS_MAX: usize = 80;
    sql.chars().take(CHARACTERS_MAX).map(|one| if one.is_control() { '?' } else { one }).collect()
}

fn corrupt(found: String) -> PortError {
    PortError::Corrupt { what: "the journal's database".into(), found }
}
