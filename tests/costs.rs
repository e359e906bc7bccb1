//! What a run costs, counted and not timed: flushes, appends, bytes written, changes of threads and looks at the workspace for each stage.
//! A busy machine changes none of these.
//!
//! System calls are counted with `strace`. A stage is the difference of a long and a short run, so that start and end are not part of it.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that is surprised stops there")]

mod workbench;

use std::fmt::Write as _;
use std::process::Command;
use workbench::Workbench;

const FLUSHES: [&str; 5] = ["fsync", "fdatasync", "syncfs", "msync", "sync_file_range"];
const WRITES: [&str; 8] =
    ["write", "writev", "pwrite64", "pwritev", "pwritev2", "sendfile", "copy_file_range", "splice"];

/// Calls that look at a file or a folder.
const LOOKS: [&str; 6] = ["newfstatat", "statx", "openat2", "openat", "open", "getdents64"];
/// Files in the project.
const FILES: u64 = 20;

/// Files of bounded size that are written again ten times a second at most, so that a slow run writes them more often.
const REWRITTEN: [&str; 2] = ["checkpoint.json", "live.json"];

/// System calls of a run.
#[derive(Debug, Default)]
struct Calls {
    /// Calls that make something durable.
    flushes: u64,
    /// Those of the journal's log.
    flushes_of_log: u64,
    /// Bytes written to files of the run, [`REWRITTEN`] ones left out.
    written: u64,
    /// Calls with which a thread wakes another one or waits for it.
    handed_over: u64,
    /// Calls that look at the workspace.
    looks: u64,
}

/// A pipeline of component stages in a row.
fn in_a_row(stages: usize) -> String {
    let mut text =
        "digraph row {\n graph [max_steps=100000]\n start [shape=Mdiamond] done [shape=Msquare]\n".to_owned();
    text += " start -> n1\n";
    for stage in 1..=stages {
        let next = if stage == stages { "done".to_owned() } else { format!("n{}", stage + 1) };
        writeln!(text, " n{stage} [prompt=x, allowed_write_paths=\"src/\"]\n n{stage} -> {next}").unwrap();
    }
    text + "}\n"
}

/// Runs so many stages under `strace`.
fn calls(stages: usize) -> Calls {
    let bench = Workbench::with_pipeline(&in_a_row(stages));
    (0..FILES).for_each(|file| bench.write(&format!("file{file}.txt"), "text\n"));
    let logs = bench.outside().join("calls");
    std::fs::create_dir(&logs).unwrap();
    let run = bench.command(&["run", "pipeline.dot", "--quiet", "--run-id", "r"]);
    let mut strace = Command::new("strace");
    let traced = [&FLUSHES[..], &WRITES[..], &LOOKS[..], &["futex"]].concat().join(",");
    // A file for each thread: in one file a call that another thread interrupts is two lines, and neither says how much of what it wrote.
    strace.args(["-ff", "-qq", "-y", "-s", "0", "-e", &format!("trace={traced}"), "-o"]).arg(logs.join("of"));
    strace.arg(run.get_program()).args(run.get_args()).current_dir(bench.project()).env_clear();
    strace.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = strace.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut calls = Calls::default();
    for log in std::fs::read_dir(&logs).unwrap() {
        std::fs::read_to_string(log.unwrap().path()).unwrap().lines().for_each(|line| calls.take(line));
    }
    calls
}

impl Calls {
    /// Counts a line.
    fn take(&mut self, line: &str) {
        let name = line.split('(').next().unwrap_or_default();
        self.handed_over += u64::from(name == "futex" || (name == "write" && line.contains("[eventfd]")));
        self.looks += u64::from(LOOKS.contains(&name) && line.contains("/runs/r/workspace"));
        if FLUSHES.contains(&name) {
            self.flushes += 1;
            self.flushes_of_log += u64::from(line.contains("journal.sqlite-wal"));
        } else if WRITES.contains(&name)
            && line.contains("/runs/r/")
            && !REWRITTEN.iter().any(|file| line.contains(file))
        {
            self.written += line.rsplit("= ").next().and_then(|result| result.parse::<u64>().ok()).unwrap_or_default();
        }
    }

    /// What each stage between two runs cost.
    fn each(&self, shorter: &Self, stages: u64) -> (f64, f64, f64) {
        let each = |more: u64, less: u64| (more - less) as f64 / stages as f64;
        let flushes = each(self.flushes, shorter.flushes);
        let appends = each(self.flushes_of_log, shorter.flushes_of_log);
        (flushes, appends, each(self.written, shorter.written))
    }
}

/// What each of 500 later stages cost.
fn later(long: &Calls, middle: &Calls, count: impl Fn(&Calls) -> u64) -> f64 {
    count(long).saturating_sub(count(middle)) as f64 / 500.0
}

/// A stage's record, the claim of the next one and its small files are one append, and an append is one flush. Above one are flushes of
/// the log's checkpoints, a few in a hundred stages.
#[test]
fn a_stage_costs_one_flush_and_writes_the_same_in_a_long_run() {
    if !workbench::is_on_this_machine("strace") {
        return workbench::not_run("what a stage costs", "`strace` is not on this machine");
    }
    // The first stages write less: the tables of the journal have fewer levels of pages yet.
    let (short, middle, long) = (calls(60), calls(160), calls(660));
    let (flushes, appends, written) = middle.each(&short, 100);
    assert!((1.0..=1.08).contains(&flushes), "{flushes} flushes for each stage");
    assert!((1.0..=1.08).contains(&appends), "{appends} appends for each stage");
    let (later_flushes, later_appends, later_written) = long.each(&middle, 500);
    assert!((1.0..=1.08).contains(&later_flushes), "{later_flushes} flushes for each stage of a long run");
    assert!((1.0..=1.08).contains(&later_appends), "{later_appends} appends for each stage of a long run");
    println!(
        "each stage: {flushes} flushes, {written} bytes; of a long run: {later_flushes} flushes, {later_written} bytes"
    );
    // The driver makes the attempts of such stages itself. What is left is the ticker, which a slow machine lets go to sleep: two calls. With a
    // thread for each attempt it was seven.
    let handed_over = later(&long, &middle, |calls| calls.handed_over);
    assert!(handed_over < 3.0, "{handed_over} changes of threads for each stage");
    // The component lists its folder once, and its C library asks for the number of each file.
    let looks = later(&long, &middle, |calls| calls.looks);
    assert!(looks < FILES as f64 + 14.0, "{looks} looks at the workspace for each stage");
    println!("each stage of a long run: {handed_over} changes of threads, {looks} looks at the workspace");
    let growth = later_written / written;
    assert!((0.8..=1.1).contains(&growth), "{written} bytes for each stage, then {later_written}");
    assert!(written < 64.0 * 1024.0, "{written} bytes for each stage");
}
