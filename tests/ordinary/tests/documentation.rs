//! Compares the list in `docs/ordinary.md` with the behaviours. `UPDATE_DOCS=1` writes the list.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

use glovebox_ordinary::table;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// The line before the generated list.
const BEGIN: &str = "<!-- list -->\n";

/// Returns one table for each group.
fn list() -> String {
    let (all, mut text) = (table::all().unwrap(), String::new());
    for group in table::groups() {
        let rows: Vec<_> = all.iter().filter(|behaviour| behaviour.group() == group).collect();
        let _ = write!(text, "\n**{group}** ({})\n\n| behaviour | for |\n|---|---|\n", rows.len());
        for behaviour in rows {
            let name = behaviour.id.split_once('/').unwrap().1;
            let why = behaviour.why.replace('|', "\\|");
            let _ = writeln!(text, "| `{name}` | [{why}]({}) |", behaviour.source);
        }
    }
    text
}

#[test]
fn the_page_lists_each_behaviour() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ordinary.md");
    let text = fs::read_to_string(&page).unwrap();
    let (head, _) = text.split_once(BEGIN).unwrap();
    let current = format!("{head}{BEGIN}{}", list());
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, &current).unwrap();
    }
    let published = fs::read_to_string(&page).unwrap();
    assert_eq!(published, current, "run `UPDATE_DOCS=1 cargo test -p glovebox-ordinary`");
}
