//! Policies with the real binary: they judge tool calls of agents and edges of a run, a hostile policy refuses everything in time, and
//! the record says who refused what.

use crate::guests;
use crate::workbench::{Answer, Workbench};
use serde_json::Value;
use std::time::{Duration, Instant};

const PIPELINE: &str = "digraph g {
  start [shape=Mdiamond]; done [shape=Msquare]
  work [prompt=\"Do it\", allowed_write_paths=\"out/\"]
  deploy [shape=parallelogram, tool_command=\"echo deployed\", allowed_write_paths=\"\"]
  start -> work -> deploy -> done
}
";
const ALLOWS: &str = "(func $judge_call) (func $judge_edge)";

/// Returns the fields of a policy that refuses each call and each edge whose JSON has one of these texts, with this reason.
fn refusing(calls: &[&str], edges: &[&str], reason: &str) -> String {
    let (mut data, mut at) = (String::new(), 1024);
    let mut put = |text: &str| {
        let quoted: String = text.bytes().map(|byte| format!("\\{byte:02x}")).collect();
        data.push_str(&format!("(data (i32.const {at}) \"{quoted}\")\n"));
        at += text.len();
        format!("(i32.const {}) (i32.const {})", at - text.len(), text.len())
    };
    let reason = put(reason);
    let mut judge = |name: &str, texts: &[&str]| {
        let refuse = |text: &&str| format!("(if (call $asks {}) (then (call $refuse {reason})))\n", put(text));
        format!("(func ${name}\n{})\n", texts.iter().map(refuse).collect::<String>())
    };
    let functions = judge("judge_call", calls) + &judge("judge_edge", edges);
    data + &functions
}

/// Creates a project with this locked policy and a script whose model writes a file.
fn bench(fields: &str) -> Workbench {
    let bench = unlocked(fields);
    bench.glovebox(&["plugin", "lock"]).ends(0).says("acme.house (policy, new)");
    bench
}

fn unlocked(fields: &str) -> Workbench {
    let bench = Workbench::with_pipeline(PIPELINE);
    std::fs::write(bench.project().join("house.wasm"), guests::policy(fields)).unwrap();
    bench.write("glovebox.toml", "[policy.\"acme.house\"]\npath = \"house.wasm\"\n");
    let write = "tool = [{ name = \"write_file\", arguments = { path = \"out/a.txt\", content = \"x\" } }]";
    let read = "tool = [{ name = \"read_file\", arguments = { path = \"out/a.txt\" } }]";
    let end = "text = \"OUTCOME: SUCCESS\"";
    bench.write("model.toml", &[write, read, end].map(|turn| format!("[[node.work]]\n{turn}\n")).concat());
    bench
}

fn run(bench: &Workbench, exit: i32) -> Answer {
    let answer = bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml", "--run-id", "r"]);
    answer.ends(exit);
    answer
}

/// Returns the tool results that the model got: the text, and whether it is an error.
fn results(bench: &Workbench) -> Vec<(String, bool)> {
    let mut found = Vec::new();
    for line in bench.run_text("r", "work/transcript.ndjson").lines() {
        collect(&serde_json::from_str(line).unwrap(), &mut found);
    }
    found
}

fn collect(value: &Value, found: &mut Vec<(String, bool)>) {
    if value["kind"] == "tool-result" {
        let is_error = value["fields"].to_string().contains("is-error");
        found.push((value["text"].as_str().unwrap().to_owned(), is_error));
    }
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, found)),
        _ => {}
    }
}

#[test]
fn a_policy_that_allows_changes_nothing() {
    let bench = bench(ALLOWS);
    run(&bench, 0).never_says("acme.house");
    assert!(results(&bench).iter().all(|(_, is_error)| !is_error), "{:?}", results(&bench));
}

#[test]
fn a_refused_call_is_an_error_for_the_model_and_the_stage_goes_on() {
    let bench = bench(&refusing(&["\"tool\":\"write_file\""], &[], "no\u{1b}[2J writing\u{202e}"));
    let answer = run(&bench, 0);
    answer.says("refused").never_says("\u{1b}[2J");
    let results = results(&bench);
    assert!(
        results[0].1 && results[0].0.contains("the policy `acme.house` refuses: no\\x1b[2J writing\\u{202e}"),
        "{results:?}"
    );
    assert!(!results[1].0.contains("acme.house"), "{results:?}");
    bench.glovebox(&["show", "r", "work"]).ends(0).says("write_file").says("the policy `acme.house` refuses");
    bench.glovebox(&["apply", "r"]);
    assert!(!bench.has("out/a.txt"));
}

#[test]
fn a_policy_knows_arguments_and_attributes() {
    let check = |text: &str, refuses: bool| {
        let bench = bench(&refusing(&[text], &[], "no"));
        run(&bench, 0);
        assert_eq!(results(&bench)[0].1, refuses, "{text}: {:?}", results(&bench));
    };
    check("\"path\":\"out/a.txt\"", true);
    check("\"path\":\"other.txt\"", false);
    check("\"node\":\"work\"", true);
    check("\"allowed_write_paths\":\"out/\"", true);
}

#[test]
fn a_refused_edge_ends_the_run() {
    let bench = bench(&refusing(&[], &["\"to\":\"deploy\""], "not on a Friday"));
    let reason = "the policy `acme.house` refuses: not on a Friday";
    run(&bench, 6).says("the edge `work` -> `deploy`").says(reason);
    assert!(!bench.run_folder("r").join("deploy").exists(), "the stage after the edge ran");
    let verdict = bench.run_json("r", "final.json");
    assert!(
        verdict.to_string().contains("policy/edge") && verdict.to_string().contains("not on a Friday"),
        "{verdict}"
    );
    let ended = bench.run_text("r", "progress.ndjson");
    assert!(ended.lines().last().unwrap().contains("policy/edge"), "{ended}");
    bench.glovebox(&["why", "r"]).says(reason);
    // The same edge, the same policy, the same answer. A resume visits the stage before the edge again.
    bench.write("model.toml", &bench.read("model.toml").repeat(2));
    bench.glovebox(&["resume", "r", "--script", "model.toml"]).ends(6).says(reason);
    assert!(!bench.run_folder("r").join("deploy").exists());
}

#[test]
fn a_policy_knows_what_has_succeeded() {
    let check = |text: &str, exit: i32| {
        let bench = bench(&refusing(&[], &[text], "no"));
        run(&bench, exit);
    };
    check(",\"work\"]", 6);
    check(",\"never\"]", 0);
    check("\"tool_command\":\"echo deployed\"", 6);
    check("\"status\":\"fail\"", 0);
}

#[test]
fn branches_begin_only_along_allowed_edges() {
    let pipeline = "digraph g {\n  start [shape=Mdiamond]; done [shape=Msquare]\n  f [shape=component]; j [shape=tripleoctagon]\n\
        a [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n\
        b [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]\n\
        start -> f; f -> a -> j; f -> b -> j; j -> done\n}\n";
    let check = |text: &str, said: &str| {
        let bench = bench(&refusing(&[], &[text], "no"));
        bench.write("pipeline.dot", pipeline);
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(6).says(said);
        bench
    };
    let before = check("\"from\":\"f\",\"to\":\"b\"", "the edge `f` -> `b`");
    assert!(!before.run_folder("r").join("branches").exists(), "a branch began");
    check("\"from\":\"j\"", "the edge `j` -> `done`");
    check("\"from\":\"start\"", "the edge `start` -> `f`");
}

#[test]
fn a_hostile_policy_refuses_everything_in_time() {
    let edge = |body: &str| format!("(func $judge_call) (func $judge_edge {body})");
    let call = |body: &str| format!("(func $judge_edge) (func $judge_call {body})");
    let grows = "(loop (br_if 0 (i32.ne (memory.grow (i32.const 256)) (i32.const -1))))";
    let huge = "(drop (memory.grow (i32.const 16))) (call $refuse (i32.const 1024) (i32.const 1000000))";
    for (body, said) in [
        ("unreachable", "unreachable"),
        ("(loop br 0)", "limit `wall_ms` (1000) reached"),
        (grows, "limit `memory_bytes`"),
        (huge, "limit `hostcall_bytes`"),
        ("(call $refuse (i32.const 0x7fffffff) (i32.const 8))", "could not judge"),
        ("(i32.store8 (i32.const 16) (i32.const 9))", "could not judge"),
    ] {
        let bench = bench(&edge(body));
        run(&bench, 6).says("the policy `acme.house` could not judge, so it refuses").says(said);
        assert!(!bench.run_folder("r").join("work").exists(), "{body}");
    }
    for (body, said) in [("unreachable", "unreachable"), ("(loop br 0)", "limit `wall_ms` (1000) reached")] {
        let bench = bench(&call(body));
        run(&bench, 6).says("could not judge").says(said);
        let status = bench.run_json("r", "work/status.json").to_string();
        assert!(status.contains("policy/fault"), "{status}");
        assert!(!bench.run_folder("r").join("deploy").exists(), "{body}");
    }
    let empty = bench(&edge("(call $refuse (i32.const 1024) (i32.const 0))"));
    run(&empty, 6).says("it gives no reason");
}

#[test]
fn a_policy_that_is_revoked_during_a_run_refuses_the_next_edge() {
    let bench = bench(ALLOWS);
    let waits = "work [shape=parallelogram, tool_command=\"echo begun; sleep 4\", allowed_write_paths=\"\"]";
    let line = PIPELINE.lines().find(|line| line.contains("work [")).unwrap();
    bench.write("pipeline.dot", &PIPELINE.replace(line, waits));
    let run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    let end = Instant::now() + Duration::from_secs(60);
    let records = || std::fs::read_to_string(bench.run_folder("r").join("progress.ndjson")).unwrap_or_default();
    while !records().contains("\"kind\":\"stage.started\"") {
        assert!(Instant::now() < end, "the stage does not begin");
        std::thread::sleep(Duration::from_millis(10));
    }
    bench.glovebox(&["plugin", "revoke", "house.wasm", "--reason", "it forgets"]).ends(0);
    assert!(!records().contains("\"kind\":\"stage.finished\""), "the policy was revoked too late");
    let answer = Answer::from_child(run);
    answer.ends(6).says("the edge `work` -> `deploy`").says("it was revoked: it forgets");
    assert!(!bench.run_folder("r").join("deploy").exists(), "the stage after the edge ran");
}

#[test]
fn a_policy_never_gets_text_of_holdouts() {
    let bench = bench(&refusing(&["\"arguments\":null"], &[], "nothing to judge"));
    bench.write("scenarios/one.md", "the hidden scenario of this test is long enough to be a canary of its own");
    let pipeline = PIPELINE.replace("digraph g {", "digraph g {\n  scenarios=\"scenarios/\"");
    bench.write("pipeline.dot", &pipeline);
    run(&bench, 0);
    assert!(!results(&bench)[0].1, "a stage without hold-outs: {:?}", results(&bench));
    let reading = pipeline.replace("prompt=", "\"codex.allow_read_scenarios\"=true, prompt=");
    bench.write("pipeline.dot", &reading);
    let words = ["run", "pipeline.dot", "--script", "model.toml", "--run-id", "s"];
    bench.glovebox(&words);
    bench.glovebox(&["show", "s", "work"]).says("nothing to judge");
}

#[test]
fn only_a_locked_component_without_imports_is_a_policy() {
    let import = "(import \"wasi:cli/exit@0.2.6\" \"exit\" (func $exit (param i32)))\n\
        (func $judge_call (call $exit (i32.const 0)))\n(func $judge_edge)";
    let bench = unlocked(import);
    bench.glovebox(&["plugin", "lock"]).ends(7).says("wasi:cli/exit@0.2.6").says("a policy must not import anything");
    let rules = unlocked(ALLOWS);
    std::fs::write(rules.project().join("house.wasm"), guests::component("(func $execute)")).unwrap();
    rules.glovebox(&["plugin", "lock"]).ends(7).says("cannot be used as a policy");
    let bench = unlocked(ALLOWS);
    for command in [&["check", "pipeline.dot"][..], &["run", "pipeline.dot", "--script", "model.toml"]] {
        bench.glovebox(command).ends(7).says("`acme.house` is not in `glovebox.lock`");
    }
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["check", "pipeline.dot"]).ends(0);
    bench.glovebox(&["plan", "pipeline.dot"]).ends(0).says("acme.house: judges tool calls and edges; blake3:");
    let plan = bench.glovebox(&["plan", "pipeline.dot", "--json"]).ends(0).json();
    assert_eq!(plan["policies"][0]["name"], "acme.house", "{plan:#}");
    // A run continues only under the policy with which it began.
    std::fs::write(bench.project().join("house.wasm"), guests::policy(&refusing(&[], &["\"to\":\"deploy\""], "no")))
        .unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--script", "model.toml"]).ends(7).says("has the digest");
    bench.glovebox(&["plugin", "lock"]).ends(0);
    run(&bench, 6);
    std::fs::write(bench.project().join("house.wasm"), guests::policy(ALLOWS)).unwrap();
    bench.glovebox(&["plugin", "lock"]).ends(0);
    bench.glovebox(&["resume", "r"]).ends(11);
}

#[test]
fn an_agent_program_is_refused_because_no_policy_can_judge_it() {
    let bench = bench(ALLOWS);
    bench.write("pipeline.dot", &PIPELINE.replace("prompt=", "agent.backend=\"codex\", prompt="));
    bench.glovebox(&["check", "pipeline.dot"]).ends(3).says("no policy judges the calls of the agent program");
}
