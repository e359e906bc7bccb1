//! The table, with one file per collection of attacks. The order of the rows is that of the output.
//!
//! `sandbox N` is an attack by a host program, `pipeline N` one by a pipeline, `component` one by a component on its
//! files, and `review N` a finding of a review.

mod components;
mod files;
mod kernel;
mod left;
mod names;
mod network;
mod processes;
mod repositories;
mod resources;
mod runs;
mod server;
mod shell;
mod subject;
mod workspace;

use crate::row::Row;

/// Returns all rows.
pub fn all() -> Vec<Row> {
    let tables: [&[Row]; 14] = [
        files::ROWS,
        runs::ROWS,
        server::ROWS,
        workspace::ROWS,
        names::ROWS,
        repositories::ROWS,
        shell::ROWS,
        processes::ROWS,
        kernel::ROWS,
        left::ROWS,
        network::ROWS,
        resources::ROWS,
        subject::ROWS,
        components::ROWS,
    ];
    tables.concat()
}

#[cfg(test)]
mod tests {
    use super::all;
    use crate::row::Payload;
    use std::collections::BTreeSet;

    #[test]
    fn ids_are_unique_and_rows_are_complete() {
        let rows = all();
        let ids: BTreeSet<&str> = rows.iter().map(|row| row.id).collect();
        assert_eq!(ids.len(), rows.len(), "two rows have one id");
        for row in &rows {
            assert!(!row.title.is_empty() && !row.stopped_by.is_empty(), "{}", row.id);
            let first = match row.payload {
                Payload::Program(words) | Payload::Component(words) => words.first().copied().unwrap_or(""),
                Payload::Shell(text) => text,
            };
            assert!(!first.is_empty(), "{} tries nothing", row.id);
        }
    }

    #[test]
    fn there_are_more_than_a_hundred_attacks() {
        let attacks = all().iter().filter(|row| !row.must_work()).count();
        assert!(attacks >= 100, "{attacks}");
    }
}
