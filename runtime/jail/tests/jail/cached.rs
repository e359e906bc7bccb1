//! Build caches in jails: kept for the same domain, never part of the workspace, and limited like everything on disk.

use super::fixture::{Fixture, never, output, shell};
use glovebox_jail::exec::Exit;
use glovebox_jail::jail::{Bind, Jail, probe_tier};
use glovebox_record::scope::Entry;
use glovebox_record::{LimitName, Tier};
use glovebox_workspace::cache::{Caches, Domain};
use std::fs;
use std::path::Path;

/// Runs a shell command in a new jail over the same workspace and caches.
fn run(run_folder: &Path, domain: Domain, text: &str, disk_bytes: u64) -> (Exit, bool) {
    let fixture = Fixture::new(Tier::Full);
    fs::create_dir(fixture.root().join("target")).unwrap();
    let caches = Caches::open(run_folder, &domain.into(), &[Entry::parse("target/").unwrap()]).unwrap();
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
fn caches_of_toolchains_and_dependencies_are_there_in_every_tier_that_can_show_them() {
    let folder = tempfile::tempdir().unwrap();
    let package = folder.path().join("node_modules/a");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("index.js"), "a\n").unwrap();
    for tier in [Tier::Full, Tier::Bwrap, Tier::Landlock, Tier::Unconfined] {
        if probe_tier(tier).is_err() {
            continue;
        }
        let run = folder.path().join(tier.as_str());
        let say = |domain: Domain, text: &str| {
            let fixture = Fixture::new(tier);
            let caches = Caches::open(&run, &domain.into(), &[]).unwrap().with_tools(&[".cache/kept".into()]).unwrap();
            let mut setting = fixture.setting();
            setting.kept = caches.tool_binds(tier).unwrap();
            setting.policy.env.insert("XDG_CACHE_HOME".to_owned(), "{kept}".to_owned());
            if tier.has_own_root() {
                fs::create_dir(fixture.root().join("node_modules")).unwrap();
                let at = fixture.inside().join("node_modules");
                setting.inner = vec![Bind::read_only(folder.path().join("node_modules"), at)];
            }
            let jail = Jail::open(&setting, fixture.source()).unwrap();
            let exit = jail.run(&shell(text), &never()).unwrap();
            jail.end().unwrap();
            output(&exit)
        };
        assert_eq!(say(Domain::Checker, "echo one > $XDG_CACHE_HOME/x; ls $XDG_CACHE_HOME"), "x\n", "{tier}");
        assert_eq!(say(Domain::Checker, "cat $XDG_CACHE_HOME/x"), "one\n", "{tier}");
        assert_eq!(say(Domain::Builder, "ls -A $XDG_CACHE_HOME"), "", "{tier}");
        assert_eq!(say(Domain::Verifier, "ls -A $XDG_CACHE_HOME; ls -d $XDG_CACHE_HOME/../../*/x"), "", "{tier}");
        if tier.has_own_root() {
            let text = "cat node_modules/a/index.js; touch node_modules/b 2>/dev/null || rm -rf node_modules/a 2>/dev/null || \
                        mv node_modules m 2>/dev/null || echo kept";
            assert_eq!(say(Domain::Builder, text), "a\nkept\n", "{tier}");
        }
    }
}

#[test]
fn what_a_command_adds_to_a_cache_counts_as_disk() {
    let folder = tempfile::tempdir().unwrap();
    let text = "i=0; while [ $i -lt 200 ]; do head -c 1000000 /dev/zero > target/$i; i=$((i+1)); sleep 0.02; done";
    let (exit, dropped) = run(folder.path(), Domain::Builder, text, 8 << 20);
    assert_eq!(exit.over, Some(LimitName::DiskBytes), "{exit:?}");
    assert!(dropped);
}
