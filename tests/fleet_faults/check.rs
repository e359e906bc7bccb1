//! What must hold of a run that was disturbed: it is the undisturbed one, and its record is whole.

use super::table::Table;
use crate::workbench::Workbench;
use crate::workbench::journal::{End, end, task_of};
use jiff::Timestamp;
use rusqlite::Connection;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// An undisturbed run: how it ended, and what each attempt answered and changed.
pub(super) struct Expected {
    end: End,
    attempts: BTreeMap<String, Value>,
}

/// A record with its time.
pub(super) struct Recorded {
    pub(super) at: Timestamp,
    pub(super) event: Value,
}

impl Expected {
    pub(super) fn of(bench: &Workbench, run: &str) -> Self {
        let records = records(bench, run);
        let attempts = finished(&records).map(|event| (attempt_of(event), answer(event))).collect();
        Self { end: end(&bench.run_folder(run)), attempts }
    }
}

/// Checks a run that was pulled, and adds what happened to it to the table.
pub(super) fn check(bench: &Workbench, run: &str, expected: &Expected, table: &mut Table) {
    let records = records(bench, run);
    let mut wrong = Vec::new();
    let found = end(&bench.run_folder(run));
    if found.last != renamed(&expected.end.last, run) || found.workspace != expected.end.workspace {
        wrong.push(format!("it ended with {} and {:?}", found.last, found.workspace));
    }
    let mut attempts: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for event in finished(&records) {
        attempts.entry(attempt_of(event)).or_default().push(answer(event));
    }
    let twice = attempts.iter().filter(|(_, answers)| answers.len() > 1);
    wrong.extend(twice.map(|(attempt, answers)| format!("{attempt} is finished {} times", answers.len())));
    let once: BTreeMap<String, Value> =
        attempts.into_iter().filter_map(|(attempt, mut answers)| Some((attempt, answers.pop()?))).collect();
    if once != expected.attempts {
        wrong.push(format!("its attempts are {once:?}, expected {:?}", expected.attempts));
    }
    for words in [&["verify", run][..], &["evidence", run], &["show", run], &["diff", run]] {
        let answer = bench.glovebox(words);
        if answer.code != 0 {
            wrong.push(format!("{words:?} ends with {}: {}", answer.code, answer.stderr));
        }
    }
    wrong.extend(unreadable(bench, run, &records));
    table.wrong.extend(wrong.into_iter().map(|wrong| format!("run `{run}`: {wrong}")));
    table.note_run(&records);
    std::fs::remove_dir_all(bench.run_folder(run)).unwrap();
}

fn renamed(last: &Value, run: &str) -> Value {
    let mut last = last.clone();
    last["run_id"] = run.into();
    last
}

/// Reads the records of a run that was pulled.
pub(super) fn records(bench: &Workbench, run: &str) -> Vec<Recorded> {
    let text = bench.run_text(run, "progress.ndjson");
    let record = |line| {
        let record: Value = serde_json::from_str(line).unwrap();
        let at = record["at"].as_str().unwrap().parse().unwrap();
        Recorded { at, event: record["event"].clone() }
    };
    text.lines().map(record).collect()
}

/// Returns the results of attempts. One that was canceled does not count.
pub(super) fn finished(records: &[Recorded]) -> impl Iterator<Item = &Value> {
    records.iter().map(|record| &record.event).filter(|event| event["kind"] == "stage.finished")
}

fn attempt_of(event: &Value) -> String {
    format!("attempt {} of {}", event["ordinal"], task_of(event))
}

/// Returns what a result says that does not depend on the machine and the time.
fn answer(event: &Value) -> Value {
    let status = &event["outcome"]["status"];
    serde_json::json!({ "status": status, "changes": event["changes"], "retrying": event["retrying"] })
}

/// Returns the files that stages have changed or kept, as records name them, whose content is not there or has another digest.
fn unreadable(bench: &Workbench, run: &str, records: &[Recorded]) -> Vec<String> {
    let named = finished(records).flat_map(|event| {
        let lists = ["artifacts", "changes"].into_iter().filter_map(|name| event[name].as_array());
        lists.flatten().filter_map(|file| file["digest"].as_str())
    });
    let digests: BTreeSet<&str> = named.collect();
    assert!(!digests.is_empty(), "no record names a file");
    let journal = Connection::open(bench.run_folder(run).join("journal.sqlite")).unwrap();
    let stored = |hex: &str| -> Option<Vec<u8>> {
        let small = journal.query_row("SELECT bytes FROM blob WHERE hex(digest) = upper(?1)", [hex], |row| row.get(0));
        small.ok().or_else(|| std::fs::read(bench.run_folder(run).join("blobs").join(&hex[..2]).join(hex)).ok())
    };
    let is_missing = |digest: &&str| {
        let hex = digest.strip_prefix("blake3:").unwrap();
        stored(hex).is_none_or(|bytes| blake3::hash(&bytes).to_hex().as_str() != hex)
    };
    digests.into_iter().filter(is_missing).map(|digest| format!("{digest} cannot be read")).collect()
}
