//! The liveness stream of a run with branches: signs of life beside the journal, a summary in it, and nothing for short stages.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that is surprised stops there")]

mod workbench;

use serde_json::Value;
use std::time::{Duration, Instant};
use workbench::Workbench;

const FORK: &str = "digraph fork { start [shape=Mdiamond]; done [shape=Msquare]
  f [shape=component]; j [shape=tripleoctagon]
  a [shape=parallelogram, tool_command=\"for i in 1 2 3 4 5 6; do echo x; sleep 4; done\"]
  b [shape=parallelogram, tool_command=\"sleep 24; echo late\"]
  short [shape=parallelogram, tool_command=\"echo short\"]
  start -> f; f -> a -> j; f -> b -> j; j -> short -> done }";

fn lines(bench: &Workbench, run: &str) -> Vec<Value> {
    let text = bench.run_text(run, "liveness.ndjson");
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_branch_that_prints_has_heartbeats_and_a_silent_or_short_stage_has_none() {
    let bench = Workbench::with_pipeline(FORK);
    let child = bench.start(&["run", "--run-id", "r"]);
    // Other processes read the stream while the run goes on.
    let deadline = Instant::now() + Duration::from_secs(60);
    while !bench.run_folder("r").join("liveness.ndjson").is_file() {
        assert!(Instant::now() < deadline, "no heartbeat came");
        std::thread::sleep(Duration::from_millis(50));
    }
    let first = lines(&bench, "r");
    assert_eq!((&first[0]["event"], &first[0]["attempt_node_id"]), (&"stage_attempt_start".into(), &"a".into()));
    workbench::Answer::from_child(child).ends(0);
    let all = lines(&bench, "r");
    let of = |node: &str| {
        let of_node = |line: &&Value| line["attempt_node_id"] == node;
        let events = all.iter().filter(of_node).map(|line| line["event"].as_str().unwrap().to_owned());
        events.collect::<Vec<String>>()
    };
    let a = of("a");
    assert_eq!(a.first().map(String::as_str), Some("stage_attempt_start"));
    assert_eq!(a.last().map(String::as_str), Some("stage_attempt_end"));
    assert!(a.iter().filter(|event| *event == "stage_heartbeat").count() >= 2, "{a:?}");
    assert!(a.contains(&"api_tool_call_start".to_owned()) && a.contains(&"api_tool_call_end".to_owned()), "{a:?}");
    assert!(of("short").is_empty());
    let heartbeat =
        all.iter().find(|line| line["event"] == "stage_heartbeat" && line["attempt_node_id"] == "a").unwrap();
    for (field, value) in
        [("run_generation", 0.into()), ("branch_id", Value::from("f-a")), ("attempt_ordinal", 1.into())]
    {
        assert_eq!(heartbeat[field], value, "{heartbeat}");
    }
    assert!(!bench.run_text("r", "liveness.ndjson").contains("echo x"), "counts and never text");
    let ends = all.iter().filter(|line| line["event"] == "branch_complete" && line["branch_id"] == "f-a");
    assert_eq!(ends.count(), 1);
    let records = bench.run_text("r", "progress.ndjson");
    let ended = |node: &str| {
        let events = records.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take());
        let mut ended = events.filter(|one| one["kind"] == "stage.finished" && one["node"] == node);
        ended.next().unwrap()["liveness"].clone()
    };
    assert!(ended("a")["heartbeats"].as_u64() >= Some(2) && ended("a")["output_bytes"] == 12, "{}", ended("a"));
    assert!(ended("b")["longest_silence_ms"].as_u64() >= Some(10_000), "{}", ended("b"));
    assert_eq!(ended("short"), Value::Null);
}
