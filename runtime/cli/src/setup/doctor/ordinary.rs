//! `glovebox doctor --ordinary`: tries ordinary behaviours of developers' tools in the sandbox of this machine.
//!
//! Each behaviour is a run of this program in a project of its own. The document for programs is versioned and
//! published under `docs/schemas`; the exit code follows from it.

use crate::exit::{Exit, Stop};
use crate::terminal::{self, visible};
use glovebox_ordinary::behaviour::Behaviour;
use glovebox_ordinary::place::Place;
use glovebox_ordinary::runner::{self, Row};
use glovebox_ordinary::table;
use glovebox_ordinary::trial::Verdict;
use glovebox_record::Tier;
use schemars::JsonSchema;
use serde::Serialize;
use std::time::{Duration, Instant};

/// Version of [`OrdinaryReport`].
pub const ORDINARY_VERSION: u32 = 1;

/// The path at which a child process executes this program.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// The document that `glovebox doctor --ordinary --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "ordinary.json")]
pub struct OrdinaryReport {
    /// Version of this document.
    pub version: u32,
    /// The tier in which the behaviours were tried.
    pub tier: String,
    /// One row for each behaviour.
    pub rows: Vec<OrdinaryRow>,
    /// Totals of the rows.
    pub totals: OrdinaryTotals,
    /// Wall time of all rows in milliseconds.
    pub duration_ms: u64,
}

/// One behaviour.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OrdinaryRow {
    /// The id, `group/name`.
    pub id: String,
    /// The group.
    pub group: String,
    /// Who relies on it.
    pub why: String,
    /// Where that is written.
    pub source: String,
    /// `pass`, `fail`, or `not-here` if the machine lacks a program.
    pub result: String,
    /// The last line that a failed behaviour printed, or the missing program.
    pub reason: String,
    /// Lines of glovebox.toml that should make the behaviour pass. Tried only if it fails without them.
    pub settings: Vec<String>,
    /// True if the behaviour failed, and succeeded with these lines. Absent if that was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passes_with_settings: Option<bool>,
    /// Wall time in milliseconds.
    pub duration_ms: u64,
}

/// Numbers of rows by result.
#[derive(Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct OrdinaryTotals {
    /// Behaviours that succeeded.
    pub passed: usize,
    /// Behaviours that failed, and succeed with settings.
    pub passed_with_settings: usize,
    /// Behaviours that failed, also with their settings if they have any.
    pub failed: usize,
    /// Behaviours that were not tried, because the machine lacks a program.
    pub not_here: usize,
}

/// Which behaviours are tried. The default is all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Selection<'a> {
    /// Only those of this group.
    pub group: Option<&'a str>,
    /// Only those whose id or reason contains this text.
    pub text: Option<&'a str>,
}

/// Tries behaviours in a tier.
pub fn ordinary(tier: Tier, selection: Selection<'_>) -> Result<OrdinaryReport, Stop> {
    let behaviours = chosen(selection)?;
    let begin = Instant::now();
    let place = Place::Glovebox { program: OWN_PROGRAM.into(), tier: tier.as_str().to_owned() };
    let rows = runner::run(&behaviours, &place)
        .map_err(|error| Stop::io("make a temporary folder for the behaviours", &error))?;
    let rows: Vec<OrdinaryRow> = rows.into_iter().map(OrdinaryRow::new).collect();
    Ok(OrdinaryReport {
        version: ORDINARY_VERSION,
        tier: tier.as_str().to_owned(),
        totals: totals(&rows),
        rows,
        duration_ms: milliseconds(begin.elapsed()),
    })
}

fn chosen(Selection { group, text }: Selection<'_>) -> Result<Vec<Behaviour>, Stop> {
    let all = table::all().map_err(|problem| Stop::new(Exit::Internal, problem))?;
    if let Some(unknown) = group.filter(|group| !table::groups().contains(group)) {
        let message = format!("`{}` is not a group of behaviours", visible::line(unknown));
        return Err(Stop::new(Exit::Usage, message).with_help(format!("the groups are {}", table::groups().join(", "))));
    }
    let matches = |behaviour: &Behaviour| {
        let is_found = |text: &str| behaviour.id.contains(text) || behaviour.why.contains(text);
        group.is_none_or(|group| behaviour.group() == group) && text.is_none_or(is_found)
    };
    let chosen: Vec<Behaviour> = all.into_iter().filter(matches).collect();
    if chosen.is_empty() {
        return Err(Stop::new(Exit::Usage, "no behaviour has this text in its id or reason")
            .with_help("docs/ordinary.md lists all behaviours"));
    }
    Ok(chosen)
}

impl OrdinaryRow {
    fn new(row: Row) -> Self {
        let (result, reason) = match row.verdict {
            Verdict::Pass => ("pass", String::new()),
            Verdict::Fail(reason) => ("fail", reason),
            Verdict::NotHere(program) => ("not-here", program),
        };
        Self {
            group: row.behaviour.group().to_owned(),
            id: row.behaviour.id,
            why: row.behaviour.why,
            source: row.behaviour.source,
            result: result.to_owned(),
            reason,
            settings: row.behaviour.settings,
            passes_with_settings: row.with_settings.map(|verdict| verdict == Verdict::Pass),
            duration_ms: milliseconds(row.duration),
        }
    }

    /// Returns the lines about a behaviour that failed.
    fn failure(&self) -> String {
        let mut text = format!("fail {}: {}\n", self.id, visible::line(&self.reason));
        text.push_str(&format!("  for: {}\n", self.why));
        let settings = self.settings.join("` and `");
        match self.passes_with_settings {
            Some(true) => text.push_str(&format!("  passes with `{settings}` in glovebox.toml\n")),
            Some(false) => text.push_str(&format!("  fails also with `{settings}` in glovebox.toml\n")),
            None => {}
        }
        text
    }
}

fn totals(rows: &[OrdinaryRow]) -> OrdinaryTotals {
    let mut totals = OrdinaryTotals::default();
    for row in rows {
        match (row.result.as_str(), row.passes_with_settings) {
            ("pass", _) => totals.passed += 1,
            ("not-here", _) => totals.not_here += 1,
            (_, Some(true)) => totals.passed_with_settings += 1,
            _ => totals.failed += 1,
        }
    }
    totals
}

impl OrdinaryReport {
    /// Returns success only if no behaviour failed.
    pub fn exit(&self) -> Exit {
        if self.totals.failed + self.totals.passed_with_settings == 0 { Exit::Ok } else { Exit::Policy }
    }

    /// Renders a table by group, the failures, and the totals as the last line.
    pub fn render(&self) -> String {
        let mut text =
            format!("{:<14} {:>6} {:>13} {:>6} {:>8}\n", "group", "pass", "with settings", "fail", "not here");
        for group in table::groups() {
            let rows: Vec<&OrdinaryRow> = self.rows.iter().filter(|row| row.group == group).collect();
            if rows.is_empty() {
                continue;
            }
            let count = |counts: &dyn Fn(&OrdinaryRow) -> bool| rows.iter().filter(|row| counts(row)).count();
            let with_settings = count(&|row| row.passes_with_settings == Some(true));
            let failed = count(&|row| row.result == "fail") - with_settings;
            let (passed, not_here) = (count(&|row| row.result == "pass"), count(&|row| row.result == "not-here"));
            text.push_str(&format!("{group:<14} {passed:>6} {with_settings:>13} {failed:>6} {not_here:>8}\n"));
        }
        for row in &self.rows {
            match row.result.as_str() {
                "fail" => text.push_str(&row.failure()),
                "not-here" => text.push_str(&format!("not here {}: no `{}`\n", row.id, row.reason)),
                _ => {}
            }
        }
        text + &self.sum()
    }

    fn sum(&self) -> String {
        let OrdinaryTotals { passed, passed_with_settings, failed, not_here } = &self.totals;
        let all = terminal::counted(self.rows.len(), "behaviour");
        let duration = terminal::duration(self.duration_ms);
        format!(
            "{all}: {passed} pass, {passed_with_settings} pass with settings, {failed} fail, {not_here} not here (tier {}), \
             {duration}\n",
            self.tier
        )
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, verdict: Verdict, with_settings: Option<Verdict>) -> OrdinaryRow {
        let text = "# why: w\n# source: https://s\n# setting: a.b = 1\ntrue\n";
        let behaviour = Behaviour::parse(id, text).unwrap();
        OrdinaryRow::new(Row { behaviour, verdict, with_settings, duration: Duration::from_millis(1) })
    }

    #[test]
    fn the_table_counts_each_row_once() {
        let fail = || Verdict::Fail("no\u{1b}".to_owned());
        let rows = vec![
            row("git/a", Verdict::Pass, None),
            row("git/b", fail(), Some(Verdict::Pass)),
            row("git/c", fail(), Some(fail())),
            row("files/d", Verdict::NotHere("x".to_owned()), None),
        ];
        let totals = totals(&rows);
        let report = OrdinaryReport { version: 1, tier: "full".to_owned(), rows, totals, duration_ms: 5 };
        assert_eq!(report.exit(), Exit::Policy);
        let text = report.render();
        assert!(text.contains("4 behaviours: 1 pass, 1 pass with settings, 1 fail, 1 not here (tier full)"), "{text}");
        assert!(text.contains("passes with `a.b = 1`") && text.contains("fails also with `a.b = 1`"), "{text}");
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
