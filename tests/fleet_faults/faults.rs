//! The faults, in an order and at moments that come from the seed, and the runs that they happen to.

use super::check::{Expected, check};
use super::machines::{Fleet, Part, signal};
use super::table::Table;
use crate::workbench::dice::Dice;
use jiff::Timestamp;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::process::Child;
use std::time::{Duration, Instant};

/// The lease of the fleet, and a time for which a stopped machine is silent longer.
pub(super) const LEASE: &str = "3s";
const STOPPED: Duration = Duration::from_millis(3600);
/// Number of runs in progress at the same time.
const RUNS_MAX: usize = 3;
/// How long a run may take, with everything that happens to it.
const RUN_MAX: Duration = Duration::from_secs(240);
/// How long it may take until machines have begun.
const BEGIN_MAX: Duration = Duration::from_secs(120);
/// Mean time between two faults.
const BETWEEN: Duration = Duration::from_millis(1300);
/// Time between two looks at runs and machines.
const NAP: Duration = Duration::from_millis(100);
/// Time between two looks whether a run has ended.
const PULL_EVERY: Duration = Duration::from_millis(700);

/// What happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    KillMaker,
    KillDriver,
    KillServer,
    KillClient,
    StopMaker,
    StopDriver,
    StopStore,
    CutMaker,
    CutDriver,
    CutServer,
}

/// How often each kind happens, of 28.
const KINDS: [(Kind, usize); 10] = [
    (Kind::KillMaker, 6),
    (Kind::KillDriver, 4),
    (Kind::KillServer, 2),
    (Kind::KillClient, 2),
    (Kind::StopMaker, 3),
    (Kind::StopDriver, 2),
    (Kind::StopStore, 1),
    (Kind::CutMaker, 4),
    (Kind::CutDriver, 2),
    (Kind::CutServer, 2),
];

/// A fault that was made.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    pub(super) kind: Kind,
    pub(super) at: Timestamp,
    /// The machine, or an empty name.
    pub(super) machine: String,
    /// True if a machine that makes stages had a command in progress.
    pub(super) was_busy: bool,
}

/// What ends a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Repair {
    Start(usize),
    Continue(usize),
    Server(usize),
    Store,
    MachineLink(usize),
    ServerLink(usize),
}

impl Repair {
    /// Returns true if a server does not work until then.
    fn is_of_server(self) -> bool {
        matches!(self, Self::Server(_) | Self::ServerLink(_))
    }
}

/// A run in progress.
struct Run {
    name: String,
    began: Instant,
    client: Option<Child>,
    /// When the client is killed, if it still lives then.
    kill_at: Option<Instant>,
    looked: Instant,
}

pub(super) struct Campaign {
    seed: u64,
    dice: Dice,
    fleet: Fleet,
    expected: Expected,
    runs: Vec<Run>,
    next_run: usize,
    repairs: Vec<(Instant, Repair)>,
    faults: Vec<Fault>,
    /// The faults that wait for a client.
    clients_to_kill: usize,
    table: Table,
}

impl Campaign {
    /// Starts the fleet, and makes an undisturbed run on this machine.
    pub(super) fn new(seed: u64) -> Self {
        let mut dice = Dice(seed | 1);
        // The first numbers of seeds that differ in few bits are similar.
        for _ in 0..8 {
            dice.below(2);
        }
        let fleet = Fleet::start(3, 2, 4, LEASE);
        fleet.bench.glovebox(&["run", "pipeline.dot", "--run-id", "undisturbed"]).ends(0);
        let expected = Expected::of(&fleet.bench, "undisturbed");
        let (runs, repairs, faults, table) = (Vec::new(), Vec::new(), Vec::new(), Table::new(seed));
        Self { seed, dice, fleet, expected, runs, next_run: 0, repairs, faults, clients_to_kill: 0, table }
    }

    /// Makes this many faults, waits until all runs have ended, and checks what is there.
    pub(super) fn play(mut self, count: usize) -> Table {
        self.warm();
        let begun = Instant::now();
        let mut next = Instant::now();
        while self.table.wrong.is_empty() && (self.faults.len() < count || self.is_busy()) {
            let is_over = self.faults.len() >= count;
            if !is_over {
                self.begin_runs();
                if Instant::now() >= next {
                    self.make_one();
                    let most = usize::try_from(BETWEEN.as_millis()).unwrap() * 2;
                    next = Instant::now() + Duration::from_millis(self.dice.below(most) as u64);
                }
            }
            self.repair_due(Instant::now());
            self.look_at_runs();
            std::thread::sleep(NAP);
        }
        self.table.took = begun.elapsed();
        let left = self.fleet.drain();
        self.table.wrong.extend(left);
        if !self.table.wrong.is_empty() {
            let said = self.fleet.said();
            self.table.wrong.push(format!("seed {}\n{said}", self.seed));
        }
        let faults = std::mem::take(&mut self.faults);
        self.table.note_faults(&faults);
        self.table
    }

    /// Returns true if links can be cut.
    pub(super) fn has_network(&self) -> bool {
        self.fleet.network.is_some()
    }

    fn is_busy(&self) -> bool {
        !self.runs.is_empty() || !self.repairs.is_empty()
    }

    /// Waits until each machine has prepared a run once, so that a fault does not only meet machines that begin.
    fn warm(&mut self) {
        let begun = Instant::now();
        self.begin_runs();
        while !self.runs.is_empty() && self.table.wrong.is_empty() {
            assert!(begun.elapsed() < BEGIN_MAX, "no run ends without faults: {}", self.fleet.said());
            self.look_at_runs();
            std::thread::sleep(NAP);
        }
    }

    fn begin_runs(&mut self) {
        while self.runs.len() < RUNS_MAX {
            let name = format!("r{}", self.next_run);
            self.next_run += 1;
            let client = Some(self.fleet.begin(&name));
            let now = Instant::now();
            let mut run = Run { name, began: now, client, kill_at: None, looked: now };
            if self.clients_to_kill > 0 {
                self.clients_to_kill -= 1;
                run.kill_at = Some(now + Duration::from_millis(self.dice.below(1200) as u64));
            }
            self.runs.push(run);
        }
    }

    /// Makes a fault, if there is a victim for it.
    fn make_one(&mut self) {
        let mut number = self.dice.below(KINDS.iter().map(|(_, weight)| weight).sum());
        let kind = KINDS.iter().find(|(_, weight)| {
            let is_it = number < *weight;
            number = number.wrapping_sub(if is_it { 0 } else { *weight });
            is_it
        });
        let kind = kind.map_or(Kind::KillMaker, |(kind, _)| *kind);
        let (at, now) = (Timestamp::now(), Instant::now());
        let fault = |machine: &str, was_busy| Fault { kind, at, machine: machine.to_owned(), was_busy };
        let milliseconds = |number| Duration::from_millis(number as u64);
        match kind {
            Kind::CutMaker | Kind::CutDriver | Kind::CutServer if self.fleet.network.is_none() => {}
            Kind::KillMaker
            | Kind::KillDriver
            | Kind::StopMaker
            | Kind::StopDriver
            | Kind::CutMaker
            | Kind::CutDriver => {
                let is_maker = matches!(kind, Kind::KillMaker | Kind::StopMaker | Kind::CutMaker);
                let part = if is_maker { Part::Makes } else { Part::Drives };
                let Some(index) = self.victim(part) else { return };
                self.fleet.look(index);
                let was_busy = self.fleet.sleeps(index);
                self.faults.push(fault(&self.fleet.machines[index].name, was_busy));
                if matches!(kind, Kind::KillMaker | Kind::KillDriver) {
                    self.fleet.kill_machine(index);
                    let down = milliseconds(300 + self.dice.below(2000));
                    self.repairs.push((now + down, Repair::Start(index)));
                } else if matches!(kind, Kind::CutMaker | Kind::CutDriver) {
                    self.fleet.cut_machine(index, true);
                    self.repairs.push((now + milliseconds(500 + self.dice.below(6000)), Repair::MachineLink(index)));
                } else {
                    self.fleet.stop_machine(index);
                    let stopped = STOPPED + milliseconds(self.dice.below(2000));
                    self.repairs.push((now + stopped, Repair::Continue(index)));
                }
            }
            Kind::KillServer | Kind::CutServer if !self.repairs.iter().any(|(_, repair)| repair.is_of_server()) => {
                let index = self.dice.below(3);
                // A second server is lost only after the first one has everything again.
                if (0..3).all(|index| self.fleet.servers.is_healthy(index)) {
                    self.faults.push(fault("", false));
                    let repair = if kind == Kind::KillServer {
                        self.fleet.servers.kill(index);
                        Repair::Server(index)
                    } else {
                        self.fleet.cut_server(index, true);
                        Repair::ServerLink(index)
                    };
                    self.repairs.push((now + milliseconds(1000 + self.dice.below(3000)), repair));
                }
            }
            Kind::KillClient => {
                self.clients_to_kill += 1;
                self.faults.push(fault("", false));
            }
            Kind::StopStore if !self.repairs.iter().any(|(_, repair)| *repair == Repair::Store) => {
                let Some(moto) = &self.fleet.moto else { return };
                signal(moto.pid(), Signal::STOP);
                self.faults.push(fault("", false));
                self.repairs.push((now + milliseconds(500 + self.dice.below(2500)), Repair::Store));
            }
            Kind::KillServer | Kind::CutServer | Kind::StopStore => {}
        }
    }

    /// Chooses a machine that works. Of the machines that make stages, half go on.
    fn victim(&mut self, part: Part) -> Option<usize> {
        let machines = &self.fleet.machines;
        let is_of = |index: &usize| machines[*index].part == part;
        let works = |index: &usize| machines[*index].works();
        let all = (0..machines.len()).filter(is_of).count();
        let working: Vec<usize> = (0..machines.len()).filter(is_of).filter(works).collect();
        let least = if part == Part::Makes { all / 2 } else { 0 };
        (working.len() > least).then(|| working[self.dice.below(working.len())])
    }

    fn repair_due(&mut self, now: Instant) {
        let (due, later) = std::mem::take(&mut self.repairs).into_iter().partition(|(at, _)| *at <= now);
        self.repairs = later;
        let due: Vec<(Instant, Repair)> = due;
        for (_, repair) in due {
            match repair {
                Repair::Start(index) => self.fleet.start_machine(index),
                Repair::Continue(index) => self.fleet.continue_machine(index),
                Repair::Server(index) => self.fleet.servers.spawn(index),
                Repair::MachineLink(index) => self.fleet.cut_machine(index, false),
                Repair::ServerLink(index) => self.fleet.cut_server(index, false),
                Repair::Store => {
                    if let Some(moto) = &self.fleet.moto {
                        signal(moto.pid(), Signal::CONT);
                    }
                }
            }
        }
        for index in 0..self.fleet.machines.len() {
            let ended = self.fleet.machines[index].child.as_mut().and_then(|child| child.try_wait().unwrap());
            if let Some(status) = ended {
                self.table.wrong.push(format!("`{}` ended with {status}", self.fleet.machines[index].name));
            }
        }
    }

    /// Kills clients whose moment has come, begins runs again that do not exist, and checks those that have ended.
    fn look_at_runs(&mut self) {
        let mut going = Vec::new();
        for mut run in std::mem::take(&mut self.runs) {
            if !self.has_begun(&mut run) {
                going.push(run);
                continue;
            }
            if run.looked.elapsed() < PULL_EVERY {
                going.push(run);
                continue;
            }
            run.looked = Instant::now();
            let pulled = crate::workbench::Answer::of(&mut self.fleet.command("client", &["pull", &run.name]));
            match pulled.code {
                0 => check(&self.fleet.bench, &run.name, &self.expected, &mut self.table),
                // No record was stored before the client was killed.
                2 if pulled.stderr.contains("has no run") => {
                    self.table.begun_again += 1;
                    run.client = Some(self.fleet.begin(&run.name));
                    going.push(run);
                }
                9 if run.began.elapsed() < RUN_MAX => going.push(run),
                code => {
                    let wrong = format!("`pull {}` ends with {code}: {}", run.name, pulled.stderr);
                    self.table.wrong.push(wrong);
                }
            }
        }
        self.runs.extend(going);
    }

    /// Returns true if the client of a run has ended. Kills it if its moment has come.
    fn has_begun(&mut self, run: &mut Run) -> bool {
        let Some(client) = &mut run.client else { return true };
        if run.kill_at.is_some_and(|at| at <= Instant::now()) {
            run.kill_at = None;
            client.kill().unwrap();
        }
        let Some(status) = client.try_wait().unwrap() else {
            if run.began.elapsed() > RUN_MAX {
                self.table.wrong.push(format!("the client of `{}` does not end", run.name));
            }
            return false;
        };
        run.client = None;
        let said = std::fs::read_to_string(self.fleet.log(&format!("client-{}", run.name))).unwrap_or_default();
        match status.code() {
            Some(0) | None => {}
            // The servers, or the store, gave no answer for as long as a client waits. Nobody knows whether the run exists.
            Some(9) => *self.table.refused.entry(9).or_default() += 1,
            Some(2) if said.contains("exists already") => {}
            Some(code) => self.table.wrong.push(format!("the client of `{}` ended with {code}: {said}", run.name)),
        }
        true
    }
}

/// Counts by what is counted.
pub(super) type Counts<K> = BTreeMap<K, usize>;
