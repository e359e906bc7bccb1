//! Upper folders that a hostile program created.

use super::bench::{Bench, put, scope, snapshot};
use super::upper::{Upper, commit, lines, look, overlay};
use glovebox_record::Limits;
use glovebox_record::scope::Scope;
use glovebox_workspace::change::{ChangeLimits, Verdict};
use glovebox_workspace::protect::Protected;
use glovebox_workspace::quarantine::{QuarantineLimits, quarantine};
use glovebox_workspace::stage::{StageError, ViewOverrides, WorkspaceView};
use rustix::fs::{Mode, OFlags, mkdirat, openat};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const FILES: &[(&str, &str)] = &[("src/a", "a"), ("src/d/x", "x"), ("secret/k", "k")];

fn made() -> (Bench, WorkspaceView, Upper) {
    let made = Bench::new(FILES);
    let view = overlay(&made, &scope(&["./"], &["src/"], &["secret/"]), &ViewOverrides::default());
    let upper = Upper::of(&view);
    (made, view, upper)
}

fn limit(view: &WorkspaceView, limits: &ChangeLimits) -> &'static str {
    match view.changes(limits, &Protected::default()) {
        Err(StageError::Limit { limit, path, .. }) => {
            assert!(path.len() < 300, "{path}");
            limit
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_hundred_thousand_files_stop_at_the_cap() {
    let (_made, view, upper) = made();
    upper.folder("src");
    let folder = File::open(upper.at("src")).unwrap();
    for n in 0..100_000 {
        drop(openat(&folder, format!("{n}"), OFlags::CREATE | OFlags::WRONLY, Mode::RUSR).unwrap());
    }
    assert_eq!(limit(&view, &ChangeLimits::default()), "write_entries");
    view.remove().unwrap();
}

#[test]
fn a_removed_tree_counts_as_its_entries() {
    let files: Vec<(String, String)> = (0..50).map(|n| (format!("src/{n}"), String::new())).collect();
    let made = Bench::new(&files.iter().map(|(path, content)| (path.as_str(), content.as_str())).collect::<Vec<_>>());
    let view = overlay(&made, &Scope::everything(), &ViewOverrides::default());
    Upper::of(&view).gone("src");
    assert_eq!(limit(&view, &ChangeLimits::new(Limits { write_entries: 50, ..Limits::default() })), "write_entries");
    assert_eq!(
        view.changes(&ChangeLimits::new(Limits { write_entries: 51, ..Limits::default() }), &Protected::default())
            .unwrap()
            .len(),
        51
    );
}

fn deepen(at: &Path, name: &str, levels: u32) {
    let mut here = File::open(at).unwrap().into();
    for _ in 0..levels {
        mkdirat(&here, name, Mode::RWXU).unwrap();
        here = openat(&here, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
}

#[test]
fn depth_names_and_bytes_are_capped() {
    let (_made, view, upper) = made();
    deepen(&upper.0, "d", 5_000);
    assert_eq!(limit(&view, &ChangeLimits::default()), "depth");
    assert_eq!(limit(&view, &ChangeLimits { depth: 10_000, ..ChangeLimits::default() }), "path_bytes");
    view.remove().unwrap();

    let (_made, view, upper) = made();
    upper.file(&"n".repeat(255), "x");
    assert_eq!(limit(&view, &ChangeLimits { name_bytes: 254, ..ChangeLimits::default() }), "name_bytes");
    assert_eq!(lines(&look(&view)), [format!("!write {}", "n".repeat(255))]);

    let (_made, view, upper) = made();
    upper.file("src/sparse", "");
    File::options().write(true).open(upper.at("src/sparse")).unwrap().set_len(1 << 40).unwrap();
    assert_eq!(limit(&view, &ChangeLimits::default()), "write_bytes");

    // Blocks beyond the end of the file use space although the length does not show it.
    let (_made, view, upper) = made();
    upper.file("src/ahead", "x");
    let file = File::options().write(true).open(upper.at("src/ahead")).unwrap();
    rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::KEEP_SIZE, 0, 8 << 20).unwrap();
    assert_eq!(limit(&view, &ChangeLimits::new(Limits { write_bytes: 4 << 20, ..Limits::default() })), "write_bytes");
}

#[test]
fn names_that_deceive_are_refused() {
    let (made, view, upper) = made();
    for name in [&b"new\nline"[..], b"esc\x1b[2J", b"bad\xff", b"turn\xe2\x80\xae", b"\xffdir/x"] {
        let path = upper.at("src").join(OsStr::from_bytes(name));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "x").unwrap();
    }
    let before = snapshot(&made.workspace());
    let found = look(&view);
    assert!(found.len() >= 5 && found.iter().all(|change| !change.is_allowed()), "{found:?}");
    found.iter().for_each(|change| assert!(!change.path.chars().any(char::is_control), "{:?}", change.path));
    assert!(commit(&made, &view).is_empty());
    assert_eq!(snapshot(&made.workspace()), before);
}

#[test]
fn forged_marks_are_refused_and_lead_nowhere() {
    let check = |forge: &dyn Fn(&Upper) -> &Upper, refused: &[&str]| {
        let (made, view, upper) = made();
        forge(&upper);
        let before = snapshot(&made.workspace());
        let found = look(&view);
        assert_eq!(lines(&found), refused);
        let reasons: Vec<_> = found.iter().map(|change| &change.verdict).collect();
        let forged = Verdict::Disallowed("it has an overlay attribute that only the kernel may set".to_owned());
        assert!(reasons.iter().all(|verdict| **verdict == forged), "{reasons:?}");
        commit(&made, &view);
        assert_eq!(snapshot(&made.workspace()), before);
        quarantine(&view, &found, &made.dir.path().join("quarantine"), &QuarantineLimits::default()).unwrap();
        view.remove().unwrap();
    };
    check(&|u| u.file("src/a", "").mark("src/a", "user.overlay.metacopy", ""), &["!write src/a"]);
    check(&|u| u.file("src/a", "").mark("src/a", "user.overlay.redirect", "/secret/k"), &["!write src/a"]);
    check(&|u| u.file("src/a", "").mark("src/a", "user.overlay.opaque", "y"), &["!write src/a"]);
    check(&|u| u.file("src/a", "").mark("src/a", "user.overlay.whiteout", "y"), &["!write src/a"]);
    check(&|u| u.file("src/d/y", "y").mark("src/d", "user.overlay.redirect", "/secret"), &["!write src/d/y"]);
    check(&|u| u.folder("src/d").mark("src/d", "user.overlay.redirect", "/secret"), &["!mkdir src/d"]);
    check(&|u| u.folder("src/d").mark("src/d", "user.overlay.opaque", "x"), &["!mkdir src/d"]);
    check(&|u| u.file("src/b", "").mark("", "user.overlay.redirect", "/secret"), &["!write src/b"]);
    // Below a forged entry, no change is trusted, including deletions.
    check(&|u| u.gone("src/d/x").mark("src", "user.overlay.metacopy", ""), &["!delete src/d/x"]);
    // Marks that the kernel sets itself, and marks of a program that the kernel escaped, are treated like no mark.
    check(&|u| u.file("src/a", "a").mark("src/a", "user.overlay.origin", "x"), &[]);
    check(&|u| u.file("src/a", "a").mark("src/a", "user.overlay.overlay.redirect", "/secret"), &[]);
}

#[test]
fn closed_folders_and_set_id_files_are_read_all_the_same() {
    let (made, view, upper) = made();
    upper.file("src/closed/deep/f", "f").file("src/s", "s").opaque("src/d");
    for (path, mode) in
        [("src/closed/deep/f", 0), ("src/closed/deep", 0), ("src/closed", 0), ("src/d", 0), ("src/s", 0o4111)]
    {
        fs::set_permissions(upper.at(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    let found =
        ["mkdir src/closed", "mkdir src/closed/deep", "write src/closed/deep/f", "delete src/d/x", "write+x src/s"];
    assert_eq!(lines(&look(&view)), found);
    commit(&made, &view);
    assert_eq!(fs::read_to_string(made.workspace().join("src/closed/deep/f")).unwrap(), "f");
    view.remove().unwrap();
}

#[test]
fn links_in_the_upper_folder_are_never_followed() {
    let (made, view, upper) = made();
    let outside = made.dir.path().join("outside");
    put(&outside.join("canary"), "alive");
    upper.folder("src").link("src/d", outside.to_str().unwrap()).link("src/l", "/etc/passwd");
    let found = look(&view);
    assert_eq!(lines(&found), ["rmdir src/d", "!symlink src/d", "delete src/d/x", "!symlink src/l"]);
    let report = quarantine(&view, &found, &made.dir.path().join("quarantine"), &QuarantineLimits::default()).unwrap();
    assert!(report.kept.iter().all(|kept| kept.stored_as.is_none()));
    view.remove().unwrap();
    assert_eq!(fs::read_to_string(outside.join("canary")).unwrap(), "alive");
}
