//! The turns of a running stage with its model, in `logs --follow` and over HTTP, and that those of a stage with hold-outs in
//! reach never appear there.

use crate::providers::{Bench, Turn};
use crate::serve::client::{Served, events};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

const PIPELINE: &str = "digraph g { start; exit
  look [prompt=\"look\", allowed_commands=\"*\", allowed_write_paths=\"\"]
  start -> look -> exit }
";

/// Returns the answers of a model that calls a command which takes four seconds, and then ends.
fn answers() -> Vec<Turn> {
    let call = json!({ "command": "echo began; sleep 4; echo ended" });
    vec![Turn::tool("shell", call).and_text("first I look\u{1b}[2J"), Turn::text("now I know\nOUTCOME: SUCCESS")]
}

/// Waits until the run has a record of this kind.
fn wait_for_record(bench: &Bench, kind: &str) {
    let began = Instant::now();
    let file = bench.run_folder().join("progress.ndjson");
    while !std::fs::read_to_string(&file).is_ok_and(|text| text.contains(kind)) {
        assert!(began.elapsed() < Duration::from_secs(60), "no `{kind}`");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn has_ended(bench: &Bench) -> bool {
    bench.read_in_run("progress.ndjson").contains("stage.finished")
}

#[test]
fn a_turn_and_the_calls_under_way_are_followed_in_a_terminal() {
    let bench = Bench::new(PIPELINE, "openai", &answers());
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    wait_for_record(&bench, "stage.started");
    let mut logs = bench.start_piped(&["logs", "r", "look", "--follow"]);
    let mut reader = BufReader::new(logs.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("calls shell") {
        assert!(reader.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(!has_ended(&bench), "the call is under way: {said}");
    assert!(said.contains("==> look visit 1: turn 1, exact-model\n    first I look"), "{said}");
    assert!(said.contains("sleep 4") && !said.contains('\u{1b}'), "{said}");
    reader.read_to_string(&mut said).unwrap();
    assert!(said.contains("==> look visit 1: turn 2, exact-model\n    now I know\n"), "{said}");
    assert_eq!(said.matches("turn 1,").count(), 1, "{said}");
    let mut printed = String::new();
    logs.stdout.take().unwrap().read_to_string(&mut printed).unwrap();
    assert_eq!(printed, "began\nended\n", "standard output has the output of commands alone");
    assert!(logs.wait().unwrap().success() && run.wait().unwrap().success());
    // Nothing is told of a conversation that had ended before.
    let later = bench.with_key(&["logs", "r", "look", "--follow"]);
    later.ends(0).never_says("first I look");
}

#[test]
fn a_turn_and_the_calls_under_way_are_followed_over_http() {
    let bench = Bench::new(PIPELINE, "anthropic", &answers());
    let served = Served::start(bench.workbench());
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    wait_for_record(&bench, "stage.started");
    let mut stream = TcpStream::connect(&served.host).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let head = format!(
        "GET /runs/r/stages/look/output HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
        served.host, served.token
    );
    stream.write_all(head.as_bytes()).unwrap();
    let (mut text, mut piece) = (String::new(), [0; 4096]);
    while !text.contains("first I look") {
        let count = stream.read(&mut piece).unwrap();
        assert!(count > 0, "{text}");
        text.push_str(&String::from_utf8_lossy(&piece[..count]));
    }
    assert!(!has_ended(&bench), "the call is under way: {text}");
    let sent = served.follow("/runs/r/stages/look/output", None);
    assert!(run.wait().unwrap().success());
    let data: Vec<(&str, Value)> =
        sent.iter().map(|sent| (sent.event.as_str(), serde_json::from_str(&sent.data).unwrap())).collect();
    let turns: Vec<&Value> = data.iter().filter(|(name, _)| *name == "turn").map(|(_, data)| data).collect();
    assert_eq!(turns.len(), 2, "{data:?}");
    assert_eq!((&turns[0]["turn"], &turns[0]["model"]), (&json!(1), &json!("exact-model")));
    assert_eq!(turns[0]["calls"][0]["name"], "shell");
    assert!(turns[0]["calls"][0]["arguments"].as_str().unwrap().contains("sleep 4"), "{}", turns[0]);
    assert!(turns[0]["text"].as_str().unwrap().starts_with("first I look"), "{}", turns[0]);
    assert_eq!((&turns[1]["turn"], turns[1].get("calls")), (&json!(2), None));
    assert!(turns[1]["text"].as_str().unwrap().starts_with("now I know"), "{}", turns[1]);
    let at = |wanted: &str| data.iter().position(|(name, _)| *name == wanted).unwrap();
    assert!(at("turn") < at("command"), "{data:?}");
    // A client that comes after the end gets nothing of it.
    let late = events(&served.get("/runs/r/stages/look/output").body);
    assert_eq!(late.iter().map(|sent| sent.event.as_str()).collect::<Vec<_>>(), ["end"]);
}

#[test]
fn the_turns_of_a_stage_with_hold_outs_in_reach_are_never_followed() {
    let call = json!({ "command": "sleep 3" });
    let turns = [Turn::tool("shell", call).and_text("it has a wicker basket"), Turn::text("OUTCOME: SUCCESS")];
    let pipeline = PIPELINE.replace("prompt=", "codex.allow_read_scenarios=true, prompt=");
    let bench = Bench::new(&pipeline, "openai", &turns);
    bench.write("scripts/scenarios/s.txt", "apples\n");
    let served = Served::start(bench.workbench());
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    wait_for_record(&bench, "stage.started");
    let logs = bench.start_piped(&["logs", "r", "--follow"]);
    let refused = served.get("/runs/r/stages/look/output");
    assert_eq!(refused.is(403).json()["code"], "beside-holdouts");
    run.wait().unwrap();
    let said = logs.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&said.stderr).into_owned() + &String::from_utf8_lossy(&said.stdout);
    assert!(said.contains("look visit 1 started") && !said.contains("wicker") && !said.contains("turn 1"), "{said}");
    // The model was asked, and said it.
    assert!(bench.with_key(&["transcript", "r", "look", "--full"]).ends(0).stdout.contains("wicker"));
}
