//! Changes from an overlay that are applied again after a crash at any point, and disallowed changes, which are kept.

use super::bench::{Bench, scope, snapshot};
use super::upper::{Upper, commit, lines, look, overlay};
use glovebox_record::ChangeOp;
use glovebox_workspace::commit;
use glovebox_workspace::quarantine::{QuarantineLimits, quarantine};
use glovebox_workspace::stage::ViewOverrides;
use std::cell::Cell;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;

const FILES: &[(&str, &str)] = &[
    ("keep", "k"),
    ("a", "file"),
    ("d/x", "x"),
    ("d/secret", "s"),
    ("e/y", "y"),
    ("gone/deep/z", "z"),
    ("run.sh", "#!"),
];

/// Creates every kind of change.
fn leave(upper: &Upper) {
    upper.file("a/b", "new").file("e", "now a file").opaque("d").file("d/new", "n").gone("gone").link("l", "keep");
    upper.file("run.sh", "#!").file("n/m/o", "o").file("n/m/p", "p");
    fs::set_permissions(upper.at("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn an_interrupted_commit_of_an_overlay_is_finished_by_the_next() {
    let scope = scope(&["./"], &["./"], &["d/secret"]);
    let made = Bench::new(FILES);
    let view = overlay(&made, &scope, &ViewOverrides::default());
    leave(&Upper::of(&view));
    let changes = commit(&made, &view);
    let finished = snapshot(&made.workspace());
    let expected = ["a", "a/b", "d", "d/new", "d/secret", "e", "keep", "l", "n", "n/m", "n/m/o", "n/m/p", "run.sh"];
    assert_eq!(finished.keys().map(String::as_str).collect::<Vec<_>>(), expected);
    view.remove().unwrap();

    let writes = changes.iter().filter(|change| change.op == ChangeOp::Write).count();
    assert!(writes >= 5);
    for stop in 0..=writes {
        let fresh = Bench::new(FILES);
        let opened = Cell::new(0);
        let interrupted = commit::apply(&fresh.workspace(), &changes, &|digest| {
            opened.set(opened.get() + 1);
            if opened.get() > stop { Err(io::Error::other("interrupted")) } else { made.blob(digest) }
        });
        assert_eq!(interrupted.is_err(), stop < writes, "{stop}");
        for _ in 0..2 {
            commit::apply(&fresh.workspace(), &changes, &|digest| made.blob(digest)).unwrap();
            assert_eq!(snapshot(&fresh.workspace()), finished, "{stop}");
        }
    }
}

#[test]
fn a_stage_that_is_not_committed_leaves_nothing() {
    let made = Bench::new(FILES);
    let before = snapshot(&made.workspace());
    let view = overlay(&made, &scope(&["./"], &["./"], &[]), &ViewOverrides::default());
    leave(&Upper::of(&view));
    assert!(!look(&view).is_empty());
    view.remove().unwrap();
    assert_eq!(snapshot(&made.workspace()), before);
    assert!(!made.dir.path().join("attempt").exists());
}

#[test]
fn what_was_not_allowed_is_kept_and_cannot_act() {
    let made = Bench::new(FILES);
    let view = overlay(&made, &scope(&["./"], &["d/"], &[]), &ViewOverrides::default());
    let upper = Upper::of(&view);
    upper.file(".git/hooks/post-checkout", "#!/bin/sh").file("d/fine", "f").file("new", "n").gone("a");
    fs::set_permissions(upper.at(".git/hooks/post-checkout"), fs::Permissions::from_mode(0o4755)).unwrap();
    let found = look(&view);
    assert_eq!(lines(&found), ["!write+x .git/hooks/post-checkout", "!delete a", "write d/fine", "!write new"]);
    let into = made.dir.path().join("quarantine");
    let report = quarantine(&view, &found, &into, &QuarantineLimits::default()).unwrap();
    let kept: Vec<_> = report.kept.iter().map(|kept| (kept.path.as_str(), kept.op.as_str(), kept.bytes)).collect();
    assert_eq!(kept, [(".git/hooks/post-checkout", "write", 9), ("a", "delete", 0), ("new", "write", 1)]);
    for entry in fs::read_dir(&into).unwrap() {
        assert_eq!(entry.unwrap().metadata().unwrap().permissions().mode() & 0o7777, 0o600);
    }
    let hook = report.kept[0].stored_as.clone().unwrap();
    assert_eq!(fs::read_to_string(into.join(hook)).unwrap(), "#!/bin/sh");
}
