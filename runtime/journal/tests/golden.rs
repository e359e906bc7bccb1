//! The golden journal: one small journal with every kind of event, compared byte for byte.
//!
//! A change of a field's name, form or default makes the test fail. To accept such a change, raise `SCHEMA_VERSION`,
//! edit the events in `golden/journal.jsonl`, and run the test with `UPDATE_GOLDEN=1`, which writes the lines with new
//! hashes.

use glovebox_journal::event::{Digest, Event, EventText, Record, SCHEMA_VERSION, canonical, chain};
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journal.jsonl")
}

/// Computes the sequence numbers and hashes of the records again, from the time and the event in each line.
fn chained(text: &str) -> String {
    let mut prev = Digest::ZERO;
    let mut lines = String::new();
    for (seq, line) in (1..).zip(text.lines()) {
        let line: Value = serde_json::from_str(line).unwrap();
        let at: Timestamp = serde_json::from_value(line["at"].clone()).unwrap();
        let event: Event = serde_json::from_value(line["event"].clone()).unwrap();
        let hash = chain(&prev, seq, at, &canonical(&event).unwrap());
        lines += &(canonical(&Record { seq, at, prev, hash, event, text: EventText::default() }).unwrap() + "\n");
        prev = hash;
    }
    lines
}

#[test]
fn the_golden_journal_is_read_and_written_byte_for_byte() {
    let text = std::fs::read_to_string(file()).unwrap();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file(), chained(&text)).unwrap();
        return;
    }
    let mut prev = Digest::ZERO;
    for (seq, line) in (1..).zip(text.lines()) {
        let record: Record = serde_json::from_str(line).unwrap_or_else(|error| panic!("line {seq}: {error}"));
        assert_eq!(canonical(&record).unwrap(), line, "line {seq}");
        assert_eq!((record.seq, record.prev), (seq, prev), "line {seq}");
        assert_eq!(record.hash, chain(&prev, seq, record.at, &canonical(&record.event).unwrap()), "line {seq}");
        prev = record.hash;
    }
    let Value::Object(first) = serde_json::from_str(text.lines().next().unwrap()).unwrap() else { panic!("an object") };
    assert_eq!(first["event"]["schema_version"], SCHEMA_VERSION);
}

#[test]
fn the_golden_journal_has_every_kind_of_event() {
    let text = std::fs::read_to_string(file()).unwrap();
    let kinds = text.lines().map(|line| serde_json::from_str::<Record>(line).unwrap().event.kind());
    let kinds: BTreeSet<&str> = kinds.collect();
    let schema = schemars::schema_for!(Event).to_value();
    let known: BTreeSet<&str> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variant| variant["properties"]["kind"]["const"].as_str().unwrap())
        .collect();
    assert!(known.len() > 10);
    assert_eq!(kinds, known);
}

fn records() -> Vec<Record> {
    let text = std::fs::read_to_string(file()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn each_event_is_filed_under_what_it_is_about() {
    let row = |record: Record| {
        let event = &record.event;
        let (branch, node) = (event.branch().map_or("-", |branch| branch.as_str()), event.node());
        format!("{} | {} | {branch} | {}", event.kind(), event.stream(), node.map_or("-", |node| node.as_str()))
    };
    let mut rows: Vec<String> = records().into_iter().map(row).collect();
    rows.dedup();
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn a_view_of_one_kind_of_event_shows_no_other() {
    for Record { event, .. } in records() {
        let views = [
            ("run.started", event.run_started().is_some()),
            ("run.resumed", event.run_resumed().is_some()),
            ("run.taken_over", event.run_taken_over().is_some()),
            ("run.finished", event.run_finished().is_some()),
            ("stage.ready", event.stage_ready().is_some()),
            ("stage.started", event.stage_started().is_some()),
            ("stage.finished", event.stage_finished().is_some()),
            ("stage.passed", event.stage_passed().is_some()),
            ("stage.steered", event.stage_steered().is_some()),
            ("branch.started", event.branch_started().is_some()),
            ("question.asked", event.question_asked().is_some()),
            ("question.answered", event.question_answered().is_some()),
        ];
        for (kind, is_shown) in views {
            assert_eq!(is_shown, kind == event.kind(), "{kind} of {}", event.kind());
        }
    }
}
