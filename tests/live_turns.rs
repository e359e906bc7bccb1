//! The turns of a running stage with its model and the text of its unfinished answer, in `logs --follow` and over HTTP, and that
//! those of a stage with hold-outs in reach never appear there.

use crate::providers::{Bench, KEY, Turn, stand_in};
use crate::serve::client::{Served, events, unchunked};
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

/// A client of the output of the stage that reads it while the run is under way.
struct Client {
    stream: TcpStream,
    text: String,
}

impl Client {
    fn begin(served: &Served) -> Self {
        let mut stream = TcpStream::connect(&served.host).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let head = format!(
            "GET /runs/r/stages/look/output HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\r\n",
            served.host, served.token
        );
        stream.write_all(head.as_bytes()).unwrap();
        Self { stream, text: String::new() }
    }

    fn read_until(&mut self, wanted: &str) {
        let mut piece = [0; 4096];
        while !self.text.contains(wanted) {
            let count = self.stream.read(&mut piece).unwrap();
            assert!(count > 0, "{}", self.text);
            self.text.push_str(&String::from_utf8_lossy(&piece[..count]));
        }
    }

    /// Returns the name and data of each event until the end.
    fn finish(mut self) -> Vec<(String, Value)> {
        self.stream.read_to_string(&mut self.text).unwrap();
        let (_, body) = self.text.split_once("\r\n\r\n").unwrap();
        let sent = events(&unchunked(body));
        sent.iter().map(|sent| (sent.event.clone(), serde_json::from_str(&sent.data).unwrap())).collect()
    }
}

/// Returns what a client shows of the unfinished answer after each event.
fn drafts(events: &[(String, Value)]) -> Vec<String> {
    let mut shown = String::new();
    let after = |(name, data): &(String, Value)| {
        match name.as_str() {
            "draft" if data["is_new"] == true => shown = data["text"].as_str().unwrap().to_owned(),
            "draft" => shown.push_str(data["text"].as_str().unwrap()),
            "draft-end" => shown.clear(),
            _ => {}
        }
        shown.clone()
    };
    events.iter().map(after).collect()
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
    let mut client = Client::begin(&served);
    client.read_until("first I look");
    assert!(!has_ended(&bench), "the call is under way: {}", client.text);
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

#[test]
fn an_unfinished_answer_is_followed_over_http() {
    for family in ["openai", "anthropic"] {
        let turns = [Turn::slow(&["I begin\n", "\u{1b}[2J and go on", "\nOUTCOME: SUCCESS"], 1500)];
        let bench = Bench::new(PIPELINE, family, &turns);
        let served = Served::start(bench.workbench());
        let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
        wait_for_record(&bench, "stage.started");
        let mut client = Client::begin(&served);
        client.read_until("I begin");
        assert!(!has_ended(&bench), "the model writes: {}", client.text);
        let folder = bench.run_folder().join("live");
        assert!(folder.exists());
        let seen = client.finish();
        assert!(run.wait().unwrap().success());
        let shown = drafts(&seen);
        let text = "I begin\n\u{1b}[2J and go on\nOUTCOME: SUCCESS";
        assert!(shown.iter().any(|shown| shown == "I begin\n\u{1b}[2J and go on"), "{family}: {seen:?}");
        assert!(shown.iter().all(|shown| text.starts_with(shown)), "{family}: {seen:?}");
        let at = |wanted: &str| seen.iter().position(|(name, _)| name == wanted).unwrap();
        assert!(at("draft") < at("draft-end") && at("draft-end") < at("turn"), "{family}: {seen:?}");
        assert_eq!(seen[at("turn")].1["text"], text);
        assert_eq!(shown[at("turn")], "", "the finished turn replaces it");
        assert!(!folder.exists(), "nothing is left in the run");
    }
}

#[test]
fn an_unfinished_answer_is_followed_in_a_terminal() {
    let turns = [Turn::slow(&["I begin\n", "\u{1b}[2J and go on", "\n  ::error::no\nOUTCOME: SUCCESS"], 1500)];
    let bench = Bench::new(PIPELINE, "anthropic", &turns);
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    wait_for_record(&bench, "stage.started");
    let mut logs = bench.start_piped(&["logs", "r", "look", "--follow"]);
    let mut reader = BufReader::new(logs.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("I begin") {
        assert!(reader.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(!has_ended(&bench), "the model writes: {said}");
    assert!(said.ends_with("==> look visit 1: the model writes\n    I begin\n"), "{said}");
    reader.read_to_string(&mut said).unwrap();
    assert!(said.contains("    \\x1b[2J and go on\n      \\x3a:error::no\n"), "{said}");
    assert!(
        said.contains("==> look visit 1: turn 1, exact-model\n") && said.contains("    OUTCOME: SUCCESS\n"),
        "{said}"
    );
    for once in ["I begin", "and go on", "OUTCOME", "turn 1,"] {
        assert_eq!(said.matches(once).count(), 1, "{once}: {said}");
    }
    assert!(!said.contains("discarded"), "{said}");
    assert!(logs.wait().unwrap().success() && run.wait().unwrap().success());
}

#[test]
fn a_key_that_arrives_in_two_pieces_is_not_in_an_unfinished_answer() {
    let (first, second) = KEY.split_at(9);
    let pieces = [format!("it is {first}"), format!("{second} so"), "\nOUTCOME: SUCCESS".to_owned()];
    let bench = Bench::new(PIPELINE, "openai-compatible", &[Turn::slow(&pieces.each_ref().map(String::as_str), 1200)]);
    let served = Served::start(bench.workbench());
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    wait_for_record(&bench, "stage.started");
    let mut client = Client::begin(&served);
    client.read_until("it is ");
    let folder = bench.run_folder().join("live");
    let files = || -> String {
        let all = std::fs::read_dir(&folder).into_iter().flatten();
        all.filter_map(|file| std::fs::read(file.unwrap().path()).ok())
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
            .collect()
    };
    assert!(files().contains("it is ") && !files().contains(&KEY[..2]), "{}", files());
    client.read_until("[key] so");
    let seen = client.finish();
    assert!(run.wait().unwrap().success());
    let shown = drafts(&seen);
    assert!(
        shown.iter().any(|shown| shown == "it is ") && shown.iter().any(|shown| shown == "it is [key] so"),
        "{seen:?}"
    );
    assert!(!format!("{seen:?}").contains(&KEY[..2]), "{seen:?}");
}

#[test]
fn an_answer_that_is_asked_for_again_is_taken_back() {
    // Half of the events are sent before the connection breaks.
    let broken = Turn::slow(&["this is wrong\n", "very wrong", "and", "never", "comes", "to", "its", "end"], 400)
        .cut("connection");
    let bench =
        Bench::new(PIPELINE, "anthropic", &[broken, Turn::slow(&["this is right\n", "OUTCOME: SUCCESS"], 1000)]);
    let served = Served::start(bench.workbench());
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    wait_for_record(&bench, "stage.started");
    let logs = bench.start_piped(&["logs", "r", "look", "--follow"]);
    let mut client = Client::begin(&served);
    client.read_until("this is wrong");
    client.read_until("event: draft-end");
    assert!(!has_ended(&bench), "the model is asked again: {}", client.text);
    client.read_until("this is right");
    let seen = client.finish();
    assert!(run.wait().unwrap().success());
    let shown = drafts(&seen);
    assert!(shown.iter().any(|shown| shown.starts_with("this is wrong")), "{seen:?}");
    let right: Vec<&String> = shown.iter().filter(|shown| shown.contains("right")).collect();
    assert!(!right.is_empty() && right.iter().all(|shown| !shown.contains("wrong")), "{seen:?}");
    let said = String::from_utf8_lossy(&logs.wait_with_output().unwrap().stderr).into_owned();
    let at = |text: &str| said.find(text).unwrap_or_else(|| panic!("no `{text}`: {said}"));
    assert!(
        at("this is wrong") < at("the answer was discarded") && at("the answer was discarded") < at("this is right"),
        "{said}"
    );
}

#[test]
fn the_unfinished_answer_to_an_agent_program_is_followed() {
    let program = "
sys.stdin.read()
status, answer = ask('go')
assert status == 200 and 'message_stop' in answer, answer
print('OUTCOME: SUCCESS')
";
    let bench = stand_in::bench("", program, &[Turn::slow(&["I begin\n", "and go on\n", "to the end"], 1200)]);
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    wait_for_record(&bench, "stage.started");
    let mut logs = bench.start_piped(&["logs", "r", "build", "--follow"]);
    let mut said = String::new();
    let mut reader = BufReader::new(logs.stderr.take().unwrap());
    while !said.contains("I begin") {
        assert!(reader.read_line(&mut said).unwrap() > 0, "{said}");
    }
    assert!(!has_ended(&bench) && said.contains("==> build visit 1: the model writes\n"), "{said}");
    reader.read_to_string(&mut said).unwrap();
    assert!(said.contains("==> build visit 1: turn 1, exact-model\n    to the end\n"), "{said}");
    assert_eq!(said.matches("and go on").count(), 1, "{said}");
    assert!(logs.wait().unwrap().success() && run.wait().unwrap().success());
}

/// Runs a stage whose model writes slowly in a project with hold-outs, and returns all that a client and a terminal show.
fn followed_beside_holdouts(pipeline: &str) -> (Bench, String) {
    let turns = [Turn::slow(&["it has a wicker basket\n", "of apples\n", "OUTCOME: SUCCESS"], 1000)];
    let bench = Bench::new(pipeline, "anthropic", &turns);
    bench.write("scripts/scenarios/s.txt", "apples\n");
    let served = Served::start(bench.workbench());
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r"]);
    wait_for_record(&bench, "stage.started");
    let logs = bench.start_piped(&["logs", "r", "--follow"]);
    let mut shown = String::new();
    while !has_ended(&bench) {
        let folder = std::fs::read_dir(bench.run_folder().join("live")).into_iter().flatten();
        let names = folder.map(|file| file.unwrap().file_name().into_string().unwrap());
        shown.extend(names.filter(|name| name.ends_with(".draft")));
        std::thread::sleep(Duration::from_millis(20));
    }
    shown.push_str(&served.get("/runs/r/stages/look/output").body);
    assert!(run.wait().unwrap().success());
    shown.push_str(&String::from_utf8_lossy(&logs.wait_with_output().unwrap().stderr));
    (bench, shown)
}

#[test]
fn the_unfinished_answers_of_a_stage_with_hold_outs_in_reach_are_never_followed() {
    let pipeline = PIPELINE.replace("prompt=", "codex.allow_read_scenarios=true, prompt=");
    let (bench, shown) = followed_beside_holdouts(&pipeline);
    assert!(!shown.contains("wicker") && !shown.contains(".draft") && !shown.contains("the model writes"), "{shown}");
    // The model was asked, and said it.
    assert!(bench.with_key(&["transcript", "r", "look", "--full"]).ends(0).stdout.contains("wicker"));
}

#[test]
fn an_answer_that_is_searched_for_hold_outs_is_followed_only_when_it_is_finished() {
    let (_bench, shown) = followed_beside_holdouts(PIPELINE);
    assert!(!shown.contains(".draft") && !shown.contains("the model writes"), "{shown}");
    assert!(shown.contains("turn 1, exact-model\n    it has a wicker basket"), "{shown}");
}
