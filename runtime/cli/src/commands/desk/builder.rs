//! The documents about a run as builders may see them.
//!
//! If a run has hold-outs, a document is made anew from listed fields: a field that is added to it later is hidden until
//! it is listed. Sums over the whole run are not listed, because what builders know themselves could be subtracted from
//! them: the time, the cost and the number of records. Of a visit of a stage with hold-outs in reach there is one entry,
//! however many attempts and commands it had, with its status and the edge that was taken after it.

use super::sight;
use crate::runs::hidden::Hidden;
use glovebox_serve::desk::{Problem, Read};
use glovebox_serve::right::Sight;
use serde_json::{Map, Value, json};

/// Fields of the summary of a run.
const RUN: &[&str] = &[
    "document",
    "schema_version",
    "run_id",
    "pipeline",
    "status",
    "exit",
    "failed_node",
    "resumes_at",
    "resume_at",
    "started",
    "model",
    "network",
    "sandbox_tier",
    "engine_version",
    "pipeline_digest",
    "plan_digest",
    "changed",
    "new_configuration",
];
/// Lists in the summary of a run whose items are each about one stage. Items about stages with hold-outs in reach are
/// left out.
const RUN_LISTS: &[&str] =
    &["receipts", "unverified", "quarantined", "refused", "simulated", "unmatched", "unread_status"];
/// Fields of a question.
const QUESTION: &[&str] = &[
    "run_id",
    "generation",
    "branch",
    "node",
    "visit",
    "question",
    "question_type",
    "type",
    "text",
    "choices",
    "default",
    "due_at",
    "is_running",
];
/// Fields of a step of a path.
const STEP: &[&str] = &[
    "generation",
    "branch",
    "node",
    "is_undone",
    "attempt",
    "passed",
    "route",
    "no_route",
    "restarted",
    "gate_unmet",
    "joined",
];
/// Fields of the list of runs.
const LISTED: &[&str] = &["id", "short", "pipeline", "status", "started", "is_own"];

type Fields = Map<String, Value>;

/// Returns the list of runs as builders may see it. The time that a run took and the size of its folder depend on its
/// hold-outs.
pub(super) fn of_list(text: &str) -> Result<Value, Problem> {
    let list = fields(text)?;
    let rows = items(&list, "runs").filter_map(Value::as_object).map(|row| Value::Object(only(row, LISTED)));
    Ok(json!({ "schema_version": list.get("schema_version"), "runs": rows.collect::<Vec<_>>() }))
}

/// Returns a document about a run as builders may see it.
pub(super) fn of_run(what: &Read, text: &str, hidden: &Hidden) -> Result<Value, Problem> {
    let mut document = fields(text)?;
    // The folder of the project is not named to an agent.
    document.remove("source_dir");
    if !hidden.is_sealed() {
        return Ok(Value::Object(document));
    }
    Ok(Value::Object(match what {
        Read::Run(_) => summary(&document, hidden),
        Read::Why(..) => why(&document, hidden),
        Read::Evidence(..) => evidence(&document, hidden),
        Read::Gates(_) => gates(&document, hidden),
        // The workspace is what builders work in.
        Read::Diff(..) => only(&document, &["schema_version", "run_id", "files", "directories", "new_configuration"]),
        _ => return Err(Problem::new(403, "no-right", "builders may not see this document of a run with hold-outs")),
    }))
}

fn summary(document: &Fields, hidden: &Hidden) -> Fields {
    let mut seen = only(document, RUN);
    for name in RUN_LISTS.iter().filter(|name| document.contains_key(**name)) {
        let kept = items(document, name).filter(|item| !is_hidden(item, hidden)).map(|item| reduced(item, hidden));
        seen.insert((*name).to_owned(), kept.collect());
    }
    let visits = items(document, "visited").filter_map(Value::as_object).map(|visit| match named(visit, hidden) {
        true => only(visit, &["generation", "branch", "node", "visit", "status"]),
        false => visit.clone(),
    });
    seen.insert("visited".to_owned(), without_repetition(visits, hidden));
    let questions = items(document, "open_questions").filter(|asked| !is_hidden(asked, hidden));
    let questions = questions.filter_map(Value::as_object).map(|asked| Value::Object(only(asked, QUESTION)));
    let questions: Vec<Value> = questions.collect();
    if !questions.is_empty() {
        seen.insert("open_questions".to_owned(), questions.into());
    }
    insert_failure(&mut seen, document, hidden);
    seen
}

fn why(document: &Fields, hidden: &Hidden) -> Fields {
    let steps = items(document, "steps").filter_map(Value::as_object).filter_map(|step| match named(step, hidden) {
        true => hidden_step(step),
        false => Some(open_step(step, hidden)),
    });
    let mut seen = only(document, &["schema_version", "run_id"]);
    seen.insert("steps".to_owned(), steps.map(Value::Object).collect());
    if let Some(end) = document.get("end").and_then(Value::as_object) {
        let mut told = only(end, &["status", "failed_node", "exit_code", "exit_name"]);
        insert_failure(&mut told, end, hidden);
        if is_of_builder(end, hidden) {
            told.extend(only(end, &["commands"]));
        }
        seen.insert("end".to_owned(), told.into());
    }
    seen
}

/// Returns a step of a stage without hold-outs in reach. Its number is left out, because it counts the records of others,
/// and so are the values that its edges read, because other stages made them.
fn open_step(step: &Fields, hidden: &Hidden) -> Fields {
    let mut seen = only(step, STEP);
    for route in ["route", "no_route"] {
        let edges = seen.get_mut(route).and_then(|route| route.get_mut("edges")).and_then(Value::as_array_mut);
        for edge in edges.into_iter().flatten().filter_map(Value::as_object_mut) {
            edge.remove("values");
        }
    }
    match reduced(&Value::Object(seen), hidden) {
        Value::Object(seen) => seen,
        _ => Fields::new(),
    }
}

/// Returns a step of a stage with hold-outs in reach; `None` for an attempt that another one followed.
fn hidden_step(step: &Fields) -> Option<Fields> {
    let mut seen = only(step, &["generation", "branch", "node", "is_undone"]);
    for (name, told) in [
        ("attempt", &["visit", "status"][..]),
        ("passed", &["visit", "status"]),
        ("route", &["to", "status"]),
        ("no_route", &["status"]),
    ] {
        let Some(inner) = step.get(name).and_then(Value::as_object) else { continue };
        if inner.get("retried").is_some_and(|retried| *retried != Value::Bool(false)) {
            return None;
        }
        seen.insert(name.to_owned(), only(inner, told).into());
    }
    Some(seen)
}

fn evidence(document: &Fields, hidden: &Hidden) -> Fields {
    let commands =
        items(document, "commands").filter_map(Value::as_object).map(|command| match named(command, hidden) {
            true => only(command, &["generation", "branch", "node", "visit", "is_undone"]),
            false => command
                .iter()
                .filter(|(name, _)| *name != "record")
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        });
    let mut seen = only(document, &["schema_version", "run_id", "base_digest"]);
    seen.insert("commands".to_owned(), without_repetition(commands, hidden));
    for name in ["unverified", "unmatched"] {
        let kept = items(document, name).filter(|item| !is_hidden(item, hidden)).cloned();
        seen.insert(name.to_owned(), kept.collect());
    }
    seen
}

fn gates(document: &Fields, hidden: &Hidden) -> Fields {
    let mut seen = only(document, &["schema_version", "answered"]);
    seen.insert("gates".to_owned(), items(document, "gates").filter_map(|gate| of_gate(gate, hidden)).collect());
    seen
}

/// Returns a question of a run with hold-outs as builders may see it: without what was checked and changed before it. `None`
/// if a stage with hold-outs in reach asks.
pub(super) fn of_gate(gate: &Value, hidden: &Hidden) -> Option<Value> {
    let fields = gate.as_object().filter(|_| !is_hidden(gate, hidden))?;
    Some(Value::Object(only(fields, QUESTION)))
}

/// Adds why a run failed. Of a stage with hold-outs in reach, and if no stage is named, only the class and the code.
fn insert_failure(seen: &mut Fields, document: &Fields, hidden: &Hidden) {
    let Some(failure) = document.get("failure").filter(|failure| failure.is_object()) else { return };
    let told = match (is_of_builder(document, hidden), failure.as_object()) {
        (false, Some(failure)) if named(document, hidden) => only(failure, &["class"]),
        (false, Some(failure)) => only(failure, &["class", "code"]),
        (_, failure) => failure.cloned().unwrap_or_default(),
    };
    seen.insert("failure".to_owned(), told.into());
}

/// Returns true if a stage without hold-outs in reach failed.
fn is_of_builder(document: &Fields, hidden: &Hidden) -> bool {
    document.get("failed_node").and_then(Value::as_str).is_some_and(|node| !hidden.has(&node.into()))
}

/// Returns true if an object is about a stage with hold-outs in reach.
fn named(fields: &Fields, hidden: &Hidden) -> bool {
    ["node", "failed_node"].iter().filter_map(|name| fields.get(*name)).any(|node| is_hidden(node, hidden))
}

/// As [`named`], for an item of a list: the name of a stage, or an object about it.
fn is_hidden(item: &Value, hidden: &Hidden) -> bool {
    match item {
        Value::String(node) => hidden.has(&node.as_str().into()),
        Value::Object(fields) => named(fields, hidden),
        _ => false,
    }
}

fn reduced(value: &Value, hidden: &Hidden) -> Value {
    let mut value = value.clone();
    sight::remove(&mut value, &|node| hidden.has(&node.into()), Sight::Builder);
    value
}

/// Returns the items, of equal ones about a stage with hold-outs in reach only the first.
fn without_repetition(items: impl Iterator<Item = Fields>, hidden: &Hidden) -> Value {
    let mut seen: Vec<Value> = Vec::new();
    for item in items.map(Value::Object) {
        if !is_hidden(&item, hidden) || !seen.contains(&item) {
            seen.push(item);
        }
    }
    seen.into()
}

fn only(fields: &Fields, names: &[&str]) -> Fields {
    fields
        .iter()
        .filter(|(name, _)| names.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

fn items<'a>(fields: &'a Fields, name: &str) -> impl Iterator<Item = &'a Value> {
    fields.get(name).and_then(Value::as_array).into_iter().flatten()
}

fn fields(text: &str) -> Result<Fields, Problem> {
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(Problem::new(500, "internal", "the document could not be reduced")),
    }
}
