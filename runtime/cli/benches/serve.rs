//! Measures `glovebox serve`: records per second to followers, the time from an append to a follower, what followers cost a
//! run, the memory of the server, lists of many runs, and the page in a browser.
//!
//! `cargo bench --workspace --bench serve` prints a table, `cargo bench --workspace --bench serve -- page` only the rows of the page. The baseline of a stream is a read of the same records by
//! `glovebox attach`; that of a list is `glovebox ls`. No result passes or fails.

#![allow(clippy::unwrap_used)] // A benchmark may panic.

#[path = "../../../tests/page/browser.rs"]
#[expect(dead_code, reason = "the tests of the page use the rest")]
mod browser;
#[path = "serve/page.rs"]
mod page;
#[path = "../../../benches/table.rs"]
mod table;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const GLOVEBOX: &str = env!("CARGO_BIN_EXE_glovebox");
/// Visits of the long run: about 5,000 records.
const VISITS: usize = 1_250;
const RUNS: usize = 1_000;
/// A run of 60 commands.
const SLOW: &str = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; a [shape=parallelogram, tool_command=\"sleep 0.05\", \
                    allowed_write_paths=\"\", max_visits=60]; start -> a; a -> a [weight=2]; a -> done }";

fn main() {
    table::head();
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    fs::create_dir(&project).unwrap();
    if std::env::args().any(|word| word == "page") {
        fs::write(project.join("slow.dot"), SLOW).unwrap();
        run(&project, "alone").output().unwrap();
        return page::measure(&project, "alone");
    }
    long_run(&project);
    let records = records(&project);
    table::count("records of the long run", records as f64, "records");
    let served = Served::start(&project);
    for followers in [1, 16, 64] {
        let times: Vec<Duration> = (0..3).map(|_| followed(&served, followers, records)).collect();
        let theirs = timed(|| drop(command(&project).args(["attach", "long", "--json", "--all"]).output().unwrap()));
        let name = format!("{records} records to {followers} followers");
        table::print(&name, table::median(times), theirs, "`glovebox attach --json --all`");
    }
    table::count("memory after followers that hung up", served.megabytes(), "MiB");
    drop(served);
    latency(&project);
    page::measure(&project, "alone");
    lists(folder.path());
}

/// A run with many visits of two nodes.
fn long_run(project: &Path) {
    let dot = format!(
        "digraph g {{ graph [max_steps={}]; start [shape=Mdiamond]; done [shape=Msquare]; a [shape=box, prompt=\"x\", max_visits={VISITS}]\n\
         start -> a; a -> a [weight=2]; a -> done }}",
        VISITS + 10
    );
    fs::write(project.join("long.dot"), dot).unwrap();
    let steps = (VISITS + 5).to_string();
    let words = ["run", "long.dot", "--run-id", "long", "--simulate", "--quiet", "--max-steps", &steps];
    command(project).args(words).output().unwrap();
}

fn records(project: &Path) -> usize {
    let printed = command(project).args(["attach", "long", "--json", "--all"]).output().unwrap();
    printed.stdout.iter().filter(|byte| **byte == b'\n').count() - 1
}

/// Follows the long run with several clients, and returns when all have the last record.
fn followed(served: &Served, followers: usize, records: usize) -> Duration {
    timed(|| {
        std::thread::scope(|scope| {
            let clients: Vec<_> = (0..followers).map(|_| scope.spawn(|| served.get("/runs/long/events"))).collect();
            for client in clients {
                let text = client.join().unwrap();
                assert_eq!(text.matches("\nid: ").count(), records, "records were lost");
            }
        });
    })
}

/// Prints the time from an append to a follower, and what followers cost a run.
fn latency(project: &Path) {
    fs::write(project.join("slow.dot"), SLOW).unwrap();
    let alone = timed(|| drop(run(project, "alone").output().unwrap()));
    let served = Served::start(project);
    let mut child = run(project, "shown").stdout(Stdio::null()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let mut delays = Vec::new();
    let together = timed(|| {
        std::thread::scope(|scope| {
            let others: Vec<_> = (0..15).map(|_| scope.spawn(|| served.get("/runs/shown/events"))).collect();
            let mut stream = BufReader::new(served.open("/runs/shown/events"));
            let mut line = String::new();
            while stream.read_line(&mut line).is_ok_and(|length| length > 0) {
                let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
                delays.extend(appended(&line).map(|at| now.saturating_sub(at)));
                line.clear();
            }
            others.into_iter().for_each(|other| drop(other.join()));
        });
        child.wait().unwrap();
    });
    // The records that were there when the client came are not late.
    delays.sort_unstable();
    let live = &delays[..delays.len() * 9 / 10];
    let at = |percent: usize| live[(live.len() - 1) * percent / 100];
    table::print("commit to a follower, median and 99th", at(50), at(99), "the 99th");
    table::print("run of 60 commands with 16 followers", together, alone, "the same without");
}

/// Returns the time in a record, since the epoch.
fn appended(line: &str) -> Option<Duration> {
    let record = line.strip_prefix("data: ")?;
    let at = record.split("\"at\":\"").nth(1)?.split('"').next()?;
    let at: jiff::Timestamp = at.parse().ok()?;
    Some(Duration::from_millis(u64::try_from(at.as_millisecond()).ok()?))
}

fn run(project: &Path, id: &str) -> Command {
    let mut run = command(project);
    run.args(["run", "slow.dot", "--run-id", id, "--quiet", "--no-input"]);
    run
}

/// Prints the time and memory of lists of many runs.
fn lists(folder: &Path) {
    let project = folder.join("many");
    fs::create_dir(&project).unwrap();
    let empty = Served::start(&project);
    empty.get("/runs");
    table::count("memory of a server without runs", empty.megabytes(), "MiB");
    drop(empty);
    fs::write(project.join("p.dot"), "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; start -> done }")
        .unwrap();
    fs::write(project.join("glovebox.toml"), format!("[run]\nkeep_runs = {RUNS}\n")).unwrap();
    for number in 0..RUNS {
        command(&project).args(["run", "p.dot", "--run-id", &format!("r{number}"), "--quiet"]).output().unwrap();
    }
    let served = Served::start(&project);
    let first = timed(|| drop(served.get("/runs?limit=100")));
    let again: Vec<Duration> = (0..20).map(|_| timed(|| drop(served.get("/runs?limit=100")))).collect();
    let listed = timed(|| drop(command(&project).args(["ls", "--json"]).output().unwrap()));
    table::print("list of 1,000 runs, first", first, listed, "`glovebox ls --json`");
    table::print("list of 1,000 runs, again", table::median(again), listed, "`glovebox ls --json`");
    table::count("memory of a server with 1,000 runs", served.megabytes(), "MiB");
    for _ in 0..1_000 {
        drop(served.open("/runs/r0/events"));
    }
    std::thread::sleep(Duration::from_secs(2));
    table::count("memory after 1,000 followers that hung up", served.megabytes(), "MiB");
}

struct Served {
    child: Child,
    host: String,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Served {
    fn start(project: &Path) -> Self {
        let mut child = command(project).args(["serve", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let started: serde_json::Value = serde_json::from_str(&line).unwrap();
        let host = started["address"].as_str().unwrap().trim_start_matches("http://").trim_end_matches('/').to_owned();
        let token = fs::read_to_string(started["token_file"].as_str().unwrap()).unwrap().trim().to_owned();
        Self { child, host, token }
    }

    fn open(&self, path: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let Self { host, token, .. } = self;
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream
    }

    fn get(&self, path: &str) -> String {
        let mut bytes = Vec::new();
        self.open(path).read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn megabytes(&self) -> f64 {
        megabytes(self.child.id())
    }
}

/// Returns the resident memory of a process.
fn megabytes(id: u32) -> f64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<f64>().unwrap() / 1024.0
}

fn command(project: &Path) -> Command {
    let mut command = Command::new(GLOVEBOX);
    command.current_dir(project).stdin(Stdio::null()).stderr(Stdio::null());
    command.env("GLOVEBOX_STATE_DIR", project.join("../state"));
    command
}

/// What the browser asks of the tests.
mod workbench {
    use std::path::{Path, PathBuf};

    /// Returns the root of the repository.
    pub(crate) fn root() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// Says that something was not measured.
    pub(crate) fn not_run(what: &str, why: &str) {
        println!("not measured: {what}: {why}");
    }
}

fn timed(measured: impl FnOnce()) -> Duration {
    let began = Instant::now();
    measured();
    began.elapsed()
}
