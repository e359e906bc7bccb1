//! The search for changes: which entries are read, which are not, and the limits of the search.

use super::bench::{Bench, look, put, scope, sh};
use glovebox_record::Limits;
use glovebox_record::scope::Scope;
use glovebox_workspace::change::{ChangeLimits, Op, Verdict};
use glovebox_workspace::protect::Protected;
use glovebox_workspace::stage::StageError;
use std::fs::{self, File};
use std::path::Path;

#[test]
fn a_change_that_sets_its_times_back_is_found() {
    let made = Bench::new(&[("src/a", "aaaa"), ("src/b", "bbbb")]);
    let copy = made.copy(&scope(&["./"], &["src/"], &[]));
    // The write usually happens in the same clock tick as the copy, so the stamp alone does not prove a change.
    let path = copy.root().join("src/a");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    fs::write(&path, "AAAA").unwrap();
    File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
    // Only the time changes. This is not a change of the file.
    File::options().write(true).open(copy.root().join("src/b")).unwrap().set_modified(modified).unwrap();
    let found = look(&copy);
    assert_eq!(found.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["src/a"]);
    assert_eq!(found[0].op, Op::Write { bytes: 4, executable: false, mode: None });
    assert_eq!(found[0].verdict, Verdict::Allowed);
}

#[test]
fn each_limit_is_named() {
    let check = |limits: ChangeLimits, script: &str, expected: &str| {
        let made = Bench::new(&[("a", "a")]);
        let copy = made.copy(&Scope::everything());
        sh(copy.root(), script);
        match copy.changes(&limits, &Protected::default()) {
            Err(StageError::Limit { limit, .. }) => assert_eq!(limit, expected, "{script}"),
            other => panic!("{script}: {other:?}"),
        }
        copy.remove().unwrap();
    };
    let default = ChangeLimits::default();
    let small = ChangeLimits::new(Limits { write_entries: 20, ..Limits::default() });
    check(small, "for i in $(seq 30); do : > f$i; done", "write_entries");
    check(default, "truncate -s 1T sparse", "write_bytes");
    check(default, &format!("mkdir -p {}", "d/".repeat(140)), "depth");
    let name = "n".repeat(200);
    check(ChangeLimits { name_bytes: 100, ..default }, &format!("touch {name}"), "name_bytes");
}

#[test]
fn a_tree_of_five_thousand_levels_is_refused_and_removed() {
    let made = Bench::new(&[]);
    let copy = made.copy(&Scope::everything());
    deepen(copy.root(), "d", 5_000);
    deepen(copy.root(), &"n".repeat(200), 30);
    let check = |depth: u32, expected: &str| match copy
        .changes(&ChangeLimits { depth, ..ChangeLimits::default() }, &Protected::default())
    {
        Err(StageError::Limit { limit, .. }) => assert_eq!(limit, expected),
        other => panic!("{other:?}"),
    };
    check(128, "depth");
    check(10_000, "path_bytes");
    copy.remove().unwrap();
    assert!(!made.dir.path().join("copy").exists());
}

fn deepen(at: &Path, name: &str, levels: u32) {
    use rustix::fs::{Mode, OFlags, mkdirat, openat};
    let mut here = File::open(at).unwrap().into();
    for _ in 0..levels {
        mkdirat(&here, name, Mode::RWXU).unwrap();
        here = openat(&here, name, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).unwrap();
    }
}

#[test]
fn of_five_thousand_untouched_files_only_the_last_copied_are_read() {
    let made = Bench::new(&[]);
    for n in 0..5_000 {
        put(&made.workspace().join(format!("d{}/f{n}", n % 50)), "some content");
    }
    let copy = made.copy(&Scope::everything());
    // The workspace is removed as a witness: a file that is read cannot be compared with its original, so it is reported as
    // changed.
    for n in 0..50 {
        fs::remove_dir_all(made.workspace().join(format!("d{n}"))).unwrap();
    }
    let read = look(&copy).len();
    assert!(read < 2_500, "{read} files were read, expected those of the last clock tick alone");
}
