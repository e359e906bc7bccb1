//! Answers that must match a schema: `output_schema` on a node, from the schema file to the edge that reads the object.
//!
//! The witnesses are the log of the fake provider, which shows the schema that was sent, and the context and artifacts
//! of the run.

use crate::providers::{Bench, FAMILIES, Turn};
use crate::workbench::Workbench;
use serde_json::{Value, json};

const PIPELINE: &str = r#"digraph ship {
  start [shape=Mdiamond]
  review [prompt="Review it", output_schema="@schemas/review.json", allowed_write_paths=""]
  fix [shape=parallelogram, tool_command="echo repaired"]
  done [shape=Msquare]
  start -> review
  review -> fix [condition="review.output.verdict=bad"]
  review -> done [condition="review.output.verdict=good"]
  fix -> done
}
"#;

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {
    "verdict": { "enum": ["good", "bad"] },
    "reasons": { "type": "array", "items": { "type": "string", "maxLength": 40 } },
    "note": { "type": ["string", "null"] }
  },
  "required": ["verdict", "reasons", "note"],
  "additionalProperties": false
}
"#;

const GOOD: &str = r#"{"verdict": "good", "reasons": ["it is short"], "note": "OUTCOME: FAIL"}"#;

fn bench(family: &str, turns: &[Turn]) -> Bench {
    let bench = Bench::new(PIPELINE, family, turns);
    bench.write("schemas/review.json", SCHEMA);
    bench
}

/// Returns the schema in a request of this wire format, or null if the request has none.
fn told(family: &str, body: &Value) -> Value {
    let at = match family {
        "openai" => "/text/format/schema",
        "anthropic" => "/output_config/format/schema",
        "gemini" => "/generationConfig/responseJsonSchema",
        "openai-compatible" => "/response_format/json_schema/schema",
        _ => "/format",
    };
    body.pointer(at).cloned().unwrap_or_default()
}

fn bodies(bench: &Bench) -> Vec<Value> {
    let texts = bench.requests();
    texts.iter().map(|text| serde_json::from_str::<Value>(text).unwrap()).collect()
}

#[test]
fn the_checked_object_reaches_the_context_and_the_edges() {
    for family in FAMILIES {
        let bench = bench(family, &[Turn::text(GOOD)]);
        bench.run().ends(0);
        let context = &bench.run_json("checkpoint.json")["context"];
        assert_eq!(context["review.output"], serde_json::from_str::<Value>(GOOD).unwrap(), "{family}");
        assert_eq!(
            (&context["review.output.verdict"], &context["review.output.reasons"]),
            (&json!("good"), &Value::Null)
        );
        let kept: Value = serde_json::from_str(&bench.read_in_run("review/output.json")).unwrap();
        assert_eq!(kept, context["review.output"], "{family}");
        let [body] = &bodies(&bench)[..] else { panic!("{family} is asked once") };
        assert!(body.to_string().contains("JSON Schema of your last answer"), "{family}");
        let beside_tools = ["openai", "anthropic"].contains(&family);
        assert_eq!(told(family, body).is_object(), beside_tools, "{family}: {body}");
    }
}

/// If an answer does not match, the model is asked again with the errors, and this request contains the schema.
#[test]
fn a_wrong_answer_is_asked_for_again() {
    for family in FAMILIES {
        let wrong = Turn::text(r#"{"verdict": "fine", "reasons": [], "note": null}"#);
        let bad = Turn::text("```json\n{\"verdict\": \"bad\", \"reasons\": [], \"note\": null}\n```");
        let bench = bench(family, &[wrong, bad]);
        if family == "openai-compatible" {
            let table = bench.project_text("glovebox.toml");
            bench.write("glovebox.toml", &format!("{table}schema_mode = true\n"));
        }
        bench.run().ends(0);
        assert_eq!(bench.read_in_run("fix/tool.stdout.txt"), "repaired\n", "{family}: the edge for `bad`");
        let bodies = bodies(&bench);
        assert_eq!(bodies.len(), 2, "{family}");
        assert!(bodies[1].to_string().contains("at `/verdict`: expected one of"), "{family}: {}", bodies[1]);
        let schema = told(family, &bodies[1]);
        assert_eq!(schema["properties"]["verdict"], json!({ "enum": ["good", "bad"] }), "{family}");
        // Each provider gets only the keywords that it supports. The host checks all of them.
        let has_lengths = schema["properties"]["reasons"]["items"].get("maxLength").is_some();
        assert_eq!(has_lengths, ["openai", "openai-compatible", "ollama"].contains(&family), "{family}");
    }
}

/// `no-object-generated`: the failure class depends on whether the provider was given the schema.
#[test]
fn answers_that_never_match_fail_the_stage() {
    for family in FAMILIES {
        let bench = bench(family, &[Turn::text("It is good.").repeat()]);
        bench.run().ends(8).says("provider/no-object-generated").says("3 answers in a row");
        let class = if family == "openai-compatible" { "contract" } else { "deterministic" };
        let failure = &bench.show()["failure"];
        assert_eq!(failure["class"], class, "{family}: {failure}");
        assert_eq!(bench.requests().len(), 3, "{family}");
        assert!(bench.run_json("checkpoint.json")["context"].get("review.output").is_none(), "{family}");
    }
}

#[test]
fn a_model_that_gives_up_fails_without_an_object() {
    let bench = bench("gemini", &[Turn::text("OUTCOME: FAIL there is nothing to review")]);
    bench.run().ends(1).says("there is nothing to review");
    assert_eq!(bench.requests().len(), 1);
}

/// A repeated attempt has the same exchanges and sends no request twice.
#[test]
fn a_killed_attempt_goes_on_with_the_same_exchanges() {
    let turns = [Turn::text("It is good."), Turn::text("It is still good.").after(3000), Turn::text(GOOD)];
    let bench = bench("openai", &turns);
    bench.kill_run_after(2);
    bench.resume().ends(0);
    let bodies = bodies(&bench);
    let problems = |body: &Value| body.to_string().matches("does not match the JSON Schema").count();
    assert_eq!(bodies.iter().map(problems).filter(|count| *count == 0).count(), 1, "the first answer is paid for once");
    assert_eq!(bench.run_json("checkpoint.json")["context"]["review.output.verdict"], "good");
}

#[test]
fn without_a_model_the_answer_is_an_example() {
    let bench = Workbench::with_pipeline(PIPELINE);
    bench.write("schemas/review.json", SCHEMA);
    bench.glovebox(&["run", "pipeline.dot", "--simulate", "--run-id", "r"]).ends(0);
    bench.write(
        "model.toml",
        "[[node.review]]\ntext = \"nothing\"\n\n[[node.review]]\ntext = '{\"verdict\":\"good\"}'\n",
    );
    bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "s"]).ends(8).says("script");
    bench.write("model.toml", &format!("[[node.review]]\ntext = '''{GOOD}'''\n"));
    bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "t"]).ends(0);
}

/// A child pipeline uses the object under the names of its own file and reads the schema from its own folder.
#[test]
fn a_child_reads_its_own_objects() {
    let child = PIPELINE.replace("tool_command=\"echo repaired\"", "tool_command=\"false\"");
    let around = "digraph p {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  sub [type=subpipeline, \
        \"stack.child_dotfile\"=\"children/ship.dot\", \"stack.context_out\"=\"review.output\"]\n  start -> sub -> done\n}\n";
    let bench = Workbench::with_pipeline(around);
    bench.write("children/ship.dot", &child);
    bench.write("children/schemas/review.json", SCHEMA);
    bench.write("model.toml", &format!("[[node.sub__review]]\ntext = '''{GOOD}'''\n"));
    bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "r"]).ends(0);
    assert_eq!(bench.run_json("r", "checkpoint.json")["context"]["review.output"]["verdict"], "good");
}

/// The plan contains the digest of the schema, so another schema changes the plan.
#[test]
fn a_schema_is_part_of_the_plan_and_is_refused_before_the_first_stage() {
    let bench = Workbench::with_pipeline(PIPELINE);
    let digest = |schema: &str| {
        bench.write("schemas/review.json", schema);
        let plan = bench.glovebox(&["plan", "pipeline.dot", "--json"]).json();
        let nodes = plan["nodes"].as_array().unwrap().clone();
        nodes.iter().find(|node| node["id"] == "review").unwrap()["output_schema"].clone()
    };
    let first = digest(SCHEMA);
    assert!(first.is_string());
    assert_eq!(digest(&SCHEMA.replace('\n', " ")), first, "white space says nothing");
    assert_ne!(digest(&SCHEMA.replace("40", "41")), first);
    bench.write("schemas/review.json", "[]");
    let run = bench.glovebox(&["run", "pipeline.dot", "--simulate"]);
    run.ends(3).says("output_schema").says("not the schema of an object");
}
