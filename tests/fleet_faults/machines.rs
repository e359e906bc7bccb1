//! A fleet on this machine: servers, a store, and machines that are killed, stopped, cut off and started again.
//!
//! Each server and each machine has a network namespace of its own, if this process may create some. Otherwise all are on
//! loopback, and nothing is cut off.

use super::moto::Moto;
use super::network::Network;
use super::project;
use crate::workbench::nats::{Host, NatsServers};
use crate::workbench::processes::{Process, descendants};
use crate::workbench::{Answer, Workbench, like};
use glovebox_signing::key::SigningKey;
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long the machines may take to drain.
const DRAIN_MAX: Duration = Duration::from_secs(60);
/// How long the kernel may take to end the processes of a machine that was killed.
const DEATH_MAX: Duration = Duration::from_secs(10);

/// What a machine does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Drives,
    Makes,
}

pub(super) struct Machine {
    pub(super) name: String,
    pub(super) part: Part,
    pub(super) child: Option<Child>,
    pub(super) is_stopped: bool,
    pub(super) is_cut_off: bool,
}

impl Machine {
    /// Returns true if nothing is wrong with it.
    pub(super) fn works(&self) -> bool {
        self.child.is_some() && !self.is_stopped && !self.is_cut_off
    }
}

pub(super) struct Fleet {
    pub(super) bench: Workbench,
    pub(super) servers: NatsServers,
    pub(super) network: Option<Network>,
    pub(super) moto: Option<Moto>,
    pub(super) machines: Vec<Machine>,
    operator: String,
    /// The descendants of machines at the moments of the faults.
    seen: BTreeSet<Process>,
}

impl Fleet {
    /// Starts servers, the store and the machines.
    pub(super) fn start(servers: usize, drivers: usize, makers: usize, lease: &str) -> Self {
        let (bench, network) = (project(), Network::create(servers + drivers + makers));
        let moto = Moto::start(network.as_ref().map_or_else(|| "127.0.0.1".to_owned(), Network::bridge));
        std::fs::create_dir(bench.outside().join("store")).unwrap();
        let servers = match &network {
            Some(network) => {
                let hosts: Vec<Host> = (0..servers).map(|index| network.host(index)).collect();
                NatsServers::start_on(&hosts, "always", "")
            }
            None => NatsServers::start(servers, ""),
        };
        let (machines, operator, seen) = (Vec::new(), String::new(), BTreeSet::new());
        let mut fleet = Self { bench, servers, network, moto, machines, operator, seen };
        let folder = format!("file://{}", fleet.bench.outside().join("store").display());
        let store = fleet.moto.as_ref().map_or(folder, Moto::store);
        let single = if fleet.servers.addresses().len() == 1 { &["--single-node"][..] } else { &[] };
        let init = ["fleet", "init", "--store", &store, "--lease", lease];
        Answer::of(&mut fleet.command("operator", &[&init[..], single].concat())).ends(0);
        let pem = std::fs::read(fleet.state("operator").join("fleet/operator.key")).unwrap();
        fleet.operator = SigningKey::from_pem(&pem).unwrap().public().to_string();
        fleet.admit("client", "submit");
        let drivers = (0..drivers).map(|number| (format!("driver-{number}"), Part::Drives));
        let makers = (0..makers).map(|number| (format!("maker-{number}"), Part::Makes));
        for (name, part) in drivers.chain(makers).collect::<Vec<_>>() {
            fleet.admit(&name, if part == Part::Drives { "drive" } else { "build,verify" });
            fleet.machines.push(Machine { name, part, child: None, is_stopped: false, is_cut_off: false });
            fleet.start_machine(fleet.machines.len() - 1);
        }
        fleet
    }

    fn state(&self, name: &str) -> PathBuf {
        self.bench.outside().join(format!("state-{name}"))
    }

    fn admit(&self, name: &str, may: &str) {
        let mut key = self.bench.bare(&["fleet", "key"]);
        let key = Answer::of(key.env("GLOVEBOX_STATE_DIR", self.state(name)));
        let words = ["fleet", "admit", key.ends(0).stdout.trim(), "--name", name, "--may", may];
        Answer::of(&mut self.command("operator", &words)).ends(0);
    }

    /// Returns a command of a user of the fleet.
    pub(super) fn command(&self, user: &str, words: &[&str]) -> Command {
        let mut command = self.bench.command(words);
        command.args(["--nats", &self.servers.addresses().join(",")]);
        if !self.operator.is_empty() && words.first() != Some(&"fleet") {
            command.args(["--operator", &self.operator]);
        }
        command.env("GLOVEBOX_STATE_DIR", self.state(user));
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        command
    }

    pub(super) fn log(&self, name: &str) -> PathBuf {
        self.bench.outside().join(format!("{name}.log"))
    }

    /// Starts a machine, or starts it again after it was killed.
    pub(super) fn start_machine(&mut self, index: usize) {
        let Machine { name, part, .. } = &self.machines[index];
        let dir = self.bench.outside().join("machines");
        let part: &[&str] = match part {
            Part::Drives => &["--no-execute"],
            Part::Makes => &["--no-drive", "--seats", "1"],
        };
        let work = self.command(name, &[&["work", "--dir", dir.to_str().unwrap()], part].concat());
        let mut command = match &self.network {
            Some(network) => like(network.host(self.host_of(index)).command(Path::new(work.get_program())), &work),
            None => work,
        };
        let log = OpenOptions::new().create(true).append(true).open(self.log(name)).unwrap();
        command.env("GLOVEBOX_LOG", "info").stdout(Stdio::null()).stderr(log);
        self.machines[index].child = Some(command.spawn().unwrap());
    }

    /// Returns the number of the host of a machine. The first hosts have the servers.
    fn host_of(&self, machine: usize) -> usize {
        self.servers.addresses().len() + machine
    }

    /// Cuts a machine off from all others, or ends that.
    pub(super) fn cut_machine(&mut self, index: usize, is_cut_off: bool) {
        self.look(index);
        let host = self.host_of(index);
        self.machines[index].is_cut_off = is_cut_off;
        self.cut_host(host, is_cut_off);
    }

    /// Cuts a server off from all others, or ends that.
    pub(super) fn cut_server(&self, index: usize, is_cut_off: bool) {
        self.cut_host(index, is_cut_off);
    }

    fn cut_host(&self, host: usize, is_cut_off: bool) {
        match &self.network {
            Some(network) if is_cut_off => network.cut(host),
            Some(network) => network.repair(host),
            None => {}
        }
    }

    /// Remembers the processes that a machine has started.
    pub(super) fn look(&mut self, index: usize) {
        if let Some(child) = &self.machines[index].child {
            self.seen.extend(descendants(i32::try_from(child.id()).unwrap()));
        }
    }

    /// Returns true while a machine has a command that sleeps.
    pub(super) fn sleeps(&mut self, index: usize) -> bool {
        let Some(child) = &self.machines[index].child else { return false };
        let is_sleep = |process: &Process| {
            let line = std::fs::read_to_string(format!("/proc/{}/cmdline", process.pid));
            line.is_ok_and(|line| line.starts_with("sleep"))
        };
        descendants(i32::try_from(child.id()).unwrap()).iter().any(is_sleep)
    }

    pub(super) fn kill_machine(&mut self, index: usize) {
        self.look(index);
        if let Some(mut child) = self.machines[index].child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    pub(super) fn stop_machine(&mut self, index: usize) {
        self.look(index);
        if let Some(child) = &self.machines[index].child {
            signal(child.id(), Signal::STOP);
            self.machines[index].is_stopped = true;
        }
    }

    pub(super) fn continue_machine(&mut self, index: usize) {
        if let Some(child) = self.machines[index].child.as_ref().filter(|_| self.machines[index].is_stopped) {
            signal(child.id(), Signal::CONT);
        }
        self.machines[index].is_stopped = false;
    }

    /// Starts a client that begins a run and does not follow it.
    pub(super) fn begin(&self, run: &str) -> Child {
        let said = File::create(self.log(&format!("client-{run}"))).unwrap();
        let mut command = self.command("client", &["run", "pipeline.dot", "--run-id", run, "--detach"]);
        command.stdout(Stdio::null()).stderr(said).spawn().unwrap()
    }

    /// Drains all machines. Returns what is left of their processes.
    pub(super) fn drain(&mut self) -> Vec<String> {
        (0..self.machines.len()).for_each(|index| self.look(index));
        for child in self.machines.iter().filter_map(|machine| machine.child.as_ref()) {
            signal(child.id(), Signal::TERM);
        }
        let (begun, mut left) = (Instant::now(), Vec::new());
        for Machine { name, child, .. } in &mut self.machines {
            let Some(mut child) = child.take() else { continue };
            while child.try_wait().unwrap().is_none() {
                if begun.elapsed() > DRAIN_MAX {
                    left.push(format!("`{name}` does not drain"));
                    child.kill().unwrap();
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        let ended = Instant::now();
        while self.seen.iter().any(Process::is_alive) && ended.elapsed() < DEATH_MAX {
            std::thread::sleep(Duration::from_millis(20));
        }
        left.extend(self.seen.iter().filter(|one| one.is_alive()).map(|one| format!("process {} is left", one.pid)));
        let outside = self.bench.outside().to_str().unwrap();
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
        left.extend(mounts.lines().filter(|line| line.contains(outside)).map(|line| format!("mount {line} is left")));
        left
    }

    /// Returns the ends of what all machines have logged, for a failure.
    pub(super) fn said(&self) -> String {
        let logs = self.machines.iter().map(|Machine { name, .. }| {
            let text = std::fs::read_to_string(self.log(name)).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            format!("--- {name}\n{}\n", lines[lines.len().saturating_sub(25)..].join("\n"))
        });
        logs.collect()
    }
}

impl Drop for Fleet {
    fn drop(&mut self) {
        for child in self.machines.iter_mut().filter_map(|machine| machine.child.as_mut()) {
            let _ended = child.kill();
            let _status = child.wait();
        }
        if let Some(moto) = &self.moto {
            signal(moto.pid(), Signal::CONT);
        }
    }
}

/// Sends a signal to a process of this test.
pub(super) fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    // A process that has ended is reported by whoever waits for it.
    let _ended = kill_process(pid, signal);
}
