//! Compares `ARCHITECTURE.md` with the repository: each crate has a row with the crates that it uses, all paths exist,
//! and the page is short enough to be read.

use crate::{dependencies, files, none, root};
use std::collections::BTreeSet;
use std::fs;

const PAGE: &str = "ARCHITECTURE.md";
const BYTES_MAX: usize = 7_000;
/// The folders that contain the crates of the workspace.
const CRATES: [&str; 8] = [
    "runtime/",
    "plugins/",
    "plugin-sdk/",
    "tests/attack/",
    "tests/contract/",
    "tests/fake-llm/",
    "tests/ordinary/",
    "xtask/",
];

fn read(page: &str) -> String {
    fs::read_to_string(root().join(page)).unwrap()
}

/// Returns the code spans of a text, without fenced blocks.
fn spans(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").step_by(2).flat_map(|prose| prose.split('`').skip(1).step_by(2))
}

/// Returns the text below a heading, up to the next heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, text) = page.split_once(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("no heading `{heading}`"));
    text.split("\n## ").next().unwrap()
}

/// A row of the table of crates: the folders of its crates, and the names of the crates that they use.
struct Row {
    folders: Vec<String>,
    uses: BTreeSet<String>,
}

fn rows(page: &str) -> Vec<Row> {
    let lines = section(page, "Crates").lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [crates, _, _, uses] = cells[..] else { panic!("{PAGE}: four cells, not `{line}`") };
        let uses = uses.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect();
        Row { folders: spans(crates).map(str::to_owned).collect(), uses }
    };
    lines.map(row).collect()
}

#[test]
fn each_crate_has_a_row_with_the_crates_that_it_uses() {
    let rows = rows(&read(PAGE));
    let manifests = files("toml").into_iter().filter(|path| CRATES.iter().any(|folder| path.starts_with(folder)));
    let crates: Vec<String> =
        manifests.filter_map(|path| path.strip_suffix("/Cargo.toml").map(str::to_owned)).collect();
    assert!(crates.len() > 20, "{crates:?}");
    let mut findings = Vec::new();
    for folder in &crates {
        let count = rows.iter().flat_map(|row| &row.folders).filter(|listed| *listed == folder).count();
        if count != 1 {
            findings.push(format!("{PAGE}: `{folder}` has {count} rows"));
        }
    }
    for row in &rows {
        let (known, unknown): (Vec<&String>, Vec<&String>) = row.folders.iter().partition(|name| crates.contains(name));
        findings.extend(unknown.iter().map(|name| format!("{PAGE}: there is no crate `{name}`")));
        let used = known.iter().flat_map(|folder| dependencies(&format!("{folder}/Cargo.toml")));
        let used: BTreeSet<String> =
            used.filter_map(|name| name.strip_prefix("glovebox-").map(str::to_owned)).collect();
        if used != row.uses {
            findings.push(format!("{PAGE}: `{}` uses {used:?}, not {:?}", row.folders.join("`, `"), row.uses));
        }
    }
    none(&findings);
}

#[test]
fn paths_exist() {
    let (page, confinement) = (read(PAGE), read("docs/confinement.md"));
    let mut findings = Vec::new();
    for (name, text) in [(PAGE, page.as_str()), ("docs/confinement.md", section(&confinement, "Protections"))] {
        let paths: Vec<&str> = spans(text).filter(|span| span.contains('/') && !span.contains(' ')).collect();
        assert!(paths.len() > 30, "{name}: the search found {paths:?}");
        let missing = paths.into_iter().filter(|path| !root().join(path).exists());
        findings.extend(missing.map(|path| format!("{name}: there is no `{path}`")));
    }
    none(&findings);
}

#[test]
fn the_page_is_short() {
    let bytes = read(PAGE).len();
    assert!(
        bytes <= BYTES_MAX,
        "{PAGE} has {bytes} bytes, at most {BYTES_MAX}: tell details where the code is, in `//!`"
    );
}
