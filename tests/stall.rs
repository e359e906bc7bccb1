//! The stall watchdog with real commands: it ends a run of silent branches within its tolerance, and no run that is at work.

use crate::providers::{Bench, Turn};
use crate::workbench::{Answer, Workbench};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Returns a pipeline with two branches that run these commands.
fn fork(graph: &str, a: &str, b: &str) -> String {
    format!(
        "digraph fork {{ graph [{graph}]; start [shape=Mdiamond]; done [shape=Msquare]
         f [shape=component]; j [shape=tripleoctagon]
         a [shape=parallelogram, tool_command=\"{a}\"]; b [shape=parallelogram, tool_command=\"{b}\"]
         start -> f; f -> a -> j; f -> b -> j; j -> done }}"
    )
}

fn kinds(bench: &Workbench, run: &str) -> Vec<String> {
    let text = bench.run_text(run, "progress.ndjson");
    let records = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|record| record["event"]["kind"].as_str().unwrap().to_owned()).collect()
}

/// Describes the exit of a branch.
fn exit(exited: &Value) -> String {
    assert!(!exited["reason"].as_str().unwrap().is_empty(), "{exited}");
    [&exited["branch"], &exited["node"], &exited["point"]].map(|field| field.as_str().unwrap()).join(" ")
}

/// A used up limit of the run says where each branch stood, as a cancellation does.
#[test]
fn a_limit_of_the_run_names_the_exit_of_each_branch_before_its_end() {
    let bench = Workbench::with_pipeline(&fork("max_wall_time=\"2s\"", "test -f go || sleep 60", "true"));
    bench.glovebox(&["run", "--run-id", "r"]).ends(5).says("maximum wall time");
    let text = bench.run_text("r", "progress.ndjson");
    let events: Vec<Value> =
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take()).collect();
    let last: Vec<&Value> = events.iter().rev().take(3).collect();
    assert_eq!(last[0]["kind"], "run.finished");
    assert_eq!([exit(last[2]), exit(last[1])], ["f-a a in_stage", "main f at_join"]);
    assert_eq!(last[1]["reason"], last[0]["failure"]["reason"]);
    // The stage of the branch is executed again.
    let again = bench.glovebox(&["resume", "r", "--max-wall-time", "4s"]);
    again.ends(5);
    let begun = kinds(&bench, "r").iter().filter(|kind| *kind == "stage.started").count();
    assert_eq!(begun, 3, "the branch that had ended is not executed again");
}

#[test]
fn silent_branches_end_a_run_within_the_tolerance_and_a_resume_repeats_them() {
    let waits = "test -f go || sleep 30";
    let bench = Workbench::with_pipeline(&fork("stall_timeout_ms=3000", waits, waits));
    let began = Instant::now();
    let answer = bench.glovebox(&["run", "--run-id", "r"]);
    answer.ends(9).says("stall_watchdog_timeout: no branch made progress for 3000 ms: f-a at a (");
    // The commands would end after 30 s.
    assert!(began.elapsed() < Duration::from_secs(28), "{:?}", began.elapsed());
    let text = bench.run_text("r", "progress.ndjson");
    let mut events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take());
    let stalled = events.find(|event| event["kind"] == "run.stalled").unwrap();
    assert!((3_300..4_500).contains(&stalled["idle_ms"].as_u64().unwrap()), "{stalled}");
    let silent: Vec<&str> =
        stalled["silent"].as_array().unwrap().iter().map(|one| one["branch"].as_str().unwrap()).collect();
    assert_eq!(silent, ["f-a", "f-b"]);
    let ended: Vec<Value> = events.collect();
    let exits: Vec<String> = ended.iter().filter(|event| event["kind"] == "branch.exited").map(exit).collect();
    assert_eq!(exits, ["f-a a in_stage", "f-b b in_stage", "main f at_join"]);
    assert_eq!(ended.last().unwrap()["kind"], "run.finished");
    let last = bench.run_json("r", "final.json");
    assert_eq!(
        (&last["status"], last["failure_reason"].as_str().unwrap().contains("stall_watchdog_timeout")),
        (&"fail".into(), true)
    );
    // The failure may pass, so the run continues where it was.
    bench.glovebox(&["show", "r"]).says("glovebox resume r");
    bench.glovebox(&["resume", "r", "--stall-timeout-ms", "0"]).ends(0);
    let ended = kinds(&bench, "r").iter().filter(|kind| *kind == "stage.finished").count();
    assert_eq!(ended, 4, "both attempts were repeated");
}

#[test]
fn a_branch_that_prints_or_computes_keeps_a_run_alive() {
    let prints = "for i in 1 2 3 4 5 6 7 8; do echo $i; sleep 1; done";
    let computes = "end=$(( $(date +%s) + 8 )); while [ $(date +%s) -lt $end ]; do :; done";
    for busy in [prints, computes] {
        let bench = Workbench::with_pipeline(&fork("stall_timeout_ms=3000", busy, "sleep 7"));
        bench.glovebox(&["run", "--run-id", "r"]).ends(0);
        assert!(!kinds(&bench, "r").contains(&"run.stalled".to_owned()), "{busy}");
    }
}

#[test]
fn the_lower_of_flag_and_attribute_wins_and_the_plan_says_it() {
    let bench = Workbench::with_pipeline(&fork("stall_timeout_ms=60000", "sleep 30", "sleep 30"));
    bench.glovebox(&["plan"]).says("1m00s without progress");
    let answer =
        bench.glovebox(&["run", "--run-id", "r", "--stall-timeout-ms", "2000", "--stall-check-interval-ms", "100"]);
    answer.ends(9).says("no branch made progress for 2000 ms");
    bench.glovebox(&["plan", "--stall-timeout-ms", "0"]).says("1m00s without progress");
    let bench = Workbench::with_pipeline(&fork("", "true", "true"));
    bench.glovebox(&["plan"]).says("10m00s without progress");
    bench.glovebox(&["plan", "--stall-timeout-ms", "0"]).says("unlimited time without progress");
}

#[test]
fn a_run_that_was_suspended_is_not_stalled() {
    let bench = Workbench::with_pipeline(&fork("stall_timeout_ms=4000", "sleep 3", "sleep 3"));
    let mut command = bench.bare(&["run", "--run-id", "r"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let process = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    kill_process(process, Signal::STOP).unwrap();
    std::thread::sleep(Duration::from_secs(8));
    kill_process(process, Signal::CONT).unwrap();
    Answer::from_child(child).ends(0);
    assert!(!kinds(&bench, "r").contains(&"run.stalled".to_owned()));
}

const ASKS: &str = "digraph ship {
  graph [goal=\"say hello\", stall_timeout_ms=3000]
  start [shape=Mdiamond]
  build [prompt=\"Do: $goal\", allowed_write_paths=\"src/\"]
  exit [shape=Msquare]
  start -> build -> exit
}
";

#[test]
fn a_model_that_answers_late_is_waited_for_and_named() {
    let bench = Bench::new(ASKS, "openai", &[Turn::text("OUTCOME: SUCCESS").after(20_000)]);
    let mut run = bench.start_run(1);
    let deadline = Instant::now() + Duration::from_secs(60);
    let waits = |show: &Value| show["branches_now"][0]["waits_for"] == "model";
    while !waits(&bench.glovebox(&["show", "r", "--json"]).json()) {
        assert!(Instant::now() < deadline, "no heartbeat names the model");
        std::thread::sleep(Duration::from_millis(200));
    }
    bench.glovebox(&["show", "r"]).says("main at build waits for the model");
    assert_eq!(run.wait().unwrap().code(), Some(0));
    let records = bench.read_in_run("progress.ndjson");
    assert!(!records.contains("run.stalled"), "{records}");
    let ended = records.lines().find(|line| line.contains("\"kind\":\"stage.finished\"")).unwrap();
    let liveness = &serde_json::from_str::<Value>(ended).unwrap()["event"]["liveness"];
    assert!(liveness["waited_ms"]["model"].as_u64() >= Some(10_000), "{liveness}");
}
