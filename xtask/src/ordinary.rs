//! `cargo xtask ordinary`: tries the ordinary behaviours as an ordinary user in every tier, and with `--peers` in other
//! sandboxes.
//!
//! This program copies itself for the ordinary user, and starts its copy with `ordinary --in PLACE`.

use crate::attacks::TIERS;
use crate::ordinary_user::OrdinaryUser;
use crate::process::{at, capture};
use crate::{Step, bubblewrap, peers, repository};
use glovebox_ordinary::place::Place;
use glovebox_ordinary::trial::Verdict;
use glovebox_ordinary::{runner, table};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// File with the minimum number of passes of each tier.
const FLOOR: &str = "tests/ordinary/floor.txt";
/// The folder of the user who tries the behaviours in other sandboxes, since they get a `/tmp` of their own.
const APART: &str = "/var/tmp";
/// Columns of the longest id.
const ID_COLUMNS: usize = 44;

/// Runs the command with its arguments.
pub(crate) fn run(arguments: &[&str]) -> Step {
    match arguments {
        [] => in_every_tier()?,
        ["--peers"] => beside_peers()?,
        ["--in", place, folder] => print_rows(&peers::place(place, Path::new(folder))?)?,
        _ => return Err("usage: cargo xtask ordinary [--peers]".to_owned()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Tries all behaviours in a place, and prints one line for each: id, result and reason, with tabs between them.
fn print_rows(place: &Place) -> Step<()> {
    let rows =
        runner::run(&table::all()?, place).map_err(|error| format!("the folder for temporary files: {error}"))?;
    for row in rows {
        let (result, reason) = match row.verdict {
            Verdict::Pass => ("pass", String::new()),
            Verdict::Fail(reason) => ("fail", reason),
            Verdict::NotHere(program) => ("not-here", program),
        };
        println!("{}\t{result}\t{reason}", row.behaviour.id);
    }
    Ok(())
}

/// The results of one place: the result and the reason of each id.
struct Results(BTreeMap<String, (String, String)>);

impl Results {
    fn parse(printed: &str) -> Self {
        let row = |line: &str| {
            let mut cells = line.splitn(3, '\t').map(str::to_owned);
            Some((cells.next()?, (cells.next()?, cells.next()?)))
        };
        Self(printed.lines().filter_map(row).collect())
    }

    fn count(&self, result: &str) -> usize {
        self.0.values().filter(|(found, _)| found == result).count()
    }

    fn result(&self, id: &str) -> &str {
        self.0.get(id).map_or("not-here", |(result, _)| result)
    }
}

/// Runs the copy of this program in a place, as the ordinary user.
fn results(user: &OrdinaryUser, place: &str, folder: &Path) -> Step<Results> {
    eprintln!("ordinary behaviours: {place}");
    let mut command = user.command("xtask");
    command.args(["ordinary", "--in", place]).arg(folder);
    let is_own = place.starts_with("tier-");
    let mut command = if is_own { bubblewrap::beside(command) } else { peers::beside(&command)? };
    Ok(Results::parse(&capture(&mut command)?))
}

/// Tries all behaviours in every tier.
pub(crate) fn in_every_tier() -> Step<()> {
    in_tiers(&TIERS)
}

/// Tries all behaviours in these tiers, and compares the numbers of passes with the floor.
fn in_tiers(tiers: &[&str]) -> Step<()> {
    let user = OrdinaryUser::new("ordinary", &["glovebox", "xtask"])?;
    let mut below = Vec::new();
    for tier in tiers {
        let found = results(&user, &format!("tier-{tier}"), user.folder())?;
        for (id, (_, reason)) in found.0.iter().filter(|(_, (result, _))| result == "fail") {
            println!("{tier}: fail {id}: {reason}");
        }
        let (passed, failed) = (found.count("pass"), found.count("fail"));
        println!("tier {tier}: {passed} pass, {failed} fail, {} not here", found.count("not-here"));
        let floor = Floor::read(tier)?;
        if passed < floor.passed_min(passed + failed) {
            below.push(format!("tier {tier}: {passed} behaviours pass, {} passed before", floor.passed));
        }
    }
    if below.is_empty() {
        return Ok(());
    }
    Err(format!("{}\nhelp: `{FLOOR}` has the numbers that may not fall", below.join("\n")))
}

/// The minimum number of passes of a tier, and the number of behaviours that were tried when it was set.
struct Floor {
    passed: usize,
    tried: usize,
}

impl Floor {
    fn read(tier: &str) -> Step<Self> {
        let file = repository().join(FLOOR);
        let text = at(&file, fs::read_to_string(&file))?;
        Self::parse(&text, tier).ok_or_else(|| format!("`{FLOOR}` has no line `{tier} PASSED of TRIED`"))
    }

    fn parse(text: &str, tier: &str) -> Option<Self> {
        let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>()).find(|words| words[0] == tier)?;
        let [_, passed, "of", tried] = words[..] else { return None };
        Some(Self { passed: passed.parse().ok()?, tried: tried.parse().ok()? })
    }

    /// Returns the smallest number of passes. A machine with fewer programs tries fewer behaviours.
    fn passed_min(&self, tried: usize) -> usize {
        self.passed.saturating_sub(self.tried.saturating_sub(tried))
    }
}

/// Tries all behaviours without a sandbox, in tier `full` and in other sandboxes, and prints the results side by side.
fn beside_peers() -> Step<()> {
    let user = OrdinaryUser::new_in(Path::new(APART), "ordinary", &["glovebox", "xtask"])?;
    let installed = peers::install();
    let mut columns: Vec<(&str, Results)> = Vec::new();
    for (name, place) in peers::COLUMNS {
        let folder: PathBuf = if place.starts_with("tier-") { user.folder().to_owned() } else { installed.clone() };
        let found = peers::is_here(place, &folder).then(|| results(&user, place, &folder)).transpose()?;
        columns.push((name, found.unwrap_or_else(|| Results(BTreeMap::new()))));
    }
    let heads: String = columns.iter().map(|(name, _)| format!(" {name:>15}")).collect();
    println!("{:ID_COLUMNS$}{heads}", "behaviour");
    for behaviour in table::all()? {
        let cells: String = columns.iter().map(|(_, found)| format!(" {:>15}", found.result(&behaviour.id))).collect();
        println!("{:ID_COLUMNS$}{cells}", behaviour.id);
    }
    for (name, found) in &columns {
        for (id, (_, reason)) in found.0.iter().filter(|(_, (result, _))| result == "fail") {
            println!("{name}: fail {id}: {reason}");
        }
    }
    let all = table::all()?;
    let mut groups: Vec<&str> = all.iter().map(|behaviour| group(&behaviour.id)).collect();
    groups.dedup();
    for name in groups.into_iter().map(Some).chain([None]) {
        let count = |found: &Results| {
            let ids = all.iter().map(|behaviour| behaviour.id.as_str());
            let of_group = ids.filter(|id| name.is_none_or(|name| group(id) == name));
            of_group.filter(|id| found.result(id) == "pass").count()
        };
        let passed: String = columns.iter().map(|(_, found)| format!(" {:>15}", count(found))).collect();
        println!("{:ID_COLUMNS$}{passed}", format!("passed: {}", name.unwrap_or("all")));
    }
    Ok(())
}

fn group(id: &str) -> &str {
    id.split_once('/').map_or(id, |(group, _)| group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fewer_programs_lower_the_floor() {
        let floor = Floor::parse("full 120 of 190\nbwrap 100 of 190\n", "full").unwrap();
        assert_eq!([190, 200, 185].map(|tried| floor.passed_min(tried)), [120, 120, 115]);
        assert!(Floor::parse("full 120\n", "full").is_none() && Floor::parse("", "full").is_none());
    }

    #[test]
    fn rows_are_read_as_they_are_printed() {
        let found = Results::parse("git/a\tpass\t\ngit/b\tfail\tno\tway\nnoise\n");
        assert_eq!((found.count("pass"), found.count("fail")), (1, 1));
        assert_eq!((found.result("git/b"), found.result("git/c")), ("fail", "not-here"));
    }
}
