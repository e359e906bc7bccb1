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
/// Fields of a record that depend on everything in it, also on what builders may not see.
const HASHES: &[&str] = &["hash", "prev"];

/// Removes from a document what a client with this sight may not see. `is_hidden` says whether a stage had hold-outs in
/// reach.
pub(super) fn remove(value: &mut Value, is_hidden: &dyn Fn(&str) -> bool, seen: Sight) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(|value| remove(value, is_hidden, seen)),
        Value::Object(fields) => {
            if seen == Sight::Builder {
                fields.retain(|name, _| !HASHES.contains(&name.as_str()));
            }
            if is_about_hidden(fields, is_hidden) {
                return reduce(fields, seen);
            }
            fields.values_mut().for_each(|value| remove(value, is_hidden, seen));
        }
        _ => {}
    }
}

fn is_about_hidden(fields: &Map<String, Value>, is_hidden: &dyn Fn(&str) -> bool) -> bool {
    let named = |fields: &Map<String, Value>| {
        NAMING.iter().filter_map(|name| fields.get(*name)).filter_map(Value::as_str).any(is_hidden)
    };
    let inner = ["attempt", "task"].iter().filter_map(|name| fields.get(*name)).filter_map(Value::as_object);
    named(fields) || inner.into_iter().any(named)
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
    fn objects_inside_of_lists_are_reduced() {
        let list = json!({ "commands": [{ "attempt": { "node": "judge" }, "stdout": { "head": "secret" } }, { "node": "a", "stdout": { "head": "mine" } }] });
        let seen = reduced(list, Sight::Person).to_string();
        assert!(!seen.contains("secret") && seen.contains("mine"), "{seen}");
    }
}
