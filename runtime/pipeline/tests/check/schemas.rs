//! Tests of schemas in a pipeline: that of a model's answer (`output_schema`), and that of a document (`json-schema`).

use super::{line, node, with, with_node};
use glovebox_pipeline::{CheckResult, Inputs, Source, check};
use insta::assert_snapshot;

const SCHEMA: &str = r#"{ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"], "additionalProperties": false }"#;

/// Checks a file that may refer to `s.json`, `text.txt` and `gone.json`, of which the last one cannot be read.
fn checked(source: &str) -> CheckResult {
    let mut inputs = Inputs::default();
    inputs.files.insert("s.json".to_owned(), Ok(SCHEMA.to_owned()));
    inputs.files.insert("text.txt".to_owned(), Ok("no JSON".to_owned()));
    inputs.files.insert("gone.json".to_owned(), Err("it is gone".to_owned()));
    check(Source::new(source), &inputs)
}

/// Returns the errors of a file with their help.
fn errors(source: &str) -> String {
    let found = checked(source).diagnostics;
    let errors = found.iter().filter(|found| found.is_error());
    errors
        .map(|error| format!("{} | {}", line(source, error), error.help.clone().unwrap_or_default()))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_schema_of_an_answer_is_the_text_or_the_file() {
    let found = |attributes: &str| {
        let source = with_node(attributes);
        let pipeline = checked(&source).pipeline.unwrap_or_else(|| panic!("{}", errors(&source)));
        node(&pipeline, "n").agent.output_schema.as_ref().map(|schema| schema.text().to_owned())
    };
    let of_file = found("output_schema=\"@s.json\"").expect("a schema");
    assert_eq!(found(&format!("output_schema=\"{}\"", SCHEMA.replace('"', "\\\""))), Some(of_file));
    assert_eq!((found("label=x"), found("output_schema=\" \"")), (None, None));
    assert!(found("output_schema=\"@s.json\", agent.backend=\" \"").is_some());
}

#[test]
fn a_schema_of_an_answer_that_would_not_be_enforced_is_an_error() {
    assert_snapshot!(errors(&with_node("output_schema=\"@s.json\", shape=parallelogram, tool_command=make")), @r#"output_schema «"@s.json"» `output_schema` is set on a `tool` node, which asks no model for an answer | remove it, or make the node a `box`"#);
    assert_snapshot!(errors(&with_node("output_schema=\"@s.json\", agent.backend=claude")), @r#"output_schema «"@s.json"» `output_schema` has no effect together with `agent.backend`: the answer of an agent program is not checked | remove it, or remove `agent.backend="claude"`"#);
    assert_snapshot!(errors(&with_node("output_schema=\"@../s.json\"")), @r#"output_schema «"@../s.json"» cannot read the schema file `../s.json`: the path contains `..` | write the path from the folder of the pipeline file, such as `@schemas/review.json`"#);
    assert_snapshot!(errors(&with_node("output_schema=\"@scripts/scenarios/s.json\"")), @r#"output_schema «"@scripts/scenarios/s.json"» cannot read the schema file `scripts/scenarios/s.json`: `scripts/scenarios/` contains hold-outs | write the path from the folder of the pipeline file, such as `@schemas/review.json`"#);
    assert_snapshot!(errors(&with_node("output_schema=\"@gone.json\"")), @r#"output_schema «"@gone.json"» cannot read the schema file `gone.json`: it is gone | write the path from the folder of the pipeline file, such as `@schemas/review.json`"#);
    assert_snapshot!(errors(&with_node("output_schema=\"@text.txt\"")), @r#"output_schema «"@text.txt"» `output_schema` cannot be enforced: it is not JSON: expected ident at line 1 column 2 | docs/models.md says what a schema may contain"#);
    assert_snapshot!(errors(&with_node("output_schema=\"[]\"")), @r#"output_schema «"[]"» `output_schema` cannot be enforced: it is not the schema of an object: expected `"type": "object"` at its root | docs/models.md says what a schema may contain"#);
}

/// Returns a file with a `json-schema` stage that has these attributes.
fn document(attributes: &str) -> String {
    with(&format!("graph [scenarios=\"hidden/, more/\"] n [type=\"json-schema\", {attributes}] start -> n -> exit"))
}

#[test]
fn the_schema_of_a_document_becomes_the_value_of_its_attribute() {
    let value = |attributes: &str| {
        let source = document(attributes);
        let pipeline = checked(&source).pipeline.unwrap_or_else(|| panic!("{}", errors(&source)));
        node(&pipeline, "n").attributes.get(glovebox_pipeline::key::JSON_SCHEMA).map(|one| one.value.to_string())
    };
    let text = value("json_file=a, json_schema=\"@s.json\"").expect("a schema");
    assert!(text.contains("additionalProperties"), "{text}");
    for folder in ["hidden", "more"] {
        assert_eq!(value(&format!("json_file=a, json_schema_holdout=\"{folder}/s.json\"")), None);
    }
    // The attribute of another stage stays as it is.
    let other = with_node("json_schema=\"@s.json\"");
    let pipeline = checked(&other).pipeline;
    assert!(
        pipeline.is_none_or(
            |pipeline| node(&pipeline, "n").attributes[glovebox_pipeline::key::JSON_SCHEMA].value == "@s.json"
        )
    );
}

#[test]
fn a_document_without_a_file_or_one_schema_is_an_error() {
    assert_snapshot!(errors(&document("json_schema=\"@s.json\"")), @r#"json_schema «"@s.json"» `n` has no `json_file` | name the file to check: `json_file="config.json"`"#);
    assert_snapshot!(errors(&document("json_file=\" \", json_schema=\"@s.json\"")), @r#"json_schema «"@s.json"» `n` has no `json_file` | name the file to check: `json_file="config.json"`"#);
    assert_snapshot!(errors(&document("json_file=a")), @r#"json_schema «n» `n` has no `json_schema` | add `json_schema="@schemas/config.json"`"#);
    assert_snapshot!(errors(&document("json_file=a, json_schema=\" \"")), @r#"json_schema «" "» `n` has no `json_schema` | add `json_schema="@schemas/config.json"`"#);
    assert_snapshot!(errors(&document("json_file=a, json_schema=\"@s.json\", json_schema_holdout=\"hidden/s\"")), @r#"json_schema «"@s.json"» `n` has both `json_schema` and `json_schema_holdout` | remove one of them"#);
    assert_snapshot!(errors(&document("json_file=a, json_schema=\"@hidden/s.json\"")), @r#"json_schema «"@hidden/s.json"» cannot read the schema file `hidden/s.json`: `hidden/` contains hold-outs | a schema among the hold-outs must be named by `json_schema_holdout`"#);
    assert_snapshot!(errors(&document("json_file=a, json_schema=\"{\"")), @r#"json_schema «"{"» `json_schema` cannot be enforced: it is not JSON: EOF while parsing an object at line 1 column 1 | docs/verifiers.md says what a schema may contain"#);
    assert_snapshot!(errors(&document("json_file=a, json_schema_holdout=\"src/s.json\"")), @r#"json_schema «"src/s.json"» `json_schema_holdout` is `src/s.json`: no hold-out folder contains it | the hold-outs are in hidden/, more/"#);
    assert_snapshot!(errors(&document("json_file=a, json_schema_holdout=\"../s.json\"")), @r#"json_schema «"../s.json"» `json_schema_holdout` is `../s.json`: the path contains `..` | the hold-outs are in hidden/, more/"#);
}
