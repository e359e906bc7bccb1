//! The `json-schema` verifier: checks a JSON file of the workspace against a schema.
//!
//! The schema comes from the pipeline's author: the host passes it with the node, or the verifier reads it from the sealed folder of
//! the hold-outs. The verifier imports neither a model nor commands. Anything that it cannot decide is a failure: a file that is too
//! large, is nested too deeply, or is not JSON.
#![forbid(unsafe_code)]

use glovebox_plugin_sdk::{Handler, Outcome, Stage, export, files};
use glovebox_schema::{SCHEMA_BYTES_MAX, Schema, Violation};
use serde_json::Value;

/// Maximum length of a checked file, in bytes.
const FILE_BYTES_MAX: usize = 4 << 20;
/// Maximum length of a reason, in characters. A message may quote a whole `enum` of the schema.
const REASON_CHARS_MAX: usize = 2000;

struct JsonSchema;

impl Handler for JsonSchema {
    fn execute(stage: Stage) -> Outcome {
        judge(&stage).unwrap_or_else(|(code, reason)| {
            let reason: String = reason.chars().take(REASON_CHARS_MAX).collect();
            Outcome::fail(format!("json-schema/{code}"), reason)
        })
    }
}

export!(
    JsonSchema,
    manifest = concat!(
        r#"{"name":"json-schema","version":""#,
        env!("CARGO_PKG_VERSION"),
        r#"","description":"Checks a JSON file against a schema.","#,
        r#""wants":{"filesystem":"workspace","read":["./"]}}"#
    )
);

/// Code and reason of a failure.
type Failure = (String, String);

fn judge(stage: &Stage) -> Result<Outcome, Failure> {
    let attribute = |name| stage.attribute(name).map(str::trim).filter(|text: &&str| !text.is_empty());
    let syntax = |reason: &str| ("syntax".to_owned(), reason.to_owned());
    let path = attribute("json_file").ok_or_else(|| syntax("no `json_file`, expected the path of a JSON file"))?;
    let schema = match (attribute("json_schema"), attribute("json_schema_holdout")) {
        (Some(text), None) => Schema::parse_any(text),
        (None, Some(path)) => Schema::parse_any(&read(path, SCHEMA_BYTES_MAX)?),
        _ => return Err(syntax("expected one of `json_schema` and `json_schema_holdout`")),
    };
    let schema = schema.map_err(|error| ("schema".to_owned(), format!("the schema cannot be enforced: {error}")))?;
    let text = read(path, FILE_BYTES_MAX)?;
    let value: Value = serde_json::from_str(&text)
        .map_err(|error| ("not-json".to_owned(), format!("`{path}` is not valid JSON: {error}")))?;
    let violations = schema.check(&value);
    if violations.is_empty() {
        return Ok(Outcome::success().notes(format!("`{path}` matches its schema")));
    }
    let violations: Vec<String> = violations.iter().map(Violation::to_string).collect();
    Err(("violated".to_owned(), format!("`{path}` does not match its schema: {}", violations.join("; "))))
}

fn read(path: &str, bytes_max: usize) -> Result<String, Failure> {
    files::read_text(path, bytes_max)
        .map_err(|error| (error.code, format!("`{path}` cannot be read: {}", error.message)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use glovebox_plugin_sdk::testing::{Host, stage};

    const SCHEMA: &str =
        r#"{"type":"object","required":["port"],"properties":{"port":{"type":"integer","maximum":65535}}}"#;

    fn check(file: impl AsRef<[u8]>, schema: (&str, &str), expected: &str) {
        let host = Host::new();
        host.write("c.json", file);
        host.write("sealed/s.json", SCHEMA);
        let outcome =
            host.execute::<JsonSchema>(stage("n").attribute("json_file", "c.json").attribute(schema.0, schema.1));
        let found =
            outcome.failure().map(|failure| format!("{}: {}", failure.code, failure.reason)).unwrap_or_default();
        assert!(found.starts_with(expected) && expected.is_empty() == found.is_empty(), "{schema:?}: {found}");
    }

    #[test]
    fn a_file_is_checked() {
        for schema in [("json_schema", SCHEMA), ("json_schema_holdout", "sealed/s.json")] {
            check(r#"{"port": 80}"#, schema, "");
            let wrong = "json-schema/violated: `c.json` does not match its schema: ";
            check(r#"{"port": "80"}"#, schema, &format!("{wrong}at `/port`: expected integer, found string"));
            check("{}", schema, &format!("{wrong}the property `port` is missing"));
        }
        check("[1]", ("json_schema", r#"{"type":"array"}"#), "");
    }

    #[test]
    fn what_cannot_be_decided_fails() {
        let schema = ("json_schema", SCHEMA);
        check("{", schema, "json-schema/not-json: `c.json` is not valid JSON");
        check("[".repeat(10_000), schema, "json-schema/not-json: `c.json` is not valid JSON: recursion limit");
        check([0xff], schema, "json-schema/invalid: `c.json` cannot be read: `c.json` is not valid UTF-8");
        check(vec![b' '; FILE_BYTES_MAX + 1], schema, "json-schema/too-large");
        check(
            "{}",
            ("json_schema", r#"{"oneOf":[]}"#),
            "json-schema/schema: the schema cannot be enforced: at `#`: the keyword `oneOf`",
        );
        check("{}", ("json_schema_holdout", "sealed/none.json"), "json-schema/not-found");
        check("{}", ("json_schema", ""), "json-schema/syntax: expected one of");
    }
}
