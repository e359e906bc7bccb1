//! The attacks of host programs against jails of this crate, tier by tier. The rows are those of `glovebox doctor
//! --attack`.
//!
//! For a tier that this machine does not support, the test prints `not run:`; another test requires that the machine
//! supports one. `BATTERY_ROWS` selects rows to run.

#![allow(clippy::unwrap_used, reason = "a test that is surprised stops there")]
#![cfg(target_os = "linux")]

#[path = "../../../tests/attack/src/jailed.rs"]
#[allow(dead_code, unreachable_pub)]
mod jailed;

#[path = "../../../tests/workbench/not_run.rs"]
mod not_run;

use glovebox_hostile::battery;
use glovebox_hostile::evaluate::{EvaluatedRow, Verdict};
use glovebox_hostile::host_fixture::{HostFixture, Mark};
use glovebox_hostile::row::{Limits, Row};
use glovebox_hostile::target::{AttackCommand, Confinement, Program, Target};
use glovebox_hostile::{observe, rows};
use glovebox_jail::jail::{probe, probe_tier};
use glovebox_record::Tier;
use jailed::JailConfinement;
use not_run::not_run;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

fn table(tier: Tier) -> Vec<Row> {
    let named = std::env::var("BATTERY_ROWS").unwrap_or_default();
    let programs = battery::programs(&rows::all(), JailConfinement::new(tier).tier()).into_iter();
    programs.filter(|row| named.is_empty() || named.split(',').any(|name| name == row.id)).collect()
}

fn hostile() -> Vec<u8> {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/components/glovebox-hostile");
    std::fs::read(&program).unwrap_or_else(|error| {
        panic!("`{}`: {error}; run `cargo xtask components` first", program.display());
    })
}

fn is_here(tier: Tier) -> bool {
    // On a machine with a better tier, `bwrap` is tested only if the program is installed.
    let missing = match tier {
        Tier::Bwrap => probe_tier(tier).err().map(|error| error.reason),
        _ if probe(None).tier.is_some_and(|best| best >= tier) => None,
        _ => Some("this machine has a lower tier".to_owned()),
    };
    if let Some(reason) = &missing {
        not_run(&format!("attacks in tier {tier}"), reason);
    }
    missing.is_none()
}

/// Only one battery runs at a time, because some rows depend on the machine's free space, which another battery uses
/// and frees.
static BATTERY: Mutex<()> = Mutex::new(());

fn attack(tier: Tier) -> Vec<EvaluatedRow> {
    let _one = BATTERY.lock().unwrap_or_else(PoisonError::into_inner);
    let program = hostile();
    let folder = tempfile::tempdir().unwrap();
    let parent = folder.path().canonicalize().unwrap();
    let evaluated = battery::run(&JailConfinement::new(tier), &program, &parent, &table(tier), 4);
    let left: Vec<_> = std::fs::read_dir(&parent).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "left behind: {left:?}");
    evaluated
}

#[track_caller]
fn check(tier: Tier) {
    if !is_here(tier) {
        return;
    }
    let evaluated = attack(tier);
    for one in &evaluated {
        println!("{:<20} {:<12} {} | {}", one.row.id, one.verdict.as_str(), one.answer, one.witness);
    }
    let bad: Vec<String> = evaluated
        .iter()
        .filter(|one| one.verdict.is_bad())
        .map(|one| {
            format!("{} ({}): {}: {} | {}", one.row.id, one.row.title, one.verdict.as_str(), one.answer, one.witness)
        })
        .collect();
    assert!(bad.is_empty(), "{} of {} in tier {tier}:\n{}", bad.len(), evaluated.len(), bad.join("\n"));
    if tier == Tier::Full {
        let gaps = evaluated.iter().filter(|one| one.verdict == Verdict::KnownGap && one.row.gap_always.is_none());
        assert_eq!(gaps.count(), 0, "tier `full` has no gap of its own");
    }
}

#[test]
fn nothing_gets_through_tier_full() {
    check(Tier::Full);
}

#[test]
fn only_known_gaps_get_through_tier_landlock() {
    check(Tier::Landlock);
}

#[test]
fn only_known_gaps_get_through_tier_bwrap() {
    check(Tier::Bwrap);
}

/// The attacks on a verifier succeed if the program under test runs in the jail of its verifier. This shows that the
/// attacks work.
#[test]
fn a_program_under_test_in_its_verifiers_jail_gets_through() {
    if !is_here(Tier::Full) {
        return;
    }
    let ids = ["read", "hunt", "grep", "tmp", "home", "shm-file", "written", "arguments", "variables", "descriptors"];
    let more = ["roots", "victim", "segment", "socket", "of-subject"];
    let ids: Vec<String> = ids.iter().chain(&more).map(|id| format!("subject-{id}")).collect();
    let table: Vec<Row> = rows::all().into_iter().filter(|row| ids.iter().any(|id| id == row.id)).collect();
    assert_eq!(table.len(), ids.len());
    let folder = tempfile::tempdir().unwrap();
    let confinement = JailConfinement { is_apart: false, ..JailConfinement::new(Tier::Full) };
    let evaluated = battery::run(&confinement, &hostile(), &folder.path().canonicalize().unwrap(), &table, 2);
    let stopped: Vec<String> = evaluated
        .iter()
        .filter(|one| one.verdict != Verdict::Through)
        .map(|one| format!("{}: {}: {} | {}", one.row.id, one.verdict.as_str(), one.answer, one.witness))
        .collect();
    assert!(stopped.is_empty(), "{}", stopped.join("\n"));
}

/// Contains the tier and the folder for [`a_host_with_something_stubborn_inside`], which does nothing without it.
const HOST: &str = "BATTERY_HOST";

#[test]
fn a_host_with_something_stubborn_inside() {
    let Ok(setup) = std::env::var(HOST) else { return };
    let (tier, folder) = setup.split_once(' ').unwrap();
    let fixture = HostFixture::create(Path::new(folder), &hostile()).unwrap();
    let mut target = JailConfinement::new(Tier::parse(tier).unwrap()).open(&fixture, &Limits::ALONE).unwrap();
    println!("\nmark {}", fixture.mark().as_str());
    let words = ["racers", "4", "{mark}"].map(|word| fixture.fill(word, Path::new("")));
    let program = fixture.attacker().join("glovebox-hostile").to_string_lossy().into_owned();
    let text = format!("{program} {} & {program} stubborn {} ; wait", words.join(" "), words[2]);
    let command = AttackCommand { program: Program::Shell(text), timeout: Duration::from_secs(60) };
    target.run(&command).unwrap();
}

/// Kills a host while a command runs, and waits until no process of the command is alive.
#[track_caller]
fn kill_host(tier: Tier) {
    if !is_here(tier) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "a_host_with_something_stubborn_inside", "--nocapture"]);
    command.env(HOST, format!("{tier} {}", folder.path().canonicalize().unwrap().display()));
    let mut host = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(host.stdout.take().unwrap()).lines().map(Result::unwrap);
    let mark = lines.find_map(|line| line.strip_prefix("mark ").map(str::to_owned)).map(Mark::from_text).unwrap();
    wait_until("the command runs", || observe::marked(&mark).len() >= 2);
    host.kill().unwrap();
    host.wait().unwrap();
    wait_until("nothing of it is alive", || observe::marked(&mark).is_empty());
}

#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begin = Instant::now();
    while !holds() {
        assert!(begin.elapsed() < Duration::from_secs(20), "{what}: not within 20 s");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn nothing_outlives_a_host_that_is_killed() {
    kill_host(Tier::Full);
}

#[test]
fn nothing_outlives_a_host_that_is_killed_in_tier_bwrap() {
    kill_host(Tier::Bwrap);
}

#[test]
fn nothing_outlives_a_host_that_is_killed_in_tier_landlock() {
    kill_host(Tier::Landlock);
}
