//! A wall clock that is set: while a stage runs, while a run waits for a person, and while no process drives the run.
//!
//! A library that is loaded before the C library moves the wall clock of the program by the seconds in a file. The
//! clocks of the kernel, by which files get their times, stay as they are.

use crate::workbench::{Answer, Workbench, not_run};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

const DAY: i64 = 86_400;
const PAUSED: i32 = 10;
/// No command of these tests takes longer, on a loaded machine too.
const LONGEST: Duration = Duration::from_secs(90);

const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_gettime(clockid_t id, struct timespec *now) {
    int failed = (int)syscall(SYS_clock_gettime, id, now);
    const char *file = getenv("CLOCK_OFFSET_FILE");
    int opened = failed || id != CLOCK_REALTIME || !file ? -1 : open(file, O_RDONLY | O_CLOEXEC);
    if (opened >= 0) {
        char text[32] = {0};
        if (read(opened, text, sizeof text - 1) > 0) now->tv_sec += atol(text);
        close(opened);
    }
    return failed;
}
"#;

/// Returns the library. `None` without a C compiler.
fn library() -> Option<&'static Path> {
    static BUILT: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap().keep();
        let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
        fs::write(&source, LIBRARY).unwrap();
        let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
        built.is_ok_and(|status| status.success()).then_some(library)
    };
    BUILT.get_or_init(build).as_deref()
}

/// A project whose commands have a wall clock that the test sets.
struct Bench {
    bench: Workbench,
    preloaded: &'static Path,
}

impl Bench {
    fn with_pipeline(text: &str) -> Option<Self> {
        let made = Self { bench: Workbench::with_pipeline(text), preloaded: library()? };
        made.set(0);
        Some(made)
    }

    /// Sets the clock to this many seconds after the true time.
    fn set(&self, seconds: i64) {
        let (file, new) = (self.bench.outside().join("clock"), self.bench.outside().join("clock.new"));
        fs::write(&new, seconds.to_string()).unwrap();
        fs::rename(new, file).unwrap();
    }

    fn is_set(&self) -> bool {
        fs::read_to_string(self.bench.outside().join("clock")).unwrap() != "0"
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bench.command(words);
        command.env("LD_PRELOAD", self.preloaded).env("CLOCK_OFFSET_FILE", self.bench.outside().join("clock"));
        command
    }

    fn glovebox(&self, words: &[&str]) -> Answer {
        let began = Instant::now();
        let answer = Answer::of(&mut self.command(words));
        assert!(began.elapsed() < LONGEST, "{words:?} took {:?}", began.elapsed());
        answer
    }

    /// Starts run `r`, and sets the clock when the journal has a record of this kind. Returns the exit code, and the time
    /// that the run took from there.
    fn run_until(&self, kind: &str, seconds: i64) -> (i32, Duration) {
        let words = ["run", "pipeline.dot", "--run-id", "r", "--json"];
        let mut child = self.command(&words).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        lines.find(|line| line.as_ref().unwrap().contains(kind)).expect("such a record").unwrap();
        self.set(seconds);
        let began = Instant::now();
        while child.try_wait().unwrap().is_none() {
            if began.elapsed() > LONGEST {
                child.kill().unwrap();
                panic!("the run still waits {:?} after the clock was set by {seconds} s", began.elapsed());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        (child.wait().unwrap().code().unwrap(), began.elapsed())
    }

    /// Checks that no record is earlier than the one before it, and returns the milliseconds from the first to the last.
    fn span_ms(&self) -> i64 {
        let text = self.bench.run_text("r", "progress.ndjson");
        let time = |line: &str| {
            let record: Value = serde_json::from_str(line).unwrap();
            record["at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap().as_millisecond()
        };
        let times: Vec<i64> = text.lines().map(time).collect();
        assert!(times.is_sorted(), "{times:?}");
        times.last().unwrap() - times[0]
    }
}

#[test]
fn a_clock_that_is_set_during_a_stage_changes_no_duration_and_no_deadline() {
    let pipeline = "digraph g { graph [max_wall_time=\"2m\"]; start; done
  wait [shape=parallelogram, tool_command=\"sleep 2\", allowed_write_paths=\"\", max_wall_time=\"1m\", timeout=\"1m\"]
  again [shape=parallelogram, tool_command=\"exit 3\", allowed_write_paths=\"\", max_retries=1]
  start -> wait -> again
  again -> done [condition=\"outcome=fail\"] }";
    for seconds in [DAY, -DAY] {
        let Some(bench) = Bench::with_pipeline(pipeline) else { return not_run("the clock", "no C compiler") };
        let (code, _) = bench.run_until("stage.started", seconds);
        assert_eq!(code, 0, "{}", bench.glovebox(&["show", "r"]).stdout);
        let span = bench.span_ms();
        assert!((2_000..60_000).contains(&span), "set by {seconds} s: {span} ms");
        let summary = bench.bench.run_json("r", "final.json");
        assert_eq!(summary["status"], "success", "{summary}");
        let shown = bench.glovebox(&["show", "r", "--json"]).ends(0).json();
        let duration = shown["duration_ms"].as_i64().unwrap();
        assert!((2_000..60_000).contains(&duration), "{duration}");
        bench.glovebox(&["verify", "r"]).ends(0);
    }
}

#[test]
fn a_question_waits_as_long_as_its_timeout_says_whatever_the_clock_says() {
    let pipeline = "digraph g { start; done
  gate [shape=hexagon, label=\"Ship?\", timeout=\"5s\", \"human.default_choice\"=ship]
  ship [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]
  start -> gate; gate -> ship [label=\"[S] Ship\"]; ship -> done }";
    for seconds in [DAY, -DAY] {
        let Some(bench) = Bench::with_pipeline(pipeline) else { return not_run("the clock", "no C compiler") };
        let (code, took) = bench.run_until("question.asked", seconds);
        assert_eq!(code, 0);
        assert!((Duration::from_secs(4)..LONGEST).contains(&took), "set by {seconds} s: {took:?}");
        assert!((5_000..90_000).contains(&bench.span_ms()));
    }
}

#[test]
fn a_process_that_waits_takes_an_answer_after_the_clock_was_set() {
    let pipeline = "digraph g { start; done
  gate [shape=hexagon, label=\"Ship?\", timeout=\"9s\"]
  ship [shape=parallelogram, tool_command=\"true\", allowed_write_paths=\"\"]
  start -> gate; gate -> ship [label=\"[S] Ship\"]; ship -> done }";
    let Some(bench) = Bench::with_pipeline(pipeline) else { return not_run("the clock", "no C compiler") };
    std::thread::scope(|scope| {
        let answered = scope.spawn(|| {
            while !bench.is_set() {
                std::thread::sleep(Duration::from_millis(20));
            }
            bench.glovebox(&["answer", "r", "gate", "S", "--json"])
        });
        assert_eq!(bench.run_until("question.asked", DAY).0, 0);
        answered.join().unwrap().ends(0).says("recorded");
    });
}

#[test]
fn a_clock_that_is_set_while_no_process_drives_the_run_is_no_obstacle() {
    let pipeline = "digraph g { graph [max_wall_time=\"2m\"]; start; done
  build [shape=parallelogram, tool_command=\"mkdir -p gen; echo b > gen/b\", allowed_write_paths=\"\", max_wall_time=\"1m\"]
  gate [shape=hexagon, label=\"Ship?\"]
  ship [shape=parallelogram, tool_command=\"ls gen > seen; sleep 1\", allowed_write_paths=\"seen\", max_wall_time=\"1m\"]
  start -> build -> gate; gate -> ship [label=\"[S] Ship\"]; ship -> done }";
    for (seconds, seen) in [(DAY, "b\n"), (-DAY, "")] {
        let Some(bench) = Bench::with_pipeline(pipeline) else { return not_run("the clock", "no C compiler") };
        bench.bench.write(".gitignore", "gen/\n");
        bench.glovebox(&["run", "pipeline.dot", "--run-id", "r"]).ends(PAUSED);
        bench.set(seconds);
        bench.glovebox(&["answer", "r", "gate", "S"]).ends(0);
        // A build tool would take files that are changed from now on for older ones than its results.
        let removed = "caches removed, since the clock of this machine was set back";
        let resumed = bench.glovebox(&["resume", "r"]);
        resumed.ends(0);
        match seconds < 0 {
            true => resumed.says(removed),
            false => resumed.never_says(removed),
        };
        let workspace = bench.bench.run_folder("r").join("workspace");
        assert_eq!(fs::read_to_string(workspace.join("seen")).unwrap(), seen);
        assert!(bench.span_ms() >= 1_000);
        for words in [&["verify", "r"][..], &["ls"], &["show", "latest"], &["apply", "r"], &["gc"]] {
            bench.glovebox(words).ends(0);
        }
    }
}
