//! The probe of a machine: its result comes from a real attempt, is cached, and is not trusted if it is forged.

use glovebox_jail::jail::{ProbeReport, probe};
use glovebox_record::Tier;
use std::fs;
use std::path::Path;

/// Changes one result of the self-test in the cache file, so that a cached result differs from a new one.
fn mark(file: &Path, found: &ProbeReport) {
    let text = fs::read_to_string(file).unwrap();
    let name = &found.checks[0].name;
    let marked = text.replacen(&format!("\"name\": \"{name}\""), "\"name\": \"kept\"", 1);
    assert_ne!(marked, text);
    fs::write(file, marked).unwrap();
}

#[test]
fn the_best_tier_is_found_once_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("capability.json");
    let found = probe(Some(&file));
    assert_eq!(found.tier, Some(Tier::Full), "{:?}", found.missing);
    assert!(found.missing.is_empty() && found.checks.len() >= 8, "{found:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "the test left something behind");
    mark(&file, &found);
    let again = probe(Some(&file));
    assert_eq!(again.checks[0].name, "kept");
    // A result of another boot is not valid.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(boot.trim(), "00000000-0000-0000-0000-000000000000")).unwrap();
    let fresh = probe(Some(&file));
    assert_eq!((fresh.tier, &fresh.checks[0].name), (Some(Tier::Full), &found.checks[0].name));
    // The new result replaces the old one in the cache.
    mark(&file, &fresh);
    assert_eq!(probe(Some(&file)).checks[0].name, "kept");
}

#[test]
fn without_a_file_everything_is_found_out_anew() {
    let found = probe(None);
    assert_eq!(found.tier, Some(Tier::Full), "{:?}", found.missing);
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<ProbeReport>(&json).unwrap(), found);
    assert_eq!(probe(Some(Path::new("/no/such/folder/capability.json"))).tier, found.tier);
}
