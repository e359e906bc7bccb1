//! The results of the attacks: a document for programs and a table for people.
//!
//! The document is versioned and published under `docs/schemas`. It reports the results, from which the exit code
//! follows.

use crate::exit::Exit;
use crate::terminal::{self, visible};
use glovebox_attack::message::{AttackRow, RowResult};
use glovebox_jail::jail::ProbeReport;
use glovebox_record::Tier;
use schemars::JsonSchema;
use serde::Serialize;

/// Version of [`AttackReport`].
pub const ATTACKS_VERSION: u32 = 1;

/// The document that `glovebox doctor --attack --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "attacks.json")]
pub struct AttackReport {
    /// Version of this document.
    pub version: u32,
    /// The tier that was attacked.
    pub tier: String,
    /// Version of the Landlock ABI that the tier enforces; 0 if it enforces none.
    pub landlock_abi: u32,
    /// Degradations of the tier.
    pub degradations: Vec<String>,
    /// One row for each attack, and for each operation that must work.
    pub rows: Vec<AttackRow>,
    /// Totals of the rows.
    pub totals: Totals,
    /// Wall time of all rows in milliseconds.
    pub duration_ms: u64,
}

/// Numbers of rows by result.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    /// Attacks, which the sandbox must stop.
    pub attacks: usize,
    /// Attacks that the sandbox stopped.
    pub blocked: usize,
    /// Attacks that the sandbox did not stop.
    pub through: usize,
    /// Attacks that the tier does not promise to stop.
    pub known_gaps: usize,
    /// Operations that must work.
    pub must_work: usize,
    /// Required operations that work.
    pub working: usize,
    /// Attacks that could not be tried, and required operations that do not work.
    pub broken: usize,
}

impl AttackReport {
    /// Combines the results of all rows into a report.
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

    /// Returns success only if no attack got through and every required operation works.
    pub fn exit(&self) -> Exit {
        if self.totals.through + self.totals.broken == 0 { Exit::Ok } else { Exit::Policy }
    }

    /// Renders the table, the known gaps, and the totals as the last line.
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
