//! Whole pipelines, as people write them, and what is said of each.
//!
//! The pipelines of this repository are always read. Those of other projects are not in it: `README.md` names them, `public.txt` says what is
//! expected of each, and with `GLOVEBOX_CORPUS=<folder>` they are held to it. `UPDATE_CORPUS=1` writes the tables anew.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]

mod demands;
mod table;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use table::Table;

const EXTENSIONS: [&str; 3] = ["dot", "gv", "fabro"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pipelines below a folder by their path from `base`, in order.
fn pipelines(base: &Path, folder: &Path) -> Vec<(String, String)> {
    let mut entries: Vec<PathBuf> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    let mut found = Vec::new();
    for path in entries {
        if path.is_symlink() || path.ends_with("target") {
            continue;
        }
        if path.is_dir() {
            found.extend(pipelines(base, &path));
        } else if path.extension().is_some_and(|extension| EXTENSIONS.iter().any(|known| extension == *known)) {
            let name = path.strip_prefix(base).unwrap().to_string_lossy().into_owned();
            found.push((name, fs::read_to_string(&path).unwrap()));
        }
    }
    found
}

/// Holds every text to every demand, and what is said of it to the table.
fn check(table: &str, files: &[(String, String)]) {
    let mut faults = Vec::new();
    let mut seen = Table::default();
    for (name, source) in files {
        match catch_unwind(AssertUnwindSafe(|| demands::hold(source))) {
            Ok(found) => {
                faults.extend(found.faults.iter().map(|fault| format!("{name}: {fault}")));
                seen.files.insert(name.clone(), found.counts);
            }
            Err(_) => faults.push(format!("{name}: a panic, its message is above")),
        }
    }
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    table::compare(table, &seen);
}

#[test]
fn pipelines_of_this_repository() {
    let root = root();
    let mut files = pipelines(&root, &root.join("examples"));
    files.extend(pipelines(&root, &root.join("runtime/pipeline/tests")));
    files.extend(pipelines(&root, &root.join("runtime/drawing/tests")));
    assert!(files.len() > 25, "they have moved: {}", files.len());
    check("own.txt", &files);
}

/// Without the folder only the table is looked at: its rules are rules, of that severity.
#[test]
fn pipelines_of_other_projects() {
    let expected = table::read("public.txt");
    assert!(expected.files.len() > 150, "the table is cut short: {}", expected.files.len());
    table::check_rules(&expected);
    let Some(folder) = std::env::var_os("GLOVEBOX_CORPUS").map(PathBuf::from) else { return };
    check("public.txt", &pipelines(&folder, &folder));
}
