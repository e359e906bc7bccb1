//! The battery's host programs against jails of this crate, tier by tier. The same rows as `glovebox doctor --attack`.
//!
//! A tier this machine does not have is not tried; that it has one at all is another test's claim. `BATTERY_ROWS` names rows to try alone.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]
#![cfg(target_os = "linux")]

#[path = "../../cli/src/doctor/jailed.rs"]
#[allow(dead_code, unreachable_pub)]
mod jailed;

use glovebox_hostile::battery;
use glovebox_hostile::judge::{Judged, Verdict};
use glovebox_hostile::row::Row;
use glovebox_hostile::rows;
use glovebox_sandbox::jail::{Tier, probe};
use jailed::Jailed;
use std::path::Path;

fn table(tier: Tier) -> Vec<Row> {
    let named = std::env::var("BATTERY_ROWS").unwrap_or_default();
    let programs = battery::programs(&rows::all(), tier.as_str()).into_iter();
    programs.filter(|row| named.is_empty() || named.split(',').any(|name| name == row.id)).collect()
}

fn attack(tier: Tier) -> Vec<Judged> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components/glovebox-hostile");
    let program = std::fs::read(&program).unwrap_or_else(|error| {
        panic!("`{}`: {error}; run `cargo xtask components` first", program.display());
    });
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().canonicalize().unwrap();
    let judged = battery::run(&Jailed { tier }, &program, &place, &table(tier), 4);
    let left: Vec<_> = std::fs::read_dir(&place).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    judged
}

#[track_caller]
fn check(tier: Tier) {
    let has_program = tier != Tier::Bwrap || Path::new("/usr/bin/bwrap").exists();
    if !has_program || probe(None).tier.is_none_or(|best| best < tier) {
        return;
    }
    let judged = attack(tier);
    for one in &judged {
        println!("{:<20} {:<12} {} | {}", one.row.id, one.verdict.as_str(), one.answer, one.witness);
    }
    let bad: Vec<String> = judged
        .iter()
        .filter(|one| one.verdict.is_bad())
        .map(|one| {
            format!("{} ({}): {}: {} | {}", one.row.id, one.row.title, one.verdict.as_str(), one.answer, one.witness)
        })
        .collect();
    assert!(bad.is_empty(), "{} of {} in tier {tier}:\n{}", bad.len(), judged.len(), bad.join("\n"));
    if tier == Tier::Full {
        let gaps = judged.iter().filter(|one| one.verdict == Verdict::KnownGap && one.row.gap_always.is_none());
        assert_eq!(gaps.count(), 0, "the highest tier has no gap of its own");
    }
}

#[test]
fn nothing_gets_through_full_walls() {
    check(Tier::Full);
}

#[test]
fn nothing_but_known_gaps_gets_through_landlock() {
    check(Tier::Landlock);
}

#[test]
fn nothing_but_known_gaps_gets_through_bwrap() {
    check(Tier::Bwrap);
}
