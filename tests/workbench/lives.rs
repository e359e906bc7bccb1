//! The life of attempts in every run of every test: nothing about an attempt comes after its end, neither in the journal nor in the
//! stream beside it.

use glovebox_journal::event::Record;
use glovebox_journal::liveness::{LivenessLine, check, check_records};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};

/// Maximum depth of the folders in which runs are searched for.
const DEPTH_MAX: usize = 4;

/// Checks all runs below a folder.
pub(crate) fn check_runs(folder: &Path) {
    for run in runs(folder, 0) {
        let records: Vec<Record> = read(&run.join("progress.ndjson"));
        let lines: Vec<LivenessLine> = read(&run.join("liveness.ndjson"));
        let checked = check(&lines).and_then(|()| check_records(&records, &lines));
        checked.unwrap_or_else(|fault| panic!("{}: {fault}", run.display()));
    }
}

/// Returns the folders of runs: they have a journal.
fn runs(folder: &Path, depth: usize) -> Vec<PathBuf> {
    if folder.join("journal.sqlite").is_file() {
        return vec![folder.to_owned()];
    }
    let entries = folder.read_dir().into_iter().flatten().flatten();
    let folders = entries.filter(|entry| depth < DEPTH_MAX && entry.file_type().is_ok_and(|kind| kind.is_dir()));
    folders.flat_map(|entry| runs(&entry.path(), depth + 1)).collect()
}

/// Reads the lines of a file. A file that a test has damaged or removed, or that an older version has written, is not read.
fn read<T: DeserializeOwned>(file: &Path) -> Vec<T> {
    let text = std::fs::read(file).unwrap_or_default();
    let lines: Result<Vec<T>, _> =
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(serde_json::from_slice).collect();
    lines.unwrap_or_default()
}
