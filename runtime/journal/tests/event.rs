//! The event vocabulary as a stable format: the schema file is current, old lines stay readable, and the hash covers everything.

use glovebox_journal::event::{
    AnsweredBy, BranchId, Digest, Event, QuestionAnswered, QuestionAsked, Record, RecoveryAction, RunCanceled,
    RunStarted, Task, Verdict, canonical, chain,
};
use glovebox_pipeline::ir::Role;
use glovebox_record::Status;
use glovebox_record::question::{Answer, Choice};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::path::Path;

/// Environment variable that makes the test write the schema instead of comparing it.
const UPDATE: &str = "UPDATE_SCHEMAS";

#[test]
fn the_schema_on_file_is_current() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas/event.schema.json");
    let schema = schemars::schema_for!(Record).to_value();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, serde_json::to_string_pretty(&schema).unwrap() + "\n").unwrap();
    }
    // The values are compared, not the texts: the order of keys depends on features of other crates in the build.
    let on_file: Option<Value> = std::fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
    assert!(on_file == Some(schema), "docs/schemas/event.schema.json is out of date: run with {UPDATE}=1");
}

/// The fields that say which stage or branch an event is about. The page explains them once.
const IDENTITY: [&str; 8] = ["kind", "generation", "branch", "node", "visit", "work", "ordinal", "attempt_id"];
/// The lines of the page around the generated table.
const TABLE: (&str, &str) =
    ("<!-- generated: UPDATE_DOCS=1 cargo test --workspace --test journal event:: -->\n", "<!-- end -->\n");

/// Returns the rows of the table of events: kind, meaning, and the fields of its own.
fn table(schema: &Value) -> String {
    let mut table = "| kind | meaning | fields |\n|---|---|---|\n".to_owned();
    for event in schema["$defs"]["Event"]["oneOf"].as_array().unwrap() {
        let kind = event["properties"]["kind"]["const"].as_str().unwrap();
        let inner = event["$ref"].as_str().and_then(|to| to.strip_prefix("#/$defs/"));
        let fields = [event, inner.map_or(&Value::Null, |name| &schema["$defs"][name])];
        let names = fields.into_iter().flat_map(|of| of["properties"].as_object().into_iter().flat_map(Map::keys));
        let names = names.filter(|name| !IDENTITY.contains(&name.as_str())).collect::<BTreeSet<_>>();
        let names = names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        let meaning = event["description"].as_str().unwrap().replace('\n', " ");
        table += &format!("| `{kind}` | {meaning} | {names} |\n");
    }
    table
}

#[test]
fn the_page_lists_every_event() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(TABLE.0).unwrap();
    let (_, after) = rest.split_once(TABLE.1).unwrap();
    let table = table(&schemars::schema_for!(Record).to_value());
    let current = format!("{before}{}{table}{}{after}", TABLE.0, TABLE.1);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &current).unwrap();
    } else {
        assert!(page == current, "docs/events.md is out of date: run with UPDATE_DOCS=1");
    }
    // A name whose first part is that of a kind is a kind.
    let is_kind = |name: &str| name.split_once('.').is_some_and(|(group, _)| table.contains(&format!("| `{group}.")));
    for kind in after.split('`').filter(|name| is_kind(name)) {
        assert!(table.contains(&format!("| `{kind}` |")), "`{kind}` is no event");
    }
}

/// Event lines that stay readable. Lines may be added but never changed, because journals with such lines exist.
const LINES: &[&str] = &[
    r#"{"kind":"run.resumed","worker":"w"}"#,
    r#"{"kind":"run.taken_over","machine":"m","driver":"d"}"#,
    r#"{"kind":"stage.ready","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":1}"#,
    r#"{"kind":"stage.ready","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":2,"due_at":"2026-11-20T10:00:00.123Z"}"#,
    r#"{"kind":"stage.started","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":1,"attempt_id":"x","worker":"w"}"#,
    r#"{"kind":"stage.started","generation":0,"branch":"main","node":"a","visit":1,"work":"handler","ordinal":1,"attempt_id":"x","worker":"w","machine":"m"}"#,
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
fn lines_of_this_version_stay_readable() {
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

/// Returns the start of a run with a verifier that the operator bound.
fn begun() -> RunStarted {
    let text = include_str!("golden/journal.jsonl");
    let first: Record = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    let mut begun = first.event.run_started().unwrap().clone();
    begun.plan.verifiers = ["acme.check".to_owned()].into();
    begun
}

#[test]
fn only_verifiers_of_the_operator_and_of_the_program_verify() {
    let roles = ["acme.check", "acme.other", "tool", "verify", "codergen"].map(|handler| begun().role(handler));
    assert_eq!(roles, [Role::Verifier, Role::Builder, Role::Verifier, Role::Verifier, Role::Builder]);
}

#[test]
fn no_person_is_taken_for_a_signal() {
    for (name, by, is_stop) in [
        ("ada", "ada", false),
        (" ada ", "ada", false),
        (" ", "a person", false),
        ("signal INT", "a person named signal INT", false),
    ] {
        let canceled = RunCanceled::by_person(name);
        assert_eq!((canceled.by.as_str(), canceled.is_stop()), (by, is_stop));
    }
    assert!(RunCanceled { by: "signal TERM".to_owned() }.is_stop());
    assert_eq!([Verdict::Success, Verdict::Fail].map(|verdict| verdict.to_string()), ["success", "fail"]);
}

fn answered(answer: Option<Answer>, how: AnsweredBy) -> QuestionAnswered {
    QuestionAnswered {
        generation: 0,
        branch: BranchId::main(),
        node: "gate".into(),
        visit: 2,
        question: "gate#2".into(),
        how,
        by: "ada".into(),
        answered_at: Timestamp::UNIX_EPOCH,
        value: String::new(),
        answer,
        text: "as I said".into(),
        sheet: None,
        recovery: false,
    }
}

fn choice(label: &str, to: &str, declines: bool) -> Option<Answer> {
    Some(Answer::Choice(Choice { declines, ..Choice::new(label, to.into()) }))
}

#[test]
fn the_outcome_of_a_gate_follows_from_its_answer_alone() {
    let told = |answer: Option<Answer>, how: AnsweredBy| {
        let outcome = answered(answer, how).outcome();
        let update =
            |key: &str| outcome.context_updates.get(key).and_then(|value| value.as_str()).unwrap_or("-").to_owned();
        let gate = ["human.gate.selected", "human.gate.label", "human.gate.text"].map(update).join("|");
        let label = outcome.preferred_label.clone().unwrap_or_default();
        (outcome.status, gate, label, outcome.suggested_next_ids.join(" "), outcome.failure.is_some())
    };
    let text = |text: &str| text.to_owned();
    use AnsweredBy::{Command, Timeout};
    let ship = (Status::Success, text("S|[S] Ship|as I said"), text("[S] Ship"), text("ship"), false);
    assert_eq!(told(choice("[S] Ship", "ship", false), Command), ship);
    let stop = (Status::Fail, text("S|Stop|as I said"), text("Stop"), text("stop"), true);
    assert_eq!(told(choice("Stop", "stop", true), Command), stop);
    assert_eq!(told(Some(Answer::Text), Command), (Status::Success, text("||as I said"), text(""), text(""), false));
    assert_eq!(told(Some(Answer::No), Command), (Status::Fail, text("N|no|as I said"), text(""), text(""), true));
    let (status, gate, .., has_failed) = told(None, Timeout);
    assert_eq!((status.satisfies_gate(), gate, has_failed), (false, text("-|-|-"), true));
    assert_eq!(answered(None, Command).task().to_string(), "0/main/gate#2");
}

#[test]
fn an_answer_that_names_no_action_denies() {
    let action = |answer: Option<Answer>| answered(answer, Command).action();
    for action_named in RecoveryAction::ALL {
        assert_eq!(action(choice("x", action_named.as_str(), false)), action_named);
        assert_eq!(action_named.to_string(), serde_json::to_value(action_named).unwrap());
    }
    for answer in [None, Some(Answer::Text), Some(Answer::No), choice("allow", "elsewhere", false)] {
        assert_eq!(action(answer), RecoveryAction::Deny);
    }
    use AnsweredBy::{Auto, Command, Default, File, Terminal, Timeout};
    for how in [Terminal, Command, File, Auto, Default, Timeout] {
        assert_eq!(how.as_str(), serde_json::to_value(how).unwrap());
    }
}

#[test]
fn each_visit_of_a_gate_asks_a_question_of_its_own() {
    let id = |generation: u32, branch: &str, visit: u32| {
        let task = Task::for_handler(generation, &BranchId::new(branch), &"gate".into(), visit);
        (QuestionAsked::id_of(&task).to_string(), QuestionAsked::id_of_recovery(&task).to_string())
    };
    let both = |id: &str| (id.to_owned(), format!("{id}/recovery"));
    assert_eq!(id(0, "main", 1), both("gate#1"));
    assert_eq!(id(0, "main", 2), both("gate#2"));
    assert_eq!(id(1, "main", 1), both("1/gate#1"));
    assert_eq!(id(0, "f-a", 1), both("f-a/gate#1"));
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
