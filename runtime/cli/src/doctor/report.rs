//! What the battery came to: the document for programs and the table for people.
//!
//! The document is versioned and published under `docs/schemas`. Says what was seen and decides nothing but the exit code.

use super::message::{AttackRow, RowResult};
use crate::exit::Exit;
use crate::terminal::{self, visible};
use glovebox_record::Tier;
use glovebox_sandbox::jail::ProbeReport;
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
    /// Landlock's ABI that is enforced in it; 0 where none is.
    pub landlock_abi: u32,
    /// What is weaker than the tier promises.
    pub degradations: Vec<String>,
    /// One per attack and per thing that must work.
    pub rows: Vec<AttackRow>,
    /// Their sums.
    pub totals: Totals,
    /// Wall time of all of it.
    pub duration_ms: u64,
}

/// Sums of rows.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Totals {
    /// Rows that must be stopped.
    pub attacks: usize,
    /// Those that were.
    pub blocked: usize,
    /// Those that were not.
    pub through: usize,
    /// What the tier admits, attacks and things that must work.
    pub known_gaps: usize,
    /// Rows that must work.
    pub must_work: usize,
    /// Those that do.
    pub working: usize,
    /// Rows that could not be tried, or do not work.
    pub broken: usize,
}

impl AttackReport {
    /// Puts the verdicts together.
    pub fn new(tier: Tier, capability: &ProbeReport, results: Vec<RowResult>, duration_ms: u64) -> Self {
        Self {
            version: ATTACKS_VERSION,
            tier: tier.as_str().to_owned(),
            landlock_abi: capability.landlock_abi,
            degradations: capability.degradations.clone(),
            totals: totals(&results),
            rows: results.into_iter().map(|one| one.row).collect(),
            duration_ms,
        }
    }

    /// Success only when nothing got through and everything that must work does.
    pub fn exit(&self) -> Exit {
        if self.totals.through + self.totals.broken == 0 { Exit::Ok } else { Exit::Policy }
    }

    /// The table, what is admitted, and the sum as the last line.
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
        parts.push(format!("{working} of {must_work} that must work do"));
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
