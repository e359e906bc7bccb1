//! The results of the attacks: a document for programs and a table for people.
//!
//! The document is versioned and published under `docs/schemas`. It reports results and decides only the exit code.

use crate::exit::Exit;
use crate::terminal::{self, visible};
use glovebox_attack::message::{AttackRow, RowResult};
use glovebox_jail::jail::ProbeReport;
use glovebox_record::Tier;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of [`AttackReport`].
pub const ATTACKS_VERSION: u32 = 1;

/// The answer of `glovebox doctor --attack --json`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "attacks.json")]
pub struct AttackReport {
    /// Version of this document.
    pub version: u32,
    /// The tier that was attacked.
    pub tier: String,
    /// The version of Landlock's ABI that the tier enforces; 0 for none.
    pub landlock_abi: u32,
    /// Degradations of the tier.
    pub degradations: Vec<String>,
    /// One row for each attack, and for each thing that must work.
    pub rows: Vec<AttackRow>,
    /// Their sums.
    pub totals: Totals,
    /// Wall time of all rows.
    pub duration_ms: u64,
}

/// Sums of rows.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    /// Rows that the sandbox must stop.
    pub attacks: usize,
    /// Attacks that it stopped.
    pub blocked: usize,
    /// Attacks that it did not stop.
    pub through: usize,
    /// Rows that the tier does not promise.
    pub known_gaps: usize,
    /// Rows that must work.
    pub must_work: usize,
    /// Rows that work.
    pub working: usize,
    /// Attacks that could not be tried, and rows that do not work.
    pub broken: usize,
}

impl AttackReport {
    /// Combines the results of all rows.
    pub fn new(tier: Tier, capability: ProbeReport, results: Vec<RowResult>, duration_ms: u64) -> Self {
        Self {
            version: ATTACKS_VERSION,
            tier: tier.as_str().to_owned(),
            landlock_abi: capability.landlock_abi,
            degradations: capability.degradations,
            totals: totals(&results),
            rows: results.into_iter().map(|one| one.row).collect(),
            duration_ms,
        }
    }

    /// Success only if no attack got through and everything that must work does.
    pub fn exit(&self) -> Exit {
        if self.totals.through + self.totals.broken == 0 { Exit::Ok } else { Exit::Policy }
    }

    /// The table, the known gaps, and the totals as the last line.
    pub fn render(&self) -> String {
        let mut text = format!("{:<66} {:<22} {}\n", "attack", "stopped by", "result");
        for row in &self.rows {
            let mark = match row.result.as_str() {
                "through" => format!("GOT THROUGH: {} ({})", row.witness, row.answer),
                "broken" => format!("BROKEN: {} ({})", row.answer, row.witness),
                "known-gap" => "known gap".to_owned(),
                result => result.to_owned(),
            };
            let line = format!("{:<66} {:<22} {}", row.attack, row.stopped_by, visible::line(&mark));
            text.push_str(line.trim_end());
            text.push('\n');
        }
        for row in &self.rows {
            if let Some(gap) = &row.gap {
                text.push_str(&format!("known gap: {}: {gap}\n", row.attack));
            }
        }
        text.push_str(&self.sum());
        text
    }

    fn sum(&self) -> String {
        let Totals { attacks, blocked, through, known_gaps, must_work, working, broken } = &self.totals;
        let mut parts = vec![format!("{attacks} attacks"), format!("{blocked} blocked")];
        if *through > 0 {
            parts.push(format!("{through} GOT THROUGH"));
        }
        if *broken > 0 {
            parts.push(format!("{broken} broken"));
        }
        parts.push(format!("{working} of {must_work} required operations work"));
        parts.push(format!("{} (tier {})", terminal::counted(*known_gaps, "known gap"), self.tier));
        format!("{}, {}\n", parts.join(", "), terminal::duration(self.duration_ms))
    }
}

fn totals(results: &[RowResult]) -> Totals {
    let count = |counts: &dyn Fn(&RowResult) -> bool| results.iter().filter(|one| counts(one)).count();
    let ended = |result: &str| count(&|one| one.row.result == result);
    Totals {
        attacks: count(&|one| !one.must_work),
        blocked: ended("blocked"),
        through: ended("through"),
        known_gaps: ended("known-gap"),
        must_work: count(&|one| one.must_work),
        working: ended("works"),
        broken: ended("broken"),
    }
}
