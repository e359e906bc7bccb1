//! Build caches in jails: kept for the same domain, never part of the workspace, bounded like everything on disk.

use crate::fixture::{Fixture, never, output, shell};
use glovebox_record::scope::Entry;
use glovebox_record::{LimitName, Tier};
use glovebox_sandbox::cache::{Caches, Domain};
use glovebox_sandbox::exec::Exit;
use glovebox_sandbox::jail::Jail;
use std::fs;
use std::path::Path;

/// Runs a shell text in a new jail over the same workspace and caches.
fn run(run_folder: &Path, domain: Domain, text: &str, disk_bytes: u64) -> (Exit, bool) {
    let fixture = Fixture::new(Tier::Full);
    fs::create_dir(fixture.root().join("target")).unwrap();
    let caches = Caches::open(run_folder, domain, &[Entry::parse("target/").unwrap()]).unwrap();
    let mut setting = fixture.setting();
    setting.inner = caches.binds(&fixture.inside()).unwrap();
    setting.limits.disk_bytes = disk_bytes;
    let jail = Jail::open(&setting, fixture.source()).unwrap();
    let exit = jail.run(&shell(text), &never()).unwrap();
    jail.end().unwrap();
    assert!(!fixture.written("target/kept").exists(), "a cache was written to the workspace's layer");
    let dropped = caches.enforce_limit(1 << 20).unwrap().dropped;
    (exit, dropped)
}

#[test]
fn a_cache_is_kept_for_its_domain_only() {
    let folder = tempfile::tempdir().unwrap();
    let (exit, dropped) = run(folder.path(), Domain::Verifier, "echo hold-out > target/kept", 1 << 30);
    assert!(exit.code == Some(0) && !dropped, "{exit:?}");
    assert_eq!(output(&run(folder.path(), Domain::Verifier, "cat target/kept", 1 << 30).0), "hold-out\n");
    assert_eq!(output(&run(folder.path(), Domain::Builder, "ls -A target", 1 << 30).0), "");
    let (exit, dropped) = run(folder.path(), Domain::Verifier, "head -c 2000000 /dev/zero > target/large", 1 << 30);
    assert!(exit.code == Some(0) && dropped, "{exit:?}");
    assert_eq!(output(&run(folder.path(), Domain::Verifier, "ls -A target", 1 << 30).0), "");
}

#[test]
fn what_a_command_adds_to_a_cache_counts_as_disk() {
    let folder = tempfile::tempdir().unwrap();
    let text = "i=0; while [ $i -lt 200 ]; do head -c 1000000 /dev/zero > target/$i; i=$((i+1)); sleep 0.02; done";
    let (exit, dropped) = run(folder.path(), Domain::Builder, text, 8 << 20);
    assert_eq!(exit.over, Some(LimitName::DiskBytes), "{exit:?}");
    assert!(dropped);
}
