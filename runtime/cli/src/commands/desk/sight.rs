//! Removes from a document what a client may not see of stages with hold-outs in reach.
//!
//! It works on the finished JSON: an object is about a stage if one of its fields names the stage. Of such an object, a
//! person without the right `withheld` sees no text that the stage made, and a builder sees only the fields in
//! [`FOR_BUILDERS`]. A field that is added to a document later is hidden from builders until it is listed.

use glovebox_serve::right::Sight;
use serde_json::{Map, Value};

/// Stands for a text that was removed.
const WITHHELD: &str = "withheld";
/// Fields whose value is the name of the node that the object is about.
const NAMING: &[&str] = &["node", "node_id", "name", "stage", "failed_node", "gate", "from"];
/// Fields with text or values that a stage made.
const MADE: &[&str] = &[
    "notes",
    "reason",
    "text",
    "error",
    "stdout",
    "stderr",
    "head",
    "tail",
    "context_updates",
    "context",
    "value",
    "answer",
    "preferred_label",
    "suggested_next_ids",
    "artifacts",
    "failed_command",
    "output",
    "output_end",
    "turns",
    "listed",
    "refused",
    "summary",
];
/// Fields of an object about a stage with hold-outs in reach that builders may see.
const FOR_BUILDERS: &[&str] = &[
    "schema_version",
    "seq",
    "part",
    "at",
    "event",
    "kind",
    "generation",
    "branch",
    "node",
    "name",
    "stage",
    "visit",
    "status",
    "outcome",
    "from",
    "to",
    "how",
    "run_id",
    "state",
];
/// Events, and parts of documents, that name one stage or none and whose texts can be those of another stage.
const QUOTING: &[&str] = &[
    "run.finished",
    "branch.finished",
    "parallel.joined",
    "fan_in.finished",
    "PipelineFailed",
    "branch_ended",
    "joined",
    "chose",
];
/// Fields of a record that depend on everything in it, also on what builders may not see.
const HASHES: &[&str] = &["hash", "prev"];

/// Removes from a document what a client with this sight may not see. `is_hidden` says whether a stage had hold-outs in
/// reach.
pub(super) fn remove(value: &mut Value, is_hidden: &dyn Fn(&str) -> bool, seen: Sight) {
    remove_in(value, is_hidden, seen, false);
}

/// `is_named` is true inside of an object that names a stage: a failure there is that of this stage.
fn remove_in(value: &mut Value, is_hidden: &dyn Fn(&str) -> bool, seen: Sight, is_named: bool) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| remove_in(value, is_hidden, seen, is_named)),
        Value::Object(fields) => {
            if seen == Sight::Builder {
                fields.retain(|name, _| !HASHES.contains(&name.as_str()));
            }
            if is_about_hidden(fields, is_hidden) {
                return reduce(fields, seen);
            }
            let is_quoting = ["kind", "event"].iter().filter_map(|name| fields.get(*name)?.as_str()).any(quotes);
            let is_named = is_named || names(fields).next().is_some();
            for (name, value) in fields {
                // A failure that names no stage can be that of any stage.
                if is_quoting || quotes(name) || !is_named && name == "failure" {
                    blank(name, value);
                }
                remove_in(value, is_hidden, seen, is_named);
            }
        }
        _ => {}
    }
}

/// Returns true if an event of this kind, or a part of a document with this name, can have the text of another stage than
/// the one that it names.
pub(super) fn quotes(name: &str) -> bool {
    QUOTING.contains(&name)
}

fn is_about_hidden(fields: &Map<String, Value>, is_hidden: &dyn Fn(&str) -> bool) -> bool {
    names(fields).any(is_hidden)
}

/// Returns the stages that an object names, itself or as its attempt or task.
fn names(fields: &Map<String, Value>) -> impl Iterator<Item = &str> {
    let inner = ["attempt", "task"].iter().filter_map(|name| fields.get(*name)?.as_object());
    let objects = std::iter::once(fields).chain(inner);
    objects.flat_map(|fields| NAMING.iter().filter_map(|name| fields.get(*name)?.as_str()))
}

fn reduce(fields: &mut Map<String, Value>, seen: Sight) {
    match seen {
        Sight::Everything => {}
        Sight::Person => fields.iter_mut().for_each(|(name, value)| blank(name, value)),
        Sight::Builder => {
            fields.retain(|name, _| FOR_BUILDERS.contains(&name.as_str()));
            if let Some(Value::Object(outcome)) = fields.get_mut("outcome") {
                outcome.retain(|name, _| name == "status");
            }
        }
    }
}

/// Removes everything that a stage made, at any depth.
fn blank(name: &str, value: &mut Value) {
    let is_made = MADE.contains(&name);
    match value {
        Value::String(text) if is_made => WITHHELD.clone_into(text),
        Value::Array(values) if is_made => values.clear(),
        Value::Object(fields) if is_made => fields.clear(),
        Value::Array(values) => values.iter_mut().for_each(|value| blank(name, value)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| blank(name, value)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn reduced(mut value: Value, seen: Sight) -> Value {
        remove(&mut value, &|node| node == "judge", seen);
        value
    }

    #[test]
    fn a_person_sees_no_text_of_a_judge() {
        let record = json!({
            "seq": 3, "event": "stage.finished", "node": "judge", "hash": "h",
            "outcome": { "status": "fail", "notes": "secret", "failure": { "class": "deterministic", "reason": "secret" } },
            "commands": { "receipts": [{ "argv": ["t"], "stdout_bytes": 4 }] },
        });
        let seen = reduced(record.clone(), Sight::Person);
        assert!(!seen.to_string().contains("secret"), "{seen}");
        assert_eq!((&seen["outcome"]["status"], &seen["hash"]), (&json!("fail"), &json!("h")));
        assert_eq!(reduced(record.clone(), Sight::Everything), record);
    }

    #[test]
    fn a_builder_sees_only_listed_fields() {
        let record = json!({
            "seq": 3, "event": "stage.finished", "node": "judge", "hash": "h", "prev": "p", "duration_ms": 7,
            "outcome": { "status": "fail", "notes": "secret" }, "later": "secret",
        });
        let seen = reduced(record, Sight::Builder);
        assert_eq!(
            seen,
            json!({ "seq": 3, "event": "stage.finished", "node": "judge", "outcome": { "status": "fail" } })
        );
        let other = reduced(json!({ "seq": 4, "node": "build", "notes": "mine", "hash": "h" }), Sight::Builder);
        assert_eq!(other, json!({ "seq": 4, "node": "build", "notes": "mine" }));
    }

    #[test]
    fn what_quotes_another_stage_has_no_text() {
        let quoting = json!([
            { "seq": 9, "event": { "kind": "run.finished", "failure": { "code": "tool/exit-code", "reason": "secret" } } },
            { "seq": 8, "event": { "kind": "branch.finished", "node": "build", "notes": "secret" } },
            { "event": "PipelineFailed", "error": "secret", "duration": 3 },
            { "status": "fail", "failure": { "class": "deterministic", "reason": "secret" } },
            { "node": "fork", "branch_ended": { "failure": { "reason": "secret" } } },
            { "node": "build", "attempts": [{ "ordinal": 1, "failure": { "reason": "mine" } }] },
        ]);
        let seen = reduced(quoting, Sight::Person).to_string();
        assert!(!seen.contains("secret") && seen.contains("mine") && seen.contains("tool/exit-code"), "{seen}");
    }

    #[test]
    fn objects_inside_of_lists_are_reduced() {
        let list = json!({ "commands": [{ "attempt": { "node": "judge" }, "stdout": { "head": "secret" } }, { "node": "a", "stdout": { "head": "mine" } }] });
        let seen = reduced(list, Sight::Person).to_string();
        assert!(!seen.contains("secret") && seen.contains("mine"), "{seen}");
    }
}
