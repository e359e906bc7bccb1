//! What happened in a campaign, as a table for people: the faults, what they cost, and how long it took to go on.

use super::check::Recorded;
use super::faults::{Counts, Fault, Kind};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::Duration;

/// Every kind of fault with its name in the table.
const NAMES: [(Kind, &str); 10] = [
    (Kind::KillMaker, "SIGKILL of a machine that makes stages"),
    (Kind::KillDriver, "SIGKILL of a machine that drives"),
    (Kind::KillServer, "SIGKILL of a server"),
    (Kind::KillClient, "SIGKILL of a client"),
    (Kind::StopMaker, "SIGSTOP of a machine that makes stages, longer than the lease"),
    (Kind::StopDriver, "SIGSTOP of a machine that drives, longer than the lease"),
    (Kind::StopStore, "SIGSTOP of the store"),
    (Kind::CutMaker, "cut of the network of a machine that makes stages"),
    (Kind::CutDriver, "cut of the network of a machine that drives"),
    (Kind::CutServer, "cut of the network of a server"),
];

#[derive(Default)]
pub(super) struct Table {
    seed: u64,
    pub(super) took: Duration,
    kinds: Counts<Kind>,
    /// Everything that is wrong.
    pub(super) wrong: Vec<String>,
    runs: usize,
    finished: usize,
    /// Runs whose client was killed before the first record was stored.
    pub(super) begun_again: usize,
    /// Clients that ended because nobody answered.
    pub(super) refused: BTreeMap<i32, usize>,
    takeovers: usize,
    /// Attempts without a result, and the time from their claim to the next one.
    again: Vec<Duration>,
    /// When records were stored.
    stored: Vec<Timestamp>,
    /// For each lost attempt, its machine, its claim and the next claim.
    lost: Vec<(String, Timestamp, Timestamp)>,
    /// For each kind, the times from a fault to the next record of any run.
    progress: BTreeMap<Kind, Vec<Duration>>,
    /// The times from the end of a busy machine to the next claim of its task.
    replaced: Vec<Duration>,
}

impl Table {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, ..Self::default() }
    }

    /// Adds what happened to a run.
    pub(super) fn note_run(&mut self, records: &[Recorded]) {
        self.runs += 1;
        self.stored.extend(records.iter().map(|record| record.at));
        let of_kind = |kind: &'static str| records.iter().filter(move |record| record.event["kind"] == kind);
        // The first takeover is the beginning.
        self.takeovers += of_kind("run.taken_over").count().saturating_sub(1);
        self.finished += of_kind("stage.finished").count();
        let started: Vec<&Recorded> = of_kind("stage.started").collect();
        for (at, one) in started.iter().enumerate() {
            let is_done = of_kind("stage.finished").any(|done| done.event["attempt_id"] == one.event["attempt_id"]);
            let is_next = |next: &&&Recorded| {
                ["generation", "branch", "node", "visit"].iter().all(|key| next.event[*key] == one.event[*key])
            };
            if let Some(next) = started[at + 1..].iter().find(is_next).filter(|_| !is_done) {
                self.again.push(between(one.at, next.at));
                let machine = one.event["machine"].as_str().unwrap_or_default().to_owned();
                self.lost.push((machine, one.at, next.at));
            }
        }
    }

    /// Adds the faults, after all runs have ended.
    pub(super) fn note_faults(&mut self, faults: &[Fault]) {
        self.stored.sort();
        for fault in faults {
            *self.kinds.entry(fault.kind).or_default() += 1;
            if let Some(next) = self.stored.iter().find(|at| **at > fault.at) {
                self.progress.entry(fault.kind).or_default().push(between(fault.at, *next));
            }
            let is_victim = |(machine, claimed, next): &&(String, Timestamp, Timestamp)| {
                *machine == fault.machine && *claimed <= fault.at && fault.at < *next
            };
            if fault.kind == Kind::KillMaker
                && fault.was_busy
                && let Some((_, _, next)) = self.lost.iter().find(is_victim)
            {
                self.replaced.push(between(fault.at, *next));
            }
        }
    }

    /// Returns true if each kind of fault was made that this machine can make.
    pub(super) fn has_everything(&self, has_network: bool) -> bool {
        let is_made = |kind: Kind| match kind {
            Kind::StopStore => true,
            Kind::CutMaker | Kind::CutDriver | Kind::CutServer if !has_network => true,
            kind => self.kinds.contains_key(&kind),
        };
        NAMES.iter().all(|(kind, _)| is_made(*kind))
    }

    /// Prints the table, directly to stdout, so that the test harness does not capture it.
    pub(super) fn print(&self) {
        let count: usize = self.kinds.values().sum();
        let seconds = self.took.as_secs();
        let mut text = format!("\nfleet faults: {count} faults with seed {}, {seconds} s\n", self.seed);
        let mut line = |name: &str, count: usize| text += &format!("{count:>8}  {name}\n");
        for (kind, name) in NAMES {
            line(name, self.kinds.get(&kind).copied().unwrap_or_default());
        }
        line("runs", self.runs);
        line("runs whose client was killed before they began", self.begun_again);
        line("clients that nobody answered", self.refused.values().sum());
        line("attempts with a result", self.finished);
        line("attempts made again", self.again.len());
        line("takeovers", self.takeovers);
        line("wrong", self.wrong.len());
        text += "  median      p90      max  time in ms\n";
        let mut times = |name: &str, times: &[Duration]| text += &row(name, times);
        for (kind, name) in NAMES {
            let progress = self.progress.get(&kind).map_or(&[][..], Vec::as_slice);
            times(&format!("from {name} to the next record of any run"), progress);
        }
        times("from the claim of a lost attempt to the next claim", &self.again);
        times("from SIGKILL of a machine with a command to the next claim of the task", &self.replaced);
        std::io::stdout().write_all(text.as_bytes()).unwrap();
    }
}

/// Returns a row with the median, the 90th percentile and the maximum of times.
pub(super) fn row(name: &str, times: &[Duration]) -> String {
    let mut sorted: Vec<u128> = times.iter().map(Duration::as_millis).collect();
    sorted.sort_unstable();
    let Some(last) = sorted.last() else { return String::new() };
    let at = |percent: usize| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)];
    format!("{:>8} {:>8} {last:>8}  {name} ({})\n", at(50), at(90), sorted.len())
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}
