//! A run that waits for the quota of its provider: it goes on by itself at the time that the provider named.
//!
//! No test measures how long a wait takes. The order of the records and their times show it.

use crate::providers::{Bench, Turn};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::time::{Duration, Instant};

const STAGE: &str = "digraph ship {
  graph [goal=\"say hello\"]
  start [shape=Mdiamond]; exit [shape=Msquare]
  build [shape=box, prompt=\"Do: $goal\", allowed_write_paths=\"src/\"]
  start -> build -> exit
}
";

/// A time that no test reaches.
const HOUR: u64 = 3600;

fn write() -> Turn {
    Turn::tool("write_file", json!({ "path": "src/a.txt", "content": "hello\n" }))
}

fn refused(seconds: u64) -> Turn {
    Turn::error("quota-exceeded").resuming_in(seconds)
}

fn success() -> Turn {
    Turn::text("OUTCOME: SUCCESS")
}

fn records(bench: &Bench) -> Vec<Value> {
    // The last line of a running run may be incomplete.
    let file = bench.run_folder().join("progress.ndjson");
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.split_inclusive('\n').filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn of_kind(bench: &Bench, kind: &str) -> Vec<Value> {
    records(bench).into_iter().filter(|record| record["event"]["kind"] == kind).collect()
}

/// Waits until a running run has these records.
fn until(bench: &Bench, has: impl Fn() -> bool) {
    let began = Instant::now();
    while !has() {
        assert!(began.elapsed() < Duration::from_secs(60), "{:#?}", records(bench));
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_run_goes_on_by_itself_at_the_time_that_its_provider_named() {
    let turns = [write().usage(100, 10), refused(1), success().usage(100, 10)];
    // Ollama has no code for a used up quota.
    for family in ["openai", "anthropic", "gemini", "openai-compatible"] {
        let bench = Bench::new(STAGE, family, &turns);
        bench.run().ends(0).says(&format!("build waits for the quota of {family} until 2"));
        let all = records(&bench);
        let held = all.iter().position(|record| record["event"]["kind"] == "stage.held").unwrap();
        let (before, held, ready, again) = (&all[held - 1], &all[held], &all[held + 1], &all[held + 2]);
        let kinds = [before, ready, again].map(|record| record["event"]["kind"].as_str().unwrap());
        assert_eq!(kinds, ["stage.started", "stage.ready", "stage.started"], "{family}");
        assert_eq!(held["event"]["attempt_id"], before["event"]["attempt_id"], "{family}");
        assert_ne!(again["event"]["attempt_id"], before["event"]["attempt_id"], "{family}");
        assert_eq!(held["event"]["provider"], family);
        assert_eq!(held["event"]["resume_at"], ready["event"]["due_at"], "{family}");
        let times = [&held["at"], &held["event"]["resume_at"], &again["at"]].map(|at| at.as_str().unwrap());
        assert!(times.is_sorted(), "{family}: {times:?}");
        assert_eq!(bench.requests().len(), 3, "{family}: the turn before the refusal is not paid for again");
        assert_eq!(bench.show()["tokens"], json!({ "input": 200, "output": 20 }), "{family}: and counts once");
        assert_eq!(bench.run_json("final.json")["status"], "success");
    }
}

/// What the attempt has paid before its wait counts once, also for the limits of the run.
#[test]
fn a_wait_spends_no_budget() {
    let pipeline = STAGE.replace("goal=", "max_budget_usd=0.6, goal=");
    // A call costs 24 cents and reserves 25.
    let turns = [write().usage(100, 16_000), refused(1), success().usage(100, 16_000)];
    let bench = Bench::new(&pipeline, "anthropic", &turns);
    bench.run().ends(0);
    assert_eq!(bench.requests().len(), 3);
}

/// The journal has the time, so a process that is killed in the wait loses nothing.
#[test]
fn a_run_that_is_killed_in_its_wait_waits_for_the_same_time() {
    let bench = Bench::new(STAGE, "anthropic", &[refused(HOUR), success()]);
    bench.kill_run_in(&|| !of_kind(&bench, "stage.ready").is_empty() && of_kind(&bench, "stage.held").len() == 1);
    let due = of_kind(&bench, "stage.held")[0]["event"]["resume_at"].clone();
    let mut resumed = bench.start(&["resume", "r"]);
    until(&bench, || !of_kind(&bench, "run.resumed").is_empty());
    let waits = bench.glovebox(&["wait", "r", "--timeout", "2s"]);
    waits.ends(9).says("run r waits for the quota of anthropic until 2");
    let branch = &bench.show()["branches_now"][0];
    assert_eq!((&branch["waits_for"], &branch["due_at"]), (&json!("quota"), &due), "{branch}");
    assert_eq!((&branch["provider"], &branch["phase"]), (&json!("anthropic"), &json!("waiting")), "{branch}");
    let live = bench.run_json("live.json")["branches"][0].clone();
    assert_eq!((&live["waits_for"], &live["due_at"]), (&json!("quota"), &due), "{live}");
    bench.glovebox(&["show", "r"]).says("main at build waits for the quota of anthropic until 2");
    bench.glovebox(&["ls"]).says("main at build waits for the quota of anthropic until 2");
    assert_eq!(bench.requests().len(), 1, "nothing is asked before that time");
    // A person has a reason to pause and to resume: the stage tries at once.
    bench.glovebox(&["pause", "r"]).ends(0);
    assert_eq!(resumed.wait().unwrap().code(), Some(10));
    let told = bench.glovebox(&["show", "r"]);
    told.says("quota        it resumes at 2").says("as the provider says").says("glovebox resume r");
    assert_eq!(bench.show()["resume_at"], due);
    bench.resume().ends(0).says("build tries again now, although the quota of anthropic resumes at 2");
    assert_eq!(bench.requests().len(), 2);
}

/// The process that drives a detached run has no terminal. Whoever attaches to it sees what it waits for.
#[test]
fn whoever_attaches_sees_what_a_run_waits_for() {
    let bench = Bench::new(STAGE, "openai", &[refused(HOUR), success()]);
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r", "-q"]);
    until(&bench, || !of_kind(&bench, "stage.held").is_empty());
    let mut attached = bench.start_piped(&["attach", "r"]);
    let mut lines = BufReader::new(attached.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains("build waits for the quota of openai until 2")));
    bench.glovebox(&["cancel", "r"]).ends(0);
    assert_eq!([run.wait().unwrap().code(), attached.wait().unwrap().code()], [Some(130), Some(130)]);
}

#[test]
fn other_branches_go_on_while_one_waits() {
    let pipeline = "digraph fan {
  start [shape=Mdiamond]; fork [shape=component]; join [shape=tripleoctagon]; done [shape=Msquare]
  a [prompt=\"task-alpha\", allowed_write_paths=\"\"]; b [prompt=\"task-beta\", allowed_write_paths=\"\"]
  start -> fork; fork -> a -> join; fork -> b -> join; join -> done
}
";
    let turns = [refused(HOUR).when("task-alpha"), success().when("task-beta").after(300), success()];
    let bench = Bench::new(pipeline, "anthropic", &turns);
    let mut run = bench.start(&["run", "pipeline.dot", "--run-id", "r", "-q"]);
    until(&bench, || of_kind(&bench, "branch.finished").len() == 1 && of_kind(&bench, "stage.held").len() == 1);
    assert_eq!(of_kind(&bench, "branch.finished")[0]["event"]["branch"], "fork-b");
    assert!(of_kind(&bench, "run.paused").is_empty());
    assert_eq!(bench.show()["status"], "running");
    bench.interrupt_child(&mut run);
    // A run that a signal stopped waits for the same time as before.
    let due = of_kind(&bench, "stage.held")[0]["event"]["resume_at"].clone();
    let mut resumed = bench.start(&["resume", "r", "-q"]);
    until(&bench, || of_kind(&bench, "run.resumed").len() == 1);
    assert_eq!(of_kind(&bench, "stage.ready").last().unwrap()["event"]["due_at"], due);
    bench.interrupt_child(&mut resumed);
}

/// A branch that waits for its quota is canceled. What it waited for must not keep the run from pausing at the next question.
#[test]
fn a_canceled_branch_waits_for_nothing() {
    let pipeline = "digraph fan {
  start [shape=Mdiamond]; fork [shape=component, join_policy=first_success]; join [shape=tripleoctagon]; done [shape=Msquare]
  a [prompt=\"task-alpha\", allowed_write_paths=\"\"]; b [prompt=\"task-beta\", allowed_write_paths=\"\"]; gate [shape=hexagon, label=\"go on?\"]
  start -> fork; fork -> a -> join; fork -> b -> join; join -> gate; gate -> done [label=\"yes\"]
}
";
    let turns = [refused(HOUR).when("task-alpha"), success().when("task-beta").after(300)];
    let bench = Bench::new(pipeline, "anthropic", &turns);
    bench.with_key(&["run", "pipeline.dot", "--run-id", "r", "--no-input", "-q"]).ends(10);
    assert_eq!((of_kind(&bench, "branch.canceled").len(), of_kind(&bench, "run.paused").len()), (1, 1));
}

/// A wait for a quota is driven time, and no limit waits for it.
#[test]
fn the_time_limit_of_a_run_ends_its_wait() {
    let bench = Bench::new(STAGE, "gemini", &[refused(HOUR)]);
    bench.with_key(&["run", "pipeline.dot", "--run-id", "r", "--max-wall-time", "3s"]).ends(5).says("wall time");
    assert_eq!(of_kind(&bench, "stage.held").len(), 1);
}

/// Without a usable time, only a person can help.
#[test]
fn a_provider_that_names_no_usable_time_pauses_the_run() {
    let week = 7 * 24 * HOUR;
    for turn in [Turn::error("quota-exceeded"), refused(0), refused(week + HOUR)] {
        let bench = Bench::new(STAGE, "openai", &[turn, success()]);
        bench.run().ends(10).says("paused").never_says("waits for the quota");
        assert!(of_kind(&bench, "stage.held").is_empty());
        bench.resume().ends(0);
    }
}
