//! Measures runs of a fleet whose machines are all this one: what a stage costs, how work is shared, what is moved, and how long
//! it takes until another machine has the attempt of one that was killed.
//!
//! `cargo bench --workspace --bench fleet` prints a table; it needs `cargo xtask nats` and `cargo xtask moto`. Times are those between records
//! of the journal, or from a kill to a record, so neither the start nor the end of the client is part of them. The baseline of a stage is the same run
//! without a fleet. Bytes are those that the store of blobs gives to the machine and, when the run has
//! ended, to the client, which pulls it. No result passes or fails.

#![allow(clippy::unwrap_used, clippy::expect_used)] // A benchmark may panic.

#[path = "fleet/counted.rs"]
mod counted;
#[path = "../../../tests/fleet_faults/moto.rs"]
#[allow(dead_code)] // The suite of faults needs more of it.
mod moto;
#[path = "../../../tests/workbench/nats.rs"]
#[allow(dead_code)] // The tests need more of it.
mod nats;
#[path = "../../../tests/workbench/processes.rs"]
#[allow(dead_code)] // The tests need more of it.
mod processes;
#[path = "../../../benches/table.rs"]
mod table;

use counted::Counted;
use glovebox_signing::key::SigningKey;
use jiff::Timestamp;
use moto::Moto;
use nats::{NatsServers, nats_program};
use processes::{Process, descendants};
use serde_json::Value;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use table::{against, count, head, median, print};

const ROUNDS: usize = 3;
/// Number of stages whose mean time is measured.
const STAGES: usize = 40;
/// Number of branches that machines share.
const BRANCHES: usize = 48;
/// Time of the command of each branch.
const SLEEP: f64 = 0.25;
/// Size of each file of a tree, in bytes.
const FILE_BYTES: usize = 1024;
const MEBIBYTE: f64 = 1_048_576.0;
const LEASE: Duration = Duration::from_secs(10);

fn main() {
    if nats_program().is_none() {
        println!("no nats-server: run `cargo xtask nats`");
        return;
    }
    head();
    stage_cost();
    shared_work();
    losses();
    trees();
}

/// Measures one stage after the other, on a fleet of one machine and without a fleet.
fn stage_cost() {
    let mut fleet = Fleet::start(1, None);
    let machine = fleet.start_machine("one", &["--seats", "1"]);
    let kinds = [("tool", "shape=parallelogram, tool_command=\"true\""), ("component", "prompt=\"x\"")];
    for (kind, attributes) in kinds {
        let project = fleet.project(kind);
        let mut text = String::from("digraph g {\n  start [shape=Mdiamond]\n  done [shape=Msquare]\n");
        (0..STAGES).for_each(|stage| writeln!(text, "  n{stage} [{attributes}, allowed_write_paths=\"\"]").unwrap());
        let row: Vec<String> = (0..STAGES).map(|stage| format!("n{stage}")).collect();
        fs::write(project.join("p.dot"), format!("{text}  start -> {} -> done\n}}\n", row.join(" -> "))).unwrap();
        let mean = |records: Vec<Value>| work_time(&records) / u32::try_from(STAGES).unwrap();
        let rounds = 0..ROUNDS;
        let (ours, theirs): (Vec<_>, Vec<_>) = rounds
            .map(|round| {
                let here = mean(fleet.run_here(&project, &format!("{kind}-here-{round}")));
                (mean(fleet.run(&project, &format!("{kind}-{round}"))), here)
            })
            .unzip();
        print(&format!("one {kind} stage on a fleet"), median(ours), median(theirs), "the same without a fleet");
    }
    drop(machine);
}

/// Measures branches that sleep, on more and more machines.
fn shared_work() {
    let mut fleet = Fleet::start(1, None);
    let project = fleet.project("shared");
    let mut text = format!(
        "digraph g {{\n  start [shape=Mdiamond]\n  done [shape=Msquare]\n  fork [shape=component, max_parallel={BRANCHES}]\n  join [shape=tripleoctagon]\n"
    );
    for branch in 0..BRANCHES {
        let node = format!("b{branch} [shape=parallelogram, tool_command=\"sleep {SLEEP}\", allowed_write_paths=\"\"]");
        writeln!(text, "  {node}\n  fork -> b{branch} -> join").unwrap();
    }
    fs::write(project.join("p.dot"), format!("{text}  start -> fork\n  join -> done\n}}\n")).unwrap();
    fs::write(project.join("glovebox.toml"), format!("[run]\nparallel_max = {BRANCHES}\n")).unwrap();
    let _driver = fleet.start_machine("driver", &["--no-execute"]);
    let mut machines = Vec::new();
    for wanted in [1, 2, 4, 8] {
        for number in machines.len()..wanted {
            machines.push(fleet.start_machine(&format!("maker-{number}"), &["--no-drive", "--seats", "1"]));
        }
        // The first run prepares the plan on each machine.
        fleet.run(&project, &format!("first-{wanted}"));
        let rounds = 0..ROUNDS;
        let times = rounds.map(|round| work_time(&fleet.run(&project, &format!("shared-{wanted}-{round}")))).collect();
        let each_second = BRANCHES as f64 / median(times).as_secs_f64();
        against(&format!("stages of {SLEEP} s, {wanted} machines"), each_second, wanted as f64 / SLEEP, "each second");
    }
}

/// Kills the machine that makes a stage; in further rounds, the driver of the run.
fn losses() {
    let mut fleet = Fleet::start(1, None);
    let project = fleet.project("lost");
    let stage = "n [shape=parallelogram, tool_command=\"sleep 12\", allowed_write_paths=\"\"]";
    let text = format!(
        "digraph g {{\n  start [shape=Mdiamond]\n  done [shape=Msquare]\n  {stage}\n  start -> n -> done\n}}\n"
    );
    fs::write(project.join("p.dot"), text).unwrap();
    let mut drivers = Vec::from([fleet.start_machine("driver-0", &["--no-execute"])]);
    for what in ["a machine", "a driver"] {
        let mut times = Vec::new();
        for round in 0..ROUNDS {
            let id = format!("{}-{round}", what.replace(' ', "-"));
            let maker = fleet.start_machine(&format!("maker-{id}"), &["--no-drive", "--seats", "1"]);
            let words = ["run", "p.dot", "--quiet", "--detach", "--run-id", &id];
            output(fleet.command("client", &words).current_dir(&project));
            while !has_sleep(maker.0.id()) {
                std::thread::sleep(Duration::from_millis(20));
            }
            let killed = Timestamp::now();
            let spare = match what {
                "a machine" => {
                    drop(maker);
                    fleet.start_machine(&format!("spare-{id}"), &["--no-drive", "--seats", "1"])
                }
                _ => {
                    drivers.clear();
                    drivers.push(fleet.start_machine(&format!("driver-{id}"), &["--no-execute"]));
                    maker
                }
            };
            let kind = if what == "a machine" { "stage.started" } else { "run.taken_over" };
            let records = fleet.pulled(&project, &id);
            let next = records.iter().rev().find(|record| record["event"]["kind"] == kind).unwrap();
            let next: Timestamp = next["at"].as_str().unwrap().parse().unwrap();
            times.push(Duration::try_from(next.duration_since(killed)).unwrap());
            drop(spare);
        }
        print(&format!("{what} is killed: until another one goes on"), median(times), LEASE, "the lease");
    }
}

/// Returns true if a process has a descendant that sleeps.
fn has_sleep(pid: u32) -> bool {
    let line = |process: Process| fs::read_to_string(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    descendants(i32::try_from(pid).unwrap()).into_iter().any(|process| line(process).starts_with("sleep"))
}

/// Measures what machine and client get of a tree, for a run with two commands that read one file.
fn trees() {
    let Some(moto) = Moto::start("127.0.0.1".to_owned()) else {
        println!("no moto_server: run `cargo xtask moto`");
        return;
    };
    let store = Counted::start(moto.port);
    let mut fleet = Fleet::start(1, Some(&store.address()));
    // The pipeline is a file too, and a project has at most 200,000.
    for files in [200, 2_000, 199_999] {
        let project = fleet.project(&format!("tree-{files}"));
        for file in 0..files {
            let folder = project.join(format!("d{}", file / 200));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join(format!("f{file}")), format!("{file:0FILE_BYTES$}")).unwrap();
        }
        let stage =
            |name| format!("  {name} [shape=parallelogram, tool_command=\"cat d0/f0\", allowed_write_paths=\"\"]\n");
        let text = format!(
            "digraph g {{\n  start [shape=Mdiamond]\n  done [shape=Msquare]\n{}{}  start -> a -> b -> done\n}}\n",
            stage("a"),
            stage("b")
        );
        fs::write(project.join("p.dot"), text).unwrap();
        let machine = fleet.start_machine(&format!("tree-{files}"), &["--seats", "1"]);
        for what in ["cold", "warm"] {
            let before = store.given();
            let records = fleet.run(&project, &format!("tree-{files}-{what}"));
            let moved = store.given() - before;
            let to_first = time_to(&records, "stage.finished");
            let second = work_time(&records).saturating_sub(to_first);
            let name = format!("{files} files, {what} machine");
            print(&format!("{name}: first stage"), to_first, second, "the second stage");
            count(&format!("{name}: got, while stages read {FILE_BYTES} bytes"), moved as f64 / MEBIBYTE, "MiB");
        }
        drop(machine);
    }
}

/// Returns the time from the beginning of a run to the end of its last stage.
fn work_time(records: &[Value]) -> Duration {
    let last = records.iter().rposition(|record| record["event"]["kind"] == "stage.finished").unwrap();
    between(&records[0], &records[last])
}

/// Returns the time from the beginning of a run to the first record of a kind.
fn time_to(records: &[Value], kind: &str) -> Duration {
    between(&records[0], records.iter().find(|record| record["event"]["kind"] == kind).unwrap())
}

fn between(from: &Value, to: &Value) -> Duration {
    let at = |record: &Value| record["at"].as_str().unwrap().parse::<Timestamp>().unwrap();
    at(to).duration_since(at(from)).try_into().unwrap()
}

/// A fleet on this machine.
struct Fleet {
    folder: tempfile::TempDir,
    program: PathBuf,
    servers: NatsServers,
    operator: String,
}

/// A machine, which ends with the value.
struct Machine(Child);

impl Drop for Machine {
    fn drop(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Fleet {
    /// Starts servers and makes a fleet. `store` is a folder if it is not named.
    fn start(servers: usize, store: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("glovebox");
        fs::copy(env!("CARGO_BIN_EXE_glovebox"), &program).unwrap();
        ["store", "projects"].into_iter().for_each(|name| fs::create_dir(folder.path().join(name)).unwrap());
        let mut fleet = Self { program, servers: NatsServers::start(servers, ""), operator: String::new(), folder };
        let own = format!("file://{}", fleet.path("store").display());
        let lease = format!("{}s", LEASE.as_secs());
        let init = ["fleet", "init", "--single-node", "--lease", &lease, "--store", store.unwrap_or(&own)];
        output(&mut fleet.command("client", &init));
        let pem = fs::read(fleet.path("state-client/fleet/operator.key")).unwrap();
        fleet.operator = SigningKey::from_pem(&pem).unwrap().public().to_string();
        fleet.admit("client", "submit");
        fleet
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn project(&self, name: &str) -> PathBuf {
        let project = self.path("projects").join(name);
        fs::create_dir(&project).unwrap();
        project
    }

    /// Returns a command of a user without a fleet.
    fn plain(&self, user: &str, words: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(words).current_dir(self.path("projects")).stdin(Stdio::null());
        command.env("GLOVEBOX_CACHE_DIR", self.path("cache")).env("GLOVEBOX_DATA_DIR", self.path("data"));
        command.env("GLOVEBOX_STATE_DIR", self.path(&format!("state-{user}")));
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        command
    }

    fn command(&self, user: &str, words: &[&str]) -> Command {
        let mut command = self.plain(user, words);
        command.args(["--nats", &self.servers.addresses().join(",")]);
        if words.first() != Some(&"fleet") {
            command.args(["--operator", &self.operator]);
        }
        command
    }

    fn admit(&self, name: &str, may: &str) {
        let key = output(&mut self.plain(name, &["fleet", "key"]));
        output(&mut self.command("client", &["fleet", "admit", key.trim(), "--name", name, "--may", may]));
    }

    fn start_machine(&mut self, name: &str, flags: &[&str]) -> Machine {
        self.admit(name, "drive,build,verify");
        let dir = self.path("machines");
        let work = ["work", "--dir", dir.to_str().unwrap()];
        let mut command = self.command(name, &[&work[..], flags].concat());
        Machine(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap())
    }

    /// Makes a run on the fleet. Returns its records.
    fn run(&self, project: &Path, id: &str) -> Vec<Value> {
        let words = ["run", "p.dot", "--simulate", "--quiet", "--run-id", id];
        output(self.command("client", &words).current_dir(project));
        records(project, id)
    }

    /// Returns the records of a run when it has ended.
    fn pulled(&self, project: &Path, id: &str) -> Vec<Value> {
        while !self.command("client", &["pull", id]).current_dir(project).output().unwrap().status.success() {
            std::thread::sleep(Duration::from_millis(500));
        }
        records(project, id)
    }

    /// Makes a run without the fleet. Returns its records.
    fn run_here(&self, project: &Path, id: &str) -> Vec<Value> {
        let words = ["run", "p.dot", "--simulate", "--quiet", "--run-id", id];
        output(self.plain("client", &words).current_dir(project));
        records(project, id)
    }
}

fn records(project: &Path, id: &str) -> Vec<Value> {
    let text = fs::read_to_string(project.join(".glovebox/runs").join(id).join("progress.ndjson")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Returns what a command prints. It must succeed.
fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}
