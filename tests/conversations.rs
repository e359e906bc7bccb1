//! `glovebox transcript` shows the conversation with every kind of model, for every attempt, as text and as JSON.

use crate::providers::{Bench, FAMILIES, KEY, Turn};
use crate::workbench::{Answer, Workbench};
use serde_json::{Value, json};

const STAGE: &str = "digraph ship {
  graph [goal=\"say hello\"]
  start [shape=Mdiamond]
  build [prompt=\"Do: $goal\", allowed_write_paths=\"src/\"]
  check [shape=parallelogram, tool_command=\"true\"]
  exit [shape=Msquare]
  start -> build -> check -> exit
}
";

/// Returns the text of a file with many lines, of which `last` is the last one.
fn long_text(last: &str) -> String {
    (0..30).map(|at| format!("line {at}\n")).collect::<String>() + last + "\n"
}

fn scripted(bench: &Workbench, script: &str, exit: i32) {
    // The script is outside of the project, because text that a builder can read in the project is not a secret.
    std::fs::write(bench.outside().join("model.toml"), script).unwrap();
    bench.glovebox(&["run", "pipeline.dot", "--script", "../model.toml", "--run-id", "r"]).ends(exit);
}

#[test]
fn a_scripted_stage_tells_its_whole_conversation() {
    let bench = Workbench::with_pipeline(STAGE);
    bench.write("notes.txt", &long_text("the last line"));
    let script = r#"
[[node.build]]
text = "I \u001b[31mlook\u202e\nfirst"
tool = [{ name = "read_file", arguments = { path = "notes.txt" } }, { name = "rm", arguments = {} }]
usage = { input = 100, output = 10, cache_read = 60, cost_usd = 0.5 }

[[node.build]]
tool = [{ name = "write_file", arguments = { path = "src/a.txt", content = "one\ntwo\n" } }]

[[node.build]]
text = "OUTCOME: SUCCESS"
usage = { input = 200, output = 20, cost_usd = 0.25 }
"#;
    scripted(&bench, script, 0);
    let shown = bench.glovebox(&["transcript", "r", "build"]);
    shown.ends(0);
    shown.says("build visit 1: success").says("Do: say hello").says("turn 1").says("turn 3");
    shown.says("100 sent, 10 received, $0.5").says("60 from the cache").says("300 sent, 30 received, $0.75");
    shown.says("path: src/a.txt").says("no tool `rm` was offered").says("OUTCOME: SUCCESS");
    shown.says("characters").says("more lines").says("whole        glovebox transcript r build --full");
    shown.never_says("the last line").never_says("\u{1b}").never_says("\u{202e}");
    let page: Vec<&str> = shown.stdout.lines().collect();
    assert!(page.iter().all(|line| !line.starts_with("first")), "no text of a model begins a line:\n{}", shown.stdout);
    let full = bench.glovebox(&["transcript", "r", "build@1", "--full"]);
    full.ends(0);
    full.says("the last line").never_says("more lines").never_says("--full").never_says("\u{1b}");
    let system = bench.glovebox(&["transcript", "r", "build", "--json"]).ends(0).json_lines();
    assert_eq!(system.len(), 3);
    assert_eq!(system[0]["asked"][0]["role"], "system");
    let words = system[0]["asked"][0]["parts"][0]["text"].as_str().unwrap();
    full.says(words.lines().next().unwrap());
    assert_eq!((&system[1]["repeated"], &system[1]["asked"][0]["role"]), (&json!(3), &json!("tool")));
    assert_eq!(system[1]["asked"].as_array().unwrap().len(), 1, "only what is new: {}", system[1]);
    assert_eq!(
        (&system[2]["turn"], &system[2]["cost"], &system[2]["status"]),
        (&json!(3), &json!(250_000), &json!("success"))
    );
}

#[test]
fn a_stage_without_a_conversation_says_what_it_is() {
    let bench = Workbench::with_pipeline(STAGE);
    bench.glovebox(&["run", "pipeline.dot", "--simulate", "--run-id", "r"]).ends(0);
    let told = |words: &[&str]| bench.glovebox(&[&["transcript", "r"], words].concat());
    told(&["build"]).ends(0).says("simulated").says("[Simulated] Response for stage: build");
    told(&["check"]).ends(0).says("`tool` asks no model");
    told(&["start"]).ends(0).says("`start` asks no model");
    told(&["nowhere"]).ends(2).says("has no visit of a node `nowhere`").says("help");
    told(&["build@2"]).ends(2).says("`build` has only 1 visit");
    assert!(told(&["check", "--json"]).ends(0).stdout.is_empty());
}

#[test]
fn every_attempt_of_every_visit_and_branch_is_told() {
    let bench = Workbench::with_pipeline(
        "digraph g {
  start [shape=Mdiamond]; done [shape=Msquare]
  fork [shape=component]; join [shape=tripleoctagon]
  a [prompt=\"left\", allowed_write_paths=\"\"]; b [prompt=\"right\", max_retries=1, retry_policy=none, allowed_write_paths=\"\"]
  start -> fork; fork -> a -> join; fork -> b -> join; join -> done
}
",
    );
    let script = "[[node.a]]\ntext = \"OUTCOME: SUCCESS\"\n[[node.b]]\ntext = \"first try\"\noutcome = { status = \"retry\" }\n\
                  [[node.b]]\ntext = \"second try\"\n";
    scripted(&bench, script, 0);
    let shown = bench.glovebox(&["transcript", "r", "b"]);
    shown.ends(0);
    shown.says("b visit 1 in branch").says("first try").says("attempt 2").says("second try").never_says("left");
    let lines = bench.glovebox(&["transcript", "r", "b", "--json"]).ends(0).json_lines();
    let told: Vec<(&Value, &Value)> = lines.iter().map(|line| (&line["ordinal"], &line["status"])).collect();
    assert_eq!(told, [(&json!(1), &json!("retry")), (&json!(2), &json!("success"))]);
}

#[test]
fn what_a_resume_went_back_from_is_marked() {
    let bench = Workbench::with_pipeline(STAGE);
    let turn = "[[node.build]]\ntext = \"OUTCOME: FAIL\"\n";
    scripted(&bench, turn, 1);
    std::fs::write(bench.outside().join("model.toml"), "[[node.build]]\ntext = \"OUTCOME: SUCCESS\"\n").unwrap();
    bench.glovebox(&["resume", "r", "--from", "build@1", "--script", "../model.toml"]).ends(0);
    let lines = bench.glovebox(&["transcript", "r", "build", "--json"]).ends(0).json_lines();
    assert_eq!(lines.iter().map(|line| &line["is_undone"]).collect::<Vec<_>>(), [&json!(true), &json!(false)]);
    for command in ["transcript", "show", "why"] {
        let told = bench.glovebox(&[command, "r", "build"]);
        assert_eq!(told.ends(0).stdout.matches("undone by `resume --from`").count(), 1, "{}", told.stdout);
    }
}

/// The transcript has the same format for every provider, and shows the exact model, the tokens and the cost of each
/// turn.
#[test]
fn a_live_stage_tells_the_same_in_every_wire_format() {
    for family in FAMILIES {
        let write = Turn::tool("write_file", json!({ "path": "src/a.txt", "content": "hello\n" }));
        let end = Turn::text("OUTCOME: SUCCESS").of("exact-model-2026-01-31");
        let turns = [Turn::error("server").at_once(), write.usage(1200, 40), end.usage(1300, 20)];
        let bench = Bench::new(STAGE, family, &turns);
        bench.run().ends(0);
        let shown = bench.glovebox(&["transcript", "r", "build"]);
        shown.ends(0);
        shown.says(&format!("it: {family} exact-model, answered as exact-model-2026-01-31"));
        shown.says("1200 sent, 40 received, $0.0042").says("asked 2 times").says("path: src/a.txt");
        shown.says("wrote 6 bytes").says("2500 sent, 60 received, $0.0084");
        let lines = bench.glovebox(&["transcript", "r", "build", "--json"]).ends(0).json_lines();
        let costs: u64 = lines.iter().map(|line| line["cost"].as_u64().unwrap()).sum();
        assert_eq!((lines.len(), costs), (2, 8400), "{family}");
        bench.has_no_key();
    }
    let bench = Bench::new(STAGE, "anthropic", &[Turn::error("authentication").saying("no such\u{1b}[2J customer")]);
    bench.run().ends(8);
    let shown = bench.glovebox(&["transcript", "r", "build"]);
    shown.ends(0);
    shown.says("error").says("authentication").says("provider/authentication").never_says("\u{1b}");
}

#[test]
fn a_stage_that_was_killed_tells_what_was_answered_so_far() {
    let read = Turn::tool("read_file", json!({ "path": "pipeline.dot" })).usage(100, 10);
    let bench = Bench::new(STAGE, "openai", &[read, Turn::text("never").stall(), Turn::text("OUTCOME: SUCCESS")]);
    bench.kill_run_after(2);
    bench.glovebox(&["transcript", "r", "build"]).ends(0).says("has not ended").says("turn 1").never_says("turn 2");
    bench.resume().ends(0);
    let shown = bench.glovebox(&["transcript", "r", "build"]);
    shown.ends(0);
    shown.says("turn 2").never_says("has not ended");
    assert_eq!(shown.stdout.matches("turn 1").count(), 1, "{}", shown.stdout);
}

/// The model reads the key in a file of the project and repeats it. No transcript contains the key.
#[test]
fn no_transcript_has_the_key() {
    for family in FAMILIES {
        let turns = [Turn::tool("read_file", json!({ "path": "keys.txt" })), Turn::text(&format!("I know {KEY}"))];
        let bench = Bench::new(STAGE, family, &turns);
        bench.write("keys.txt", &format!("the key is {KEY}\n"));
        bench.run().ends(0);
        assert!(bench.requests()[1].contains(KEY), "the model was told: that is the project's doing");
        let all = |answer: &Answer| assert!(!(answer.stdout.contains(KEY) || answer.stderr.contains(KEY)), "{family}");
        bench.glovebox(&["transcript", "r", "build"]).ends(0).says("the key is [key]").says("I know [key]");
        all(&bench.glovebox(&["transcript", "r", "build", "--full"]));
        all(&bench.glovebox(&["transcript", "r", "build", "--json"]));
        assert!(!bench.read_in_run("build/transcript.ndjson").contains(KEY), "{family}");
    }
}

#[test]
fn no_transcript_has_a_holdout() {
    const SECRET: &str = "grep -q 'forty-two apples in a wicker basket' answer.txt";
    let decoded = "printf 'grep -q %sforty-two apples in a %scker basket' \"'\" wi";
    let said = Turn::text(&format!("I think it says: {SECRET}"));
    for first in [said, Turn::tool("shell", json!({ "command": decoded }))] {
        let pipeline = STAGE.replace("allowed_write_paths", "allowed_commands=\"*\", allowed_write_paths");
        let bench = Bench::new(&pipeline, "anthropic", &[first, Turn::text("OUTCOME: SUCCESS")]);
        bench.write("scripts/scenarios/answer.sh", &format!("#!/bin/sh\n{SECRET}\n"));
        bench.run().ends(6);
        let shown = bench.glovebox(&["transcript", "r", "build", "--full"]);
        shown.ends(0);
        shown.says("not stored, because it contained text of a hold-out").never_says("wicker basket");
    }
    let script = format!("[[node.build]]\ntext = \"I think it says: {SECRET}\"\n");
    let bench = Workbench::with_pipeline(STAGE);
    bench.write("scripts/scenarios/answer.sh", &format!("#!/bin/sh\n{SECRET}\n"));
    scripted(&bench, &script, 6);
    let shown = bench.glovebox(&["transcript", "r", "build"]);
    shown.ends(0);
    shown.says("not stored, because it contained text of a hold-out").never_says("wicker");
    assert!(bench.glovebox(&["transcript", "r", "build", "--json"]).ends(0).stdout.is_empty());
}

/// The summary, the list of runs, the file and the sum of the node's attempts show the same cost.
#[test]
fn what_a_run_cost_is_the_same_everywhere() {
    let read = Turn::tool("read_file", json!({ "path": "pipeline.dot" })).usage(1200, 40);
    let cut = Turn::text("a long answer that breaks off").cut("connection");
    for (turns, about) in [
        (
            vec![
                read.clone(),
                Turn::text("OUTCOME: RETRY").usage(10, 5),
                Turn::text("OUTCOME: SUCCESS").usage(1300, 20),
            ],
            "",
        ),
        (vec![read.clone(), cut, Turn::text("OUTCOME: SUCCESS").usage(1300, 20)], "~"),
    ] {
        let pipeline = STAGE.replace("allowed_write_paths", "max_retries=2, retry_policy=none, allowed_write_paths");
        let bench = Bench::new(&pipeline, "anthropic", &turns);
        bench.run().ends(0);
        let shown = bench.show();
        let attempts = bench.glovebox(&["show", "r", "build", "--json"]).json();
        let of_attempts = |field: &str| -> u64 {
            let ends = attempts.as_array().unwrap().iter().map(|record| record["event"].pointer(field));
            ends.filter_map(|found| found.and_then(Value::as_u64)).sum()
        };
        let listed = &bench.glovebox(&["ls", "--json"]).json()["runs"][0];
        let ended = bench.run_json("final.json");
        assert_eq!(shown["cost"], of_attempts("/cost"));
        assert_eq!(shown["tokens"]["input"], of_attempts("/tokens/input"));
        for field in ["cost", "tokens", "is_estimated"] {
            assert_eq!(listed[field], shown[field], "{field}");
        }
        assert_eq!((&ended["tokens"], listed["held"].is_null()), (&shown["tokens"], true));
        let cost = ended["cost"].as_str().unwrap();
        assert_eq!(cost.starts_with('~'), !about.is_empty(), "{cost}");
        bench.glovebox(&["ls"]).ends(0).says("COST").says(cost);
        bench.glovebox(&["show", "r"]).ends(0).says(cost).never_says("held ");
    }
}

#[test]
fn a_run_that_stands_still_tells_what_it_holds_for_its_resume() {
    let read = Turn::tool("read_file", json!({ "path": "pipeline.dot" })).usage(1000, 100);
    let stall = Turn::text("never").stall();
    let bench = Bench::new(STAGE, "openai", &[read.clone(), read.clone(), stall, Turn::text("OUTCOME: SUCCESS")]);
    bench.kill_run_after(3);
    let words =
        "2 model answers, which a resume reuses without paying again; not counted yet: 2000 sent, 200 received, $0.009";
    bench.glovebox(&["show", "r"]).ends(0).says(words);
    let listed = &bench.glovebox(&["ls", "--json"]).json()["runs"][0];
    assert_eq!((&listed["held"]["cost"], listed["cost"].is_null()), (&json!(9000), true));
    bench.resume().ends(0).never_says("held ");
    assert_eq!(bench.glovebox(&["ls", "--json"]).json()["runs"][0]["cost"], bench.show()["cost"]);
    let paused = Bench::new(STAGE, "openai", &[read, Turn::error("quota-exceeded"), Turn::text("OUTCOME: SUCCESS")]);
    paused.run().ends(10);
    paused.glovebox(&["show", "r"]).ends(0).says("1 model answer").says("not counted yet: 1000 sent");
    paused.resume().ends(0);
    assert_eq!(paused.show()["tokens"]["input"], 1000);
}
