//! Compares the time to write a stage's records as canonical JSON with the time to write them through a tree of
//! `serde_json` values.
//!
//! `cargo bench -p glovebox-journal` prints a table with the median time for 1,000 stages of each method and their
//! ratio. Both methods are measured alternately in one process. A stage has four records, and each is written once for
//! the journal and once for `progress.ndjson`. The benchmark never fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "../../../benches/table.rs"]
mod table;

use glovebox_journal::event::{Event, Record, canonical};
use serde_json::Value;
use std::collections::BTreeMap;
use std::hint::black_box;
use table::{row, timed};

const STAGES: usize = 1_000;
/// Number of times that each record is written.
const WRITTEN: usize = 2;
/// A journal with every kind of record.
const JOURNAL: &str = include_str!("../tests/golden/journal.jsonl");
/// The records of a stage with a command that succeeds.
const KINDS: [&str; 4] = ["stage.ready", "stage.started", "stage.finished", "route.taken"];

fn main() {
    let events: Vec<Event> = JOURNAL.lines().map(|line| serde_json::from_str::<Record>(line).unwrap().event).collect();
    let longest = |kind: &&str| {
        let of_kind = events.iter().filter(|event| event.kind() == *kind);
        of_kind.max_by_key(|event| canonical(*event).unwrap().len()).unwrap()
    };
    let stage: Vec<&Event> = KINDS.iter().map(longest).collect();
    stage.iter().for_each(|event| assert_eq!(canonical(*event).unwrap(), from_tree(event)));
    table::head();
    let all = |write: fn(&Event) -> String| {
        let stage = stage.clone();
        move || {
            timed(|| {
                for _ in 0..STAGES * WRITTEN {
                    stage.iter().for_each(|event| drop(black_box(write(event))));
                }
            })
        }
    };
    row(
        "records of 1,000 stages as canonical JSON",
        51,
        all(|event| canonical(event).unwrap()),
        all(from_tree),
        "a tree of values, sorted",
    );
}

/// Writes the event as sorted JSON through a tree of values.
fn from_tree(event: &Event) -> String {
    serde_json::to_string(&sorted(serde_json::to_value(event).unwrap())).unwrap()
}

/// Returns the value with the keys of all objects sorted, independent of the map type of `serde_json`.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let fields: BTreeMap<String, Value> = map.into_iter().map(|(key, value)| (key, sorted(value))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}
