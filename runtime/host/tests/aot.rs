//! Tests of the store of compiled components: stored code is used, and code that was tampered with is compiled again.

use crate::guests;
use glovebox_host::aot::AotCounts;
use glovebox_host::component::LoadError;
use glovebox_host::host::{Host, HostConfig};
use glovebox_host::inspect::embed;
use glovebox_record::Digest;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

fn host(cache: &Path) -> Host {
    Host::new(HostConfig::in_process(Some(cache.to_owned()), 1)).unwrap()
}

/// Loads a guest with a new host and returns the counts of its store.
fn load(cache: &Path, name: &str) -> AotCounts {
    let host = host(cache);
    host.load(&guests::build(name)).unwrap();
    host.aot_counts().unwrap()
}

/// Returns the artefacts of components that tests load, without the artefact of the host's own probe.
fn artefacts(cache: &Path) -> Vec<PathBuf> {
    let own = own_artefact(cache);
    all_artefacts(cache).into_iter().filter(|path| *path != own).collect()
}

fn all_artefacts(cache: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(cache.join("aot")).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|e| e == "cwasm")).collect();
    paths.sort();
    paths
}

/// Returns the path of the probe's artefact; empty if there is none.
fn own_artefact(cache: &Path) -> PathBuf {
    let own = Digest::hash(include_bytes!("../src/probe.wasm")).hex();
    let is_own = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().starts_with(&own);
    all_artefacts(cache).into_iter().find(is_own).unwrap_or_default()
}

fn mac_of(artefact: &Path) -> PathBuf {
    artefact.with_extension("cwasm.mac")
}

const STORED: AotCounts = AotCounts { loaded: 0, missing: 1, rejected: 0, stored: 1 };
const LOADED: AotCounts = AotCounts { loaded: 1, missing: 0, rejected: 0, stored: 0 };
const REPLACED: AotCounts = AotCounts { loaded: 0, missing: 0, rejected: 1, stored: 1 };

/// A new version of a plugin often has the same code.
#[test]
fn components_that_differ_in_their_manifest_share_machine_code() {
    let cache = tempfile::tempdir().unwrap();
    let versions = ["1.0.0", "2.0.0"].map(|version| {
        let manifest = format!(r#"{{"name":"acme.x","version":"{version}"}}"#);
        let host = host(cache.path());
        let component = host.load(&embed(&guests::build("remembers"), &manifest).unwrap()).unwrap();
        let written = component.inspection().manifest.as_ref().unwrap().version.clone();
        (written, component.inspection().digest, host.aot_counts().unwrap())
    });
    let [(first, one, counts), (second, two, later)] = versions;
    assert_eq!((first.as_str(), second.as_str(), counts, later), ("1.0.0", "2.0.0", STORED, LOADED));
    assert_ne!(one, two);
    assert_eq!(artefacts(cache.path()).len(), 1);
}

#[test]
fn a_component_is_compiled_once() {
    let cache = tempfile::tempdir().unwrap();
    assert_eq!(load(cache.path(), "traps"), STORED);
    assert_eq!(load(cache.path(), "traps"), LOADED);
    let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(cache.path().join("aot")), 0o700);
    assert_eq!(mode(cache.path().join("aot/mac.key")), 0o600);
}

/// A stored component is not validated again, so an artefact copied to the name of a refused component must not be used.
#[test]
fn an_artefact_of_other_bytes_lets_no_refused_component_pass() {
    let cache = tempfile::tempdir().unwrap();
    assert_eq!(load(cache.path(), "traps"), STORED);
    let refused = wat::parse_str("(component (core module (func i32.add drop)))").unwrap();
    let [good] = &artefacts(cache.path())[..] else { panic!("one artefact") };
    let name = good.file_name().unwrap().to_str().unwrap();
    let (_, engine) = name.split_once('-').unwrap();
    let planted = good.with_file_name(format!("{}-{engine}", Digest::hash(&refused).hex()));
    fs::copy(good, &planted).unwrap();
    fs::copy(mac_of(good), mac_of(&planted)).unwrap();
    let host = host(cache.path());
    assert!(matches!(host.load(&refused), Err(LoadError::Inspect(_))));
    assert_eq!(host.aot_counts().unwrap().rejected, 1);
}

#[test]
fn the_hosts_own_component_is_compiled_once_and_again_when_it_was_tampered_with() {
    let cache = tempfile::tempdir().unwrap();
    host(cache.path());
    let own = own_artefact(cache.path());
    let (made, inode) = (fs::read(&own).unwrap(), fs::metadata(&own).unwrap().ino());
    host(cache.path());
    assert_eq!(fs::metadata(&own).unwrap().ino(), inode, "it was used");
    let mut other = made.clone();
    let middle = other.len() / 2;
    other[middle] ^= 1;
    fs::write(&own, other).unwrap();
    assert_eq!(load(cache.path(), "traps"), STORED);
    assert_eq!(fs::read(&own).unwrap(), made);
}

#[test]
fn a_host_without_a_folder_keeps_nothing() {
    let host = Host::new(HostConfig::in_process(None, 1)).unwrap();
    host.load(&guests::build("traps")).unwrap();
    assert_eq!(host.aot_counts(), None);
}

#[test]
fn what_was_tampered_with_is_compiled_again() {
    let cache = tempfile::tempdir().unwrap();
    type Tamper = fn(&Path);
    let tampers: [(&str, Tamper); 5] = [
        ("corrupted artefact", |artefact| {
            let mut bytes = fs::read(artefact).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(artefact, bytes).unwrap();
        }),
        ("MAC without the key", |artefact| {
            let plain = blake3::hash(&fs::read(artefact).unwrap());
            fs::write(mac_of(artefact), plain.to_hex().as_bytes()).unwrap();
        }),
        ("MAC that is none", |artefact| fs::write(mac_of(artefact), "yes").unwrap()),
        ("link in its place", |artefact| {
            let moved = artefact.with_extension("moved");
            fs::rename(artefact, &moved).unwrap();
            std::os::unix::fs::symlink(&moved, artefact).unwrap();
        }),
        ("another version under a good MAC", |artefact| {
            let name = artefact.file_name().unwrap().to_str().unwrap();
            let key: [u8; 32] = fs::read(artefact.with_file_name("mac.key")).unwrap().try_into().unwrap();
            let mut bytes = fs::read(artefact).unwrap();
            // The header of an artefact contains the major version of wasmtime, preceded by its length.
            let version = bytes.windows(4).position(|window| window == b"\0\x0248").expect("a version in the artefact");
            bytes[version + 3] = b'7';
            let mut mac = blake3::Hasher::new_keyed(&key);
            mac.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes()).update(&bytes);
            fs::write(artefact, &bytes).unwrap();
            fs::write(mac_of(artefact), mac.finalize().to_hex().as_bytes()).unwrap();
        }),
    ];
    assert_eq!(load(cache.path(), "traps"), STORED);
    for (what, tamper) in tampers {
        tamper(&artefacts(cache.path())[0]);
        assert_eq!(load(cache.path(), "traps"), REPLACED, "{what}");
        assert_eq!(load(cache.path(), "traps"), LOADED, "after {what}");
    }
}

#[test]
fn one_component_cannot_stand_in_for_another() {
    let cache = tempfile::tempdir().unwrap();
    assert_eq!(load(cache.path(), "traps"), STORED);
    let first = artefacts(cache.path()).remove(0);
    assert_eq!(load(cache.path(), "exits"), STORED);
    let second = artefacts(cache.path()).into_iter().find(|path| *path != first).unwrap();
    fs::copy(&first, &second).unwrap();
    fs::copy(mac_of(&first), mac_of(&second)).unwrap();
    assert_eq!(load(cache.path(), "exits"), REPLACED);
}

#[test]
fn a_key_others_can_read_is_not_used() {
    let cache = tempfile::tempdir().unwrap();
    load(cache.path(), "traps");
    let key = cache.path().join("aot/mac.key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    assert_eq!(host(cache.path()).aot_counts(), None);
}

#[test]
fn a_folder_of_another_user_is_not_used() {
    let cache = tempfile::tempdir().unwrap();
    load(cache.path(), "traps");
    let folder = cache.path().join("aot");
    let other = if fs::metadata(&folder).unwrap().uid() == 0 { 12345 } else { 0 };
    // Only root can change the owner of files. Without root, the folder itself gets the wrong owner in this test.
    if std::os::unix::fs::chown(&folder, Some(other), None).is_ok() {
        assert_eq!(host(cache.path()).aot_counts(), None);
    } else {
        assert_eq!(host(Path::new("/")).aot_counts(), None);
    }
}

/// Loads a guest with a host whose store has a size limit, and returns the counts of the store.
fn load_within(cache: &Path, name: &str, cache_bytes_max: u64) -> AotCounts {
    let config = HostConfig { cache_bytes_max, ..HostConfig::in_process(Some(cache.to_owned()), 1) };
    let host = Host::new(config).unwrap();
    host.load(&guests::build(name)).unwrap();
    host.aot_counts().unwrap()
}

/// Sets the time of an artefact's last use to so many seconds ago.
fn used_before(artefact: &Path, seconds: u64) {
    let then = std::time::SystemTime::now() - std::time::Duration::from_secs(seconds);
    fs::File::options().append(true).open(artefact).unwrap().set_modified(then).unwrap();
}

#[test]
fn what_was_not_used_for_longest_goes_when_something_is_added() {
    let cache = tempfile::tempdir().unwrap();
    let mut kept = Vec::new();
    for (name, age) in [("traps", 9_000), ("exits", 8_000), ("sleeps", 7_000)] {
        load(cache.path(), name);
        let new = artefacts(cache.path()).into_iter().find(|path| !kept.contains(path)).unwrap();
        used_before(&new, age);
        kept.push(new);
    }
    // Loading counts as a use, so `traps` is now the most recently used one.
    assert_eq!(load(cache.path(), "traps"), LOADED);
    let all: u64 = all_artefacts(cache.path()).iter().map(|path| fs::metadata(path).unwrap().len() + 64).sum();
    let left = cache.path().join("aot/unfinished.cwasm.0123456789abcdef");
    fs::write(&left, "left by a process that was killed").unwrap();
    used_before(&left, 9_000);
    let room = fs::metadata(&kept[1]).unwrap().len() / 2;
    assert_eq!(load_within(cache.path(), "panics", all + room), STORED);
    let here = |path: &PathBuf| (path.exists(), mac_of(path).exists());
    let state: Vec<_> = kept.iter().map(here).collect();
    assert_eq!(state, [(true, true), (false, false), (true, true)], "`exits` goes");
    assert!(!left.exists(), "and what nobody writes any more");
    // The artefact that was just added stays, although it alone exceeds the limit.
    assert_eq!(load_within(cache.path(), "exits", 1), STORED);
    assert_eq!(artefacts(cache.path()).len(), 1);
    assert_eq!(load(cache.path(), "exits"), LOADED);
}

#[test]
fn many_at_once_may_add_and_trim() {
    let cache = tempfile::tempdir().unwrap();
    let names = ["traps", "exits", "sleeps", "panics"];
    std::thread::scope(|scope| {
        for offset in 0..names.len() {
            let (cache, names) = (cache.path(), &names);
            scope.spawn(move || {
                for round in 0..4 {
                    let counts = load_within(cache, names[(offset + round) % names.len()], 1 << 10);
                    assert_eq!(counts.rejected, 0, "{counts:?}");
                }
            });
        }
    });
    assert_eq!(load(cache.path(), "traps").rejected, 0);
}
