//! The event vocabulary as a promise: its schema is written down, old lines stay readable, the hash covers everything.

use glovebox_journal::event::{Digest, Event, Record, canonical, chain};
use jiff::Timestamp;
use std::path::Path;

/// Set to write the schema instead of comparing it.
const UPDATE: &str = "UPDATE_SCHEMAS";

#[test]
fn the_schema_on_file_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/event.schema.json");
    let schema = schemars::schema_for!(Record).to_value();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
    }
    // Compared as values: the order of keys in the text depends on features of other crates in the build.
    let on_file: Option<serde_json::Value> =
        std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    assert!(on_file == Some(schema), "docs/schemas/event.schema.json is out of date: run with {UPDATE}=1");
}

/// Lines of version 2. They may be added to and never changed: journals with such lines exist.
const LINES: &[&str] = &[
    r#"{"kind":"run.resumed","worker":"w"}"#,
    r#"{"kind":"stage.ready","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":1}"#,
    r#"{"kind":"stage.ready","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":2,"due_at":"2026-11-20T10:00:00.123Z"}"#,
    r#"{"kind":"stage.started","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":1,"attempt_id":"x","worker":"w"}"#,
    r#"{"kind":"stage.finished","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":1,"attempt_id":"x","outcome":{"status":"success"},"ending":{"how":"returned"}}"#,
    r#"{"kind":"stage.finished","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":1,"attempt_id":"x","outcome":{"status":"fail","failure":{"class":"budget","code":"limit/memory","reason":"r"}},"ending":{"how":"limit_hit","detail":"memory_bytes"}}"#,
    r#"{"kind":"stage.retrying","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":2,"delay_ms":200,"due_at":"2026-11-20T10:00:00Z"}"#,
    r#"{"kind":"stage.passed","generation":0,"branch":"main","node":"d","visit":1,"status":"partial_success"}"#,
    r#"{"kind":"route.taken","generation":0,"branch":"main","from":"a","to":"b","how":"condition","edge":0}"#,
    r#"{"kind":"gate.unmet","generation":0,"branch":"main","exit_node":"exit","gate":"a"}"#,
    r#"{"kind":"run.canceled","by":"signal INT"}"#,
    r#"{"kind":"run.finished","status":"success","exit_node":"exit"}"#,
];

#[test]
fn lines_of_version_two_stay_readable() {
    for line in LINES {
        let event: Event = serde_json::from_str(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert!(line.contains(&format!("\"kind\":\"{}\"", event.kind())));
        let again: Event = serde_json::from_str(&canonical(&event).unwrap()).unwrap();
        assert_eq!(again, event);
    }
    assert!(serde_json::from_str::<Event>(r#"{"kind":"stage.imagined"}"#).is_err());
}

#[test]
fn canonical_text_has_sorted_keys_and_no_white_space() {
    let line = r#"{ "worker": "ü\n", "kind": "run.resumed" }"#;
    let event: Event = serde_json::from_str(line).unwrap();
    assert_eq!(canonical(&event).unwrap(), "{\"kind\":\"run.resumed\",\"worker\":\"ü\\n\"}");
    let line = r#"{"kind":"stage.finished","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":1,"attempt_id":"x","ending":{"how":"returned"},"outcome":{"status":"success","context_updates":{"b":{"z":1,"a":[1.5,null]},"a":"x"}}}"#;
    let text = canonical(&serde_json::from_str::<Event>(line).unwrap()).unwrap();
    assert!(text.contains(r#""context_updates":{"a":"x","b":{"a":[1.5,null],"z":1}}"#), "{text}");
}

#[test]
fn the_hash_covers_every_part_of_a_record() {
    let at = |ms| Timestamp::from_millisecond(ms).unwrap();
    let reference = chain(&Digest::ZERO, 1, at(1000), "{}");
    assert_eq!(reference, chain(&Digest::ZERO, 1, at(1000), "{}"));
    for other in [
        chain(&Digest::hash(b"x"), 1, at(1000), "{}"),
        chain(&Digest::ZERO, 2, at(1000), "{}"),
        chain(&Digest::ZERO, 1, at(1001), "{}"),
        chain(&Digest::ZERO, 1, at(1000), "{} "),
    ] {
        assert_ne!(reference, other);
    }
}

#[test]
fn a_digest_reads_back_with_and_without_its_prefix() {
    let digest = Digest::hash(b"hello");
    assert_eq!(digest.to_string().parse(), Ok(digest));
    assert_eq!(digest.hex().parse(), Ok(digest));
    for wrong in ["", "blake3:", "blake3:00", "sha256:00", &digest.hex()[1..]] {
        assert!(wrong.parse::<Digest>().is_err(), "`{wrong}`");
    }
}
