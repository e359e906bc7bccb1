//! The file of an empty journal as bytes, so that a new run needs one write instead of creating each table.
//!
//! `empty.sqlite` is the file that [`connection::writable`] creates. A test compares the two, and replaces the file
//! with `UPDATE_EMPTY_JOURNAL=1`.

use cap_std::fs::{Dir, OpenOptions};
use glovebox_workspace::run_folder::JOURNAL_FILE;
use std::io::{self, Write};

static EMPTY: &[u8] = include_bytes!("empty.sqlite");

/// Creates an empty journal in the directory of a new run, durably and atomically.
pub(super) fn create(run: &Dir) -> io::Result<()> {
    let new = format!("{JOURNAL_FILE}.new");
    let mut file = run.open_with(&new, OpenOptions::new().write(true).create_new(true))?;
    file.write_all(EMPTY)?;
    file.sync_data()?;
    run.rename(&new, run, JOURNAL_FILE)
}

#[cfg(test)]
mod tests {
    use super::super::connection;
    use super::EMPTY;
    use rusqlite::Connection;
    use std::path::Path;

    /// Returns the schema and the settings of a database file as text.
    fn content(path: &Path) -> String {
        let connection = Connection::open(path).unwrap();
        let mut schema = connection.prepare("SELECT type, name, sql FROM sqlite_schema ORDER BY name").unwrap();
        let text = |row: &rusqlite::Row<'_>| {
            Ok(format!("{:?}", (row.get::<_, String>(0)?, row.get::<_, String>(1)?, row.get::<_, Option<String>>(2)?)))
        };
        let mut lines: Vec<String> = schema.query_map([], text).unwrap().map(Result::unwrap).collect();
        for mark in ["application_id", "user_version", "page_size", "auto_vacuum", "page_count", "encoding"] {
            let value: rusqlite::types::Value = connection.pragma_query_value(None, mark, |row| row.get(0)).unwrap();
            lines.push(format!("{mark} {value:?}"));
        }
        lines.push(connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap());
        lines.push(connection.pragma_query_value(None, "integrity_check", |row| row.get(0)).unwrap());
        lines.join("\n")
    }

    #[test]
    fn it_is_what_is_made_of_a_new_file() {
        let dir = tempfile::tempdir().unwrap();
        let [made, kept] = ["made.sqlite", "kept.sqlite"].map(|name| dir.path().join(name));
        drop(connection::writable(&made).unwrap());
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sqlite/empty.sqlite");
        if std::env::var_os("UPDATE_EMPTY_JOURNAL").is_some() {
            std::fs::copy(&made, source).unwrap();
            return;
        }
        std::fs::write(&kept, EMPTY).unwrap();
        assert_eq!(content(&kept), content(&made), "write it anew with UPDATE_EMPTY_JOURNAL=1");
        assert!(content(&kept).contains("wal\nok"));
    }
}
