//! `glovebox mcp` with the real binary: what an agent sees and may do, what it never sees, and hostile clients.

mod client;

use crate::workbench::Workbench;
use client::Agent;
use serde_json::{Value, json};

const TWO_STAGES: &str = "digraph release {
  start [shape=Mdiamond]; done [shape=Msquare]
  write [shape=parallelogram, tool_command=\"echo written > out.txt\", allowed_write_paths=\"out.txt\"]
  check [shape=parallelogram, tool_command=\"test -f out.txt\", allowed_write_paths=\"\"]
  start -> write -> check -> done
}
";

const GATE: &str = "digraph release {
  start; exit
  gate [shape=hexagon, label=\"Ship?\"]
  ship [shape=parallelogram, tool_command=\"echo shipped\", allowed_write_paths=\"\"]
  fix  [shape=parallelogram, tool_command=\"echo fixed\", allowed_write_paths=\"\"]
  start -> gate
  gate -> ship [label=\"[S] Ship it\"]
  gate -> fix  [label=\"[F] Fix first\"]
  ship -> exit
  fix  -> exit
}
";

const READING: [&str; 9] = ["check", "plan", "start", "runs", "run", "why", "evidence", "diff", "wait"];

#[test]
fn an_agent_plans_starts_waits_and_reads() {
    let bench = Workbench::with_pipeline(TWO_STAGES);
    let mut agent = Agent::start(&bench, &[]);
    assert_eq!(agent.tools(), READING);
    let file = json!({ "file": "pipeline.dot" });
    assert_eq!(
        agent.document("check", file.clone()),
        bench
            .bare(&["check", "pipeline.dot", "--format", "json"])
            .output()
            .map(|said| serde_json::from_slice::<Value>(&said.stdout).unwrap())
            .unwrap()
    );
    let plan = agent.document("plan", file);
    let with = |digest: &Value| json!({ "file": "pipeline.dot", "plan_digest": digest });
    let started = agent.document("start", with(&plan["digest"]));
    assert_eq!(started["plan_digest"], plan["digest"]);
    let run = json!({ "run": started["id"] });
    let (waited, _) = agent.call("wait", run.clone());
    assert!(waited.starts_with("The run has ended"), "{waited}");
    let id = started["id"].as_str().unwrap();
    let printed = |words: &[&str]| {
        let said = bench.bare(words).output().unwrap();
        serde_json::from_slice::<Value>(&said.stdout).unwrap()
    };
    // Without hold-outs a builder sees what the commands print, but for the path of the project.
    let mut shown = printed(&["show", id, "--json"]);
    shown.as_object_mut().unwrap().remove("source_dir").unwrap();
    assert_eq!(agent.document("run", run.clone()), shown);
    for tool in ["why", "evidence", "diff"] {
        assert_eq!(agent.document(tool, run.clone()), printed(&[tool, id, "--json"]), "{tool}");
    }
    let listed = agent.document("runs", json!({}));
    assert_eq!((&listed["runs"][0]["id"], &listed["runs"][0]["project"]), (&json!(id), &Value::Null));
    let node = agent.document("evidence", json!({ "run": id, "node": "write" }));
    assert_eq!(node["commands"].as_array().unwrap().len(), 1);
    let (code, said) = agent.end();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn only_a_plan_that_was_shown_starts() {
    let bench = Workbench::with_pipeline(TWO_STAGES);
    let printed = bench.bare(&["plan", "pipeline.dot", "--json"]).output().unwrap();
    let real: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let mut agent = Agent::start(&bench, &[]);
    let with = |digest: &Value| json!({ "file": "pipeline.dot", "plan_digest": digest });
    // The digest is right, but this client has not seen the plan.
    let refused = agent.refused("start", with(&real["digest"]));
    assert_eq!(refused["code"], "plan-not-shown");
    assert_eq!(agent.refused("start", json!({ "file": "pipeline.dot" }))["code"], "usage");
    // A plan of two pages counts after the second.
    let many: String = (0..40).map(|at| format!("  s{at} [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n  start -> s{at} -> done\n")).collect();
    bench.write("many.dot", &format!("digraph m {{ start [shape=Mdiamond]; done [shape=Msquare]\n{many}}}"));
    let many = json!({ "file": "many.dot" });
    let (first, _) = agent.call("plan", many.clone());
    let digest = client::data(&first).split("\"digest\": \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    assert_eq!(agent.refused("start", json!({ "file": "many.dot", "plan_digest": digest }))["code"], "plan-not-shown");
    let whole: Value = serde_json::from_str(&agent.text("plan", many)).unwrap();
    assert_eq!(whole["nodes"].as_array().unwrap().len(), 42);
    // A pipeline that has changed since it was shown does not start.
    let shown = agent.document("plan", json!({ "file": "pipeline.dot" }));
    assert_eq!(shown["digest"], real["digest"]);
    bench.write("pipeline.dot", &TWO_STAGES.replace("allowed_write_paths=\"\"", "allowed_write_paths=\"src/\""));
    let changed = agent.refused("start", with(&shown["digest"]));
    assert_eq!((&changed["code"], &changed["exit"]), (&json!("plan-changed"), &json!(11)));
    assert_eq!(agent.document("runs", json!({}))["runs"], json!([]));
}

#[test]
fn tools_that_act_exist_only_with_their_right() {
    let bench = Workbench::with_pipeline(GATE);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(10);
    let mut agent = Agent::start(&bench, &[]);
    let answer = json!({ "run": "r", "question": "gate#1", "value": "S" });
    for (tool, arguments) in [
        ("answer", answer.clone()),
        ("gates", json!({ "run": "r" })),
        ("steer", json!({ "run": "r", "node": "ship", "text": "t" })),
        ("pause", json!({ "run": "r" })),
        ("resume", json!({ "run": "r" })),
        ("cancel", json!({ "run": "r" })),
        ("apply", json!({ "run": "r" })),
    ] {
        let refused = agent.request("tools/call", json!({ "name": tool, "arguments": arguments }));
        assert_eq!(refused["error"]["code"], -32602, "{tool}: {refused}");
    }
    let (waited, _) = agent.call("wait", json!({ "run": "r", "timeout_s": 1 }));
    assert!(waited.starts_with("The run has ended, or it is paused"), "{waited}");
    let mut agent = Agent::start(&bench, &["--right", "operate"]);
    assert!(!agent.tools().contains(&"apply".to_owned()));
    assert_eq!(agent.document("gates", json!({ "run": "r" }))["gates"][0]["question"], "gate#1");
    agent.document("answer", answer.clone());
    assert_eq!(agent.refused("answer", answer)["exit"], 6);
    agent.document("resume", json!({ "run": "r" }));
    agent.call("wait", json!({ "run": "r" }));
    let run = agent.document("run", json!({ "run": "r" }));
    assert_eq!(run["status"], "success");
    let answered = bench.glovebox(&["attach", "r", "--json", "--all"]).json_lines();
    let answered = answered.iter().find(|record| record["event"]["kind"] == "question.answered").unwrap();
    assert_eq!((&answered["event"]["how"], &answered["event"]["by"]), (&json!("mcp"), &json!("mcp")));
    for right in ["withheld", "view", "start-unseen", "all"] {
        bench.glovebox(&["mcp", "--right", right]).ends(2).says("an agent can get the rights `operate` and `apply`");
    }
}

#[test]
fn changes_are_applied_only_as_they_were_shown() {
    let bench = Workbench::with_pipeline(TWO_STAGES);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    let mut agent = Agent::start(&bench, &["--right", "apply"]);
    let run = json!({ "run": "r" });
    assert_eq!(agent.refused("apply", run.clone())["code"], "changes-not-shown");
    assert!(!bench.has("out.txt"));
    agent.document("diff", run.clone());
    agent.document("apply", run);
    assert_eq!(bench.read("out.txt"), "written\n");
}

/// A line of the hold-outs.
const SECRET: &str = "forty-two apples in a wicker basket";

/// Runs a pipeline whose judge prints a hold-out, and is tried again once before it fails. `code` is its exit code.
fn judged(code: u8) -> Workbench {
    let bench = Workbench::with_pipeline(
        "digraph g { graph [goal=g, max_steps=8] start [shape=Mdiamond] done [shape=Msquare]
  build [shape=parallelogram, tool_command=\"echo one > answer.txt\", allowed_write_paths=\"answer.txt\"]
  judge [shape=octagon, command=\"sh scripts/scenarios/check.sh\", label=open, retry_policy=standard, max_retries=1]
  start -> build -> judge -> done }\n",
    );
    bench.write(
        "scripts/scenarios/check.sh",
        &format!("echo {SECRET}\necho 'hint: plums count as well'\nexit {code}\n"),
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]);
    bench
}

/// Adds the digests, lengths and times of every object about the judge to `found`, and those that sum over the run.
fn about_judge(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| about_judge(value, found)),
        Value::Object(fields) => {
            let is_judge = ["node", "name"].iter().any(|name| fields.get(*name).is_some_and(|node| node == "judge"));
            for (name, value) in fields {
                let is_telling = ["_digest", "_bytes", "_ms", "digest", "tree", "attempt_id", "id", "hash"]
                    .iter()
                    .any(|ending| name.ends_with(ending));
                if is_judge && is_telling && (value.is_string() || value.is_u64()) {
                    found.push(value.clone());
                }
                about_judge(value, found);
            }
        }
        _ => {}
    }
}

fn texts(value: &Value, found: &mut Vec<Value>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| texts(value, found)),
        Value::Object(fields) => fields.values().for_each(|value| texts(value, found)),
        value => found.push(value.clone()),
    }
}

#[test]
fn nothing_of_a_stage_beside_hold_outs_crosses_but_its_status() {
    let bench = judged(3);
    let records = bench.glovebox(&["attach", "r", "--json", "--all"]).json_lines();
    let evidence = bench.glovebox(&["evidence", "r", "--json"]).json();
    let shown = bench.glovebox(&["show", "r", "--json"]).json();
    let mut telling = Vec::new();
    records.iter().for_each(|record| about_judge(record, &mut telling));
    about_judge(&evidence, &mut telling);
    about_judge(&shown, &mut telling);
    let is_of_everybody: Vec<Value> = {
        // What the builder's own records have as well tells nothing, such as the digest of the shell or of no output.
        let mut own = Vec::new();
        let of_build = |value: &&Value| value["node"] == "build";
        evidence["commands"].as_array().unwrap().iter().filter(of_build).for_each(|value| texts(value, &mut own));
        own
    };
    telling.retain(|value| !is_of_everybody.contains(value) && value.as_u64().is_none_or(|number| number > 99));
    assert!(telling.len() > 3, "the records tell something: {telling:?}");
    telling.extend(["holdouts_root", "duration_ms"].map(|name| shown[name].clone()));
    telling.push(shown["journal"]["hash"].clone());
    let mut agent = Agent::start(&bench, &["--right", "operate", "--right", "apply"]);
    let mut seen = Vec::new();
    for tool in ["run", "why", "evidence", "diff", "wait", "gates", "runs"] {
        let arguments = if tool == "runs" { json!({}) } else { json!({ "run": "r" }) };
        seen.push((tool, agent.document(tool, arguments)));
    }
    for tool in ["why", "evidence"] {
        seen.push((tool, agent.document(tool, json!({ "run": "r", "node": "judge" }))));
    }
    for (tool, document) in &seen {
        let mut values = Vec::new();
        texts(document, &mut values);
        for value in &telling {
            assert!(!values.contains(value), "{tool} tells {value}: {document}");
        }
        let text = document.to_string();
        for word in [
            SECRET,
            "wicker",
            "withheld",
            "plums",
            "check.sh",
            "\"attempts\":2",
            "\"attempt\":2",
            "finished",
            "duration_ms\":null",
        ] {
            assert!(!text.contains(word), "{tool} says {word}: {text}");
        }
    }
    let of = |tool: &str| &seen.iter().find(|(name, _)| *name == tool).unwrap().1;
    assert_eq!(of("run")["failed_node"], "judge");
    assert_eq!(of("run")["visited"][1], json!({ "node": "judge", "visit": 1, "status": "fail" }));
    let about = |document: &Value, list: &str| {
        document[list].as_array().unwrap().iter().filter(|item| item["node"] == "judge").count()
    };
    let path = bench.glovebox(&["why", "r", "--json"]).json();
    assert_eq!(about(&path, "steps"), 3, "two attempts, and no edge: {path}");
    assert_eq!(about(of("why"), "steps"), 2, "one attempt, and no edge");
    assert_eq!((about(&evidence, "commands"), about(of("evidence"), "commands")), (2, 1));
    assert_eq!(of("diff")["files"][0]["path"], "answer.txt");
}

#[test]
fn hostile_messages_get_errors_and_change_nothing() {
    let bench = Workbench::with_pipeline(TWO_STAGES);
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(0);
    std::fs::write(bench.outside().join("secret.dot"), "outside of the project").unwrap();
    std::os::unix::fs::symlink(bench.outside(), bench.project().join("link")).unwrap();
    let before = bench.snapshot();
    let mut agent = Agent::start(&bench, &["--right", "operate", "--right", "apply"]);
    for (line, code) in [
        ("not JSON".to_owned(), -32700),
        ("[".repeat(100_000), -32700),
        ("[]".to_owned(), -32600),
        ("7".to_owned(), -32600),
        ("{\"id\":7}".to_owned(), -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":8,\"method\":\"ping\"}".to_owned(), -32600),
        (format!("{{\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"{}\"}}", "m".repeat(2 << 20)), -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"nothing/known\"}".to_owned(), -32601),
        ("{\"jsonrpc\":\"2.0\",\"id\":11,\"method\":\"tools/call\",\"params\":{\"name\":\"sh\"}}".to_owned(), -32602),
        (
            "{\"jsonrpc\":\"2.0\",\"id\":12,\"method\":\"resources/read\",\"params\":{\"uri\":\"file:///etc/passwd\"}}"
                .to_owned(),
            -32601,
        ),
    ] {
        agent.write(&line);
        let answer = agent.read();
        assert_eq!(answer["error"]["code"], code, "{}: {answer}", &line[..line.len().min(80)]);
    }
    // Nothing is answered to these.
    agent.write("{\"jsonrpc\":\"2.0\",\"method\":\"notifications/unknown\"}");
    agent.write("");
    let digest = format!("blake3:{}", "0".repeat(64));
    for (tool, arguments, words) in [
        ("plan", json!({ "file": "../secret.dot" }), "below the project"),
        ("plan", json!({ "file": "/etc/passwd" }), "below the project"),
        ("plan", json!({ "file": "link/secret.dot" }), "through a link"),
        ("plan", json!({ "file": "none.dot" }), "no such file"),
        ("plan", json!({ "dot": "digraph g { a -> }" }), "about"),
        ("plan", json!({ "dot": 7 }), "not of type string"),
        ("plan", json!({ "dot": "digraph g {}", "dangerously_no_sandbox": true }), "unknown argument"),
        ("start", json!({ "file": "pipeline.dot", "plan_digest": digest }), "was not shown"),
        ("run", json!({ "run": "../r" }), "not the id of a run"),
        ("run", json!({ "run": "none" }), "there is no run"),
        ("run", json!({ "run": ["r"] }), "not of type string"),
        ("wait", json!({ "run": "r", "timeout_s": 601 }), "from 1 to 600"),
        ("wait", json!({ "run": "/" }), "not the id of a run"),
        ("runs", json!({ "cursor": "1.0" }), "cursor"),
        ("steer", json!({ "run": "r", "node": "write", "text": "x".repeat(20_000) }), "longer than"),
        ("answer", json!({ "run": "r", "question": "gate#1", "value": "S" }), "exit"),
        ("apply", json!({ "run": "r", "paths": ["../x"] }), "not shown"),
    ] {
        let (text, is_error) = agent.call(tool, arguments.clone());
        assert!(is_error && text.contains(words), "{tool} {arguments}: {text}");
        assert!(!text.contains("outside of the project"), "{text}");
    }
    assert_eq!(bench.snapshot(), before);
    assert_eq!(agent.document("runs", json!({}))["runs"].as_array().unwrap().len(), 1);
    let (code, said) = agent.end();
    assert_eq!(code, 0, "{said}");
}

#[test]
fn a_client_that_does_not_begin_gets_an_error() {
    let bench = Workbench::new();
    let mut agent = Agent::silent(&bench, &[]);
    agent.write("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"runs\"}}");
    let (code, said) = agent.end();
    assert!(code == 2 && said.contains("before `initialize`"), "{code}: {said}");
    let (code, said) = Agent::silent(&bench, &[]).end();
    assert!(code == 2 && said.contains("before `initialize`"), "{code}: {said}");
}

#[test]
fn a_wait_can_be_canceled() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]
  a [shape=parallelogram, tool_command=\"sleep 30\", allowed_write_paths=\"\"]
  start -> a -> done }",
    );
    let mut agent = Agent::start(&bench, &["--right", "operate"]);
    let plan = agent.document("plan", json!({ "file": "pipeline.dot" }));
    let started = agent.document("start", json!({ "file": "pipeline.dot", "plan_digest": plan["digest"] }));
    let run = json!({ "run": started["id"] });
    let (late, _) = agent.call("wait", json!({ "run": started["id"], "timeout_s": 1 }));
    assert!(late.starts_with("The run goes on"), "{late}");
    // While one call waits, others are answered, and the wait ends with the run.
    agent.write(
        &json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": { "name": "wait", "arguments": run } })
            .to_string(),
    );
    agent.document("cancel", run);
    assert_eq!(agent.answer_to(99)["result"]["isError"], false);
}
