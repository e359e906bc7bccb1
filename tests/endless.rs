//! Loops of nodes that do no work: the operator's limits and signals end them, and a kill loses nothing.

use crate::workbench::journal::{copy_prefix, end};
use crate::workbench::{Answer, Workbench};
use rusqlite::Connection;
use serde_json::Value;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time within which a run must end after a limit of seconds. It is far above what a busy machine needs and far below
/// the duration of the loops.
const SOON: Duration = Duration::from_secs(30);

const WALL_TIME: &str = "limit/max_wall_time";

/// Creates a pipeline with this body and `max_steps=steps`.
fn bench(steps: u32, body: &str) -> Workbench {
    Workbench::with_pipeline(&format!(
        "digraph g {{\n graph [max_steps={steps}]\n start [shape=Mdiamond]\n done [shape=Msquare]\n {body}\n}}\n"
    ))
}

fn endless() -> Workbench {
    bench(100_000_000, "d [shape=diamond]\n start -> d\n d -> d [weight=5]\n d -> done [condition=\"context.x=1\"]")
}

fn failure_code(bench: &Workbench) -> Value {
    bench.glovebox(&["show", "r", "--json"]).ends(0).json()["failure"]["code"].clone()
}

fn records(bench: &Workbench) -> i64 {
    let journal = Connection::open(bench.run_folder("r").join("journal.sqlite")).unwrap();
    journal.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap_or(0)
}

/// Waits until the journal has at least 1,000 records, so that the loop is running.
fn until_it_goes_round(bench: &Workbench) {
    let end = Instant::now() + SOON;
    while !bench.run_folder("r").join("journal.sqlite").exists() || records(bench) < 1_000 {
        assert!(Instant::now() < end, "nothing of the loop reaches the journal");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn the_time_of_the_run_ends_a_loop_without_work() {
    let bench = endless();
    for command in [&["run", "pipeline.dot", "--run-id", "r"][..], &["resume", "r"]] {
        let began = Instant::now();
        let bound = if command[0] == "run" { "1s" } else { "2s" };
        bench.glovebox(&[command, &["--max-wall-time", bound, "-q"]].concat()).ends(5);
        assert!(began.elapsed() < SOON, "{command:?}");
        assert_eq!(failure_code(&bench), WALL_TIME);
    }
    bench.glovebox(&["verify", "r"]).ends(0);
}

#[test]
fn a_signal_stops_a_loop_without_work_and_a_resume_goes_on_with_it() {
    for (signal, code) in [("INT", 130), ("TERM", 143)] {
        let bench = endless();
        let child = bench.start(&["run", "pipeline.dot", "--run-id", "r", "-q"]);
        until_it_goes_round(&bench);
        let (sent, process) = (Instant::now(), child.id().to_string());
        assert!(Command::new("kill").args([&format!("-{signal}"), &process]).status().unwrap().success());
        Answer::from_child(child).ends(code);
        assert!(sent.elapsed() < SOON, "{signal}");
        let stopped = records(&bench);
        bench.glovebox(&["resume", "r", "--max-wall-time", "3s", "-q"]).ends(5);
        assert!(records(&bench) > stopped, "{signal}");
    }
}

#[test]
fn killed_within_a_loop_without_work_a_run_ends_the_same() {
    let bench = bench(
        100_000,
        "c [shape=diamond]\n d [shape=diamond, max_visits=600]\n start -> c -> d\n d -> c [weight=5]\n \
         d -> done [condition=\"context.x=1\"]",
    );
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "-q"]).ends(5);
    let (expected, all) = (end(&bench.run_folder("r")), records(&bench));
    assert!(all > 2_000);
    for kept in [2, 255, 256, 257, 258, 1_000, all - 1] {
        let runs = format!(".glovebox/prefix-{kept}");
        let run = bench.project().join(&runs).join("r");
        copy_prefix(&bench, &run, kept);
        bench.glovebox(&["resume", "r", "--runs-dir", &runs, "-q"]).ends(5);
        assert_eq!(end(&run), expected, "after record {kept}");
    }
}

#[test]
fn other_branches_of_a_fork_go_on_beside_a_loop_without_work() {
    let bench = bench(
        100_000_000,
        "fork [shape=component]\n join [shape=tripleoctagon]\n d [shape=diamond]\n \
         a [shape=parallelogram, tool_command=\"mkdir -p src && echo 1 > src/a\", allowed_write_paths=\"src/\"]\n \
         b [shape=parallelogram, tool_command=\"sleep 300\"]\n start -> fork\n fork -> d\n fork -> a\n d -> d [weight=5]\n \
         d -> join [condition=\"context.x=1\"]\n a -> b -> join -> done",
    );
    let began = Instant::now();
    bench.glovebox(&["run", "pipeline.dot", "--run-id", "r", "--max-wall-time", "4s", "-q"]).ends(5);
    assert!(began.elapsed() < SOON);
    assert_eq!(failure_code(&bench), WALL_TIME);
    let text = bench.run_text("r", "progress.ndjson");
    let is_end_of_a = |line: &&str| line.contains("\"stage.finished\"") && line.contains("\"node\":\"a\"");
    assert_eq!(text.lines().filter(is_end_of_a).count(), 1);
}
