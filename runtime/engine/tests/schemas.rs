//! Tests that the published schemas match the types that are written. `UPDATE_SCHEMAS=1` writes the schemas again.

use std::path::Path;

#[test]
fn published_schemas_are_current() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let mut stale = Vec::new();
    for (name, schema) in glovebox_engine::project::schema::schemas() {
        let file = folder.join(format!("{name}.schema.json"));
        let text = serde_json::to_string_pretty(&schema).expect("schema") + "\n";
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::create_dir_all(&folder).expect("folder");
            std::fs::write(&file, &text).expect("write");
        } else if std::fs::read_to_string(&file).unwrap_or_default() != text {
            stale.push(name);
        }
    }
    assert!(
        stale.is_empty(),
        "run `UPDATE_SCHEMAS=1 cargo test -p glovebox-engine --test engine schemas`: {stale:?} differ"
    );
}

/// The keys of a line of `trace.jsonl` in the open implementation of the specification, by the line's type.
const PUBLIC_TRACE: &[(&str, &[&str])] = &[
    ("SessionInitialized", &[]),
    ("PipelineStarted", &["run_id", "start_node"]),
    ("ResumeLoaded", &[]),
    (
        "NodeInputCaptured",
        &["context_before", "node_artifact_dir", "node_attrs", "node_id", "node_shape", "node_type", "workspace"],
    ),
    ("NodeExecutionErrored", &[]),
    (
        "NodeOutputCaptured",
        &["context_after", "context_delta", "context_updates", "failure_reason", "node_id", "outcome", "status_path"],
    ),
    ("RouteEvaluated", &["candidates", "from_node", "next_node", "outcome"]),
    ("PipelineCompleted", &[]),
    ("PipelineFailed", &[]),
];
/// What our lines leave out, with the reason (`docs/run-directory.md`).
const LEFT_OUT: &[(&str, &str)] = &[
    (
        "context_before",
        "`context_delta` and the line before it say the same, and a line does not grow with the context",
    ),
    ("context_after", "as `context_before`"),
    ("NodeExecutionErrored", "an error of a handler is an outcome, so the line is `NodeOutputCaptured`"),
];

#[test]
fn lines_of_the_trace_have_the_public_keys() {
    let schemas = glovebox_engine::project::schema::schemas();
    let (_, schema) = schemas.iter().find(|(name, _)| *name == "trace").expect("the schema of the trace");
    let lines = schema.get("oneOf").and_then(serde_json::Value::as_array).expect("one schema for each type");
    let line = |name: &str| lines.iter().find(|line| line["properties"]["type"]["const"] == name);
    let mut missing = Vec::new();
    for (name, keys) in PUBLIC_TRACE {
        match line(name) {
            None => missing.push(*name),
            Some(line) => missing.extend(keys.iter().filter(|key| line["properties"].get(**key).is_none())),
        }
    }
    let candidate = &schema.get("$defs").expect("definitions")["TraceCandidate"]["properties"];
    missing.extend(["condition", "matched", "to", "weight"].iter().filter(|key| candidate.get(**key).is_none()));
    missing.sort_unstable();
    let mut left_out: Vec<&str> = LEFT_OUT.iter().map(|(name, _)| *name).collect();
    left_out.sort_unstable();
    assert_eq!(missing, left_out);
}
