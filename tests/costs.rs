//! The cost of a run, counted and not timed: flushes, appends, written bytes, thread switches and system calls on the
//! workspace for each stage. The load of the machine does not change these numbers.
//!
//! System calls are counted with `strace`. The cost of a stage is the difference between a long and a short run, so
//! that it does not include the start and the end of the run.

use crate::workbench::{self, Workbench};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

const FLUSHES: [&str; 5] = ["fsync", "fdatasync", "syncfs", "msync", "sync_file_range"];
const WRITES: [&str; 8] =
    ["write", "writev", "pwrite64", "pwritev", "pwritev2", "sendfile", "copy_file_range", "splice"];

/// System calls that look up, open or list a file or a folder.
const LOOKUP_CALLS: [&str; 6] = ["newfstatat", "statx", "openat2", "openat", "open", "getdents64"];
/// Number of files in the project.
const FILES: u64 = 20;

/// Files of bounded size that are rewritten at most ten times a second, so a slow run rewrites them more often.
const REWRITTEN: [&str; 2] = ["checkpoint.json", "live.json"];

/// Numbers of system calls of a run.
#[derive(Debug, Default)]
struct Calls {
    /// Calls that make data durable.
    flushes: u64,
    /// Calls that make the journal's write-ahead log durable.
    flushes_of_log: u64,
    /// Bytes written to files of the run, except for those in [`REWRITTEN`].
    written: u64,
    /// Calls with which a thread wakes another one or waits for it.
    handed_over: u64,
    /// Calls in [`LOOKUP_CALLS`] on the workspace.
    looks: u64,
}

/// Returns a pipeline of component stages in a row.
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

/// Runs a pipeline with this many stages under `strace`.
fn calls(stages: usize) -> Calls {
    let bench = Workbench::with_pipeline(&in_a_row(stages));
    (0..FILES).for_each(|file| bench.write(&format!("file{file}.txt"), "text\n"));
    let logs = bench.outside().join("calls");
    fs::create_dir(&logs).unwrap();
    let run = bench.command(&["run", "pipeline.dot", "--quiet", "--run-id", "r"]);
    let mut strace = Command::new("strace");
    let traced = [&FLUSHES[..], &WRITES[..], &LOOKUP_CALLS[..], &["futex"]].concat().join(",");
    // One file for each thread: in a shared file, an interrupted call takes two lines, and neither has both its
    // arguments and its result.
    strace.args(["-ff", "-qq", "-y", "-s", "0", "-e", &format!("trace={traced}"), "-o"]).arg(logs.join("of"));
    strace.arg(run.get_program()).args(run.get_args()).current_dir(bench.project()).env_clear();
    strace.envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let output = strace.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut calls = Calls::default();
    for log in fs::read_dir(&logs).unwrap() {
        fs::read_to_string(log.unwrap().path()).unwrap().lines().for_each(|line| calls.take(line));
    }
    calls
}

impl Calls {
    /// Counts the call in a line of the trace.
    fn take(&mut self, line: &str) {
        let name = line.split('(').next().unwrap_or_default();
        self.handed_over += u64::from(name == "futex" || (name == "write" && line.contains("[eventfd]")));
        self.looks += u64::from(LOOKUP_CALLS.contains(&name) && line.contains("/runs/r/workspace"));
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

    /// Returns flushes, appends and written bytes per stage, from the difference to a run that is shorter by `stages`
    /// stages.
    fn each(&self, shorter: &Self, stages: u64) -> (f64, f64, f64) {
        let each = |more: u64, less: u64| (more - less) as f64 / stages as f64;
        let flushes = each(self.flushes, shorter.flushes);
        let appends = each(self.flushes_of_log, shorter.flushes_of_log);
        (flushes, appends, each(self.written, shorter.written))
    }
}

/// Returns the count per stage in the last 500 stages of the long run.
fn later(long: &Calls, middle: &Calls, count: impl Fn(&Calls) -> u64) -> f64 {
    count(long).saturating_sub(count(middle)) as f64 / 500.0
}

/// The record of a stage, the claim of the next one and the stage's small files are one append, and an append is one
/// flush. The flushes above one per stage are checkpoints of the write-ahead log, a few in a hundred stages.
#[test]
fn a_stage_costs_one_flush_and_writes_the_same_in_a_long_run() {
    if !workbench::is_on_this_machine("strace") {
        return workbench::not_run("what a stage costs", "`strace` is not on this machine");
    }
    // The first stages write less, because the tables of the journal still have fewer levels of pages.
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
    // The driver executes the attempts of component stages in its own thread. The remaining two calls come from the
    // ticker, which goes to sleep on a slow machine. With a thread for each attempt there were seven calls.
    let handed_over = later(&long, &middle, |calls| calls.handed_over);
    assert!(handed_over < 3.0, "{handed_over} changes of threads for each stage");
    // The component lists its folder once. Its C library then asks for the inode number of each file, which is answered
    // from the listing.
    let looks = later(&long, &middle, |calls| calls.looks);
    assert!(looks < 8.0, "{looks} looks at the workspace for each stage");
    println!("each stage of a long run: {handed_over} changes of threads, {looks} looks at the workspace");
    let growth = later_written / written;
    assert!((0.8..=1.1).contains(&growth), "{written} bytes for each stage, then {later_written}");
    assert!(written < 48.0 * 1024.0, "{written} bytes for each stage");
}

/// Returns how often each thread of a process and of its descendants has gone to sleep so far.
fn waits(root: u32) -> BTreeMap<(u32, u32), u64> {
    let number = |name: &std::ffi::OsStr| name.to_str()?.parse::<u32>().ok();
    let names = |folder: String| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let parent = |process: u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse::<u32>().ok()
    };
    let parents: BTreeMap<u32, u32> = names("/proc".to_owned())
        .filter_map(|name| number(&name))
        .filter_map(|process| Some((process, parent(process)?)))
        .collect();
    let descends = |process: &u32| {
        std::iter::successors(Some(*process), |one| parents.get(one).copied()).take(64).any(|one| one == root)
    };
    let threads = parents.keys().filter(|process| descends(process)).flat_map(|process| {
        names(format!("/proc/{process}/task")).filter_map(move |name| Some((*process, number(&name)?)))
    });
    let slept = |(process, thread): (u32, u32)| {
        let status = fs::read_to_string(format!("/proc/{process}/task/{thread}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        line.trim().parse::<u64>().ok()
    };
    threads.filter_map(|thread| Some((thread, slept(thread)?))).collect()
}

/// While a command runs and does nothing, the host polls once a second what it can only learn by polling. All other
/// waits are for events.
#[test]
fn a_run_whose_command_waits_hardly_wakes() {
    let text = "digraph g {\n start [shape=Mdiamond] done [shape=Msquare]\n \
                wait [shape=parallelogram, tool_command=\"sleep 60\"]\n start -> wait -> done\n}\n";
    let bench = Workbench::with_pipeline(text);
    let mut run = bench.command(&["run", "pipeline.dot", "--quiet", "--run-id", "r"]);
    let mut run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let file = |process: &u32, name: &str| fs::read_to_string(format!("/proc/{process}/{name}")).unwrap_or_default();
    let sleeping = loop {
        assert!(run.try_wait().unwrap().is_none(), "the run has ended");
        let threads = waits(run.id());
        if let Some((process, _)) = threads.keys().find(|(process, _)| file(process, "comm").trim() == "sleep") {
            break *process;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let is_grouped = file(&sleeping, "cgroup").contains("/glovebox-");
    // After some seconds the host polls less often. On a busy machine it polls even less often.
    std::thread::sleep(Duration::from_secs(5));
    let before = waits(run.id());
    std::thread::sleep(Duration::from_secs(5));
    let after = waits(run.id());
    let wakes = |(thread, count): (&(u32, u32), &u64)| count - before.get(thread).copied().unwrap_or_default();
    let wakes: u64 = after.iter().map(wakes).sum();
    run.kill().unwrap();
    run.wait().unwrap();
    println!("{wakes} wakes in five seconds of a command that waits");
    // Without a control group, the host must poll the memory of the command ten times a second.
    let bound = if is_grouped { 30 } else { 80 };
    assert!(wakes <= bound, "{wakes} wakes in five seconds");
}
