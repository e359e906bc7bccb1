//! Tests with whole pipelines as people write them, and with the findings that are expected for each.
//!
//! The pipelines of this repository are always tested. Those of other projects are not in the repository: `README.md` names them,
//! and `public.txt` has the expected findings. They are tested only with `GLOVEBOX_CORPUS=<folder>`. `UPDATE_CORPUS=1` rewrites
//! the tables.

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

/// Returns the pipelines in a folder and its subfolders, sorted by their path from `base`.
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

/// Checks all requirements for each file, and compares the findings with the table.
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

/// Without the folder, only the table itself is checked: its rules must exist with the severity in the table.
#[test]
fn pipelines_of_other_projects() {
    let expected = table::read("public.txt");
    assert!(expected.files.len() > 150, "the table is cut short: {}", expected.files.len());
    table::check_rules(&expected);
    let Some(folder) = std::env::var_os("GLOVEBOX_CORPUS").map(PathBuf::from) else { return };
    check("public.txt", &pipelines(&folder, &folder));
}
