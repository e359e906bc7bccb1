//! Every JSON output conforms to its published schema and writes digests and times in one format.
//!
//! The validator implements the keywords that these schemas use and fails on any other keyword, so no rule is skipped.

use crate::workbench::{self, Workbench, root};
use serde_json::{Map, Value};
use std::process::Command;

/// Keywords that do not restrict a value.
const NOTES: [&str; 8] = ["$schema", "title", "description", "$defs", "default", "format", "examples", "deprecated"];

struct Schema(Value);

impl Schema {
    fn published(name: &str) -> Self {
        let file = root().join(format!("docs/schemas/{name}.schema.json"));
        let text = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        Self(serde_json::from_str(&text).unwrap())
    }

    /// Returns how a value violates the schema, or `None`.
    fn fault(&self, schema: &Value, value: &Value, at: &str) -> Option<String> {
        let rules = match schema {
            Value::Bool(true) => return None,
            Value::Object(rules) => rules,
            _ => return Some(format!("{at}: nothing is allowed")),
        };
        rules.iter().find_map(|(keyword, rule)| self.broken(rules, (keyword, rule), value, at))
    }

    fn broken(
        &self,
        rules: &Map<String, Value>,
        (keyword, rule): (&str, &Value),
        value: &Value,
        at: &str,
    ) -> Option<String> {
        let each = || rule.as_array().unwrap().iter();
        let passes = |schema: &Value| self.fault(schema, value, at).is_none();
        let is_met = match keyword {
            _ if NOTES.contains(&keyword) => true,
            "$ref" => {
                let target = self.0.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap();
                return self.fault(target, value, at);
            }
            "allOf" => return each().find_map(|schema| self.fault(schema, value, at)),
            "anyOf" => each().any(passes),
            "oneOf" => each().filter(|schema| passes(schema)).count() == 1,
            "type" => rule.as_array().map_or_else(|| is(rule, value), |types| types.iter().any(|name| is(name, value))),
            "const" => rule == value,
            "enum" => each().any(|known| known == value),
            "minimum" => value.as_f64().is_none_or(|number| number >= rule.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= rule.as_f64().unwrap()),
            "pattern" => value.as_str().is_none_or(|text| matches_pattern(rule.as_str().unwrap(), text)),
            "minItems" => value.as_array().is_none_or(|list| list.len() as u64 >= rule.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|list| list.len() as u64 <= rule.as_u64().unwrap()),
            "uniqueItems" => {
                value.as_array().is_none_or(|list| (1..list.len()).all(|end| !list[..end].contains(&list[end])))
            }
            "required" => {
                value.as_object().is_none_or(|fields| each().all(|name| fields.contains_key(name.as_str().unwrap())))
            }
            "items" => {
                let list = value.as_array().into_iter().flatten().enumerate();
                return list
                    .map(|(index, item)| (format!("{at}/{index}"), item))
                    .find_map(|(at, item)| self.fault(rule, item, &at));
            }
            "prefixItems" => {
                let list = value.as_array().into_iter().flatten().zip(each()).enumerate();
                return list
                    .map(|(index, pair)| (format!("{at}/{index}"), pair))
                    .find_map(|(at, (item, schema))| self.fault(schema, item, &at));
            }
            "properties" => {
                let fields = value.as_object().into_iter().flatten();
                let known = fields.filter_map(|(name, field)| Some((name, field, rule.get(name)?)));
                return known
                    .into_iter()
                    .find_map(|(name, field, schema)| self.fault(schema, field, &format!("{at}/{name}")));
            }
            "additionalProperties" => {
                let known = rules.get("properties").and_then(Value::as_object);
                let fields = value.as_object().into_iter().flatten();
                let mut others = fields.filter(|(name, _)| known.is_none_or(|known| !known.contains_key(*name)));
                return others.find_map(|(name, field)| self.fault(rule, field, &format!("{at}/{name}")));
            }
            other => panic!("{at}: the validator does not know `{other}`"),
        };
        (!is_met).then(|| format!("{at}: {value} breaks `{keyword}`: {rule}"))
    }
}

fn is(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("no type `{other}`"),
    }
}

fn matches_pattern(pattern: &str, text: &str) -> bool {
    assert_eq!(pattern, "^blake3:[0-9a-f]{64}$", "the validator knows one pattern");
    text.strip_prefix("blake3:").is_some_and(is_hex)
}

fn is_hex(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Returns the first digest without a prefix or time without three decimals, or `None`.
fn spelled_wrong(value: &Value, at: &str) -> Option<String> {
    let is_time = |text: &str| {
        text.ends_with('Z') && text.get(..11).is_some_and(|day| day.ends_with('T') && day.matches('-').count() == 2)
    };
    match value {
        Value::String(text) if is_hex(text) => Some(format!("{at}: the digest {text} has no prefix")),
        Value::String(text) if is_time(text) && (text.len() != 24 || text.get(19..20) != Some(".")) => {
            Some(format!("{at}: the time {text} has not three decimals"))
        }
        Value::Array(list) => {
            list.iter().enumerate().find_map(|(index, item)| spelled_wrong(item, &format!("{at}/{index}")))
        }
        Value::Object(fields) => fields.iter().find_map(|(name, field)| spelled_wrong(field, &format!("{at}/{name}"))),
        _ => None,
    }
}

fn conforms(name: &str, value: &Value) {
    let schema = Schema::published(name);
    assert_eq!(schema.fault(&schema.0, value, name), None, "{value:#}");
    assert_eq!(spelled_wrong(value, name), None);
    // Every document has a version. In lists of records and findings, each item has it.
    assert!(
        value.is_array()
            || value.get("schema_version").is_some()
            || matches!(name, "record" | "plugin-inspect" | "doctor" | "graph"),
        "{name}"
    );
    // Checks that the schema restricts values at all.
    assert!(schema.fault(&schema.0, &Value::Bool(true), name).is_some(), "{name} allows anything");
}

/// Creates a repository with two runs: `good`, with hold-outs, a scripted model and a refused write, and `bad`.
fn bench() -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         build [shape=box, allowed_write_paths=\"src/\", prompt=\"x\"]\n\
         t [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"test -d src\"]\n\
         v [shape=octagon, allowed_write_paths=\"\", command=\"ls scripts/scenarios\", holdouts=\"scripts/scenarios/\"]\n\
         start -> build -> t -> v -> done }",
    );
    bench.write("scripts/scenarios/one.sh", "true # a hold-out that nobody sees\n");
    bench.write(
        "script.toml",
        "[[node.build]]\nusage = { input = 1200, output = 34 }\n\
         tool = [{ name = \"write_file\", arguments = { path = \"src/a.txt\", content = \"a\\n\" } },\n\
         { name = \"write_file\", arguments = { path = \"other.txt\", content = \"b\\n\" } }]\n\
         [[node.build]]\ntext = \"done\"\nusage = { input = 1, output = 1 }\n",
    );
    bench.write("bad.dot", "digraph bad { start [shape=Mdiamond]; done [shape=Msquare]; t [shape=parallelogram, allowed_write_paths=\"\", tool_command=\"exit 3\"]; start -> t -> done }");
    for words in [
        &["init", "-q", "-b", "main"][..],
        &["add", "-A"],
        &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "x"],
    ] {
        assert!(Command::new("git").args(words).current_dir(bench.project()).status().unwrap().success());
    }
    bench
}

#[test]
fn what_a_run_prints_conforms_and_ends_with_the_verdict() {
    let bench = bench();
    let good = ["run", "pipeline.dot", "--script", "script.toml", "--run-id", "good", "--json"];
    for (words, code, exit) in
        [(&good[..], 0, "ok"), (&["run", "bad.dot", "--run-id", "bad", "--json"], 1, "run-failed")]
    {
        let mut lines = bench.glovebox(words).ends(code).json_lines();
        let verdict = lines.pop().unwrap();
        lines.iter().for_each(|record| conforms("record", record));
        conforms("verdict", &verdict);
        let last = lines.last().unwrap();
        assert_eq!((&verdict["journal"]["hash"], &verdict["journal"]["records"]), (&last["hash"], &last["seq"]));
        assert_eq!((&verdict["finished"], &verdict["started"]), (&last["at"], &lines[0]["at"]));
        assert_eq!(verdict["exit"]["name"], exit);
        assert_eq!(verdict["plan_digest"], lines[0]["event"]["plan_digest"]);
        assert_eq!(verdict["sandbox_tier"], "full");
        let tool = verdict["components"]["tool"].as_str().unwrap();
        let version = bench.glovebox(&["version", "--json"]).ends(0).json();
        assert!(version["components"].as_array().unwrap().iter().any(|known| known["digest"] == tool));
        let run = words.last().unwrap();
        assert_eq!(run, &"--json");
    }
    let shown = bench.glovebox(&["show", "good", "--json"]).ends(0).json();
    assert_eq!(shown["tokens"], serde_json::json!({ "input": 1201, "output": 35 }));
    assert!(!shown["refused"].as_array().unwrap().is_empty() && shown["holdouts_root"].is_string());
    bench.glovebox(&["show", "good"]).ends(0).says("tokens       1201 sent, 35 received");
    conforms("verdict", bench.glovebox(&["resume", "bad", "--json"]).ends(1).json_lines().last().unwrap());
}

#[test]
fn what_other_commands_print_conforms() {
    let bench = bench();
    bench.glovebox(&["run", "pipeline.dot", "--script", "script.toml", "--run-id", "good", "--quiet"]).ends(0);
    bench.glovebox(&["run", "bad.dot", "--run-id", "bad", "--quiet"]).ends(1);
    let component = root().join("target/components/tool.wasm");
    std::fs::copy(component, bench.project().join("tool.wasm")).unwrap();
    for (name, words) in [
        ("ls", &["ls", "--json"][..]),
        ("verdict", &["show", "good", "--json"]),
        ("show-node", &["show", "good", "build", "--json"]),
        ("why", &["why", "good", "--json"]),
        ("why", &["why", "bad", "--json"]),
        ("diff", &["diff", "good", "--json"]),
        ("control", &["wait", "good", "--json"]),
        ("holdout-status", &["holdout", "status", "good", "--json"]),
        ("holdout-verify", &["holdout", "verify", "good", "--json"]),
        ("version", &["version", "--json"]),
        ("plugin-inspect", &["plugin", "inspect", "tool.wasm", "--json"]),
        ("plugin-test", &["plugin", "test", "tool.wasm", "--json"]),
        ("plan", &["plan", "pipeline.dot", "--json"]),
        ("check", &["check", "pipeline.dot", "bad.dot", "--format", "json"]),
        ("graph", &["graph", "pipeline.dot", "--format", "json"]),
        ("graph", &["graph", "good", "--format", "json"]),
        ("doctor", &["doctor", "--json"]),
    ] {
        conforms(name, &bench.glovebox(words).ends(0).json());
    }
    let mut branch = bench.command(&["apply", "good", "--branch", "b", "--json"]);
    for (name, value) in
        [("AUTHOR_NAME", "a"), ("AUTHOR_EMAIL", "a@b"), ("COMMITTER_NAME", "a"), ("COMMITTER_EMAIL", "a@b")]
    {
        branch.env(format!("GIT_{name}"), value);
    }
    conforms("branch", &workbench::Answer::of(&mut branch).ends(0).json());
    conforms("apply", &bench.glovebox(&["apply", "good", "--json"]).ends(0).json());
    bench.write("glovebox.toml", "");
    conforms("plugin-lock", &bench.glovebox(&["plugin", "lock", "--json"]).ends(0).json());
    for (name, file) in [("manifest", "manifest.json"), ("final", "final.json"), ("checkpoint", "checkpoint.json")] {
        let value = bench.run_json("good", file);
        assert_eq!(spelled_wrong(&value, file), None);
        let schema = Schema::published(name);
        assert_eq!(schema.fault(&schema.0, &value, name), None, "{value:#}");
    }
    let outputs = bench.glovebox(&["logs", "bad", "--json"]).ends(0).json_lines();
    outputs.iter().for_each(|line| conforms("logs", line));
    let said = bench.glovebox(&["transcript", "good", "build", "--json"]).ends(0).json_lines();
    said.iter().for_each(|line| conforms("transcript", line));
    conforms("removed", &bench.glovebox(&["gc", "--dry-run", "--keep", "0", "--json"]).ends(0).json());
    conforms("removed", &bench.glovebox(&["rm", "bad", "--json"]).ends(0).json());
    let trace = bench.run_text("good", "trace.jsonl");
    trace.lines().for_each(|line| conforms("trace", &serde_json::from_str(line).unwrap()));
}

#[test]
fn the_program_prints_its_published_schemas() {
    let bench = Workbench::new();
    let list = bench.glovebox(&["schema"]);
    list.ends(0);
    let names: Vec<&str> = list.stdout.lines().filter_map(|line| line.split(' ').next()).collect();
    assert!(names.len() > 40 && names.contains(&"record"), "{names:?}");
    for name in names {
        let published = std::fs::read_to_string(root().join(format!("docs/schemas/{name}.schema.json"))).unwrap();
        assert_eq!(bench.glovebox(&["schema", name]).ends(0).stdout, published, "{name}");
    }
    bench.glovebox(&["schema", "recrod"]).ends(2).says("unknown schema `recrod`").says("glovebox schema record");
}
