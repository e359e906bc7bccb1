//! The sums of all rounds, as a table for people.

use super::round::{RoundResult, Victim};
use std::io::Write as _;
use std::time::Instant;

/// Every kind of victim with its name in the table.
const VICTIMS: [(Victim, &str); 5] = [
    (Victim::Engine, "engine"),
    (Victim::Thread, "thread of the engine"),
    (Victim::First, "first process of a sandbox"),
    (Victim::Template, "template of sandboxes"),
    (Victim::Helper, "helper of one sandbox"),
];

pub(super) struct Table {
    seed: u64,
    begun: Instant,
    rounds: usize,
    results: Vec<RoundResult>,
}

impl Table {
    pub(super) fn new(seed: u64, rounds: usize) -> Self {
        Self { seed, begun: Instant::now(), rounds, results: Vec::with_capacity(rounds) }
    }

    pub(super) fn add(&mut self, result: RoundResult) {
        self.results.push(result);
    }

    fn sum(&self, count: impl Fn(&RoundResult) -> usize) -> usize {
        self.results.iter().map(count).sum()
    }

    fn kills(&self, victim: Victim) -> usize {
        self.sum(|result| result.kills.iter().filter(|kind| **kind == victim).count())
    }

    /// Returns true if every kind of victim was killed that each machine has. A helper of one sandbox exists only after a
    /// template has failed.
    pub(super) fn kills_everything(&self) -> bool {
        [Victim::Engine, Victim::Thread, Victim::First].iter().all(|victim| self.kills(*victim) > 0)
    }

    /// Returns everything that is wrong.
    pub(super) fn faults(&self) -> Vec<&str> {
        let mut faults = Vec::new();
        for RoundResult { lost, duplicated, left, wrong, .. } in &self.results {
            faults.extend([lost, duplicated, left, wrong].into_iter().flatten().map(String::as_str));
        }
        faults
    }

    /// Prints the table, directly to stdout, so that the test harness does not capture it.
    pub(super) fn print(&self) {
        let seconds = self.begun.elapsed().as_secs();
        let mut text = format!("\nsoak: {} rounds with seed {}, {seconds} s\n", self.rounds, self.seed);
        let mut line = |name: &str, count: usize| text += &format!("{count:>8}  {name}\n");
        for (victim, name) in VICTIMS {
            line(&format!("kills: {name}"), self.kills(victim));
        }
        line("resumes", self.sum(|result| result.resumes));
        line("derived files damaged", self.sum(|result| result.damaged));
        line("runs killed before they began", self.sum(|result| usize::from(!result.has_begun)));
        line("sandboxes lost and replaced", self.sum(|result| result.lost_sandboxes));
        line("records acknowledged", self.sum(|result| result.acknowledged));
        line("attempts committed", self.sum(|result| result.committed));
        line("lost", self.sum(|result| result.lost.len()));
        line("duplicated", self.sum(|result| result.duplicated.len()));
        line("left behind", self.sum(|result| result.left.len()));
        line("other faults", self.sum(|result| result.wrong.len()));
        std::io::stdout().write_all(text.as_bytes()).unwrap();
    }
}
