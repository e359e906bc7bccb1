//! Property test: whatever a program does, an overlay and a copy give the same changes. One test fills the upper folder
//! from the copy's tree by the rules of the kernel, with a random choice where the kernel allows several forms. The
//! other one lets the kernel mount the overlay.

use super::bench::{Bench, entries, sh, snapshot};
use super::mounted::{copied, overlaid};
use super::upper::{lines, look, overlay, parts, whiteout};
use glovebox_record::scope::{Entry, Scope};
use glovebox_workspace::stage::{ViewOverrides, WorkspaceView};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

const NAMES: &[&str] = &["a", "b", "src", ".git"];

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(NAMES), 1..4).prop_map(|names| names.join("/"))
}

/// Generates one line of shell that never fails and never writes through a link.
fn act() -> impl Strategy<Value = String> {
    let write = (path(), 0_u8..3).prop_map(|(path, content)| {
        format!("mkdir -p $(dirname {path}); [ -L {path} ] || [ -p {path} ] || printf {content} > {path}")
    });
    let target = prop_oneof![path(), path().prop_map(|path| format!("../{path}")), Just("/nowhere/x".to_owned())];
    prop_oneof![
        4 => write,
        3 => path().prop_map(|path| format!("rm -rf {path}")),
        2 => path().prop_map(|path| format!("mkdir -p {path}")),
        2 => path().prop_map(|path| format!("rm -rf {path} && mkdir -p {path}")),
        3 => (path(), path()).prop_map(|(from, to)| format!("mv -T {from} {to}")),
        1 => (path(), path()).prop_map(|(from, to)| format!("ln -T {from} {to}")),
        1 => (path(), target).prop_map(|(path, target)| format!("ln -s -T {target} {path}")),
        1 => path().prop_map(|path| format!("mkfifo {path}")),
        1 => path().prop_map(|path| format!("touch {path}")),
        1 => (path(), prop::sample::select(&["644", "755", "600", "4755"][..]))
            .prop_map(|(path, mode)| format!("[ -L {path} ] || [ -d {path} ] || chmod {mode} {path}")),
    ]
}

fn script(acts: &[String]) -> String {
    acts.iter().map(|act| format!("( {act} ) 2>/dev/null || true\n")).collect()
}

fn entry() -> impl Strategy<Value = String> {
    (path(), any::<bool>()).prop_map(|(path, subtree)| if subtree { format!("{path}/") } else { path })
}

#[derive(Debug)]
struct Case {
    before: Vec<(String, String)>,
    acts: Vec<String>,
    scope: Scope,
}

/// Generates a case. The initial tree has only files: a link to a hidden path is omitted from a copy but leads nowhere
/// in an overlay.
fn case() -> impl Strategy<Value = Case> {
    let list = || prop::collection::vec(entry(), 0..3);
    let before = prop::collection::vec((path(), "[0-2]"), 0..8);
    (
        before,
        prop::collection::vec(act(), 0..12),
        list(),
        any::<bool>(),
        list(),
        list(),
        prop::collection::vec(entry(), 0..2),
    )
        .prop_map(|(before, acts, read, whole, write, hidden, scratch)| {
            let entries = |texts: &[String]| entries(&texts.iter().map(String::as_str).collect::<Vec<_>>());
            let mut read = entries(&read);
            read.extend(whole.then(Entry::whole));
            let scope = Scope::new(read, entries(&write), entries(&hidden)).with_scratch(entries(&scratch));
            Case { before: possible(before), acts, scope }
        })
}

/// Removes paths that conflict with an earlier path.
fn possible(files: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut kept: Vec<(String, String)> = Vec::new();
    for (path, content) in files {
        let below = |a: &str, b: &str| Path::new(a).starts_with(b);
        if kept.iter().all(|(other, _)| !below(other, &path) && !below(&path, other)) {
            kept.push((path, content));
        }
    }
    kept
}

/// A pseudo-random generator of coin tosses.
struct Coin(u64);

impl Coin {
    fn toss(&mut self) -> bool {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 40 & 1 == 1
    }
}

fn names(at: &Path) -> BTreeSet<std::ffi::OsString> {
    fs::read_dir(at).map(|all| all.map(|entry| entry.unwrap().file_name()).collect()).unwrap_or_default()
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn is_same(a: &Path, b: &Path) -> bool {
    let state = |path: &Path| {
        let meta = fs::symlink_metadata(path).unwrap();
        let content = if meta.is_file() { fs::read(path).unwrap() } else { Vec::new() };
        (meta.file_type(), meta.permissions().mode() & 0o100, content, fs::read_link(path).ok())
    };
    state(a) == state(b)
}

fn opaque(at: &Path) {
    rustix::fs::lsetxattr(at, "user.overlay.opaque", b"y", rustix::fs::XattrFlags::empty()).unwrap();
}

/// Fills `upper` with the changes that turn `before` into `after`.
fn leave(before: &Path, after: &Path, upper: &Path, coin: &mut Coin) {
    for name in names(before).union(&names(after)) {
        let (was, is, into) = (before.join(name), after.join(name), upper.join(name));
        let (had, has) = (fs::symlink_metadata(&was).is_ok(), fs::symlink_metadata(&is).is_ok());
        match (had, has) {
            (true, false) => whiteout(&into),
            (true, true) if is_folder(&was) && is_folder(&is) => {
                fs::create_dir(&into).unwrap();
                if coin.toss() {
                    leave(&was, &is, &into, coin);
                } else {
                    opaque(&into);
                    leave(Path::new("/nowhere"), &is, &into, coin);
                }
            }
            (true, true) if is_same(&was, &is) && coin.toss() => {}
            _ if is_folder(&is) => {
                fs::create_dir(&into).unwrap();
                if had || coin.toss() {
                    opaque(&into);
                }
                leave(Path::new("/nowhere"), &is, &into, coin);
            }
            _ => put_same(&is, &into),
        }
    }
}

fn put_same(from: &Path, to: &Path) {
    let meta = fs::symlink_metadata(from).unwrap();
    if meta.is_symlink() {
        symlink(fs::read_link(from).unwrap(), to).unwrap();
    } else if meta.is_file() {
        fs::copy(from, to).unwrap();
    } else {
        rustix::fs::mkfifoat(rustix::fs::CWD, to, rustix::fs::Mode::RWXU).unwrap();
    }
}

fn borrowed(files: &[(String, String)]) -> Vec<(&str, &str)> {
    files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn an_overlay_and_a_copy_find_the_same(case in case(), seed in any::<u64>()) {
        let made = Bench::new(&borrowed(&case.before));
        let base = made.dir.path();
        let (pristine, at) = (base.join("pristine"), base.join("copy"));
        let extra = ViewOverrides::default();
        let view = overlay(&made, &case.scope, &extra);
        WorkspaceView::copy(&made.workspace(), &pristine, &case.scope, &extra).unwrap();
        let copy = WorkspaceView::copy(&made.workspace(), &at, &case.scope, &extra).unwrap();
        sh(&at, &script(&case.acts));
        leave(&pristine, &at, &parts(&view).1, &mut Coin(seed));
        prop_assert_eq!(lines(&look(&view)), lines(&look(&copy)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn a_mounted_overlay_shows_and_commits_what_a_copy_does(case in case()) {
        let (files, script) = (borrowed(&case.before), script(&case.acts));
        let copy = copied(&files, &case.scope, &script);
        let overlay = overlaid(&files, &case.scope, &script);
        prop_assert_eq!(overlay.1, copy.1, "seen");
        prop_assert_eq!(overlay.0, copy.0, "found");
        prop_assert_eq!(overlay.2, copy.2, "committed");
    }
}

#[test]
fn a_snapshot_tells_trees_apart() {
    let made = Bench::new(&[("a", "a")]);
    let before = snapshot(&made.workspace());
    sh(&made.workspace(), "chmod +x a");
    assert_ne!(snapshot(&made.workspace()), before);
}
