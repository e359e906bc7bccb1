//! Runs on a fleet: several `glovebox work` processes, one NATS server on loopback and blobs in a folder. Machines, drivers and
//! the client are killed, and the run has the same result as on one machine.

use crate::session::Session;
use crate::workbench::nats::{NatsServers, nats_program};
use crate::workbench::{Answer, Workbench, like, not_run};
use glovebox_signing::key::SigningKey;
use jiff::{SignedDuration, Timestamp};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take.
const WITHIN: Duration = Duration::from_secs(120);

/// Two stages, each with a command, and the second one reads what the first one wrote.
pub(crate) const TWO: &str = "digraph two { start [shape=Mdiamond]; exit [shape=Msquare]
  a [type=tool, tool_command=\"mkdir -p out && cp src.txt out/a.txt && echo by-a >> out/a.txt\", allowed_write_paths=\"out/\"]
  b [type=tool, tool_command=\"cat out/a.txt > out/b.txt && echo by-b >> out/b.txt\", allowed_write_paths=\"out/\"]
  start -> a -> b -> exit }
";

/// A fleet on this machine.
pub(crate) struct Fleet {
    pub(crate) bench: Workbench,
    pub(crate) servers: NatsServers,
    /// Variables of the machines and commands.
    pub(crate) variables: Vec<(&'static str, &'static str)>,
    working: Vec<(String, Child)>,
}

impl Fleet {
    /// Starts a server and makes the fleet. `None` if the server is not on this machine.
    pub(crate) fn start(pipeline: &str) -> Option<Self> {
        if nats_program().is_none() {
            not_run("runs of a fleet", "`cargo xtask nats` brings nats-server");
            return None;
        }
        let bench = Workbench::with_pipeline(pipeline);
        bench.write("src.txt", "from the project\n");
        std::fs::create_dir(bench.outside().join("store")).unwrap();
        let fleet = Self { bench, servers: NatsServers::start(1, ""), variables: Vec::new(), working: Vec::new() };
        let store = format!("file://{}", fleet.bench.outside().join("store").display());
        fleet.with(&["fleet", "init", "--single-node", "--store", &store]).ends(0);
        fleet.admit("client", "submit");
        Some(fleet)
    }

    /// Returns the folder with the keys of a machine. The operator and the client are one user.
    pub(crate) fn state(&self, name: &str) -> PathBuf {
        self.bench.outside().join(if name == "client" { "state".to_owned() } else { format!("state-{name}") })
    }

    /// Admits a machine without labels.
    pub(crate) fn admit(&self, name: &str, may: &str) {
        self.admit_with(name, may, &[]);
    }

    /// Admits a machine with the labels that `flags` have.
    fn admit_with(&self, name: &str, may: &str, flags: &[&str]) {
        let labels = flags.windows(2).filter(|pair| pair[0] == "--label").flatten();
        let mut key = self.bench.command(&["fleet", "key"]);
        let key = Answer::of(key.env("GLOVEBOX_STATE_DIR", self.state(name)));
        let mut words = vec!["fleet", "admit", key.ends(0).stdout.trim(), "--name", name, "--may", may];
        words.extend(labels);
        self.with(&words).ends(0);
    }

    /// Returns the public key of the operator.
    pub(crate) fn operator(&self) -> String {
        let pem = self.bench.outside().join("state/fleet/operator.key");
        SigningKey::from_pem(&std::fs::read(pem).unwrap()).unwrap().public().to_string()
    }

    /// Returns a command that names the fleet.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = self.bench.command(words);
        command.args(["--nats", &self.servers.addresses()[0]]);
        // The key of the operator is that of this fleet alone.
        command.env("GLOVEBOX_STATE_DIR", self.bench.outside().join("state"));
        command.envs(self.variables.iter().copied());
        command
    }

    /// Runs a command on a run of this machine, as the client.
    pub(crate) fn here(&self, words: &[&str]) -> Answer {
        Answer::of(self.bench.command(words).env("GLOVEBOX_STATE_DIR", self.state("client")))
    }

    pub(crate) fn with(&self, words: &[&str]) -> Answer {
        Answer::of(&mut self.command(words))
    }

    /// Starts a machine that is admitted to everything.
    pub(crate) fn work(&mut self, name: &str, flags: &[&str]) {
        self.work_as(name, "drive,build,verify", flags);
    }

    /// Admits and starts a machine.
    pub(crate) fn work_as(&mut self, name: &str, may: &str, flags: &[&str]) {
        self.work_with(Path::new(env!("CARGO_BIN_EXE_glovebox")), name, may, flags);
    }

    /// Admits a machine, and starts it with this program.
    pub(crate) fn work_with(&mut self, program: &Path, name: &str, may: &str, flags: &[&str]) {
        self.admit_with(name, may, flags);
        let (operator, state) = (self.operator(), self.state(name));
        let dir = self.bench.outside().join("machines");
        let work = self.command(&[&["work", "--operator", &operator, "--dir", dir.to_str().unwrap()], flags].concat());
        let mut command = like(Command::new(program), &work);
        command.env("GLOVEBOX_STATE_DIR", state);
        let log = std::fs::File::create(self.log(name)).unwrap();
        let child = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        self.working.push((name.to_owned(), child));
    }

    fn log(&self, name: &str) -> PathBuf {
        self.bench.outside().join(format!("{name}.log"))
    }

    /// Returns the process of a machine.
    pub(crate) fn pid(&self, name: &str) -> u32 {
        self.working.iter().find(|(known, _)| known == name).unwrap().1.id()
    }

    /// Drains a machine, and returns its exit code.
    pub(crate) fn drained(&mut self, name: &str) -> Option<i32> {
        let (_, child) = self.working.iter_mut().find(|(known, _)| known == name).unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        kill_process(pid, Signal::TERM).unwrap();
        child.wait().unwrap().code()
    }

    /// Kills a machine with SIGKILL.
    pub(crate) fn kill(&mut self, name: &str) {
        let at = self.working.iter().position(|(known, _)| known == name).unwrap();
        let (_, mut child) = self.working.remove(at);
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn said(&self) -> String {
        let logs = self.working.iter().map(|(name, _)| {
            let mut text = String::new();
            std::fs::File::open(self.log(name)).unwrap().read_to_string(&mut text).unwrap();
            format!("--- {name}\n{text}")
        });
        logs.collect()
    }

    /// Reads the events of a run that was pulled.
    pub(crate) fn records(&self, run: &str) -> Vec<Value> {
        let text = self.bench.run_text(run, "progress.ndjson");
        let record = |line| -> Value { serde_json::from_str(line).unwrap() };
        text.lines().map(|line| record(line)["event"].clone()).collect()
    }

    /// Waits until a file exists that a command outside of any sandbox would see.
    pub(crate) fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < WITHIN, "{what}: {}", self.said());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Pulls a run as soon as it has ended.
    pub(crate) fn pulled(&self, run: &str) {
        self.wait_until("the run has ended", || self.with(&["pull", run]).code == 0);
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for (_, child) in &mut self.working {
            let _ended = child.kill();
            let _status = child.wait();
        }
    }
}

/// Returns the machines that took a run over, in order.
pub(crate) fn drivers(records: &[Value]) -> Vec<&str> {
    of_kind(records, "run.taken_over").iter().map(|record| record["machine"].as_str().unwrap()).collect()
}

pub(crate) fn of_kind<'a>(records: &'a [Value], kind: &str) -> Vec<&'a Value> {
    records.iter().filter(|event| event["kind"] == kind).collect()
}

#[test]
fn a_run_is_made_by_machines_and_its_directory_is_an_ordinary_one() {
    let Some(mut fleet) = Fleet::start(TWO) else { return };
    fleet.work("one", &["--seats", "1"]);
    fleet.work("two", &["--seats", "1", "--no-drive"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r"]).ends(0).says("run r began in the fleet");
    let records = fleet.records("r");
    let started = of_kind(&records, "stage.started");
    assert_eq!(started.len(), 2, "{records:?}");
    assert!(started.iter().all(|record| ["one", "two"].contains(&record["machine"].as_str().unwrap())), "{started:?}");
    assert_eq!(started[0]["machine"], started[1]["machine"], "a branch stays where it is");
    assert_eq!(of_kind(&records, "run.taken_over").len(), 1);
    fleet.here(&["diff", "r"]).ends(0).says("by-b");
    // The same run on this machine has the same result.
    fleet.here(&["run", "pipeline.dot", "--run-id", "here"]).ends(0);
    let outcomes = |run: &str| -> Vec<Value> {
        let records = fleet.records(run);
        of_kind(&records, "stage.finished").iter().map(|event| event["changes"].clone()).collect()
    };
    assert!(outcomes("r").iter().all(Value::is_array), "{records:?}");
    assert_eq!(outcomes("r"), outcomes("here"));
    fleet.here(&["apply", "r"]).ends(0);
    assert_eq!(fleet.bench.read("out/b.txt"), "from the project\nby-a\nby-b\n");
    fleet.here(&["show", "r"]).ends(0).says("success");
}

#[test]
fn a_machine_that_is_killed_loses_its_stage_to_another_one() {
    let slow = TWO.replace("mkdir -p out", "sleep 6 && mkdir -p out");
    let Some(mut fleet) = Fleet::start(&slow) else { return };
    fleet.work("driver", &["--no-execute"]);
    fleet.work("doomed", &["--seats", "1", "--no-drive"]);
    let run = fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]);
    run.ends(0).says("r");
    fleet.wait_until("the stage runs", || fleet.with(&["pull", "r"]).says("").code == 9 && fleet.has_sleep());
    fleet.kill("doomed");
    fleet.work("other", &["--seats", "1", "--no-drive"]);
    fleet.pulled("r");
    let records = fleet.records("r");
    let machines: Vec<&str> =
        of_kind(&records, "stage.finished").iter().map(|record| record["machine"].as_str().unwrap()).collect();
    assert_eq!(machines, ["other", "other"], "{records:?}");
    assert_eq!(of_kind(&records, "stage.started").len(), 3, "the lost attempt, and two that count");
    fleet.here(&["diff", "r"]).ends(0).says("by-b");
}

#[test]
fn a_driver_that_is_killed_costs_no_stage() {
    let slow = TWO.replace("mkdir -p out", "sleep 8 && mkdir -p out");
    let Some(mut fleet) = Fleet::start(&slow) else { return };
    fleet.work("driver", &["--no-execute"]);
    fleet.work("maker", &["--seats", "1", "--no-drive"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    fleet.wait_until("the stage runs", || fleet.has_sleep());
    fleet.kill("driver");
    fleet.work("second", &["--no-execute"]);
    fleet.pulled("r");
    let records = fleet.records("r");
    assert_eq!(of_kind(&records, "stage.started").len(), 2, "no stage was made again: {records:?}");
    assert_eq!(drivers(&records), ["driver", "second"]);
}

/// The commands of tool stages judge, so a machine that is admitted to build makes none of them.
#[test]
fn a_stage_that_judges_is_made_by_a_machine_that_may_verify() {
    let Some(mut fleet) = Fleet::start(TWO) else { return };
    fleet.work_as("builder", "build", &["--seats", "2"]);
    fleet.work_as("driver", "drive", &[]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    fleet.wait_until("the builder is refused", || fleet.said().contains("`a` needs an admission to `verify`"));
    fleet.work_as("checker", "verify", &["--seats", "1"]);
    fleet.pulled("r");
    let records = fleet.records("r");
    let finished = of_kind(&records, "stage.finished");
    assert!(finished.len() == 2 && finished.iter().all(|record| record["machine"] == "checker"), "{finished:?}");
}

/// An expelled machine gets no attempt any more, and the run goes on elsewhere.
#[test]
fn an_expelled_machine_gets_nothing_more() {
    let Some(mut fleet) = Fleet::start(TWO) else { return };
    fleet.work_as("driver", "drive", &[]);
    fleet.work_as("gone", "build,verify", &["--seats", "1"]);
    fleet.with(&["fleet", "expel", "gone"]).ends(0);
    std::thread::sleep(Duration::from_millis(1500));
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    fleet.wait_until("the machine is refused", || fleet.said().contains("not admitted to make attempts"));
    fleet.work_as("other", "build,verify", &["--seats", "1"]);
    fleet.pulled("r");
    let records = fleet.records("r");
    let finished = of_kind(&records, "stage.finished");
    assert!(finished.len() == 2 && finished.iter().all(|record| record["machine"] == "other"), "{finished:?}");
}

#[test]
fn who_is_not_admitted_neither_works_nor_begins_a_run() {
    let Some(fleet) = Fleet::start(TWO) else { return };
    let operator = fleet.operator();
    let as_stranger = |words: &[&str]| {
        let mut command = fleet.command(&[words, &["--operator", &operator]].concat());
        Answer::of(command.env("GLOVEBOX_STATE_DIR", fleet.state("stranger")))
    };
    let run = as_stranger(&["run", "pipeline.dot", "--run-id", "r"]);
    run.ends(6).says("no key for the fleet").says("glovebox fleet key");
    as_stranger(&["work"]).ends(6).says("this machine is not admitted to build or verify or drive");
    as_stranger(&["run", "pipeline.dot", "--run-id", "r"]).ends(6).says("glovebox fleet admit ed25519:");
    fleet.admit("stranger", "build");
    as_stranger(&["work", "--no-execute"]).ends(6).says("not admitted to drive");
    as_stranger(&["run", "pipeline.dot", "--run-id", "r"]).ends(6).says("not admitted to drive or submit");
    as_stranger(&["pull", "r"]).ends(2).says("the fleet has no run `r`");
}

#[test]
fn what_a_fleet_cannot_run_is_refused_before_the_run_exists() {
    let Some(fleet) = Fleet::start(TWO) else { return };
    let run = |flags: &[&str]| fleet.with(&[&["run", "pipeline.dot"], flags].concat());
    run(&["--tier", "bwrap"]).ends(2).says("`--tier` has no meaning with `--nats`");
    fleet.bench.write("glovebox.toml", "[workspace]\ngit = \"history\"\n");
    run(&["--run-id", "a"]).ends(3).says("does not travel to other machines");
    fleet
        .bench
        .write("glovebox.toml", "[trust]\n[[trust.key]]\nname = \"k\"\npath = \"../k.pub\"\nplugins = [\"*\"]\n");
    run(&["--run-id", "a"]).ends(3);
    std::fs::remove_file(fleet.bench.project().join("glovebox.toml")).unwrap();
    fleet.with(&["pull", "a"]).ends(2).says("the fleet has no run `a`");
    let unreachable = fleet.bench.glovebox(&["run", "pipeline.dot", "--nats", "nats://127.0.0.1:1"]);
    assert!([2, 9].contains(&unreachable.code), "{}", unreachable.stderr);
}

impl Fleet {
    /// Returns true while a command of a stage sleeps.
    pub(crate) fn has_sleep(&self) -> bool {
        let parents: Vec<i32> = self.working.iter().map(|(_, child)| i32::try_from(child.id()).unwrap()).collect();
        parents.iter().any(|parent| {
            crate::workbench::processes::descendants(*parent).iter().any(|process| {
                std::fs::read_to_string(format!("/proc/{}/cmdline", process.pid))
                    .is_ok_and(|line| line.starts_with("sleep"))
            })
        })
    }
}

#[test]
fn a_gate_is_answered_from_anywhere_and_the_first_answer_counts() {
    let Some(mut fleet) = Fleet::start(GATED) else { return };
    fleet.work("one", &[]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    fleet.wait_until("the run waits", || fleet.with(&["ls"]).stdout.contains("paused"));
    fleet.with(&["answer", "r", "gate", "perhaps"]).ends(2);
    fleet.with(&["answer", "r", "gate", "yes", "--as", "ada"]).ends(0).says("recorded the answer");
    fleet.with(&["answer", "r", "gate", "no"]).ends(6).says("was answered already with `yes` (command by ada");
    fleet.pulled("r");
    fleet.here(&["diff", "r"]).ends(0).says("from the project");
    let records = fleet.records("r");
    assert_eq!(of_kind(&records, "question.answered")[0]["by"], "ada");
}

/// A pipeline whose gate waits for a person.
const GATED: &str = "digraph gated { start [shape=Mdiamond]; exit [shape=Msquare]
  gate [shape=hexagon, label=\"Go on?\"]
  b [type=tool, tool_command=\"cat src.txt > b.txt\", allowed_write_paths=\"b.txt\"]
  start -> gate; gate -> b [label=\"yes\"]; gate -> exit [label=\"no\"]; b -> exit }
";

#[test]
fn a_person_at_the_terminal_of_the_client_answers_a_gate_or_leaves_it() {
    let Some(mut fleet) = Fleet::start(GATED) else { return };
    fleet.work("one", &[]);
    let prompt = "Ctrl-C leaves the question open: ";
    let begin = |run: &str| {
        let mut command = fleet.command(&["run", "pipeline.dot", "--run-id", run]);
        command.env("USER", "ann");
        Session::start(command)
    };
    let session = begin("r");
    session.waits_for("gate#1: Go on?", 1).waits_for(prompt, 1).types("perhaps\n").waits_for("is not an answer", 1);
    session.waits_for(prompt, 2).types("yes\n");
    session.ends(0);
    let records = fleet.records("r");
    let answered = of_kind(&records, "question.answered")[0];
    assert_eq!((&answered["by"], &answered["how"]), (&"ann".into(), &"terminal".into()));
    fleet.here(&["diff", "r"]).ends(0).says("from the project");

    let session = begin("left");
    session.waits_for(prompt, 1).interrupts().waits_for("gate#1 stays open", 1);
    session.ends(10);
    // The copy of the run that was made then is replaced.
    let session = Session::start(fleet.command(&["resume", "left"]));
    session.waits_for(prompt, 1).types("no\n");
    session.ends(0);
    // Somebody else answers while the question is on the screen.
    let session = begin("elsewhere");
    session.waits_for(prompt, 1);
    fleet.with(&["answer", "elsewhere", "gate", "no"]).ends(0);
    session.ends(0);
}

#[test]
fn a_run_is_looked_at_while_machines_make_it_and_its_client_is_not_needed() {
    let slow = TWO.replace("mkdir -p out", "echo begins && sleep 8 && mkdir -p out");
    let Some(mut fleet) = Fleet::start(&slow) else { return };
    fleet.work("one", &["--seats", "1"]);
    let mut client = fleet.command(&["run", "pipeline.dot", "--run-id", "r"]).spawn().unwrap();
    fleet.wait_until("the stage runs", || fleet.has_sleep());
    client.kill().unwrap();
    client.wait().unwrap();
    fleet.with(&["ls"]).ends(0).says("running").says("two");
    fleet.with(&["show", "r"]).ends(0).says("running");
    fleet.with(&["why", "r"]).ends(0).says("a");
    fleet.with(&["show", "nobody"]).ends(2).says("the fleet has no run `nobody`");
    fleet.with(&["show", "latest"]).ends(2).says("names no run of a fleet");
    fleet.pulled("r");
    fleet.with(&["logs", "r", "a"]).ends(0).says("begins");
    fleet.with(&["ls", "--json"]).ends(0).says("\"success\"");
}

#[test]
fn a_stage_waits_for_a_machine_that_has_what_it_needs() {
    let picky = TWO.replace("b [type=tool", "b [runs_on=\"gpu\", type=tool");
    let Some(mut fleet) = Fleet::start(&picky) else { return };
    fleet.work("plain", &["--seats", "1"]);
    let client = fleet.command(&["run", "pipeline.dot", "--run-id", "r"]).stderr(Stdio::piped()).spawn().unwrap();
    let began = Instant::now();
    fleet.wait_until("the machine lacks the label", || fleet.said().contains("`b` needs label `gpu`"));
    std::thread::sleep(Duration::from_secs(10).saturating_sub(began.elapsed()));
    fleet.work("gpu", &["--seats", "1", "--label", "gpu", "--no-drive"]);
    let output = client.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("`b` waits for a machine: `plain` lacks label `gpu`"), "{said}");
    let machines: Vec<Value> =
        of_kind(&fleet.records("r"), "stage.started").iter().map(|event| event["machine"].clone()).collect();
    assert_eq!(machines, ["plain", "gpu"]);
}

/// The pointers to stages that may not be made yet come first to the machine, too. A lease is 30 seconds.
#[test]
fn a_machine_does_not_wait_for_a_stage_that_may_not_be_made_yet() {
    let branches: String = (0..6)
        .map(|branch| {
            format!(
                "b{branch} [type=tool, tool_command=\"true\", allowed_write_paths=\"\"]; fork -> b{branch} -> join\n"
            )
        })
        .collect();
    let wide = format!(
        "digraph wide {{ start [shape=Mdiamond]; exit [shape=Msquare]; fork [shape=component, max_parallel=6]; \
         join [shape=tripleoctagon]\n{branches} start -> fork; join -> exit }}\n"
    );
    let Some(mut fleet) = Fleet::start(&wide) else { return };
    fleet.bench.write("glovebox.toml", "[run]\nparallel_max = 1\n");
    fleet.work("driver", &["--no-execute"]);
    fleet.work("one", &["--seats", "1", "--no-drive"]);
    for run in ["first", "second", "third"] {
        fleet.with(&["run", "pipeline.dot", "--run-id", run]).ends(0);
        let times: Vec<Timestamp> = fleet
            .bench
            .run_text(run, "progress.ndjson")
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap()["at"].as_str().unwrap().parse().unwrap())
            .collect();
        let gaps = times.windows(2).map(|pair| pair[1].duration_since(pair[0]));
        assert!(gaps.max().unwrap() < SignedDuration::from_secs(9), "{run}: a machine waited for a third of a lease");
    }
}

#[test]
fn a_run_that_does_not_wait_is_stopped_when_no_machine_makes_a_stage() {
    let picky = TWO.replace("b [type=tool", "b [runs_on=\"gpu\", type=tool");
    let Some(mut fleet) = Fleet::start(&picky) else { return };
    fleet.work("plain", &["--seats", "1"]);
    let run = fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--no-wait"]);
    run.ends(6).says("`b` waits for a machine: `plain` lacks label `gpu`");
    fleet.wait_until("the run is stopped", || fleet.with(&["ls"]).stdout.contains("fail"));
    fleet.work("gpu", &["--seats", "1", "--label", "gpu"]);
    fleet.with(&["resume", "r"]).ends(0).says("run success");
}

#[test]
fn a_machine_with_a_weaker_sandbox_makes_no_stage() {
    let Some(mut fleet) = Fleet::start(TWO) else { return };
    fleet.bench.write("glovebox.toml", "[sandbox]\nrequire = \"landlock\"\n");
    fleet.work("weak", &["--seats", "1", "--tier", "landlock"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    fleet.wait_until("the machine says why", || fleet.said().contains("the run needs sandbox tier"));
    fleet.work("strong", &["--seats", "1"]);
    fleet.pulled("r");
    let records = fleet.records("r");
    assert!(of_kind(&records, "stage.finished").iter().all(|event| event["machine"] == "strong"), "{records:?}");
}

#[test]
fn a_machine_that_drains_ends_its_stage_and_gives_its_runs_away() {
    let slow = TWO.replace("mkdir -p out", "sleep 5 && mkdir -p out");
    let Some(mut fleet) = Fleet::start(&slow) else { return };
    fleet.work("first", &["--seats", "1"]);
    fleet.with(&["run", "pipeline.dot", "--run-id", "r", "--detach"]).ends(0);
    fleet.wait_until("the stage runs", || fleet.has_sleep());
    let at = fleet.working.iter().position(|(name, _)| name == "first").unwrap();
    let pid = Pid::from_child(&fleet.working[at].1);
    kill_process(pid, Signal::TERM).unwrap();
    fleet.work("second", &["--seats", "1"]);
    let (_, mut first) = fleet.working.remove(at);
    assert!(first.wait().unwrap().success(), "a machine that drained ends well");
    fleet.pulled("r");
    let records = fleet.records("r");
    let started: Vec<&Value> = of_kind(&records, "stage.started").iter().map(|event| &event["machine"]).collect();
    assert_eq!(started, ["first", "second"], "the stage that ran was not made again: {records:?}");
}
