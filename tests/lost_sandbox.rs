//! A sandbox whose first process is killed is no fault of the stage: the attempt is repeated once in each visit and does
//! not count as a retry. A command that kills its own sandbox gets no more than that.

use crate::workbench::processes::{Part, Process, descendants};
use crate::workbench::{Answer, Workbench, not_run};
use serde_json::Value;
use std::process::Child;
use std::time::{Duration, Instant};

const SAID: &str = "the sandbox's first process was killed by a signal";

/// Creates a pipeline with one stage that runs `work.sh`, which can note its runs in the folder beside the project if it
/// has no sandbox.
fn bench(attributes: &str, script: &str) -> Workbench {
    let bench = Workbench::with_pipeline(&format!(
        "digraph g {{ start [shape=Mdiamond]; done [shape=Msquare]\n\
         work [shape=parallelogram, tool_command=\"exec sh work.sh\", allowed_write_paths=\"out/\"{attributes}]\n\
         start -> work -> done }}\n"
    ));
    bench.write("out/log", "");
    bench.write("work.sh", &script.replace("$RAN", bench.outside().join("ran").to_str().unwrap()));
    bench
}

/// Returns status, code of the failure, and whether another attempt follows, for each attempt of the stage.
fn attempts(bench: &Workbench) -> Vec<(String, String, bool)> {
    let text = bench.run_text("r", "progress.ndjson");
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take());
    let finished = events.filter(|event| event["kind"] == "stage.finished" && event["node"] == "work");
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    finished
        .map(|event| {
            let (outcome, retries) = (&event["outcome"], event["retrying"] == true);
            (word(&outcome["status"]), word(&outcome["failure"]["code"]), retries)
        })
        .collect()
}

fn row(status: &str, code: &str, is_retried: bool) -> (String, String, bool) {
    (status.to_owned(), code.to_owned(), is_retried)
}

/// Kills the first process of a sandbox in which a command runs, other than `before`. Returns the killed process.
fn kill_sandbox(run: &Child, before: Option<Process>) -> Process {
    let engine = i32::try_from(run.id()).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        assert!(Instant::now() < until, "no sandbox runs a command");
        let all = descendants(engine);
        let is_first = |one: &&Process| Some(**one) != before && one.part(engine) == Some(Part::First);
        if let Some(first) = all.iter().find(is_first)
            && !descendants(first.pid).is_empty()
            && first.kill()
        {
            return *first;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

const RUN: &[&str] = &["run", "pipeline.dot", "--run-id", "r"];

#[test]
fn a_sandbox_that_is_killed_is_replaced_once_and_no_retry_is_used() {
    let bench = bench(", max_retries=0", "echo x >> out/log; sleep 1\n");
    let run = bench.start(RUN);
    kill_sandbox(&run, None);
    Answer::from_child(run).ends(0);
    assert_eq!(attempts(&bench), [row("fail", "host/sandbox_lost", true), row("success", "", false)]);
    assert_eq!(bench.run_text("r", "workspace/out/log"), "x\n", "the lost attempt changed nothing");
}

#[test]
fn a_second_sandbox_that_is_killed_ends_the_visit_and_says_why() {
    let bench = bench("", "echo x >> out/log; sleep 1\n");
    let run = bench.start(RUN);
    let first = kill_sandbox(&run, None);
    kill_sandbox(&run, Some(first));
    Answer::from_child(run).ends(9).says(SAID);
    assert_eq!(attempts(&bench), [row("fail", "host/sandbox_lost", true), row("fail", "host/sandbox_lost", false)]);
    let last = bench.run_json("r", "final.json");
    assert_eq!((&last["failure_class"], &last["failure_code"]), (&"transient".into(), &"host/sandbox_lost".into()));
    bench.glovebox(&["resume", "r"]).ends(0);
    assert_eq!(bench.run_text("r", "workspace/out/log"), "x\n");
}

/// Without a sandbox, a command can kill the process that stands for one.
#[test]
fn a_command_that_kills_its_own_sandbox_runs_twice_and_then_uses_its_retries() {
    let script = "echo x >> $RAN; kill -KILL $PPID; sleep 9\n";
    for (attributes, times) in [("", 2), (", max_retries=1", 3)] {
        let bench = bench(attributes, script);
        bench.glovebox(&[RUN, &["--dangerously-no-sandbox"]].concat()).ends(9).says(SAID);
        let ran = std::fs::read_to_string(bench.outside().join("ran")).unwrap();
        assert_eq!((ran.lines().count(), attempts(&bench).len()), (times, times), "{attributes}");
    }
}

/// The signal does not arrive, or it kills only the command.
#[test]
fn in_a_sandbox_a_command_can_lose_only_itself() {
    for (script, code) in [("kill -KILL $PPID; kill -0 $$ && exit 3\n", "exit"), ("kill -KILL $$\n", "signal")] {
        for tier in ["full", "landlock"] {
            let bench = bench("", script);
            bench.write("glovebox.toml", &format!("[sandbox]\nrequire = \"{tier}\"\n"));
            let answer = bench.glovebox(&[RUN, &["--tier", tier]].concat());
            if answer.code == 6 {
                not_run(&format!("a command that kills its sandbox in tier {tier}"), "this machine does not have it");
                continue;
            }
            answer.ends(1).never_says(SAID);
            let attempts = attempts(&bench);
            assert_eq!(attempts.len(), 1, "{tier} {code}: {attempts:?}");
            assert!(attempts[0].1.contains(code), "{tier}: {attempts:?}");
        }
    }
}

#[test]
fn no_stage_is_asked_to_repair_a_lost_sandbox_and_its_receipt_proves_nothing() {
    let bench = Workbench::with_pipeline(
        "digraph g { start [shape=Mdiamond]; done [shape=Msquare]\n\
         work [shape=parallelogram, tool_command=\"kill -KILL $PPID; sleep 9\", verifies=true]\n\
         repair [shape=parallelogram, tool_command=\"echo x >> repaired\"]\n\
         start -> work; work -> done [condition=\"outcome=success\"]\n\
         work -> repair [condition=\"outcome=fail\"]; repair -> work }\n",
    );
    bench.glovebox(&[RUN, &["--dangerously-no-sandbox"]].concat()).ends(9).says(SAID);
    assert!(!bench.has("repaired"));
    let text = bench.run_text("r", "progress.ndjson");
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].take());
    let finished = events.filter(|event| event["kind"] == "stage.finished" && event["node"] == "work");
    let receipts: Vec<Value> =
        finished.flat_map(|event| event["receipts"].as_array().cloned().unwrap_or_default()).collect();
    assert_eq!(receipts.len(), 2, "{receipts:?}");
    assert!(receipts.iter().all(|receipt| receipt["how"] == "lost" && receipt["code"].is_null()), "{receipts:?}");
}
